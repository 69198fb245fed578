"""The CloneSet definition on a real API server: installed, explained by kubectl, and served in both versions."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
from aiohttp import web

from kruise.admission.conversion import Converters
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.apps.definitions.cloneset import DEFINITION as CLONE_SET_DEFINITION
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import Raw, encode
from kruise.manager.installation.installer import Installed, Installer
from tests.support.realcluster import ClusterError, ControlPlane
from tests.support.waiting import eventually

NAME = "clonesets.apps.kruise.io"
ALPHA = "--api-version=apps.kruise.io/v1alpha1"
MANIFEST: dict[str, Any] = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "CloneSet",
    "metadata": {"name": "web", "annotations": {"apps.kruise.io/image-predownload-parallelism": "5"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}, {"name": "log", "image": "busybox"}]},
        },
        "updateStrategy": {"type": "InPlaceIfPossible", "partition": "50%"},
    },
}


@asynccontextmanager
async def conversion_webhook() -> AsyncIterator[dict[str, str]]:
    """The conversion that the manager serves, behind a certificate of its own; gives the `clientConfig`."""
    converters = Converters()
    converters.register("apps.kruise.io", "CloneSet", convert)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        review = await request.json()
        asked = review["request"]
        raws = tuple(Raw(encode(obj)) for obj in asked["objects"])
        done = [json.loads(bytes(raw)) for raw in converters.convert_all(raws, asked["desiredAPIVersion"])]
        response = {"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": done}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/convert"
        yield {"url": url, "caBundle": base64.b64encode(authority.cert_pem.bytes()).decode()}
    finally:
        await runner.cleanup()


def _described(schema: dict[str, Any], path: str = "") -> dict[str, str]:
    """The descriptions of all fields of a schema, by path."""
    found = {path: schema.get("description", "")}
    for name, part in schema.get("properties", {}).items():
        if path or name not in ("apiVersion", "kind", "metadata"):
            found |= _described(part, f"{path}.{name}")
    if "items" in schema:
        found |= _described(schema["items"], f"{path}[]")
    return found


@pytest.mark.smoke
async def test_a_real_server_takes_the_definition_and_serves_both_versions(
    fresh_control_plane: Callable[..., ControlPlane],
) -> None:
    """CS-1 to CS-5, CS-20 to CS-23, with kubectl."""
    cluster = fresh_control_plane(scheduler=False)
    client = Client(HttpTransport(load(cluster.kubeconfig)))
    installer = Installer(client, clock=RealClock(), report=lambda text: None)

    async def kubectl(*arguments: str, stdin: str = "") -> str:
        return await asyncio.to_thread(cluster.kubectl, *arguments, stdin=stdin)

    try:
        assert await installer.install([CLONE_SET_DEFINITION]) == Installed(created=1)
        live = cluster.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}").ok()
        assert live["spec"] == CLONE_SET_DEFINITION["spec"]
        assert [item for item in live["status"]["conditions"] if item["status"] != "True"] == []
        assert await installer.install([CLONE_SET_DEFINITION]) == Installed(unchanged=1)
        await _check_explanations(cluster, kubectl)
        async with conversion_webhook() as address:
            stanza = {"webhook": {"clientConfig": {"service": None, **address}}}
            await client.patch(CUSTOM_RESOURCE_DEFINITIONS, NAME, {"spec": {"conversion": stanza}})
            await _check_versions(kubectl)
    finally:
        await client.close()


async def _check_explanations(cluster: ControlPlane, kubectl: Any) -> None:
    for version in CLONE_SET_DEFINITION["spec"]["versions"]:
        path = f"/openapi/v3/apis/apps.kruise.io/{version['name']}"

        async def published(path: str = path, version: Any = version) -> None:
            """The server publishes a new kind a moment after it serves it."""
            answer = cluster.request("GET", path)
            assert answer.status == 200
            schema = answer.ok()["components"]["schemas"][f"io.kruise.apps.{version['name']}.CloneSet"]
            assert _described(schema) == _described(version["schema"]["openAPIV3Schema"])

        await eventually(published, within=20)

    said = await kubectl("explain", "cloneset.spec.updateStrategy.type")
    assert "VERSION:    v1beta1" in said
    assert "RollingUpdate: pods are updated step by step." in " ".join(said.split())
    said = await kubectl("explain", ALPHA, "cloneset.spec.updateStrategy.inPlaceUpdateStrategy")
    assert "How pods are updated in place." in said
    assert "gracePeriodSeconds\t<integer>" in said
    said = await kubectl("explain", "cloneset.spec.updateStrategy.rollingUpdate.partition")
    assert "How many pods stay at the old template" in said
    assert "The pods to make" in await kubectl("explain", "cloneset.spec.template")


async def _check_versions(kubectl: Any) -> None:
    async def applied() -> None:
        """The server takes a changed conversion stanza a moment later."""
        try:
            await kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(MANIFEST))
        except ClusterError as error:
            raise AssertionError(str(error)) from error

    await eventually(applied, within=20)
    alpha = json.loads(await kubectl("get", "clonesets.v1alpha1.apps.kruise.io", "web", "-o", "json"))
    assert alpha["spec"]["updateStrategy"] == {
        "type": "InPlaceIfPossible",
        "partition": "50%",
        "inPlaceUpdateStrategy": {},
    }
    assert alpha["spec"]["scaleStrategy"] == {}
    beta = json.loads(await kubectl("get", "clone", "web", "-o", "json"))
    assert beta["apiVersion"] == "apps.kruise.io/v1beta1"
    assert beta["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {
            "podUpdatePolicy": "InPlaceIfPossible",
            "partition": "50%",
            "inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 5},
        },
    }
    assert beta["spec"]["scaleStrategy"] == {"enablePVCReuse": True}
    assert beta["spec"]["template"] == MANIFEST["spec"]["template"]

    # Nothing changes when the same is applied again, and either version may change what the other wrote.
    await kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(MANIFEST))
    again = json.loads(await kubectl("get", "clone", "web", "-o", "json"))
    assert (again["metadata"]["generation"], again["spec"]) == (beta["metadata"]["generation"], beta["spec"])
    newer = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}}
    await kubectl("patch", "clone", "web", "--type=merge", "-p", json.dumps(newer))
    await kubectl("scale", "clonesets.v1alpha1.apps.kruise.io", "web", "--replicas=4")
    alpha = json.loads(await kubectl("get", "clonesets.v1alpha1.apps.kruise.io", "web", "-o", "json"))
    assert (alpha["spec"]["replicas"], alpha["spec"]["updateStrategy"]["partition"]) == (4, 1)

    counters = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas")
    status = {"status": {**dict.fromkeys(counters, 3), "updatedAvailableReplicas": 3, "labelSelector": "app=web"}}
    await kubectl("patch", "clone", "web", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    for kind in ("clone", "clonesets.v1alpha1.apps.kruise.io"):
        header, row = (await kubectl("get", kind, "-o", "wide")).splitlines()
        assert header.split() == [
            *("NAME", "DESIRED", "UPDATED", "UPDATED_READY", "UPDATED_AVAILABLE", "READY", "TOTAL", "AGE"),
            *("CONTAINERS", "IMAGES", "SELECTOR"),
        ]
        age = row.split()[7]
        assert row.split() == ["web", "4", "3", "3", "3", "3", "3", age, "main", "nginx:1.25", "app=web"]
    names = (await kubectl("api-resources", "--api-group=apps.kruise.io", "--no-headers")).split()
    assert names == ["clonesets", "clone", "apps.kruise.io/v1beta1", "true", "CloneSet"]
