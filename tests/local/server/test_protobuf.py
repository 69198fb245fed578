"""Kubernetes' binary form: objects as Go clients send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.local.server import protobuf
from kruise.local.server.protobuf import MAGIC, read
from kruise.machinery.protobuf import WireError
from tests.local.server.harness import CMS, serving


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(number: int, value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def sent(api_version: str, kind: str, content: bytes) -> bytes:
    return MAGIC + text(1, text(1, api_version) + text(2, kind)) + text(2, content) + text(3, "") + text(4, "")


def entry(key: str, value: str | bytes) -> bytes:
    return text(1, key) + text(2, value)


# What Go writes for a struct that is no pointer: every field, zero or not.
ZEROES = text(2, "") + text(3, "") + text(4, "") + text(5, "") + text(6, "") + number(7, 0) + text(8, b"")


def metadata(name: str) -> bytes:
    return text(1, text(1, name) + ZEROES + text(11, entry("app", "x")))


def test_a_config_map() -> None:
    content = metadata("a") + text(2, entry("k", "v")) + text(2, entry("empty", "")) + text(3, entry("b", b"\x00\x01"))
    assert read(sent("v1", "ConfigMap", content)) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {"app": "x"}},
        "data": {"k": "v", "empty": ""},
        "binaryData": {"b": "AAE="},
    }


def test_a_zero_counts_where_go_has_a_pointer() -> None:
    strategy = text(4, text(2, text(1, number(1, 1) + text(3, "25%")) + text(2, number(1, 0) + number(2, 3))))
    port = number(3, 8080) + text(5, b"")
    probe = text(1, text(2, text(1, "/") + text(2, number(1, 0) + number(2, 80)))) + number(2, 0) + number(3, 1)
    container = text(1, "c") + text(2, "nginx") + text(3, "sh") + text(3, "-c") + text(6, port) + text(11, probe)
    resources = text(8, text(1, entry("cpu", text(1, "100m"))))
    volume = text(1, text(1, "v") + text(2, text(19, text(1, text(1, "cm")))))
    template = text(3, text(1, b"") + text(2, volume + text(2, container + resources) + number(11, 0)))
    spec = number(1, 0) + template + strategy + number(5, 0) + number(7, 0)
    found = read(sent("apps/v1", "Deployment", metadata("d") + text(2, spec) + text(3, b"")))
    assert found["spec"] == {
        "replicas": 0,
        "template": {
            "metadata": {},
            "spec": {
                "volumes": [{"name": "v", "configMap": {"name": "cm"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "nginx",
                        "command": ["sh", "-c"],
                        "ports": [{"containerPort": 8080}],
                        "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "timeoutSeconds": 1},
                        "resources": {"limits": {"cpu": "100m"}},
                    }
                ],
            },
        },
        "strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 3}},
    }


def test_times_and_embedded_objects() -> None:
    moment = number(1, 1_600_000_000) + number(2, 123_456_000)
    lease = text(2, text(1, "me") + number(2, 15) + text(3, moment))
    assert read(sent("coordination.k8s.io/v1", "Lease", lease))["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2020-09-13T12:26:40.123456Z",
    }
    revision = text(2, text(1, b'{"a":1}')) + number(3, -1)
    whole = protobuf.to_json(sent("apps/v1", "ControllerRevision", revision))
    assert whole == b'{"kind":"ControllerRevision","apiVersion":"apps/v1","data":{"a":1},"revision":-1}'


def test_options_of_a_delete() -> None:
    options = number(1, 0) + text(2, text(1, "u")) + text(4, "Background")
    assert read(sent("v1", "DeleteOptions", options)) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
    }


def test_fields_of_a_later_version_are_skipped() -> None:
    later = number(90, 1) + varint(91 << 3 | 1) + b"8 bytes!" + varint(92 << 3 | 5) + b"4 by" + text(93, "x")
    assert read(sent("v1", "ConfigMap", later)) == {"kind": "ConfigMap", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{}", "expected prefix [107 56 115 0]"),
        (sent("v1", "Nonsense", b""), "no kind 'Nonsense' is registered for version 'v1'"),
        (sent("v1", "ConfigMap", text(1, b"")[:-1]), "unexpected end"),
        (sent("v1", "ConfigMap", varint(1 << 3 | 3)), "wire type 3"),
        (sent("v1", "ConfigMap", number(1, 1)), "a number stands where"),
        (sent("apps/v1", "Deployment", text(2, text(1, "x"))), "stands where a number belongs"),
        (sent("v1", "ConfigMap", text(1, text(1, b"\xff"))), "not UTF-8"),
        (sent("apps/v1", "ControllerRevision", text(2, text(1, "{"))), "no JSON"),
    ],
)
def test_what_cannot_be_read(body: bytes, why: str) -> None:
    with pytest.raises(WireError) as refused:
        read(body)
    assert why in str(refused.value)


@given(st.binary(max_size=200))
def test_noise_is_refused_or_read(noise: bytes) -> None:
    """Never any other failure than the ones that become a 400."""
    for body in (MAGIC + noise, sent("apps/v1", "Deployment", noise), sent("v1", "Pod", text(2, noise))):
        try:
            found = read(body)
        except ValueError:
            continue
        assert "kind" in found


async def test_a_client_that_sends_it_is_answered_in_json() -> None:
    async with serving() as api:
        body = sent("v1", "ConfigMap", metadata("a") + text(2, entry("k", "v")))
        both = f"{protobuf.MEDIA_TYPE},application/json"
        made = await api.post(CMS, body, sent_as=protobuf.MEDIA_TYPE, accept=both)
        assert (made.code, made.json["data"]) == (201, {"k": "v"})
        options = sent("v1", "DeleteOptions", text(2, text(1, "other")))
        refused = await api.send("DELETE", f"{CMS}/a", options, sent_as=protobuf.MEDIA_TYPE)
        assert refused.code == 409, "its preconditions were read"
        noise = await api.post(CMS, b"noise", sent_as=protobuf.MEDIA_TYPE)
        assert (noise.code, "must be of type ConfigMap" in noise.json["message"]) == (400, True)
