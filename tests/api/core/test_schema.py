"""The table and the merge schemas made from it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kruise.api.core import schema
from kruise.machinery.patches import strategic
from kruise.machinery.patches.schema import MergeSchema

ROOT = Path(__file__).parents[3]


def _walk(api_version: str, kind: str, *names: str) -> MergeSchema:
    found = schema.merge_schema(api_version, kind)
    for name in names:
        assert found is not None
        rule = found.field(name)
        assert rule is not None
        found = rule.child
    assert found is not None
    return found


def test_import_does_not_read_the_table() -> None:
    """Programs that never look at a template do not pay for it."""
    program = (
        "from kruise.api.core import defaults, schema, validation, values; print(schema.table.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_the_table_is_of_the_pinned_kubernetes() -> None:
    """It was generated again after the version in go.mod changed."""
    pinned = re.search(
        r"^require k8s\.io/kubernetes (v\S+)", (ROOT / "hack/kubernetes/go.mod").read_text(), re.MULTILINE
    )
    assert pinned is not None
    assert schema.table()["kubernetes"] == pinned[1]


def test_every_type_that_is_named_is_there() -> None:
    types = schema.table()["types"]
    for name in types:
        for field in schema.struct_type(name).fields:
            wire_type = field.type.lstrip("[]{}")
            assert wire_type in types if schema.is_struct(wire_type) else wire_type, f"{name}.{field.name}"


@pytest.mark.parametrize("form", ["template", "pod", "claim"])
def test_defaults_are_of_known_fields(form: str) -> None:
    for name, fields in schema.defaults(form).items():
        assert set(fields) <= set(schema.struct_type(name).by_name)


@pytest.mark.parametrize(
    ("field", "strategies", "merge_key"),
    [
        ("containers", {"merge"}, "name"),
        ("volumes", {"merge", "retainKeys"}, "name"),
        ("tolerations", set(), ""),
        ("topologySpreadConstraints", {"merge"}, "topologyKey"),
        ("hostAliases", {"merge"}, "ip"),
    ],
)
def test_merge_rules_of_a_pod_spec(field: str, strategies: set[str], merge_key: str) -> None:
    rule = _walk("apps/v1", "Deployment", "spec", "template", "spec").field(field)
    assert rule is not None
    assert (rule.strategies, rule.merge_key, rule.is_list) == (strategies, merge_key, True)


def test_merge_rules_below_lists() -> None:
    rule = _walk("v1", "Pod", "spec", "containers").field("ports")
    assert rule is not None
    assert (rule.merge_key, rule.is_list) == ("containerPort", True)


def test_lists_of_plain_values() -> None:
    rule = _walk("v1", "Pod", "metadata").field("finalizers")
    assert rule is not None
    assert (rule.strategies, rule.merge_key, rule.child) == ({"merge"}, "", None)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Service"),
        ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "CronJob"),
        ("policy/v1", "PodDisruptionBudget"),
        ("coordination.k8s.io/v1", "Lease"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("networking.k8s.io/v1", "Ingress"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("events.k8s.io/v1", "Event"),
    ],
)
def test_native_kinds_have_a_merge_schema(api_version: str, kind: str) -> None:
    rule = _walk(api_version, kind, "metadata").field("ownerReferences")
    assert rule is not None
    assert rule.merge_key == "uid"


def test_other_kinds_have_none() -> None:
    assert schema.merge_schema("apps.kruise.io/v1alpha1", "CloneSet") is None
    assert schema.merge_schema("v2", "Pod") is None


def test_unknown_members_have_no_rule() -> None:
    assert _walk("v1", "Pod", "spec").field("nonsense") is None


def test_strategic_patches_work_with_the_table() -> None:
    """An image change by name leaves the other containers and fields alone."""
    pod = {"spec": {"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "1"}]}}
    patch = {"spec": {"containers": [{"name": "a", "image": "2"}]}}
    assert strategic.apply(pod, patch, schema.merge_schema("v1", "Pod")) == {
        "spec": {"containers": [{"name": "a", "image": "2", "args": ["x"]}, {"name": "b", "image": "1"}]}
    }


def test_schema_of_a_template_alone() -> None:
    rule = schema.struct_merge_schema(schema.POD_TEMPLATE_SPEC).field("spec")
    assert rule is not None
    assert rule.child is not None
