"""Accept headers, bodies in other forms."""

from __future__ import annotations

import pytest

from kruise.local.apicore.errors import StatusError
from kruise.local.server import negotiation
from kruise.local.server.negotiation import Form, form_of_object, json_body, plain_form, watch_form, write

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json", Form()),
        ("application/yaml", Form("application/yaml")),
        ("application/json;q=0.5, application/yaml", Form("application/yaml")),
        ("image/png, */*;q=0.1", Form()),
        ("application/vnd.kubernetes.protobuf,application/json", Form()),
        (TABLE, Form("application/json", "Table", "v1")),
        (f"{TABLE},application/json", Form("application/json", "Table", "v1")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Form()),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Form("application/json", "Table", "v1beta1")),
        ("application/json;stream=watch", Form()),
    ],
)
def test_the_best_form_that_there_is(accept: str, form: Form) -> None:
    assert form_of_object(accept) == form


@pytest.mark.parametrize(
    "accept", ["text/plain", "application/*", "application/vnd.kubernetes.protobuf", "application/json;as=Odd;v=v1"]
)
def test_forms_that_there_are_not(accept: str) -> None:
    with pytest.raises(StatusError) as refused:
        form_of_object(accept)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")


def test_only_objects_have_tables() -> None:
    with pytest.raises(StatusError):
        plain_form(TABLE)
    assert plain_form(f"{TABLE},application/json") == Form()


def test_watches_are_json() -> None:
    assert watch_form(TABLE).shape == "Table"
    with pytest.raises(StatusError):
        watch_form("application/yaml")


def test_yaml_bodies() -> None:
    assert json_body(b"a: 2020-01-01\n1: [yes]", "application/yaml; charset=utf-8", "Pod") == (
        b'{"a":"2020-01-01","1":[true]}'
    )
    for body in (b"a: [", b"? [a]\n: b", b"a: \xff"):
        with pytest.raises(StatusError) as refused:
            json_body(body, "application/yaml", "Pod")
        assert (refused.value.code, "must be of type Pod" in refused.value.message) == (400, True)


def test_bodies_of_unknown_form() -> None:
    assert json_body(b"{}", "", "Pod") == b"{}"
    assert json_body(b"{}", "application/json; charset=utf-8", "Pod") == b"{}"
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        with pytest.raises(StatusError) as refused:
            json_body(b"{}", content_type, "Pod")
        assert refused.value.code == 415
    with pytest.raises(StatusError):
        json_body(b"k8s\0", "application/vnd.kubernetes.protobuf", "Widget", custom=True)


def test_pretty_and_plain() -> None:
    assert write({"a": 1}, Form()) == b'{"a":1}\n'
    assert write({"a": 1}, Form(), pretty=True) == b'{\n  "a": 1\n}'
    assert write({"b": "ü", "a": []}, Form("application/yaml")) == "a: []\nb: ü\n".encode()
    assert negotiation.is_pretty(None, "Wget/1") is True
    assert negotiation.is_pretty("0", "Wget/1") is False
    assert negotiation.is_pretty(None, "kubectl/v1.34") is False
