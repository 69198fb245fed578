"""The documents from which clients learn what there is."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.local.server.discovery import version_priority
from tests.local.server.harness import WIDGET_KIND, Api, serving

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KUBECTL = f"{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"


def by_name(entries: list[Any], key: str = "name") -> dict[str, Any]:
    return {entry[key]: entry for entry in entries}


async def resources(api: Api, path: str) -> dict[str, Any]:
    return by_name((await api.get(path)).json["resources"])


def test_versions_are_sorted_as_kubernetes_does() -> None:
    versions = ["v1beta1", "v10", "foo", "v2", "v1alpha1", "v1", "v1beta2"]
    assert sorted(versions, key=version_priority) == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]


async def test_groups() -> None:
    async with serving() as api:
        assert (await api.get("/api")).json["versions"] == ["v1"]
        groups = by_name((await api.get("/apis")).json["groups"])
        assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
        assert next(iter(groups)) == "apps", "native groups come first, in their order"
        assert list(groups)[-1] == "toys.kruise.io"
        assert (await api.get("/apis/apps")).json["kind"] == "APIGroup"


async def test_resources_and_their_parts() -> None:
    async with serving() as api:
        core = await resources(api, "/api/v1")
        assert core["configmaps"]["shortNames"] == ["cm"]
        assert core["pods/log"]["verbs"] == ["get"]
        assert core["pods/eviction"] == {
            "name": "pods/eviction",
            "singularName": "",
            "namespaced": True,
            "group": "policy",
            "version": "v1",
            "kind": "Eviction",
            "verbs": ["create"],
        }
        assert "deletecollection" not in core["namespaces"]["verbs"]
        scale = (await resources(api, "/apis/apps/v1"))["deployments/scale"]
        assert (scale["group"], scale["kind"], scale["verbs"]) == ("autoscaling", "Scale", ["get", "patch", "update"])


async def test_everything_in_one_document() -> None:
    async with serving() as api:
        answer = await api.get("/apis", KUBECTL)
        assert answer.headers["Content-Type"] == AGGREGATED
        groups = {item["metadata"]["name"]: item for item in answer.json["items"]}
        widgets = groups["toys.kruise.io"]["versions"][0]["resources"][0]
        assert widgets["responseKind"] == {"group": "toys.kruise.io", "version": "v1", "kind": "Widget"}
        assert widgets["shortNames"] == ["wd"]
        assert [part["subresource"] for part in widgets["subresources"]] == ["status"]


async def test_a_document_is_sent_again_only_when_it_changed() -> None:
    async with serving() as api:
        first = await api.get("/apis", KUBECTL)
        again = await api.get("/apis", KUBECTL, If_None_Match=first.headers["ETag"])
        assert (again.code, again.raw) == (304, b"")
        api.core.registry.remove(WIDGET_KIND.group, WIDGET_KIND.plural)
        changed = await api.get("/apis", KUBECTL, If_None_Match=first.headers["ETag"])
        assert changed.code == 200
        assert b"toys.kruise.io" not in changed.raw


async def test_kinds_come_and_go() -> None:
    async with serving() as api:
        api.core.registry.remove(WIDGET_KIND.group, WIDGET_KIND.plural)
        assert (await api.get("/apis/toys.kruise.io/v1")).code == 404
        api.core.registry.add(WIDGET_KIND)
        assert (await api.get("/apis/toys.kruise.io/v1")).code == 200


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/api/v1", "/version", "/"])
async def test_documents_are_only_read(path: str) -> None:
    async with serving() as api:
        assert (await api.get(path)).code == 200
        assert (await api.post(path, {})).code == 405
        assert (await api.get(path, "image/png")).code == 406


async def test_health_and_version() -> None:
    async with serving() as api:
        assert (await api.get("/readyz")).raw == b"ok"
        assert (await api.get("/readyz?verbose")).raw == b"[+]ping ok\nreadyz check passed\n"
        assert (await api.get("/livez/ping")).raw == b"ok"
        assert (await api.get("/version")).json["gitVersion"].startswith("v1.34")


async def test_openapi_is_mounted() -> None:
    async with serving() as api:
        found = await api.get("/openapi/v3")
        assert "api/v1" in found.json["paths"]
        assert (await api.get("/openapi/v3", If_None_Match=found.headers["ETag"])).code == 304
        assert (await api.get("/openapi/v3/apis/nowhere.io/v1")).code == 404
