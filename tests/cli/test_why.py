"""`kruise why` from outside: what it prints, how it ends, where it finds its causes, and what it may not do."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.config import SERVICES
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.cli.deciding import Asking, explain
from kruise.cli.session import Session
from kruise.faces.face import resource
from kruise.faces.native import REPLICA_SET
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.reasons.words import answer_lines
from kruise.verbs.targets import Target
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from tests.scenarios.stage import Stage
from tests.support.commandline import Kruise, local_cluster, needs_tmux
from tests.support.manifests import cloneset_manifest
from tests.support.world import LocalWorld, run_local

CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False, PartialObject)
QUOTAS = resource("", "v1", "resourcequotas", "ResourceQuota")


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


def without_names(lines: list[str]) -> list[str]:
    return [re.sub(r"-[a-z0-9]{5}\b", "-ID", re.sub(r"web-[a-z0-9]{8,10}\b", "web-HASH", line)) for line in lines]


def until(kruise: Kruise, name: str, code: int, *words: str, flags: tuple[str, ...] = ()) -> list[str]:
    """Ask until the answer is as wanted; gives its lines without random names."""
    for _ in range(200):
        done = kruise("why", name, *flags)
        if done.code == code and all(word in done.out for word in words):
            return without_names(done.lines)
        asyncio.run(asyncio.sleep(0.1))
    raise AssertionError(f"{done.code}\n{done.out}\n{done.err}")


def test_a_kind_that_nobody_acts_on(kruise: Kruise) -> None:
    assert "look at all with --all" in kruise.refused("why", code=2)
    assert 'there is no kind "moon" here' in kruise.refused("why", "moon/x", code=2)
    kruise.create(QUOTAS, {"metadata": {"name": "nightly"}, "spec": {"hard": {"pods": "10"}}})
    done = kruise("why", "resourcequota/nightly")
    assert (done.code, done.lines) == (
        3,
        [
            "resourcequota/nightly in namespace default: it is stored, and nobody acts on it",
            "",
            "resourcequota/nightly is stuck",
            "  the local cluster has no controller for ResourceQuotas [no-controller]",
            "  → use a kind that it runs (docs/local-cluster.md lists them), or another cluster",
        ],
    )
    for words in (("quota", "nightly"), ("resourcequotas", "nightly"), ("ResourceQuota/nightly",)):
        assert kruise("why", *words).lines == done.lines
    assert 'resourcequotas "nightyl" not found' in kruise.refused("why", "resourcequota/nightyl")
    data = json.loads(kruise("why", "resourcequota/nightly", "-o", "json").out)
    assert (data["kind"], data["name"], data["causes"][0]["code"]) == ("resourcequota", "nightly", "no-controller")
    kruise.create(SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    assert "  the local cluster has no network [no-controller]" in kruise("why", "svc/web").lines
    kruise.talk(lambda client: client.create(CLUSTER_ROLES, {"metadata": {"name": "reader"}, "rules": []}))
    assert kruise("why", "clusterrole/reader").lines[0] == "clusterrole/reader: it is stored, and nobody acts on it"
    assert kruise.refused("why", "clusterrole/gone").endswith('"gone" not found')


def test_a_rollout_that_hangs(kruise: Kruise) -> None:
    """All is well; then an image that nobody has; then it is repaired."""
    kruise.create(CLONE_SETS, cloneset_manifest("web"))
    kruise.ok("rollout", "status", "cloneset/web", "--timeout=60s")
    assert until(kruise, "cloneset/web", 0)[-1] == "nothing waits: 3 of 3 pods at revision web-HASH, available"

    kruise.ok("set", "image", "cloneset/web", "main=nginx:missing")
    lines = until(kruise, "clone/web", 3, "[image-pull]", "used up by")
    assert re.sub(r", \d+s ago", "", lines[1]) == "from the last decision of the manager of the local cluster"
    assert lines[3:] == [
        "2 pods are stuck: web-ID, web-ID",
        "  maxUnavailable 1 allows 1 unavailable pod; used up by web-ID [max-unavailable]",
        "  └ web-ID:",
        "      container main has stopped, and not started with nginx:missing yet [updating]",
        "      container main cannot get its image nginx:missing: docker.io/library/nginx:missing: not found "
        "[image-pull]",
        "      → correct the image or the access to its registry (kruise set image cloneset/web main=IMAGE), "
        "or go back: kruise rollout undo cloneset/web",
    ]
    anew = kruise("why", "cloneset/web", "--anew")
    assert anew.code == 3
    assert anew.lines[1] == "from a decision made anew from the live objects"
    assert without_names(anew.lines[3:]) == lines[3:]

    data = json.loads(kruise("why", "cloneset/web", "-o", "json").out)
    assert (data["waits"], data["act"], data["source"]["journal"]) == (True, "somebody", True)
    assert {end["code"] for waiting in data["waiting"] for end in waiting["ends"]} == {"image-pull"}
    [broken] = [one["pod"] for one in data["waiting"] if any(cause["code"] == "image-pull" for cause in one["causes"])]
    [other, _] = [one["pod"] for one in data["waiting"] if one["pod"] != broken]
    about = kruise("why", f"pod/{other}")
    assert about.code == 3
    assert about.lines[3] == f"pod {other} is stuck"
    assert f"  └ {broken}:" in about.lines
    assert json.loads(kruise("why", f"pod/{other}", "-o", "json").out)["pod"] == other
    assert "act: somebody" in kruise("why", "cloneset/web", "-o", "yaml").lines

    described = kruise.ok("describe", "rollout", "cloneset/web")
    table = described[described.index(next(line for line in described if line.startswith("HELD"))) :]
    assert len(table) == 4
    assert all("cannot get its image" in line for line in table[1:])

    kruise.ok("rollout", "undo", "cloneset/web", "--wait", "--timeout=60s")
    until(kruise, "cloneset/web", 0, "nothing waits")
    assert "is where it should be" in kruise.ok("why", f"pod/{other}")[-1]


@needs_tmux
def test_in_a_terminal(kruise: Kruise) -> None:
    """The same words as in a pipe, on lines that fit."""
    kruise.create(CLONE_SETS, cloneset_manifest("shown", partition=2))
    kruise.ok("rollout", "status", "cloneset/shown", "--timeout=60s")
    kruise.ok("set", "image", "cloneset/shown", "main=nginx:1.26")
    piped = until(kruise, "cloneset/shown", 0, "[partition]", "2 pods stay where they are")
    shown = without_names(kruise.screen("why", "cloneset/shown", columns=90))
    assert max(map(len, shown)) <= 90
    begin = next(number for number, line in enumerate(shown) if line.startswith("2 pods stay where they are"))
    assert "".join(shown[begin:]).replace(" ", "") == "".join(piped[3:]).replace(" ", "")


def test_what_is_asked_for_is_no_failure(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset_manifest("calm", paused=True))
    kruise.ok("rollout", "status", "cloneset/calm", "--timeout=60s")
    kruise.ok("set", "image", "cloneset/calm", "main=nginx:1.26")
    lines = until(kruise, "cloneset/calm", 0, "[paused]")
    assert "3 pods stay where they are, as asked for: calm-ID, calm-ID, calm-ID" in lines
    assert lines[-1] == "  → when it is to go on: kruise rollout resume cloneset/calm"


def test_a_deployment_and_pods_of_nobody(kruise: Kruise) -> None:
    labels = {"app": "api"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:missing"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": spec}
    kruise.create(DEPLOYMENTS, body)
    until(kruise, "deploy/api", 3, "[image-pull]", "Kubernetes' own controllers leave no plan")
    [pod] = [one["pod"] for one in json.loads(kruise("why", "deploy/api", "-o", "json").out)["waiting"]]
    assert kruise("why", f"pod/{pod}").lines[0].startswith(f"pod {pod} of deployment.apps/api in namespace default: ")
    kruise.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solo"}, "spec": template["spec"]})
    until(kruise, "pod/solo", 3, "no workload that is known here controls it", "[image-pull]")
    assert json.loads(kruise("why", "pod/solo", "-o", "json").out)["causes"][0]["code"] == "image-pull"


def test_all_of_a_namespace(kruise: Kruise) -> None:
    """One line for each workload that does not move, those first that somebody must act upon."""
    kruise.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crowd"}})
    crowd = ("-n", "crowd")
    assert kruise.ok("why", "--all", *crowd) == ["nothing waits: 0 workloads in namespace crowd"]
    for name in ("well", "held", "ill"):
        manifest = cloneset_manifest(name, paused=name == "held")
        kruise.talk(lambda client, body=manifest: client.create(CLONE_SETS, body, "crowd"))
        kruise.ok("rollout", "status", f"cloneset/{name}", *crowd, "--timeout=60s")
    assert kruise.ok("why", "--all", *crowd) == ["nothing waits: 3 workloads in namespace crowd"]
    kruise.ok("set", "image", "cloneset/held", "main=nginx:1.26", *crowd)
    kruise.ok("set", "image", "cloneset/ill", "main=nginx:missing", *crowd)
    lines = until(kruise, "--all", 3, "[image-pull]", "[paused]", flags=crowd)
    assert lines == [
        "cloneset/ill is stuck: pod ill-ID: container main cannot get its image nginx:missing: "
        "docker.io/library/nginx:missing: not found [image-pull]",
        "cloneset/held waits, as asked for: 3 pods: the update is paused [paused]",
        "",
        "2 of 3 workloads in namespace crowd; more about one: kruise why KIND/NAME -n crowd",
    ]
    data = json.loads(kruise("why", "cloneset", "--all", *crowd, "-o", "json").out)
    assert [(one["name"], one["act"]) for one in data] == [("ill", "somebody"), ("held", "intended")]
    kruise.ok("rollout", "undo", "cloneset/ill", *crowd, "--wait", "--timeout=60s")
    assert until(kruise, "--all", 0, "[paused]", flags=crowd)[-1].startswith("1 of 3 workloads")
    assert "leave out -f" in kruise.refused("why", "--all", "-f", "x.yaml", code=2)


def test_going_back_is_offered_only_where_there_is_something_to_go_back_to(kruise: Kruise) -> None:
    manifest = cloneset_manifest("first")
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:missing"
    kruise.create(CLONE_SETS, manifest)
    assert "undo" not in "\n".join(until(kruise, "cloneset/first", 3, "[image-pull]"))


def test_mistakes_are_named(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset_manifest("named"))
    assert kruise.refused("why", "cloneset/nomed") == (
        'clonesets.apps.kruise.io "nomed" not found in namespace "default"; did you mean named?'
    )
    labels = {"app": "lone"}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pods}
    kruise.create(REPLICA_SET.resource, {"metadata": {"name": "lone"}, "spec": spec})
    assert "no pods of its own" in kruise.refused("why", "rs/lone")
    assert "which CloneSet?" in kruise.refused("why", "cloneset", code=2)
    assert 'there is no kind "clonset" here' in kruise.refused("why", "clonset/named", code=2)
    assert "unknown feature gate" in kruise.refused("why", "cloneset/named", "--feature-gates=Nonsense=true", code=2)
    assert "KIND/NAME" in kruise.refused("why", code=2)


def test_without_our_definitions(tmp_path: Path) -> None:
    with local_cluster(tmp_path, "--bare", "--nodes=0") as kubeconfig:
        said = Kruise(kubeconfig).refused("why", "cloneset/web")
    assert said == "this cluster does not know CloneSets: install PyKruise first: kruise install"


# Rights


class Forbidding:
    """A transport on which some kinds may not be read, and nothing may be written."""

    def __init__(self, inner: InProcessTransport, plurals: set[str]) -> None:
        self._inner = inner
        self._plurals = plurals

    async def send(self, request: Request) -> Response:
        assert not request.verb.writes, f"asking why must not write: {request}"
        if request.resource is not None and request.resource.plural in self._plurals:
            message = f'{request.resource.plural} is forbidden: User "jane" cannot {request.verb} it'
            status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message}
            return Response(403, json.dumps(status).encode())
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise AssertionError("asking why watches nothing")

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    "forbidden",
    [
        set(),
        {"leases"},
        {"leases", "services", "nodes", "events"},
        {"leases", "services", "nodes", "events", "persistentvolumeclaims"},
    ],
    ids=len,
)
def test_few_rights_suffice(forbidden: set[str]) -> None:
    """Without the journal it is decided anew; what may not be read besides is said, and nothing is ever written."""

    async def play(world: LocalWorld) -> None:
        stage = Stage(world, gates=world.options.gates)
        await stage.start(replicas=2, rolling={"maxUnavailable": 1})
        await stage.set_image("nginx:missing")
        await stage.world.sleep(20)
        client = Client(Forbidding(InProcessTransport(world.cluster.core), forbidden), clock=world.clock)
        session = Session(client, namespace="default", clock=world.clock)
        target = Target(CLONE_SET, "web")
        answer = await explain(session, target, await session.get(target), Asking())
        text = "\n".join(answer_lines(answer))
        assert ("the manager's journal was not asked: " in text) is not answer.source.is_journal
        assert "[max-unavailable]" in text
        if not answer.source.is_journal:
            assert ("decided without nodes" in text) is ("nodes" in forbidden)
            assert ("decided without persistentvolumeclaims" in text) is ("persistentvolumeclaims" in forbidden)

    run_local(play)
