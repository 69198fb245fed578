"""Validation by example: what our workloads ask of it. The full comparison with a server is in `test_recorded`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.core import defaults, validation
from kruise.api.core.field_errors import TYPE_INVALID, describe, go_quote
from tests.api.core.accepted_cases import container, template, with_container
from tests.support.examples import EXAMPLES


def _complaints(sample: Any, **options: Any) -> list[str]:
    made = defaults.default_workload_template(sample)
    return [str(error) for error in validation.validate_pod_template(made, "spec.template", **options)]


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"spec": {}}, "spec.template.spec.containers: Required value"),
        (with_container(image=""), "spec.template.spec.containers[0].image: Required value"),
        (
            template(container("main"), container("main")),
            'spec.template.spec.containers[1].name: Duplicate value: "main"',
        ),
        (
            template(container("Main_1")),
            'spec.template.spec.containers[0].name: Invalid value: "Main_1": a lowercase RFC 1123 label must consist '
            "of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
            "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
        (
            with_container(ports=[{"containerPort": 70000}]),
            "spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and "
            "65535, inclusive",
        ),
        (
            with_container(resources={"limits": {"cpu": 1}, "requests": {"cpu": 2}}),
            'spec.template.spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to '
            "cpu limit of 1",
        ),
        (
            with_container(volumeMounts=[{"name": "data", "mountPath": "/d"}]),
            'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"',
        ),
        (
            with_container(livenessProbe={}),
            "spec.template.spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
        (
            template(tolerations=[{"key": "a", "operator": "Foo"}]),
            'spec.template.spec.tolerations[0].operator: Unsupported value: "Foo": supported values: "Equal", "Exists"',
        ),
        (
            with_container(imagePullPolicy="Sometimes"),
            'spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: '
            '"Always", "IfNotPresent", "Never"',
        ),
        (
            template(container(ports=[{"containerPort": 80, "hostPort": 81}]), hostNetwork=True),
            "spec.template.spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when "
            "`hostNetwork` is true",
        ),
    ],
)
def test_refusals_of_a_workload(sample: Any, expected: str) -> None:
    """CS-42: the messages that the original's admission gives for the same manifests."""
    assert _complaints(sample) == [expected]


def test_claim_templates_are_volumes() -> None:
    """CS-42: containers may mount them, and a volume may not have the same name."""
    mounted = with_container(volumeMounts=[{"name": "data", "mountPath": "/d"}])
    assert _complaints(mounted, claim_volumes=["data"]) == []
    mounted["spec"]["volumes"] = [{"name": "data"}]
    expected = 'spec.template.spec.volumes[1].name: Duplicate value: "data"'
    assert _complaints(mounted, claim_volumes=["data"]) == [expected]


def test_restart_policies_of_a_workload() -> None:
    """CS-42: only those that the workload can work with; an unknown one is reported once."""
    expected = 'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'
    assert _complaints(template(restartPolicy="Never"), restart_policies=("Always",)) == [expected]
    assert _complaints(template(restartPolicy="Never")) == []
    assert len(_complaints(template(restartPolicy="x"), restart_policies=("Always",))) == 1


def test_host_network_without_host_port_is_accepted() -> None:
    """CS-42."""
    assert _complaints(template(container(ports=[{"containerPort": 80}]), hostNetwork=True)) == []


def test_privileged_containers_can_be_disallowed() -> None:
    sample = with_container(securityContext={"privileged": True})
    assert _complaints(sample) == []
    assert _complaints(sample, allow_privileged=False) == [
        "spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"
    ]


def test_wrong_types_are_the_only_error() -> None:
    broken = {"spec": {"containers": [{"name": 1}], "restartPolicy": "x"}}
    (error,) = validation.validate_pod_template(broken, "spec.template")
    assert error.type == TYPE_INVALID
    assert str(error) == "spec.template.spec.containers[0].name: Invalid value: 1: must be a string, not a number"


def test_templates_need_their_defaults() -> None:
    """Like the API server, validation looks at what defaulting leaves."""
    fields = {error.path for error in validation.validate_pod_template(template())}
    assert "template.spec.terminationGracePeriodSeconds" in fields


