"""Canonical form, Go's JSON and equality."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.core import creation, defaults, schema, values
from kruise.api.core.field_errors import TemplateTypeError
from tests.api.core.accepted_cases import accepted_cases, container, template, with_container
from tests.api.core.generated_cases import generated_template
from tests.support.examples import EXAMPLES

SEEDS = st.integers(min_value=0, max_value=10**6)


def _normalised_container(**fields: Any) -> dict[str, Any]:
    (result,) = values.normalise_template(with_container(**fields))["spec"]["containers"]
    assert isinstance(result, dict)
    return result


def _fnv1(data: bytes) -> int:
    result = 2166136261
    for byte in data:
        result = (result * 16777619) % 2**32 ^ byte
    return result


def _revision_hash(sample: Any) -> str:
    data = {"spec": {"template": {"$patch": "replace", **values.normalise_template(sample)}}}
    number = str(_fnv1(values.go_json(data) + b"0"))
    return "".join("bcdfghjklmnpqrstvwxz2456789"[ord(digit) % 27] for digit in number)


@pytest.mark.parametrize(
    ("image", "expected"),
    [("nginx:alpine", "d4d4fb5bd"), ("nginx:1.19.1", "7b66b966b7"), ("nginx:mainline", "56dfb978d4")],
)
def test_golden_revision_hashes(image: str, expected: str) -> None:
    """IPU-14: the hash of a defaulted template is the one that the original gives."""
    sample = template(container("nginx", image), meta={"labels": {"app": "sample"}})
    assert _revision_hash(defaults.default_workload_template(sample)) == expected


@pytest.mark.parametrize(("image", "expected"), [("nginx:1.7.9", "7cb9c88699"), ("nginx:latest", "7c4d79f5bc")])
def test_golden_revision_hashes_with_a_port(image: str, expected: str) -> None:
    """IPU-14: the same for a container with a port and a pull policy."""
    nginx = container("nginx", image, imagePullPolicy="IfNotPresent", ports=[{"containerPort": 80, "protocol": "TCP"}])
    sample = template(nginx, meta={"labels": {"app": "cs"}})
    assert _revision_hash(defaults.default_workload_template(sample)) == expected


def test_canonical_json_of_a_template() -> None:
    """IPU-10, IPU-14: sorted, compact, with the time that is always null and the resources that are always there."""
    sample = template(container("nginx", "nginx:alpine"), meta={"labels": {"app": "sample"}})
    assert values.canonical_template_json(defaults.default_workload_template(sample)) == (
        b'{"metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},"spec":{"containers":[{"image":"nginx:alpine",'
        b'"imagePullPolicy":"Always","name":"nginx","resources":{},"terminationMessagePath":"/dev/termination-log",'
        b'"terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always",'
        b'"schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}'
    )


def test_escapes_are_those_of_go() -> None:
    """IPU-10: angle brackets, ampersand and the two line separators are escaped, other text is not."""
    assert values.go_json({"b": '<a href="x">&', "a": "\u2028\u2029ü😀\t\x01"}) == (
        '{"a":"\\u2028\\u2029ü😀\\t\\u0001","b":"\\u003ca href=\\"x\\"\\u003e\\u0026"}'.encode()
    )


def test_unknown_fields_nulls_and_stray_patch_keys_are_dropped() -> None:
    """IPU-11."""
    messy = {
        "$patch": "replace",
        "metadata": {"labels": {"app": "x"}, "annotations": None, "foo": 1},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.25", "args": None, "bar": {}}], "baz": []},
    }
    assert values.normalise_template(messy) == values.normalise_template(template())


def test_zero_values_are_kept_only_behind_pointers() -> None:
    """IPU-11: an explicit zero behind a pointer and an empty struct say something, others do not."""
    given_spec = {
        "hostNetwork": False,
        "terminationGracePeriodSeconds": 0,
        "hostUsers": False,
        "securityContext": {},
        "nodeName": "",
        "nodeSelector": {},
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [],
    }
    spec = values.normalise_template(template(**given_spec))["spec"]
    assert {name: value for name, value in spec.items() if name != "containers"} == {
        "terminationGracePeriodSeconds": 0,
        "hostUsers": False,
        "securityContext": {},
        "volumes": [{"name": "v", "emptyDir": {}}],
    }


@pytest.mark.parametrize(
    ("given_amount", "expected"), [("0.5", "500m"), ("1000m", "1"), (2, "2"), (0.25, "250m"), ("1024Mi", "1Gi")]
)
def test_quantities_are_canonical(given_amount: Any, expected: str) -> None:
    """IPU-11."""
    assert _normalised_container(resources={"limits": {"cpu": given_amount}})["resources"]["limits"]["cpu"] == expected


def test_fields_without_omitempty_are_always_there() -> None:
    assert _normalised_container(livenessProbe={"grpc": {}, "httpGet": {}}) == {
        "name": "main",
        "image": "nginx:1.25",
        "resources": {},
        "livenessProbe": {"httpGet": {"port": 0}, "grpc": {"port": 0, "service": None}},
    }


def test_times_are_in_utc() -> None:
    meta = values.normalise_template(template(meta={"creationTimestamp": "2024-01-02T03:04:05+02:00"}))["metadata"]
    assert meta == {"creationTimestamp": "2024-01-02T01:04:05Z"}


def test_server_form_leaves_out_zero_times() -> None:
    """Since Kubernetes 1.34 the server no longer writes them."""
    assert values.normalise({}, schema.POD_TEMPLATE_SPEC, form=values.SERVER_FORM)["metadata"] == {}


def test_struct_order_json_of_a_container() -> None:
    """IPU-65: fields in the order of the Go struct, maps sorted, empty fields left out."""
    sample = {
        "terminationMessagePolicy": "File",
        "resources": {"requests": {"memory": "1Gi", "cpu": 1}},
        "image": "foo/image:v1",
        "env": [{"value": "<1>", "name": "A"}],
        "name": "test_container",
        "ports": [{"protocol": "TCP", "containerPort": 80}],
    }
    assert values.struct_order_json(sample, schema.CONTAINER) == (
        b'{"name":"test_container","image":"foo/image:v1","ports":[{"containerPort":80,"protocol":"TCP"}],'
        b'"env":[{"name":"A","value":"\\u003c1\\u003e"}],"resources":{"requests":{"cpu":"1","memory":"1Gi"}},'
        b'"terminationMessagePolicy":"File"}'
    )


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ({"spec": {"containers": "a"}}, "spec.containers"),
        ({"spec": {"containers": [{"ports": [{"hostPort": "x"}]}]}}, "spec.containers[0].ports[0].hostPort"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels[a]"),
        ({"spec": {"resources": {"limits": {"cpu": "abc"}}}}, "spec.resources.limits[cpu]"),
        ({"spec": {"hostNetwork": 1}}, "spec.hostNetwork"),
        ({"spec": {"terminationGracePeriodSeconds": True}}, "spec.terminationGracePeriodSeconds"),
        ({"spec": {"terminationGracePeriodSeconds": 2**63}}, "spec.terminationGracePeriodSeconds"),
        (
            {"spec": {"containers": [{"startupProbe": {"tcpSocket": {"port": []}}}]}},
            "spec.containers[0].startupProbe.tcpSocket.port",
        ),
        ({"metadata": {"creationTimestamp": "soon"}}, "metadata.creationTimestamp"),
        ("text", ""),
    ],
)
def test_wrong_types_name_the_field(broken: Any, path: str) -> None:
    with pytest.raises(TemplateTypeError) as caught:
        values.normalise_template(broken, path="spec.template")
    assert caught.value.error.path == ".".join(filter(None, ("spec.template", path)))


def test_equality_is_by_meaning() -> None:
    """Quantities by amount, empty lists like absent ones, order of keys of no account."""
    left = with_container(resources={"limits": {"memory": "1000Mi"}}, args=[])
    right = {"spec": left["spec"], "metadata": left["metadata"], "unknown": 1}
    right = json.loads(json.dumps(right).replace("1000Mi", "1048576000"))
    assert values.equal_templates(left, right)
    assert values.normalise_template(left) != values.normalise_template(right)


@pytest.mark.parametrize(
    "change",
    [
        {"image": "nginx:1.26"},
        {"args": ["a"]},
        {"stdin": True},
        {"resources": {"limits": {"cpu": 1}}},
        {"lifecycle": {}},
    ],
)
def test_equality_sees_changes(change: dict[str, Any]) -> None:
    assert not values.equal_templates(template(), with_container(**change))


def test_input_is_not_changed() -> None:
    for case in accepted_cases().values():
        before = copy.deepcopy(case)
        defaults.default_workload_template(case, host_network_ports=True)
        defaults.default_pod(case)
        assert case == before


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(SEEDS)
def test_canonical_form_is_stable(seed: int) -> None:
    """Normalising twice changes nothing, and neither does the order in which keys arrive."""
    made = generated_template(seed)
    once = values.normalise_template(made)
    assert values.normalise_template(once) == once
    shuffled = _shuffled(made, random.Random(seed))
    assert values.canonical_template_json(shuffled) == values.canonical_template_json(made)
    assert values.struct_order_json(shuffled, schema.POD_TEMPLATE_SPEC) == values.struct_order_json(
        once, schema.POD_TEMPLATE_SPEC
    )
    assert values.equal_templates(made, shuffled)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(SEEDS)
def test_defaults_are_stable(seed: int) -> None:
    """Defaulting twice changes nothing; the result is canonical and in struct order."""
    made = generated_template(seed)
    for complete in (defaults.default_template, defaults.default_workload_template):
        once = complete(made)
        assert complete(once) == once
        assert values.normalise_template(once) == once
    stored = defaults.stored_template(made)
    assert defaults.stored_template(stored) == stored
    pod = defaults.default_pod({"metadata": {"name": "p"}, "spec": made["spec"]})
    assert defaults.default_pod(pod) == pod
    prepared = creation.prepare_new_pod(pod, now="2024-01-02T03:04:05Z")
    for made in (pod, prepared):
        again = values.normalise(made, schema.POD, form=values.SERVER_FORM)
        assert json.dumps(again) == json.dumps(made)


def _shuffled(value: Any, source: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        source.shuffle(keys)
        return {key: _shuffled(value[key], source) for key in keys}
    return [_shuffled(item, source) for item in value] if isinstance(value, list) else value
