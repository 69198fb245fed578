"""The part of CEL that match conditions are evaluated with."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.admission.inventory import VALIDATING
from kruise.admission.validating_chain import PodOperation, PodValidationStep
from kruise.local.webhooks.conditions import EvaluationError, compiled
from tests.support.examples import EXAMPLES


def value(expression: str, obj: Any = None, old: Any = None, **request: Any) -> bool:
    condition = compiled(expression)
    assert condition is not None, expression
    return condition({"object": obj, "oldObject": old, "request": request})


def pod(**annotations: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "p"}
    if annotations:
        metadata["annotations"] = {name.replace("__", "/"): text for name, text in annotations.items()}
    return {"metadata": metadata}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", True),
        ("!true", False),
        ("!!true", True),
        ("1 == 1", True),
        ("1 == true", False),
        ("'a' == \"a\"", True),
        (r"'it\'s' == r'it' || true", True),
        ("null == null", True),
        ("object == null", False),
        ("oldObject == null", True),
        ("object.spec.replicas == 3", True),
        ("object.spec['replicas'] != 3", False),
        ("object.spec.items[1] == 'b'", True),
        ("'b' in object.spec.items", True),
        ("'replicas' in object.spec", True),
        ("'nothing' in object.spec", False),
        ("request.operation in ['CREATE', 'UPDATE']", True),
        ("has(object.spec.replicas) && !has(object.spec.nothing)", True),
        ("false || true && false", False),
        ("(false || true) && true", True),
        ("object.spec.items == ['a', 'b']", True),
        ("[] == []", True),
    ],
)
def test_expressions_have_the_values_of_cel(expression: str, expected: bool) -> None:
    obj = {"spec": {"replicas": 3, "items": ["a", "b"]}}
    assert value(expression, obj, operation="CREATE") is expected


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("object.nothing == 1", "no such key: nothing"),
        ("object.a.b == 1", "no such key: a"),
        ("has(object.a.b)", "no such key: a"),
        ("oldObject.metadata.name == 'a'", "no such key: metadata"),
        ("object['x'] == 1", "no such key: x"),
        ("object.items[2] == 'a'", "index out of bounds: 2"),
        ("'a' in object.name", "no such overload"),
        ("object.name", "not a boolean"),
        ("object.nothing == 1 || false", "no such key: nothing"),
        ("object.nothing == 1 && true", "no such key: nothing"),
    ],
)
def test_what_has_no_value_is_an_error(expression: str, error: str) -> None:
    with pytest.raises(EvaluationError, match=error):
        value(expression, {"name": "n", "items": ["a"]})


@pytest.mark.parametrize("expression", ["true || object.x == 1", "object.x == 1 || true"])
def test_or_looks_over_an_error_where_the_other_side_is_true(expression: str) -> None:
    assert value(expression, {}) is True


@pytest.mark.parametrize("expression", ["false && object.x == 1", "object.x == 1 && false"])
def test_and_looks_over_an_error_where_the_other_side_is_false(expression: str) -> None:
    assert value(expression, {}) is False


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "object.metadata.name.startsWith('x')",
        "size(object.spec.containers) > 1",
        "object.spec.containers.exists(c, c.name == 'x')",
        "authorizer.group('').check('x').allowed()",
        "namespaceObject.metadata.name == 'x'",
        "true ? true : false",
        "1.5 == 1.5",
        "object.",
        "(true",
        "has(object)",
        "true true",
        "'unfinished",
        "!" * 5000 + "true",
        "(" * 5000 + "true" + ")" * 5000,
    ],
)
def test_everything_else_is_not_understood(expression: str) -> None:
    assert compiled(expression) is None


def test_our_own_condition_tells_marked_pods_from_others() -> None:
    """PW-23, PW-33: object or old object carries one of the marks, and somebody is asked about such a request."""
    ((condition,),) = (entry.match_conditions for entry in VALIDATING if entry.name == "vpod.kb.io")
    asked = compiled(condition["expression"])
    assert asked is not None

    def calls(operation: PodOperation, new: Any, old: Any) -> bool:
        return bool(asked({"object": new, "oldObject": old, "request": {"operation": operation.verb}}))

    update, delete = PodOperation.UPDATE, PodOperation.DELETE
    assert not calls(update, pod(), pod())
    assert not calls(update, pod(example__note="x"), pod())
    assert not calls(delete, None, pod())
    for step in PodValidationStep:
        for mark in step.value.marks:
            marked = pod(**{mark.replace("/", "__"): "b"})
            assert calls(update, marked, pod()) == (update in step.value.operations), mark
            assert calls(update, pod(), marked) == (update in step.value.operations), mark
            assert calls(delete, None, marked) == (delete in step.value.operations), mark


@given(st.text(alphabet="()[]!&|='\"ab.,1 hasintrue\\", max_size=30))
@settings(max_examples=75 * EXAMPLES)
def test_no_text_makes_the_parser_fail(text: str) -> None:
    condition = compiled(text)
    if condition is not None:
        with contextlib.suppress(EvaluationError):
            assert condition({"object": {}, "oldObject": None, "request": {}}) in (True, False)
