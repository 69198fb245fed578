"""The CustomResourceDefinitions of `apps.kruise.io` against the listed facts of every field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kruise.admission import configurations
from kruise.admission.review import REVIEW_VERSIONS
from kruise.api.definitions import Version, definition
from kruise.manager.installation.manifests import manifests
from tests.support.installed import DEFINITIONS

FACTS = json.loads((Path(__file__).parents[1] / "data" / "crd-fields.json").read_text())

_FAILURE_BUDGET: dict[str, Any] = {
    "status.failureBudget": {"type": "object"},
    "status.failureBudget.revision": {"type": "string"},
    "status.failureBudget.failed": {"type": "integer", "format": "int32"},
    "status.failureBudget.budget": {"type": "string"},
    "status.failureBudget.pods": {"type": "array"},
    "status.failureBudget.pods[]": {"type": "object"},
    "status.failureBudget.pods[].name": {"type": "string"},
    "status.failureBudget.pods[].failure": {"type": "string"},
}
_UPDATE_TIME = {"status.conditions[].lastUpdateTime": {"type": "string", "format": "date-time"}}
_TOLERANT = {"type": "object", "open": True}
_HOOKS = {f"spec.lifecycle.{hook}": _TOLERANT for hook in ("preNormal", "inPlaceUpdate", "preDelete")}
_NUMBER = {"type": "integer", "format": "int32"}
_LATER_STATUS = {
    "status.updatedReadyReplicas": _NUMBER,
    "status.updatedAvailableReplicas": _NUMBER,
    "status.volumeClaims": {"type": "array"},
    "status.volumeClaims[]": {"type": "object"},
    "status.volumeClaims[].volumeClaimName": {"type": "string", "required": True},
    "status.volumeClaims[].compatibleReplicas": {**_NUMBER, "required": True},
    "status.volumeClaims[].compatibleReadyReplicas": {**_NUMBER, "required": True},
}
_NAMED_LIST = {"type": "array", "list-type": "map", "list-map-keys": ["name"]}
_NAMED_SIDECARS = {
    part: fact
    for kind in ("spec.containers", "spec.initContainers")
    for part, fact in ((kind, _NAMED_LIST), (f"{kind}[].name", {"type": "string", "required": True}))
}
_IDENTITIES: dict[str, Any] = {
    "status.identities": {"type": "object"},
    "status.identities{}": {"type": "object"},
    "status.identities{}.uid": {"type": "string"},
    "status.identities{}.resourceVersion": {"type": "string"},
    "status.podsVersion": {"type": "integer", "format": "int64"},
}
_BOOKED: dict[str, Any] = {**_IDENTITIES, "status.podsVersion": {"type": "integer", "format": "int64"}}
_CONDITIONS: dict[str, Any] = {
    "status.conditions": {"type": "array"},
    "status.conditions[]": {"type": "object"},
    "status.conditions[].type": {"type": "string", "required": True},
    "status.conditions[].status": {"type": "string", "required": True},
    "status.conditions[].reason": {"type": "string"},
    "status.conditions[].message": {"type": "string"},
    "status.conditions[].lastTransitionTime": {"type": "string", "format": "date-time"},
    "status.conditions[].lastUpdateTime": {"type": "string", "format": "date-time"},
}
_LEFT_OUT = {
    "status.notSelectedPods": {"type": "integer", "format": "int32"},
    "status.notUpgradablePods": {"type": "integer", "format": "int32"},
}
OURS: dict[tuple[str, str], dict[str, Any]] = {
    ("podunavailablebudgets.policy.kruise.io", "v1alpha1"): _BOOKED,
    ("podunavailablebudgets.policy.kruise.io", "v1beta1"): _BOOKED,
    ("clonesets.apps.kruise.io", "v1alpha1"): _FAILURE_BUDGET,
    ("clonesets.apps.kruise.io", "v1beta1"): _FAILURE_BUDGET,
    # The status in v1alpha1 is whole: what it lacked, every write through v1alpha1 would take away.
    ("statefulsets.apps.kruise.io", "v1alpha1"): _FAILURE_BUDGET | _UPDATE_TIME | _LATER_STATUS,
    # ST-144: a well-known manifest has more in a hook.
    ("statefulsets.apps.kruise.io", "v1beta1"): _FAILURE_BUDGET | _UPDATE_TIME | _HOOKS,
    # Who applies a SidecarSet owns the fields that its manifest has, not the list with all defaults in it. Without the
    # numbers of pods that it leaves out, nobody could tell when its rollout is over; with the conditions kstatus can.
    ("sidecarsets.apps.kruise.io", "v1alpha1"): _FAILURE_BUDGET | _NAMED_SIDECARS | _LEFT_OUT | _CONDITIONS,
    ("sidecarsets.apps.kruise.io", "v1beta1"): _FAILURE_BUDGET | _NAMED_SIDECARS | _LEFT_OUT | _CONDITIONS,
    ("daemonsets.apps.kruise.io", "v1alpha1"): _FAILURE_BUDGET | _UPDATE_TIME,
    ("daemonsets.apps.kruise.io", "v1beta1"): _FAILURE_BUDGET | _UPDATE_TIME,
    # ACJ-6: labels and annotations of templates count.
    ("advancedcronjobs.apps.kruise.io", "v1alpha1"): {"spec.template.broadcastJobTemplate.metadata": _TOLERANT},
    ("advancedcronjobs.apps.kruise.io", "v1beta1"): {
        "spec.template.broadcastJobTemplate.metadata": _TOLERANT,
        "spec.template.imageListPullJobTemplate.metadata": _TOLERANT,
    },
    # What is allocated stands beside what is there. CloneSets may be written as in v1alpha1 (UD-5).
    ("uniteddeployments.apps.kruise.io", "v1alpha1"): {
        "status.subsetStatuses[].allocatedReplicas": _NUMBER,
        "spec.template.cloneSetTemplate.spec.updateStrategy": _TOLERANT,
        "spec.template.cloneSetTemplate.spec.scaleStrategy": _TOLERANT,
    },
    ("uniteddeployments.apps.kruise.io", "v1beta1"): {"status.subsetStatuses[].allocatedReplicas": _NUMBER},
    # NI-1: one shape in both versions, so that a write through v1alpha1 takes nothing away.
    ("nodeimages.apps.kruise.io", "v1alpha1"): {"spec.images{}.pullSecrets[].mode": {"type": "string"}},
}
"""Fields that only PyKruise has. A manifest never has to name them; `docs/cloneset-differences.md` tells of them."""
VERSIONS = [(name, version) for name in DEFINITIONS for version in FACTS[name]["versions"]]


def versions_of(definition: dict[str, Any]) -> dict[str, Any]:
    return {version["name"]: version for version in definition["spec"]["versions"]}


def schema_of(name: str, version: str) -> dict[str, Any]:
    schema: dict[str, Any] = versions_of(DEFINITIONS[name])[version]["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: dict[str, Any], path: str = "", *, is_required: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field with what is known of it, in the words of the listed facts."""
    if path:
        yield path, facts_of(schema, is_required=is_required)
    required = schema.get("required", [])
    for name, part in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        yield from walk(part, f"{path}.{name}" if path else name, is_required=name in required)
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


