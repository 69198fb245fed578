"""JSON paths, patterns, formats, numbers and the order of versions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.local.crds import formats, jsonpath, versions
from kruise.local.crds.columns import columns
from kruise.local.crds.numbers import go_number, go_value, is_multiple, whole
from kruise.local.crds.regexes import PatternError, compile_pattern

OBJECT: Any = {
    "metadata": {"labels": {"a.b/c": "x"}},
    "spec": {"n": 3, "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "empty": [], "null": None, "text": "t"},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.n", [3]),
        (".metadata.labels.a\\.b/c", ["x"]),
        (".metadata.labels['a.b/c']", ["x"]),
        (".spec.list[0].k", ["a"]),
        (".spec.list[-1].k", ["b"]),
        (".spec.list[0:1].k", ["a"]),
        (".spec.list[*].v", [1, 2]),
        ('.spec.list[?(@.k=="b")].v', [2]),
        (".spec.list[?(@.v>1)].k", ["b"]),
        (".spec.list[?(@.k)].v", [1, 2]),
        (".spec.missing.deep", []),
        (".spec.text.deep", []),
        (".spec.null", [None]),
        (".", [OBJECT]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert jsonpath.parse(path)(OBJECT) == found


@pytest.mark.parametrize("path", [".spec.list[", ".spec[?(", "spec", ".a b"])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(jsonpath.PathError):
        jsonpath.parse(path)


@pytest.mark.parametrize("path", [".spec.empty[0]", ".spec.n[0]", ".spec.text[?(@.a==1)]", ".spec.list[?(@.k>1)]"])
def test_paths_that_lead_astray(path: str) -> None:
    with pytest.raises(jsonpath.PathError):
        jsonpath.parse(path)(OBJECT)


def test_columns_end_at_the_first_path_that_cannot_be_read() -> None:
    """As on a real server."""
    made = columns(
        [
            {"name": "A", "type": "string", "jsonPath": ".spec.n"},
            {"name": "B", "type": "string", "jsonPath": ".spec["},
            {"name": "C", "type": "string", "jsonPath": ".spec.n"},
        ]
    )
    assert [column.name for column in made] == ["A"]


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".spec.n", "3"),
        ("string", ".spec.list", '[{"k":"a","v":1},{"k":"b","v":2}]'),
        ("string", ".spec.null", "<no value>"),
        ("string", ".spec.empty[0]", None),
        ("integer", ".spec.n", 3),
        ("integer", ".spec.text", None),
        ("boolean", ".spec.n", None),
        ("date", ".spec.text", "<invalid>"),
        ("date", ".spec.n", None),
    ],
)
def test_cells(kind: str, path: str, cell: Any) -> None:
    (column,) = columns([{"name": "A", "type": kind, "jsonPath": path}])
    assert column.cell(OBJECT, datetime(2026, 1, 1, tzinfo=UTC)) == cell


def test_without_columns_there_is_the_age() -> None:
    (column,) = columns([])
    born = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert (column.name, column.cell(born, datetime(2026, 1, 1, 0, 5, tzinfo=UTC))) == ("Age", "5m")


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^[a-z]+$", "abc", True),
        ("^[a-z]+$", "abc\n", False),
        ("b", "abc", True),
        (r"^\d+$", "٣", False),
        (r"^[[:alpha:]]+$", "ab", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^[^]]$", "a", True),
        (r"^\z", "", True),
        (r"^\p{L}+$", "äb", True),
        ("[$]", "$", True),
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is matches


@pytest.mark.parametrize("pattern", ["(?=a)", "(a)\\1", "(?<!x)y", "(", r"\p{Nonsense}"])
def test_patterns_that_go_refuses(pattern: str) -> None:
    with pytest.raises(PatternError, match="error parsing regexp"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2020-01-01T00:00:00.5+02:00", "2020-01-01T25:00:00Z"),
        ("datetime", "2020-01-01t00:00:00z", "2020-01-01"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("isbn10", "0321751043", "0321751044"),
        ("creditcard", "4111111111111111", "4111111111111112"),
        ("ssn", "123-45-6789", "12-345-6789"),
        ("hexcolor", "#FFaa00", "#GG0000"),
        ("rgbcolor", "rgb(0,31,255)", "rgb(0,31,256)"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("mac", "01-23-45-67-89-ab", "01-23-45-67-89-zz"),
        ("cidr", "fe80::/10", "fe80::/129"),
    ],
)
def test_formats(name: str, good: str, bad: str) -> None:
    check = formats.known(name)
    assert check is not None
    assert check(good)
    assert not check(bad)


def test_formats_that_are_not_checked() -> None:
    assert [formats.known(name) for name in ("int32", "int64", "float", "k8s-short-name", "quantity")] == [None] * 5


def test_numbers_as_go_has_them() -> None:
    assert [go_number(value) for value in (1, 1.0, 0.5, 1e21, 1.5e-7)] == ["1", "1", "0.5", "1e+21", "1.5e-07"]
    assert go_value({"b": [1, True, None], "a": "x"}) == "map[a:x b:[1 true <nil>]]"
    assert [is_multiple(10, 5), is_multiple(7, 5), is_multiple(0.75, 0.25), is_multiple(3, 0.5)] == [
        True,
        False,
        True,
        False,
    ]
    assert whole({"a": [1.0, 1.5], "b": {"c": 2.0}}) == {"a": [1, 1.5], "b": {"c": 2}}


def test_versions_are_ordered_as_clients_want_them() -> None:
    given = ["v1alpha1", "foo", "v2beta1", "v1", "v10", "v2", "bar", "v1beta2"]
    assert versions.ordered(given) == ("v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "bar", "foo")