def test_a_pod_needs_a_name_and_a_namespace() -> None:
    pod = defaults.default_pod({"spec": template()["spec"]})
    assert [str(error) for error in validation.validate_pod(pod)] == [
        "metadata.name: Required value: name or generateName is required",
        "metadata.namespace: Required value",
    ]


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        ({"name": "A"}, "metadata.name"),
        ({"generateName": "AB-"}, "metadata.generateName"),
        ({"namespace": "A"}, "metadata.namespace"),
        ({"generation": -1}, "metadata.generation"),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, "metadata.finalizers"),
        ({"ownerReferences": [{"kind": "K", "name": "n", "uid": "u"}]}, "metadata.ownerReferences.apiVersion"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]},
            "metadata.ownerReferences",
        ),
    ],
)
def test_object_metadata(meta: dict[str, Any], field: str) -> None:
    pod = defaults.default_pod({"metadata": {"name": "p", "namespace": "n", **meta}, "spec": template()["spec"]})
    assert [error.path for error in validation.validate_pod(pod)] == [field]


def test_generated_names_may_end_in_a_dash() -> None:
    meta = {"name": "p-x", "generateName": "p-", "namespace": "n"}
    assert validation.validate_pod(defaults.default_pod({"metadata": meta, "spec": template()["spec"]})) == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "other"}, "metadata.name"),
        ({"uid": "other"}, "metadata.uid"),
        ({"resourceVersion": ""}, "metadata.resourceVersion"),
        ({"generation": 1}, "metadata.generation"),
        ({"creationTimestamp": None}, "metadata.creationTimestamp"),
        ({"deletionTimestamp": None}, "metadata.deletionTimestamp"),
        ({"finalizers": ["x/y", "x/z"]}, "metadata.finalizers"),
    ],
)
def test_metadata_that_may_not_change(change: dict[str, Any], field: str) -> None:
    meta = {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "1",
        "generation": 2,
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "deletionTimestamp": "2024-01-02T00:00:00Z",
        "finalizers": ["x/y"],
    }
    old = defaults.default_pod({"metadata": meta, "spec": template()["spec"]})
    new = {**old, "metadata": {**meta, **change}}
    assert [error.path for error in validation.validate_pod_update(new, old)] == [field]


def test_negative_grace_periods_of_old_pods_may_become_one() -> None:
    meta = {"name": "p", "namespace": "n", "resourceVersion": "1"}
    new = defaults.default_pod({"metadata": meta, "spec": {**template()["spec"], "terminationGracePeriodSeconds": 1}})
    old = {**new, "spec": {**new["spec"], "terminationGracePeriodSeconds": -1}}
    assert validation.validate_pod_update(new, old) == ()


def test_an_in_place_update_of_an_image_is_allowed() -> None:
    meta = {"name": "p", "namespace": "n", "resourceVersion": "1"}
    old = defaults.default_pod({"metadata": meta, "spec": template()["spec"]})
    new = defaults.default_pod(
        {"metadata": {**meta, "labels": {"a": "b"}}, "spec": template(container("main", "nginx:2"))["spec"]}
    )
    assert validation.validate_pod_update(new, old) == ()


def test_claim_specs() -> None:
    sound = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert validation.validate_claim_spec(sound) == ()
    assert [str(error) for error in validation.validate_claim_spec({}, "spec.volumeClaimTemplates[0].spec")] == [
        "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
        "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
    ]


def test_several_errors_read_as_one_text() -> None:
    errors = validation.validate_pod_template(defaults.default_template(template(restartPolicy="x", dnsPolicy="y")))
    text = describe(errors)
    assert text.startswith('[template.spec.restartPolicy: Unsupported value: "x"')
    assert text.endswith("]")
    assert describe(errors[:1]).startswith("template.spec.restartPolicy")


@pytest.mark.parametrize(
    ("text", "quoted"), [('a"b\\', '"a\\"b\\\\"'), ("\n\x01", '"\\n\\x01"'), ("ü\u200b", '"ü\\u200b"'), ("😀", '"😀"')]
)
def test_quoting_is_that_of_go(text: str, quoted: str) -> None:
    assert go_quote(text) == quoted


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "metadata", "containers", "name", "image", "ports", "env", "volumes", "labels"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(_JSON)
def test_no_input_crashes_validation(value: Any) -> None:
    """Whatever comes, the answer is a tuple of errors, each with a text."""
    for errors in (validation.validate_pod_template(value), validation.validate_pod(value)):
        assert all(str(error) for error in errors)
        assert errors
