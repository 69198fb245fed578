"""Kinds as data: several versions over one stored form, hooks, subresources, kinds that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.core import field_errors
from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.resource import Resource
from kruise.local.apicore import KindDescription, ObjectSubresource, custom_kind
from kruise.machinery.client.requests import PatchType
from tests.local.harness import PODS, WIDGETS, Api, deployment, pod, widget

OLD = Resource("toys.kruise.io", "v1alpha1", "gears", "Gear", True, PartialObject)
NEW = Resource("toys.kruise.io", "v1beta1", "gears", "Gear", True, PartialObject)


def convert(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """`spec.teeth` of v1beta1 is `spec.count` of v1alpha1."""
    before, after = ("count", "teeth") if version == "v1beta1" else ("teeth", "count")
    spec = {after if name == before else name: value for name, value in obj.get("spec", {}).items()}
    return {**obj, "apiVersion": f"toys.kruise.io/{version}", "spec": spec}


GEARS = custom_kind(NEW, versions=("v1alpha1", "v1beta1"), storage_version="v1beta1", convert=convert)


async def test_versions_of_one_kind_show_one_object() -> None:
    api = Api(kinds=(GEARS,))
    _, old = await api.create(OLD, {"metadata": {"name": "a"}, "spec": {"count": 3}})
    assert (old["apiVersion"], old["spec"]) == ("toys.kruise.io/v1alpha1", {"count": 3})
    _, new = await api.get(NEW, "a")
    assert (new["apiVersion"], new["spec"]) == ("toys.kruise.io/v1beta1", {"teeth": 3})
    assert new["metadata"] == old["metadata"]
    stored = api.core.storage.get("gears.toys.kruise.io", ("default", "a"))
    assert stored is not None
    assert stored["apiVersion"] == "toys.kruise.io/v1beta1"
    _, patched = await api.patch(OLD, "a", {"spec": {"count": 4}})
    assert patched["spec"] == {"count": 4}
    assert (patched["metadata"]["generation"], patched["metadata"]["resourceVersion"]) == (2, "2")
    _, listed = await api.list(NEW)
    assert [item["spec"] for item in listed["items"]] == [{"teeth": 4}]
    assert (await api.patch(NEW, "a", {"spec": {"teeth": 4}}))[1]["metadata"]["resourceVersion"] == "2"


async def test_watchers_see_their_own_version() -> None:
    api = Api(kinds=(GEARS,))
    await api.create(OLD, {"metadata": {"name": "a"}, "spec": {"count": 3}})
    await api.delete(NEW, "a")
    old = await api.events_since(OLD, "1")
    new = await api.events_since(NEW, "1")
    assert [obj["spec"] for _, obj in old] == [{"count": 3}]
    assert [obj["spec"] for _, obj in new] == [{"teeth": 3}]


async def test_a_version_that_is_not_served() -> None:
    other = Resource("toys.kruise.io", "v9", "gears", "Gear", True, PartialObject)
    assert (await Api(kinds=(GEARS,)).list(other))[0] == 404


def test_the_storage_version_must_be_served() -> None:
    with pytest.raises(ValueError, match="storage version v3 is not among its versions"):
        custom_kind(NEW, storage_version="v3")


async def test_hooks_of_a_kind() -> None:
    """Defaults first, then what the server writes, then validation."""

    def default(obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "spec": {"size": 1, **obj.get("spec", {})}}

    def validate(new: dict[str, Any], old: dict[str, Any] | None) -> list[field_errors.FieldError]:
        problems = []
        if new["spec"]["size"] < 1:
            problems.append(field_errors.invalid("spec.size", new["spec"]["size"], "must be at least 1"))
        if old is not None and new["spec"].get("colour") != old["spec"].get("colour"):
            problems.append(field_errors.forbidden("spec.colour", "may not change"))
        return problems

    def prepare_update(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
        return {**new, "spec": {**new["spec"], "serial": old["spec"]["serial"]}}

    kind = custom_kind(
        WIDGETS,
        default=default,
        validate=validate,
        prepare_create=lambda obj: {**obj, "spec": {**obj["spec"], "serial": 7}},
        prepare_update=prepare_update,
    )
    api = Api(kinds=(kind,))
    _, made = await api.create(WIDGETS, {"metadata": {"name": "a"}, "spec": {"colour": "red"}})
    assert made["spec"] == {"size": 1, "colour": "red", "serial": 7}
    _, changed = await api.patch(WIDGETS, "a", {"spec": {"serial": 8, "size": None}})
    assert changed == made, "what may not change is put back, what is missing is filled in"
    code, refused = await api.patch(WIDGETS, "a", {"spec": {"size": 0, "colour": "blue"}})
    assert (code, refused["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["spec.size", "spec.colour"]
    assert refused["message"] == (
        'Widget.toys.kruise.io "a" is invalid: [spec.size: Invalid value: 0: must be at least 1, '
        "spec.colour: Forbidden: may not change]"
    )


async def test_an_object_subresource_writes_only_its_part() -> None:
    def only_colour(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "metadata": new["metadata"], "spec": {**old["spec"], "colour": new["spec"].get("colour")}}

    kind = custom_kind(WIDGETS, subresources={"paint": ObjectSubresource(prepare=only_colour)})
    api = Api(kinds=(kind,))
    await api.create(WIDGETS, widget("a"))
    _, made = await api.patch(WIDGETS, "a", {"spec": {"colour": "red", "size": 9}}, subresource="paint")
    assert made["spec"] == {"size": 1, "colour": "red"}
    assert made["metadata"]["generation"] == 2
    assert (await api.get(WIDGETS, "a", subresource="paint"))[1] == made
    assert (await api.create(WIDGETS, {}, name="a", subresource="paint"))[0] == 405


async def test_kinds_come_and_go() -> None:
    api = Api()
    assert (await api.list(NEW)) == (404, b"404 page not found\n")
    api.core.registry.add(GEARS)
    assert (await api.list(NEW))[0] == 200
    api.core.registry.remove("toys.kruise.io", "gears")
    assert (await api.list(NEW))[0] == 404
    unknown = Resource("", "v1", "gizmos", "Gizmo", True, PartialObject)
    code, refused = await api.list(unknown)
    assert (code, refused["message"]) == (404, "the server could not find the requested resource")


async def test_scale_shows_and_sets_the_size() -> None:
    api = Api()
    await api.create(DEPLOYMENTS, deployment("d", replicas=2))
    _, scale = await api.get(DEPLOYMENTS, "d", subresource="scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 0, "selector": "app=x"})
    _, scale = await api.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 5}}, subresource="scale")
    assert scale["spec"] == {"replicas": 5}
    scale["spec"]["replicas"] = 1
    assert (await api.update(DEPLOYMENTS, "d", scale, subresource="scale"))[0] == 200
    assert (await api.update(DEPLOYMENTS, "d", scale, subresource="scale"))[0] == 409, "its version is old now"
    _, made = await api.get(DEPLOYMENTS, "d")
    assert (made["spec"]["replicas"], made["metadata"]["generation"]) == (1, 3)


async def test_binding_puts_a_pod_on_a_node_once() -> None:
    api = Api()
    _, made = await api.create(PODS, pod("a", node=""))
    target = {"kind": "Node", "name": "n1"}
    body = {"metadata": {"name": "a", "uid": made["metadata"]["uid"], "annotations": {"by": "me"}}, "target": target}
    code, answer = await api.create(PODS, body, name="a", subresource="binding")
    assert (code, answer["status"], answer["code"]) == (201, "Success", 201)
    _, bound = await api.get(PODS, "a")
    assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n1", {"by": "me"})
    [condition] = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    code, refused = await api.create(PODS, body, name="a", subresource="binding")
    assert code == 409
    assert 'pod a is already assigned to node "n1"' in refused["message"]
    assert (await api.get(PODS, "a", subresource="binding"))[0] == 405
    assert (await api.patch(PODS, "a", {}, subresource="binding"))[0] == 405
    gated = pod("b", node="")
    gated["spec"]["schedulingGates"] = [{"name": "wait"}]
    await api.create(PODS, gated)
    body = {"metadata": {"name": "b"}, "target": target}
    assert "schedulingGates" in (await api.create(PODS, body, name="b", subresource="binding"))[1]["message"]


async def test_eviction_is_a_delete_that_says_so() -> None:
    api = Api()
    await api.create(PODS, pod("a", grace=20))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    dry = await api.create(PODS, body, name="a", subresource="eviction", query=(("dryRun", "All"),))
    assert dry[0] == 201
    assert "deletionTimestamp" not in (await api.get(PODS, "a"))[1]["metadata"]
    assert (await api.create(PODS, body, name="a", subresource="eviction"))[0] == 201
    _, pending = await api.get(PODS, "a")
    assert pending["metadata"]["deletionGracePeriodSeconds"] == 20
    assert pending["status"]["conditions"][0]["reason"] == "EvictionByEvictionAPI"
    body["deleteOptions"] = {"gracePeriodSeconds": 0}  # type: ignore[assignment]
    assert (await api.create(PODS, body, name="a", subresource="eviction"))[0] == 201
    assert (await api.create(PODS, body, name="a", subresource="eviction"))[0] == 404


async def test_a_description_from_a_resource_keeps_its_names() -> None:
    kind = KindDescription.of(DEPLOYMENTS)
    assert (kind.group_resource, kind.listed_as, kind.stored_version) == ("deployments.apps", "DeploymentList", "v1")
    assert Api().core.registry.find("apps", "v2", "deployments") is None


async def test_cluster_scoped_objects_have_no_namespace() -> None:
    rings = Resource("toys.kruise.io", "v1", "rings", "Ring", False, PartialObject)
    api = Api(kinds=(custom_kind(rings),))
    body = {"metadata": {"name": "a", "namespace": "ignored"}}
    _, made = await api.create(rings, body, namespace="")
    assert "namespace" not in made["metadata"]
    _, patched = await api.patch(rings, "a", {"spec": {"x": 1}}, namespace="", content_type=PatchType.MERGE)
    assert patched["spec"] == {"x": 1}
