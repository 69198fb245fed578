"""What the local cluster stores without anybody to act on it: a warning at the write, the truth for `kruise why`."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.resource import Resource
from kruise.cli.deciding import Asking, explain
from kruise.cli.following import Seen, follow
from kruise.cli.session import NotFinishedError, Session
from kruise.embedded import install, managing
from kruise.faces.face import resource
from kruise.faces.native import DEPLOYMENT
from kruise.kinds import features
from kruise.local import cluster as clusters
from kruise.local import scheduler
from kruise.local.attendance import NEED_NOBODY
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.kinds import NATIVE_KINDS
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.reasons.words import answer_lines
from kruise.verbs.targets import Target
from kruise.workloads.cloneset.face import FACE as CLONE_SET

QUOTAS = resource("", "v1", "resourcequotas", "ResourceQuota")
CONFIG_MAPS = resource("", "v1", "configmaps", "ConfigMap")
SERVICES = resource("", "v1", "services", "Service")
ROLES = resource("rbac.authorization.k8s.io", "v1", "roles", "Role")


def workload(kind: Resource[Any], name: str = "web") -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[LocalCluster]:
    cluster = LocalCluster(ClusterOptions(seed=1), clock=VirtualClock(asyncio.get_running_loop()))
    task = asyncio.create_task(cluster.run())
    await cluster.ready.wait()
    yield cluster
    task.cancel()


async def warned(
    cluster: LocalCluster, kind: Resource[Any], body: dict[str, Any], *, change: bool = False, dry_run: bool = False
) -> str:
    """The warning that goes with the answer to a write."""
    query = (("dryRun", "All"),) if dry_run else ()
    request = Request(Verb.CREATE, kind, "default", body=json.dumps(body).encode(), query=query)
    if change:
        patch = json.dumps({"spec": {"replicas": 3}}).encode()
        name = body["metadata"]["name"]
        request = Request(Verb.PATCH, kind, "default", name, body=patch, content_type=PatchType.MERGE)
    answer = await cluster.transport.send(request)
    assert answer.status in (200, 201), answer.body
    return answer.headers.get("warning", "")


async def reasons(cluster: LocalCluster, target: Target) -> list[str]:
    session = Session(cluster.client("test"), namespace="default", clock=cluster.clock)
    return answer_lines(await explain(session, target, await session.get(target), Asking()))


def test_a_kind_without_a_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONTROLLERS", (scheduler.specs,))

    async def main() -> None:
        async with running() as cluster:
            text = "the local cluster has no controller for Deployments: web is stored, and nothing else happens"
            tried = await warned(cluster, DEPLOYMENTS, workload(DEPLOYMENTS), dry_run=True)
            assert tried == f'299 - "{text.replace("is stored", "would be stored")}"'
            assert await warned(cluster, DEPLOYMENTS, workload(DEPLOYMENTS)) == f'299 - "{text}"'
            assert await warned(cluster, DEPLOYMENTS, workload(DEPLOYMENTS), change=True) == f'299 - "{text}"'
            lines = await reasons(cluster, Target(DEPLOYMENT, "web"))
            assert lines[2:] == [
                "",
                "deployment/web is stuck",
                "  the local cluster has no controller for Deployments [no-controller]",
                "  → use a kind that it runs (docs/local-cluster.md lists them), or another cluster",
            ]

    run_virtual(main())


def test_a_kind_with_a_controller_needs_no_word() -> None:
    """Who runs says so: the very same write, with the controllers of the cluster."""

    async def main() -> None:
        async with running() as cluster:
            assert await warned(cluster, DEPLOYMENTS, workload(DEPLOYMENTS)) == ""
            assert await warned(cluster, CONFIG_MAPS, {"metadata": {"name": "data"}}) == ""
            quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}}
            assert "no controller for ResourceQuotas" in await warned(cluster, QUOTAS, quota)
            await asyncio.sleep(30)
            assert "nothing waits" in (await reasons(cluster, Target(DEPLOYMENT, "web")))[-1]

    run_virtual(main())


def test_a_kind_of_ours_without_a_manager() -> None:
    async def main() -> None:
        async with running() as cluster:
            await install(cluster, features())
            text = "no manager is at work that acts on CloneSets"
            assert text in await warned(cluster, CLONE_SETS, workload(CLONE_SETS))
            lines = await reasons(cluster, Target(CLONE_SET, "web"))
            assert f"  {text} [manager-down]" in lines
            assert not any("goes on by itself" in line for line in lines)
            async with managing(cluster, features(), random=Random(1)) as manager:
                await manager.serving.wait()
                assert await warned(cluster, CLONE_SETS, workload(CLONE_SETS, "other")) == ""
                await asyncio.sleep(30)
                assert "nothing waits" in (await reasons(cluster, Target(CLONE_SET, "web")))[-1]

    run_virtual(main())


def test_what_a_controller_alone_would_not_bring_to_life() -> None:
    async def main() -> None:
        async with running() as cluster:
            service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}
            assert await warned(cluster, SERVICES, service) == (
                '299 - "the local cluster has no network: web is stored, and nothing is routed to pods"'
            )
            text = "makes no decisions by RBAC: reader is stored, and who is let in may do everything"
            assert text in await warned(cluster, ROLES, {"metadata": {"name": "reader"}, "rules": []})

    run_virtual(main())


def test_a_kind_that_is_served_anew_is_not_passed_over() -> None:
    """Nobody has to remember it: a kind that nobody acts on is spoken of unless it is known to need nobody."""

    async def main() -> None:
        async with running() as cluster:
            novelty = dataclasses.replace(NATIVE_KINDS[0], group="new.k8s.io", kind="Novelty")
            assert cluster.attendance.lacks(novelty) == "the local cluster has no controller for Noveltys"

    run_virtual(main())


def test_every_kind_that_needs_nobody_is_served_and_the_document_names_those_without() -> None:
    assert {(kind.group, kind.kind) for kind in NATIVE_KINDS} >= NEED_NOBODY
    text = (Path(__file__).parents[2] / "docs" / "local-cluster.md").read_text()
    told = text.partition("Today that is so\nfor ")[2].partition("and for kinds of ours")[0]

    async def main() -> set[str]:
        async with running() as cluster:
            return {f"{kind.kind}s" for kind in NATIVE_KINDS if cluster.attendance.lacks(kind)}

    without_reasons = re.sub(r"\(.*?\)", "", told, flags=re.DOTALL)
    assert run_virtual(main()) == set(re.findall(r"\b[A-Z]\w+s\b", without_reasons))


def test_who_follows_a_rollout_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONTROLLERS", (scheduler.specs,))

    async def main() -> None:
        async with running() as cluster:
            await warned(cluster, DEPLOYMENTS, workload(DEPLOYMENTS))
            session = Session(cluster.client("test"), namespace="default", clock=cluster.clock)
            target, shown = Target(DEPLOYMENT, "web"), _Shown()
            text = "the local cluster has no controller for Deployments"
            with pytest.raises(NotFinishedError, match=text):
                await follow(session, target, await session.get(target), shown, watch=False)
            with pytest.raises(NotFinishedError, match="timed out"):
                await follow(session, target, await session.get(target), shown, timeout=60)
            [told] = shown.waits
            assert told == f"deployment/web is stuck: {text} [no-controller]; see: kruise why deployment/web"

    run_virtual(main())


class _Shown:
    needs_pods = False

    def __init__(self) -> None:
        self.waits: list[str] = []

    def show(self, seen: Seen) -> None: ...

    def tick(self) -> None: ...

    def trouble(self, text: str) -> None: ...

    def waits_for(self, text: str) -> None:
        self.waits.append(text)

    def close(self) -> None: ...
