"""The grammar of paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.local.apicore.errors import StatusError
from kruise.local.server.routing import Place, parse_query, place_of, split, verb_of
from kruise.machinery.client.requests import Verb


def place(path: str) -> Place | None:
    return place_of(split(path))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", Place(group="", version="v1", plural="pods")),
        ("/api/v1/pods/", Place(group="", version="v1", plural="pods")),
        ("/api/v1/namespaces", Place(group="", version="v1", plural="namespaces")),
        ("/api/v1/namespaces/a", Place(group="", version="v1", plural="namespaces", name="a")),
        (
            "/api/v1/namespaces/a/status",
            Place(group="", version="v1", plural="namespaces", name="a", subresource="status"),
        ),
        (
            "/api/v1/namespaces/a/pods/b/log",
            Place(group="", version="v1", plural="pods", namespace="a", name="b", subresource="log"),
        ),
        (
            "/apis/apps/v1/namespaces/a/deployments/x%3Ay",
            Place(group="apps", version="v1", plural="deployments", namespace="a", name="x:y"),
        ),
        (
            "/apis/g/v1/things/a/b/c/d",
            Place(group="g", version="v1", plural="things", name="a", subresource="b", rest=("c", "d")),
        ),
        ("/api/v1/watch/pods", Place(group="", version="v1", plural="pods", watch=True)),
        ("/api/v1/watch/namespaces/a/pods", Place(group="", version="v1", plural="pods", namespace="a", watch=True)),
        ("/api/v1", None),
        ("/apis/apps/v1", None),
        ("/version", None),
        ("/", None),
    ],
)
def test_places(path: str, expected: Place | None) -> None:
    assert place(path) == expected


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("GET", "/api/v1/pods", Verb.LIST),
        ("GET", "/api/v1/pods?watch=true", Verb.WATCH),
        ("GET", "/api/v1/pods?watch=0", Verb.LIST),
        ("GET", "/api/v1/namespaces/a/pods/b?watch=true", Verb.GET),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", Verb.WATCH),
        ("POST", "/api/v1/namespaces/a/pods", Verb.CREATE),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", Verb.CREATE),
        ("PUT", "/api/v1/namespaces/a/pods/b/status", Verb.UPDATE),
        ("PATCH", "/api/v1/namespaces/a/pods/b", Verb.PATCH),
        ("DELETE", "/api/v1/namespaces/a/pods/b", Verb.DELETE),
        ("DELETE", "/api/v1/namespaces/a/pods", Verb.DELETE_COLLECTION),
        ("DELETE", "/api/v1/namespaces/a/pods/b/status", None),
        ("POST", "/api/v1/namespaces/a/pods/b", None),
        ("PUT", "/api/v1/namespaces/a/pods", None),
        ("POST", "/api/v1/watch/pods", None),
        ("TRACE", "/api/v1/pods", None),
    ],
)
def test_verbs(method: str, path: str, verb: Verb | None) -> None:
    plain, _, query = path.partition("?")
    where = place(plain)
    assert where is not None
    if verb is not None:
        assert verb_of(method, where, parse_query(query)) is verb
        return
    with pytest.raises(StatusError) as refused:
        verb_of(method, where, parse_query(query))
    assert refused.value.code == 405


@given(st.text(alphabet="/abpisv1%4 ", max_size=60))
def test_any_path_is_read(text: str) -> None:
    found = place("/" + text)
    assert found is None or found.version is not None


def test_queries_keep_their_order_and_empty_values() -> None:
    assert parse_query("a=1&b=&a=2&c%20d=e+f") == (("a", "1"), ("b", ""), ("a", "2"), ("c d", "e f"))
    assert parse_query("") == ()
