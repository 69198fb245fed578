"""Label and field selectors: grammar, words, matching."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import LabelSelector, LabelSelectorRequirement
from kruise.machinery import selectors
from kruise.machinery.selectors import EVERYTHING, NOTHING, Operator, Requirement, Selector, SelectorError
from tests.support.examples import EXAMPLES


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("   ", ""),
        ("a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c!=d,e in (x,y),f notin (z),g,!h"),
        ("z,a", "a,z"),
        ("a==b", "a==b"),
        (" a == b , c in ( y , x ) ", "a==b,c in (x,y)"),
        ("a=", "a="),
        ("a!=", "a!="),
        ("a=,b=c", "a=,b=c"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x in (,)", "x in ()"),
        ("x in(a)", "x in (a)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin", "notin"),
        ("a>1,b<2", "a>1,b<2"),
        ("example.com/name=v_1.x", "example.com/name=v_1.x"),
        ("!a,\tb\n", "!a,b"),
    ],
)
def test_the_grammar(text: str, canonical: str) -> None:
    assert str(selectors.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
            "the value must be an integer",
        ),
    ],
)
def test_errors_are_the_servers_words(text: str, words: str) -> None:
    with pytest.raises(SelectorError) as caught:
        selectors.parse(text)
    assert str(caught.value) == words


def test_keys_and_values_are_checked() -> None:
    with pytest.raises(
        SelectorError, match=r'^unable to parse requirement: <nil>: Invalid value: "a/b/c": a qualified'
    ):
        selectors.parse("a/b/c")
    with pytest.raises(SelectorError, match=r'values\[0\]\[a\]: Invalid value: "\$": a valid label must be an empty'):
        selectors.parse("a=$")
    with pytest.raises(SelectorError, match=r"name part must be no more than 63 characters"):
        selectors.parse("a" * 64)
    with pytest.raises(SelectorError, match=r"^\[key: Invalid value.*, values\[1\]\[\$\]: Invalid value"):
        Requirement("$", Operator.IN, ("a", "$"))


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a notin (b,c)", {}, True),
        ("a notin (b,c)", {"a": "c"}, False),
        ("a in (b,c)", {"a": "c"}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("!a", {"b": ""}, True),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a<5", {"a": "-1"}, True),
        ("a<5", {"a": "x"}, False),
        ("a<5", {}, False),
        ("a<5", {"a": "99999999999999999999"}, False),
        ("a=b,c", {"a": "b"}, False),
    ],
)
def test_matching(text: str, labels: dict[str, str], matches: bool) -> None:
    assert selectors.parse(text).matches(labels) is matches


def test_none_selects_nothing_and_empty_selects_everything() -> None:
    assert selectors.from_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.is_empty
    for empty in ({}, LabelSelector(), {"matchLabels": None, "matchExpressions": []}):
        selector = selectors.from_label_selector(empty)
        assert selector == EVERYTHING
        assert selector.is_empty
        assert selector.matches({"a": "b"})


def test_the_text_of_nothing_is_refused_by_servers_not_taken_for_everything() -> None:
    with pytest.raises(SelectorError):
        selectors.parse(str(NOTHING))


def test_from_a_struct_and_from_its_json() -> None:
    struct = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=(
            LabelSelectorRequirement(key="tier", operator="In", values=("b", "a")),
            LabelSelectorRequirement(key="env", operator="NotIn", values=("dev",)),
            LabelSelectorRequirement(key="on", operator="Exists"),
            LabelSelectorRequirement(key="off", operator="DoesNotExist"),
        ),
    )
    json = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "env", "operator": "NotIn", "values": ["dev"]},
            {"key": "on", "operator": "Exists", "values": None},
            {"key": "off", "operator": "DoesNotExist"},
        ],
    }
    assert selectors.from_label_selector(struct) == selectors.from_label_selector(json)
    assert str(selectors.from_label_selector(json)) == "app=web,env notin (dev),!off,on,tier in (a,b)"


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ({"matchExpressions": [{"key": "a", "operator": "Foo"}]}, '"Foo" is not a valid label selector operator'),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "values set can't be empty"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "values set must be empty for exists and does not exist",
        ),
        ({"matchExpressions": [{"operator": "Exists"}]}, "name part must be non-empty"),
        ({"matchLabels": {"a": "b c"}}, "a valid label must be an empty string or consist of"),
        ({"matchLabels": {"a": 1}}, "matchLabels must be an object of strings"),
        ({"matchLabels": ["a"]}, "matchLabels must be an object of strings"),
        ({"matchExpressions": {"a": 1}}, "matchExpressions must be a list of objects"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}, "must be a list of strings"),
    ],
)
def test_malformed_label_selectors_are_refused(selector: Any, words: str) -> None:
    with pytest.raises(SelectorError) as caught:
        selectors.from_label_selector(selector)
    assert words in str(caught.value)


def test_exact_values_can_be_looked_up() -> None:
    selector = selectors.parse("a=1,b in (2),c in (3,4),d!=5")
    assert [selector.exact_value(key) for key in "abcdx"] == ["1", "2", None, None, None]


def test_from_labels() -> None:
    assert str(selectors.from_labels({"b": "2", "a": "1"})) == "a=1,b=2"
    assert selectors.from_labels(None) == EVERYTHING


KEYS = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?", fullmatch=True)
VALUES = st.one_of(st.just(""), KEYS)
SELECTORS = st.lists(
    st.one_of(
        st.builds(
            lambda key, operator, value: Requirement(key, operator, (value,)),
            KEYS,
            st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
            VALUES,
        ),
        st.builds(
            lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
            KEYS,
            st.sampled_from([Operator.IN, Operator.NOT_IN]),
            st.sets(VALUES, min_size=1, max_size=3),
        ),
        st.builds(Requirement, KEYS, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
        st.builds(
            lambda key, operator, value: Requirement(key, operator, (str(value),)),
            KEYS,
            st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
            st.integers(0, 99),
        ),
    ),
    max_size=4,
).map(lambda requirements: Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key))))


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(SELECTORS)
def test_the_text_gives_the_same_selector(selector: Selector) -> None:
    assert selectors.parse(str(selector)) == selector


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(st.text(alphabet="ab1=!(),<> innot", max_size=14))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = selectors.parse(text)
    except SelectorError:
        return
    assert selectors.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("metadata.name=x,spec.nodeName!=y", "metadata.name=x,spec.nodeName!=y"),
        ("b=1,a=2", "a=2,b=1"),
        ("a==b", "a=b"),
        ("a=", "a="),
        (",,a=b,", "a=b"),
        (r"a=b\,c\=d\\e", r"a=b\,c\=d\\e"),
        ("=", ""),
    ],
)
def test_the_grammar_of_fields(text: str, canonical: str) -> None:
    assert str(selectors.parse_fields(text)) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=b\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_errors_of_field_selectors_are_the_servers_words(text: str, words: str) -> None:
    with pytest.raises(SelectorError) as caught:
        selectors.parse_fields(text)
    assert str(caught.value) == words


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z.]{1,6}", fullmatch=True), st.text(max_size=6), max_size=3))
def test_any_field_value_survives_its_text(values: dict[str, str]) -> None:
    requirements = [selectors.FieldRequirement(field, True, value) for field, value in values.items()]
    selector = selectors.FieldSelector(tuple(requirements))
    assert set(selectors.parse_fields(str(selector)).requirements) == set(requirements)