_PLAIN_FACTS = ("format", "default", "enum", "minimum", "pattern", "minLength")


def facts_of(schema: dict[str, Any], *, is_required: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"type": schema.get("type", "any")}
    if schema.get("x-kubernetes-int-or-string"):
        found["type"] = "int-or-string"
    if is_required:
        found["required"] = True
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        found["open"] = True
    for fact in ("list-type", "list-map-keys", "map-type"):
        if (name := f"x-kubernetes-{fact}") in schema:
            found[fact] = schema[name]
    return {**found, **{name: schema[name] for name in _PLAIN_FACTS if name in schema}}


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_fields_are_those_listed(name: str, version: str) -> None:
    """Type, format, required, list and map type, default and openness of each: neither less nor more, but for ours
    (CS-5, ST-5, ST-9, DS-4, EJ-2).
    BJ-5, BJ-11, ACJ-1, ACJ-5, ACJ-6, ACJ-11.
    """
    assert dict(walk(schema_of(name, version))) == FACTS[name]["versions"][version]["fields"] | OURS.get(
        (name, version), {}
    )


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_subresources_and_columns_are_those_listed(name: str, version: str) -> None:
    """CS-3, CS-4, ST-3, ST-4, DS-2, DS-3, BJ-1, EJ-1, EJ-63."""
    facts, ours = FACTS[name]["versions"][version], versions_of(DEFINITIONS[name])[version]
    assert ours["subresources"] == facts["subresources"]
    given = ours.get("additionalPrinterColumns", [])
    assert [{k: v for k, v in column.items() if k != "description"} for column in given] == facts["printerColumns"]
    assert all(column["description"] for column in given)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_names_scope_and_versions_are_those_listed(name: str) -> None:
    """CS-1, CS-2, ST-1, ST-2, DS-1, DS-2."""
    facts, spec = FACTS[name], DEFINITIONS[name]["spec"]
    assert name == f"{facts['plural']}.{facts['group']}"
    assert spec["group"] == facts["group"]
    assert spec["scope"] == facts["scope"]
    assert {"shortNames": [], **spec["names"]} == {
        "kind": facts["kind"],
        "listKind": f"{facts['kind']}List",
        "plural": facts["plural"],
        "singular": facts["singular"],
        "shortNames": facts["shortNames"],
    }
    told = {version: (fact["served"], fact["storage"]) for version, fact in facts["versions"].items()}
    ours = versions_of(DEFINITIONS[name])
    assert {version: (ours[version]["served"], ours[version]["storage"]) for version in ours} == told


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_every_field_is_described(name: str, version: str) -> None:
    """`kubectl explain` has something to say of each, in both versions."""

    def undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
        if not schema.get("description"):
            yield path
        for key, part in schema.get("properties", {}).items():
            if path or key != "metadata":
                yield from undescribed(part, f"{path}.{key}")
        if schema.get("items", {}).get("type") == "object":
            yield from undescribed(schema["items"], f"{path}[]")

    assert list(undescribed(schema_of(name, version), "")) == []


