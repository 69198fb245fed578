"""Server versions and what a server serves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.discovery import AGGREGATED, Discovery, parse_version
from kruise.machinery.client.errors import BadAnswerError
from kruise.machinery.client.requests import Request
from kruise.machinery.client.retry import NEVER
from kruise.machinery.client.transport import Response
from tests.support.scripted_transport import ScriptedTransport, answer, failure


@pytest.mark.parametrize(
    ("git", "major", "minor", "expected"),
    [
        ("v1.34.4", "1", "34", (1, 34, 4)),
        ("v1.29.3-gke.100", "1", "29", (1, 29, 3)),
        ("v1.28.9-eks-036c24b", "1", "28+", (1, 28, 9)),
        ("v1.30.0-beta.0.12+abcdef-dirty", "1", "30+", (1, 30, 0)),
        ("v1.27.4+k3s1", "1", "27", (1, 27, 4)),
        ("1.31", "", "", (1, 31, 0)),
        ("", "1", "29+", (1, 29, 0)),
        ("unknown", "1", "26-vendor", (1, 26, 0)),
    ],
)
def test_vendor_versions(git: str, major: str, minor: str, expected: tuple[int, int, int]) -> None:  # MGR-72
    found = parse_version(git, major, minor)
    assert (found.major, found.minor, found.patch) == expected


def test_comparing_versions() -> None:  # MGR-72
    """`pods/resize` asks for 1.32."""
    assert parse_version("v1.32.0-gke.1").at_least(1, 32)
    assert not parse_version("v1.9.7").at_least(1, 32)
    assert str(parse_version("v1.29.3-gke.100")) == "v1.29.3-gke.100"


def test_no_version() -> None:
    with pytest.raises(ValueError, match="no Kubernetes version"):
        parse_version("", "", "")


@given(st.integers(1, 9), st.integers(0, 99), st.integers(0, 99), st.text("abc.-+0123456789", max_size=8))
def test_any_suffix(major: int, minor: int, patch: int, suffix: str) -> None:  # MGR-72
    found = parse_version(f"v{major}.{minor}.{patch}-{suffix}")
    assert (found.major, found.minor, found.patch) == (major, minor, patch)


async def test_server_version() -> None:
    transport = ScriptedTransport(answer({"gitVersion": "v1.29.3-gke.100", "major": "1", "minor": "29"}))
    assert (await Client(transport).server_version()).minor == 29
    assert transport.requests[0].path == "/version"
    with pytest.raises(BadAnswerError, match="no Kubernetes version"):
        await Client(ScriptedTransport(answer({}))).server_version()


def resource(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "namespaced": True, "verbs": ["get"]} | more


CLASSIC: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {
                "name": "metrics.k8s.io",
                "versions": [{"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
        ],
    },
    "/api/v1": {
        "resources": [
            resource("pods", "Pod", singularName="pod", shortNames=["po"], categories=["all"]),
            resource("pods/status", "Pod"),
            resource("pods/eviction", "Eviction"),
            resource("nodes", "Node", namespaced=False, shortNames=["no"]),
        ]
    },
    "/apis/apps/v1": {"resources": [resource("deployments", "Deployment", shortNames=["deploy"])]},
    "/apis/apps/v1beta1": {"resources": [resource("deployments", "Deployment", shortNames=["deploy"])]},
}


def aggregated(name: str, *versions: tuple[str, str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [
            {"version": version, "freshness": freshness, "resources": resources}
            for version, freshness, resources in versions
        ],
    }


DISCOVERED_PODS = {
    "resource": "pods",
    "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
    "scope": "Namespaced",
    "singularResource": "pod",
    "shortNames": ["po"],
    "verbs": ["get"],
    "categories": ["all"],
    "subresources": [{"subresource": "status"}, {"subresource": "eviction"}],
}
DISCOVERED_DEPLOYMENTS = {
    "resource": "deployments",
    "responseKind": {"kind": "Deployment"},
    "scope": "Namespaced",
    "singularResource": "deployment",
    "shortNames": ["deploy"],
    "verbs": ["get"],
}
NEW: dict[str, Any] = {
    "/api": {"kind": "APIGroupDiscoveryList", "items": [aggregated("", ("v1", "Current", [DISCOVERED_PODS]))]},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            aggregated(
                "apps",
                ("v1", "Current", [DISCOVERED_DEPLOYMENTS]),
                ("v1beta1", "Current", [DISCOVERED_DEPLOYMENTS]),
            ),
            aggregated("metrics.k8s.io", ("v1", "Stale", [])),
        ],
    },
}


class Served(ScriptedTransport):
    def __init__(self, documents: dict[str, Any]) -> None:
        super().__init__()
        self.documents = documents

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        found = self.documents.get(request.path)
        return answer(found) if found is not None else failure(404 if request.path == "/api" else 503)


async def discover(documents: dict[str, Any]) -> tuple[Discovery, Served]:
    transport = Served(documents)
    return await Client(transport, retry=NEVER).discover(), transport


@pytest.mark.parametrize("documents", [CLASSIC, NEW])
async def test_find(documents: dict[str, Any]) -> None:
    """Both ways of discovery give the same; a group that is down is named and hides nothing."""
    found, transport = await discover(documents)
    assert transport.requests[0].accept == AGGREGATED
    assert found.unreachable == ("metrics.k8s.io/v1",)
    for word in ("po", "pod", "pods", "Pod", "pods.v1."):
        pods = found.find(word)
        assert pods is not None, word
        assert (pods.group, pods.version, pods.plural, pods.kind) == ("", "v1", "pods", "Pod")
    pods = found.find("pods")
    assert pods is not None
    assert pods.subresources == ("eviction", "status")
    assert pods.categories == ("all",)
    assert pods.resource == PODS
    for word in ("deploy", "Deployment", "deployments.apps", "deployments.v1.apps"):
        deployments = found.find(word)
        assert deployments is not None, word
        assert (deployments.group, deployments.version) == ("apps", "v1")
    older = found.find("deployments.v1beta1.apps")
    assert older is not None
    assert older.version == "v1beta1"
    assert found.find("nothing") is None
    assert found.find("pods.apps") is None
    assert found.versions("apps") == ("v1", "v1beta1")


async def test_is_served() -> None:
    found, _ = await discover(NEW)
    assert found.is_served(PODS)
    assert found.is_served(PODS, "eviction")
    assert not found.is_served(PODS, "resize")
    assert not found.is_served(Resource("apps", "v2", "deployments", "Deployment"))


async def test_names_win_over_short_names() -> None:
    """A resource that is called like another one's short name is found first."""
    first = {**DISCOVERED_PODS, "shortNames": ["deployments"]}
    documents = NEW | {"/api": {"kind": "APIGroupDiscoveryList", "items": [aggregated("", ("v1", "Current", [first]))]}}
    found, _ = await discover(documents)
    match = found.find("deployments")
    assert match is not None
    assert match.group == "apps"


async def test_a_server_without_core() -> None:
    found, _ = await discover({"/apis": NEW["/apis"]})
    assert found.find("pods") is None
    assert found.find("deploy") is not None
