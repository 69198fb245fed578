"""The CloneSet definition on the local API server: accepted as it is installed, and served in both versions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.apps.definitions.cloneset import DEFINITION as CLONE_SET_DEFINITION
from kruise.api.meta import PartialObject
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.resource import Resource
from kruise.machinery import codec
from tests.local.crds.harness import CrdApi

ALPHA = Resource(CLONE_SETS.group, "v1alpha1", "clonesets", "CloneSet", True, PartialObject)
LABELS = {"matchLabels": {"app": "web"}}


class InProcess:
    """Converts as the webhook does, without the webhook."""

    async def convert(self, definition: Any, objects: Sequence[Any], version: str) -> list[Any]:
        return [convert(copy.deepcopy(obj), version) for obj in objects]


def clone_set(version: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "i", "odd": 1}]}}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": name},
        "spec": {"selector": LABELS, "template": template, **spec},
    }


@pytest.fixture
async def api() -> CrdApi:
    api = CrdApi(conversion=InProcess())
    await api.define(CLONE_SET_DEFINITION)
    return api


async def test_the_definition_is_established_and_stays_as_it_was_written(api: CrdApi) -> None:
    """CS-1, CS-2."""
    _, found = await api.get(CUSTOM_RESOURCE_DEFINITIONS, "clonesets.apps.kruise.io")
    assert [(item["type"], item["status"]) for item in found["status"]["conditions"]] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
    assert found["spec"] == CLONE_SET_DEFINITION["spec"]
    assert found["status"]["storedVersions"] == ["v1beta1"]


async def test_columns_and_short_name(api: CrdApi) -> None:
    """CS-1, CS-4."""
    for version in ("v1alpha1", "v1beta1"):
        kind = api.core.registry.find(CLONE_SETS.group, version, "clonesets")
        assert kind is not None
        assert kind.short_names == ("clone",)
        assert [column.name for column in kind.columns if not column.priority] == [
            *("DESIRED", "UPDATED", "UPDATED_READY", "UPDATED_AVAILABLE", "READY", "TOTAL", "AGE")
        ]
        assert [column.name for column in kind.columns if column.priority] == ["CONTAINERS", "IMAGES", "SELECTOR"]


async def test_either_version_shows_what_the_other_wrote(api: CrdApi) -> None:
    """CS-2, CS-20, CS-23: stored in v1beta1, whichever way it came."""
    flat = {"type": "InPlaceIfPossible", "partition": "50%", "strange": 1}
    code, made = await api.create(ALPHA, clone_set("v1alpha1", updateStrategy=flat, volumeClaimTemplates=[{"x": 1}]))
    assert code == 201
    assert made["spec"]["updateStrategy"] == {"type": "InPlaceIfPossible", "partition": "50%"}
    _, stored = await api.get(CLONE_SETS, "web")
    spec = stored["spec"]
    assert spec["updateStrategy"]["rollingUpdate"] == {"podUpdatePolicy": "InPlaceIfPossible", "partition": "50%"}
    assert spec["scaleStrategy"] == {"enablePVCReuse": True}
    # Templates are schemaless: nothing in them is cut away (CS-5).
    assert spec["template"]["spec"]["containers"][0]["odd"] == 1
    assert spec["volumeClaimTemplates"] == [{"x": 1}]
    slim = codec.convert(stored, CloneSet)
    assert slim.spec.update_strategy.rolling_update is not None
    assert slim.spec.update_strategy.rolling_update.partition == "50%"

    _, patched = await api.patch(ALPHA, "web", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    assert patched["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert (await api.get(CLONE_SETS, "web"))[1]["spec"]["updateStrategy"] == {"type": "OnDelete"}


async def test_the_only_default(api: CrdApi) -> None:
    """CS-5: reuse of claims, in v1beta1, where there is a scale strategy at all."""
    _, made = await api.create(CLONE_SETS, clone_set("v1beta1", "a", scaleStrategy={}))
    assert made["spec"]["scaleStrategy"] == {"enablePVCReuse": False}
    _, made = await api.create(CLONE_SETS, clone_set("v1beta1", "b"))
    assert "scaleStrategy" not in made["spec"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"selector": None}, "spec.selector"),
        ({"template": None}, "spec.template"),
        ({"replicas": "3"}, "spec.replicas"),
        ({"scaleStrategy": {"maxUnavailable": 1.5}}, "spec.scaleStrategy.maxUnavailable"),
        ({"scaleStrategy": {"podsToDelete": [1]}}, "spec.scaleStrategy.podsToDelete[0]"),
        ({"lifecycle": {"preDelete": {"labelsHandler": {"a": True}}}}, "spec.lifecycle.preDelete.labelsHandler.a"),
    ],
)
@pytest.mark.parametrize("resource", [ALPHA, CLONE_SETS], ids=["v1alpha1", "v1beta1"])
async def test_wrong_types_and_missing_parts_are_refused(
    api: CrdApi, resource: Resource[Any], spec: dict[str, Any], field: str
) -> None:
    """CS-5."""
    code, answer = await api.create(resource, clone_set(resource.version, **spec))
    assert code == 422
    assert field in [cause["field"] for cause in answer["details"]["causes"]]


@pytest.mark.parametrize("resource", [ALPHA, CLONE_SETS], ids=["v1alpha1", "v1beta1"])
async def test_status_and_scale(api: CrdApi, resource: Resource[Any]) -> None:
    """CS-3, CS-5."""
    await api.create(resource, clone_set(resource.version, replicas=2))
    code, answer = await api.patch(resource, "web", {"status": {"replicas": 2}}, subresource="status")
    assert code == 422
    assert {cause["field"] for cause in answer["details"]["causes"]} == {
        *("status.availableReplicas", "status.readyReplicas", "status.updatedReadyReplicas", "status.updatedReplicas")
    }
    condition = {"type": "Progressing", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z", "odd": 1}
    counters = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas")
    status = {**dict.fromkeys(counters, 2), "labelSelector": "app=web", "conditions": [condition]}
    code, answer = await api.patch(resource, "web", {"status": status}, subresource="status")
    assert code == 200
    assert answer["status"]["conditions"] == [{key: value for key, value in condition.items() if key != "odd"}]

    _, scale = await api.get(resource, "web", subresource="scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 2, "selector": "app=web"})
    scale["spec"]["replicas"] = 5
    code, _ = await api.update(resource, "web", scale, subresource="scale")
    assert code == 200
    assert (await api.get(resource, "web"))[1]["spec"]["replicas"] == 5