CONVERTED = [name for name in DEFINITIONS if "conversion" in DEFINITIONS[name]["spec"]]


@pytest.mark.parametrize("name", [name for name in DEFINITIONS if name not in CONVERTED])
def test_versions_that_nothing_converts_are_the_same(name: str) -> None:
    """BJ-2, BJ-3."""
    schemas = [version["schema"] for version in DEFINITIONS[name]["spec"]["versions"]]
    assert all(schema == schemas[0] for schema in schemas)


@pytest.mark.parametrize("name", CONVERTED)
def test_conversion_names_the_installed_service(name: str) -> None:
    """CS-2, ST-2, DS-2: the stanza is complete from the start, and is the one that a manager in the cluster wants."""
    conversion = DEFINITIONS[name]["spec"]["conversion"]
    service = next(manifest for manifest in manifests([]) if manifest["kind"] == "Service")["metadata"]
    endpoint = configurations.ServiceEndpoint(service["namespace"], service["name"])
    assert conversion["strategy"] == "Webhook"
    assert conversion["webhook"] == {
        "clientConfig": endpoint.client_config(configurations.CONVERT_PATH),
        "conversionReviewVersions": list(REVIEW_VERSIONS),
    }


def test_one_version_is_stored() -> None:
    version = Version(name="v1", type=object)
    with pytest.raises(ValueError, match=r"things\.example\.com: exactly one version must be the stored one"):
        definition(group="example.com", kind="Thing", plural="things", versions=(version, version))
