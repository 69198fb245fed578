"""`kruise plan` from outside, against one `kruise up`: what it says, how it ends, and that it changes nothing."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.native.apps import STATEFUL_SETS
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from kruise.foresight import foreseeing
from kruise.foresight.playing import Bounds
from kruise.inplace import keys
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.client.light import LightTransport
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Response
from tests.support.commandline import Kruise, local_cluster, needs_tmux, plain

Json = dict[str, Any]


def cloneset(name: str, replicas: int = 4, **rolling: Any) -> Json:
    labels = {"app": name}
    settings = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2, **rolling}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "updateStrategy": {"rollingUpdate": settings},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}, {"name": "side", "image": "redis:7"}]},
            },
        },
    }


def sidecarset(name: str) -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"sidecar": name}},
            "containers": [{"name": "side", "image": "busybox:1.36"}],
        },
    }


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    """A cluster with a CloneSet `web` of five pods, which tests only read."""
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        found = Kruise(kubeconfig)
        found.create(CLONE_SETS, WEB)
        found.create(CLONE_SETS, cloneset("strict", replicas=2, podUpdatePolicy="InPlaceOnly"))
        for name in ("web", "strict"):
            found.ok("rollout", "status", f"clone/{name}", "--timeout=60s")
        settle(found)
        yield found


def versions(kruise: Kruise) -> dict[str, str]:
    listed = kruise.talk(lambda client: client.list(PODS, "default"))
    return {pod.metadata.name: pod.metadata.resource_version for pod in listed.items}


def settle(kruise: Kruise) -> None:
    """Wait for the last write that a new pod gets: what the agent on its node says about the containers."""

    async def is_settled(client: Client) -> bool:
        pods = (await client.list(PODS, "default")).items
        return all(keys.CONTAINERS_META_ANNOTATION in pod.metadata.annotations for pod in pods)

    deadline = time.monotonic() + 30
    while not kruise.talk(is_settled):
        assert time.monotonic() < deadline, "no agent speaks"
        time.sleep(0.1)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> type[Spy]:
    class Fresh(Spy):
        asked: ClassVar[list[Request]] = []

    monkeypatch.setattr("kruise.cli.session.LightTransport", Fresh)
    return Fresh


class Spy(LightTransport):
    """Remembers what was asked, refuses what is forbidden, and lets something happen after pods were listed."""

    asked: ClassVar[list[Request]]
    forbidden: ClassVar[frozenset[str]] = frozenset()
    meanwhile: ClassVar[Callable[[], Awaitable[None]] | None] = None

    async def send(self, request: Request) -> Response:
        cls = type(self)
        cls.asked.append(request)
        plural = request.resource.plural if request.resource is not None else ""
        if plural in cls.forbidden:
            status = {
                "kind": "Status",
                "code": 403,
                "reason": "Forbidden",
                "message": f'{plural} is forbidden: User "jane" cannot {request.verb} resource "{plural}"',
            }
            return Response(403, json.dumps(status).encode(), {})
        answer = await super().send(request)
        if plural == "pods" and cls.meanwhile is not None:
            happens, cls.meanwhile = cls.meanwhile, None
            await happens()
        return answer


def file_of(directory: Path, *documents: Json) -> str:
    path = directory / "x.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def changed(document: Json, **spec: Any) -> Json:
    found = copy.deepcopy(document)
    found["spec"].update(spec)
    return found


def with_image(document: Json, image: str) -> Json:
    found = copy.deepcopy(document)
    found["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return found


WEB = cloneset("web", replicas=5, partition=1)


# What it says


def settled(lines: list[str]) -> list[str]:
    """Without names, hashes and times, which differ from run to run, and the spaces that depend on them."""
    found = []
    for line in lines:
        line = re.sub(r"\bweb-[0-9a-z]{9,10}\b", "web-HASH", line)
        line = re.sub(r"\bweb-[0-9a-z]{5}\b", "web-ID", line)
        line = re.sub(r"\b[\d.]+ ?(s|m\d+s)\b", "T", line)
        found.append(re.sub(r" {2,}", "  ", line))
    return found


def test_an_image_change_of_a_live_object(kruise: Kruise) -> None:
    lines = settled(kruise.ok("plan", "clone/web", "--image", "main=nginx:1.26"))
    assert [line for line in lines if not line.startswith("Assumed: ")] == [
        "Plan:  cloneset.apps.kruise.io/web in namespace default",
        "Result:  stops as asked",
        "Summary:  4 pods in 2 waves: 4 updated in place; then it stops, after about T: "
        "partition keeps 1 pod at its old revision",
        'Change:  spec.template.spec.containers[main].image: "nginx:1.25" -> "nginx:1.26"',
        "Revision:  web-HASH -> web-HASH",
        "Available:  5 before, 3 at worst (at least 3 promised), 5 after",
        "Pods:  5 wanted, 5 at most (5 allowed)",
        "At the end:  4 at web-HASH, 1 at web-HASH",
        "Time:  about T",
        "",
        "WAVE  BEGINS  TAKES  AVAILABLE  HOW  PODS",
        "1  T  T  3  2 updated in place  web-ID, web-ID",
        "2  T  T  3  2 updated in place  web-ID, web-ID",
        "",
        "HOW  PODS  WHY",
        "in-place  4  image of main changes",
        "",
        "POD  WAVE  HOW  AT  SERVES AFTER  WHY",
        "web-ID  1  in-place  T  T  image of main changes",
        "web-ID  1  in-place  T  T  image of main changes",
        "web-ID  2  in-place  T  T  image of main changes",
        "web-ID  2  in-place  T  T  image of main changes",
        "",
        "Stops (partition): after T: partition keeps 1 pod at its old revision [web-ID] "
        "-> lower updateStrategy.rollingUpdate.partition",
    ]


def test_the_same_from_a_file_and_by_flags(kruise: Kruise, tmp_path: Path) -> None:
    by_flags = json.loads(kruise("plan", "clone/web", "--image", "main=nginx:1.26", "-o", "json").out)
    for document in (with_image(WEB, "nginx:1.26"), as_v1alpha1(with_image(WEB, "nginx:1.26"))):
        from_file = json.loads(kruise("plan", "-f", file_of(tmp_path, document), "-o", "json").out)
        for part in ("revisions", "counts", "verdict", "object"):
            assert from_file[part] == by_flags[part], document["apiVersion"]
        assert by_flags["changes"][0] in from_file["changes"]
        assert names_of(from_file) == names_of(by_flags)


def as_v1alpha1(document: Json) -> Json:
    found = copy.deepcopy(document)
    found["apiVersion"] = "apps.kruise.io/v1alpha1"
    rolling = found["spec"]["updateStrategy"].pop("rollingUpdate")
    found["spec"]["updateStrategy"] = {"type": rolling.pop("podUpdatePolicy"), **rolling}
    return found


def names_of(data: Json) -> list[list[str]]:
    return [[move["pod"] for move in wave["moves"]] for wave in data["waves"]]


def test_flags_and_a_file_together(kruise: Kruise, tmp_path: Path) -> None:
    command = ("plan", "-f", file_of(tmp_path, with_image(WEB, "nginx:1.26")), "--replicas=7", "-o", "json")
    partition = "spec.updateStrategy.rollingUpdate.partition=0"
    data = json.loads(kruise(*command, "--set", partition, "--set", 'metadata.annotations["a.b/c"]=1').out)
    paths = {change["path"]: change.get("after") for change in data["changes"]}
    assert paths["spec.replicas"] == 7
    assert paths["spec.updateStrategy.rollingUpdate.partition"] == 0
    assert "1" in next(str(value) for path, value in paths.items() if path.startswith("metadata"))
    assert data["verdict"] == "complete"
    assert sum(data["counts"].values()) >= 7


def test_an_object_that_does_not_exist_yet(kruise: Kruise, tmp_path: Path) -> None:
    lines = kruise.ok("plan", "-f", file_of(tmp_path, cloneset("fresh", replicas=3)))
    assert lines[0] == "Plan:        cloneset.apps.kruise.io/fresh in namespace default (to be created)"
    assert re.fullmatch(r"Summary: +3 pods in 1 wave: 3 created; done after about \d+s", lines[2])
    assert any(line.endswith("3 new pods") for line in lines)
    data = json.loads(kruise("plan", "-f", file_of(tmp_path, cloneset("fresh", replicas=3)), "-o", "json").out)
    assert data["object"] == {"kind": "CloneSet", "namespace": "default", "name": "fresh", "exists": False}
    assert [move["exists"] for move in data["waves"][0]["moves"]] == [False] * 3


def test_a_misspelt_field_of_the_template_is_told_as_the_server_tells_it(kruise: Kruise, tmp_path: Path) -> None:
    text = 'unknown field "spec.template.spec.containers[0].imagePullPolcy"'
    document = copy.deepcopy(WEB)
    document["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = "Always"
    lines = kruise.ok("plan", "-f", file_of(tmp_path, document), "--exit-code")
    assert "Summary:     no pod changes" in lines, "nobody keeps what nobody knows"
    assert f"Warning (admission): {text}" in lines
    request = Request(
        Verb.PATCH,
        CLONE_SETS,
        "default",
        "web",
        query=(("dryRun", "All"),),
        body=json.dumps(document).encode(),
        content_type=PatchType.MERGE,
    )
    answer = kruise.talk(lambda client: client.send(request))
    quoted = text.replace('"', '\\"')
    assert answer.headers.get("warning") == f'299 - "{quoted}"'


def test_a_change_that_does_nothing(kruise: Kruise) -> None:
    for arguments in ((), ("--image", "main=nginx:1.25"), ("--replicas=5",)):
        assert "Summary:     no pod changes" in kruise.ok("plan", "clone/web", *arguments, "--exit-code")


def test_nothing_changes_where_the_file_is_what_the_cluster_has(kruise: Kruise, tmp_path: Path) -> None:
    lines = kruise.ok("plan", "-f", file_of(tmp_path, WEB), "--exit-code")
    assert lines[1:3] == ["Result:      unchanged", "Summary:     no pod changes"]
    assert not [line for line in lines if line.startswith("Change:")]
    paused = kruise.ok("plan", "clone/web", "--set", "spec.updateStrategy.rollingUpdate.paused=true")
    assert "Summary:     no pod changes" in paused
    assert [line for line in paused if line.startswith("Change:")]


def test_markdown_is_fit_for_a_comment(kruise: Kruise) -> None:
    text = "\n".join(kruise.ok("plan", "clone/web", "--image", "main=nginx:1.26", "-o", "markdown"))
    assert text.startswith("### Plan for `cloneset.apps.kruise.io/web` in `default`\n\n**Stops as asked.** 4 pods in 2")
    assert "| Wave | Begins | Takes | Available | How | Pods |" in text
    assert "<summary>The 4 pods that change</summary>" in text
    assert text.count("<details>") == text.count("</details>") == 2


def shape(value: Any) -> Any:
    """The names of all members, without values."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return ""


def test_the_members_of_the_json_are_a_promise(kruise: Kruise) -> None:
    command = ("plan", "clone/web", "--image", "main=nginx:1.26", "-o", "json")
    data = json.loads("\n".join(kruise.ok(*command)))
    data["revisions"]["after"] = {}
    assert data["schema"] == "kruise.plan/v1"
    assert shape(data) == {
        **dict.fromkeys(("schema", "verdict", "summary", "complete", "cut", "seconds", "replicas"), ""),
        "object": {"kind": "", "namespace": "", "name": "", "exists": ""},
        "changes": [{"path": "", "before": "", "after": ""}],
        "revisions": {"from": "", "to": "", "after": {}},
        "available": {"before": "", "fewest": "", "fewestAllowed": "", "after": ""},
        "pods": {"most": "", "mostAllowed": ""},
        "counts": {"in-place": ""},
        "waves": [
            {
                "number": "",
                "begins": "",
                "fewestAvailable": "",
                "moves": [
                    dict.fromkeys(("pod", "exists", "how", "at", "why", "revision", "untilAvailable"), ""),
                ],
            }
        ],
        "stops": [{"code": "", "at": "", "message": "", "remedy": "", "pods": [""], "last": ""}],
        "staying": [{"pod": "", "revision": "", "code": "", "message": "", "remedy": ""}],
        "warnings": [],
        "assumptions": [""],
        "notes": [],
        "changedMeanwhile": [],
    }


# How it ends


def test_exit_codes(kruise: Kruise) -> None:
    image = ("--image", "main=nginx:1.26")
    assert kruise("plan", "clone/web", *image).code == 0, "a stop that was asked for"
    assert kruise("plan", "clone/web", *image, "--exit-code").code == 5
    assert kruise("plan", "clone/web", "--exit-code").code == 0
    assert kruise("plan", "clone/strict", *image).code == 0
    stuck = kruise("plan", "clone/strict", "--set", 'spec.template.spec.containers[0].args=["x"]', "--exit-code")
    assert stuck.code == 4, stuck.out
    assert "in-place-only" in stuck.out
    assert stuck.lines[1] == "Result:      stuck"


def test_how_far_and_under_which_gates_it_looks(kruise: Kruise, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Json] = []

    def foresee(*arguments: Any, **options: Any) -> Any:
        seen.append(options)
        return real(*arguments, **options)

    real = foreseeing.foresee
    monkeypatch.setattr(foreseeing, "foresee", foresee)
    kruise.ok("plan", "clone/web")
    kruise.ok("plan", "clone/web", "--thorough", "--stop-at-hooks", "--feature-gates=CloneSetShortHash=true")
    usual, other = seen
    assert (usual["answer_hooks"], other["answer_hooks"]) == (True, False)
    assert usual["bounds"] == Bounds()
    assert other["bounds"].looks > usual["bounds"].looks
    assert [one["settings"].gates["CloneSetShortHash"] for one in seen] == [False, True]


# Nothing but reading


def test_it_only_reads(kruise: Kruise, spy: type[Spy], tmp_path: Path) -> None:
    before = versions(kruise)
    kruise.ok("plan", "clone/web", "--image", "main=nginx:1.26", "--replicas=9")
    kruise.ok("plan", "-f", file_of(tmp_path, cloneset("fresh")))
    asked = [request for request in spy.asked if request.verb.writes]
    assert (asked, versions(kruise)) == ([], before)
    assert {str(request.verb) for request in spy.asked} == {"get", "list"}


def test_what_changes_while_it_plans_is_told(kruise: Kruise, spy: type[Spy]) -> None:
    kruise.create(CLONE_SETS, cloneset("moving", replicas=2))
    kruise.ok("rollout", "status", "clone/moving", "--timeout=60s")

    async def happens() -> None:
        async with Client(HttpTransport(load(kruise.kubeconfig))) as client:
            pods = (await client.list(PODS, "default", labels="app=moving")).items
            await client.patch(PODS, pods[0].metadata.name, {"metadata": {"annotations": {"a": "b"}}}, "default")
            await client.delete(PODS, pods[1].metadata.name, "default", grace_period_seconds=0)
            seen.extend(pod.metadata.name for pod in pods)

    seen: list[str] = []
    spy.meanwhile = happens
    data = json.loads("\n".join(kruise.ok("plan", "clone/moving", "-o", "json")))
    drift = {one["object"]: one["how"] for one in data["changedMeanwhile"]}
    assert drift[f"pod/{seen[0]}"] == "changed"
    assert drift[f"pod/{seen[1]}"] == "gone"
    kruise.ok("rollout", "status", "clone/moving", "--timeout=60s")

    async def again() -> None:
        async with Client(HttpTransport(load(kruise.kubeconfig))) as client:
            await client.patch(CLONE_SETS, "moving", {"spec": {"minReadySeconds": 1}}, "default")

    spy.meanwhile = again
    said = kruise.ok("plan", "clone/moving")[-1]
    assert said.startswith("Meanwhile: the cluster changed while planning: cloneset.apps.kruise.io/moving")
    assert said.endswith(" -> plan again for what the cluster is now")


def test_another_object_of_the_kind_is_no_change(kruise: Kruise, tmp_path: Path) -> None:
    """What does not exist yet was not there before, whatever else was."""
    kruise.create(SIDECAR_SETS, sidecarset("there"))
    lines = kruise.ok("plan", "-f", file_of(tmp_path, sidecarset("fresh")))
    assert lines[0] == "Plan:        sidecarset.apps.kruise.io/fresh (to be created)"
    assert [line for line in lines if line.startswith("Meanwhile")] == []


def test_no_rights(kruise: Kruise, spy: type[Spy]) -> None:
    spy.forbidden = frozenset({"nodes"})
    note = [line for line in kruise.ok("plan", "clone/web", "--replicas=6") if line.startswith("Note: ")]
    assert note == [
        "Note: no right to list nodes: room on nodes was not looked at, and every new pod is taken to find a node"
    ]
    for plural in ("pods", "clonesets"):
        spy.forbidden = frozenset({plural})
        assert kruise.refused("plan", "clone/web", "--replicas=5") == (
            f'{plural} is forbidden: User "jane" cannot {"list" if plural == "pods" else "get"} resource "{plural}". '
            "Ask for the right, or use another user with --context or --as."
        )


# Mistakes


def test_unknown_objects(kruise: Kruise, tmp_path: Path) -> None:
    assert kruise.refused("plan", "clone/wbe") == (
        'clonesets.apps.kruise.io "wbe" not found in namespace "default"; did you mean web?'
    )
    assert kruise.refused("plan", "deploy/web") == (
        "deployment.apps/web cannot be planned: Kubernetes itself decides about a Deployment. "
        "Plans are for AdvancedCronJob, BroadcastJob, CloneSet, DaemonSet, EphemeralJob, ImagePullJob, "
        "PersistentPodState, SidecarSet, StatefulSet, UnitedDeployment, WorkloadSpread"
    )
    assert "Usage:" not in kruise("plan", "deploy/web").err
    assert "nobody can foresee an ImageListPullJob. Plans" in kruise.refused("plan", "imagelistpulljob/all")
    assert kruise.refused("plan", "-f", file_of(tmp_path, cloneset("fresh")), "-n", "nowhere") == (
        'namespace "nowhere" not found; make it first: kubectl create namespace nowhere'
    )
    assert "takes one object, not 2" in kruise.refused("plan", "clone/web", "clone/strict", code=2)
    assert "name the workload as KIND/NAME" in kruise.refused("plan", code=2)


def test_files_that_cannot_be_planned(kruise: Kruise, tmp_path: Path) -> None:
    service = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    assert "this verb does not know v1 ConfigMap" in kruise.refused("plan", "-f", file_of(tmp_path, service), code=2)
    other = {**WEB, "apiVersion": "apps.kruise.io/v2"}
    assert kruise.refused("plan", "-f", file_of(tmp_path, other), code=2) == (
        "CloneSet has no version apps.kruise.io/v2; its versions are v1alpha1, v1beta1"
    )
    unknown = changed(WEB, replica=3)
    assert kruise.refused("plan", "-f", file_of(tmp_path, unknown)) == (
        'CloneSet in version "v1beta1" cannot be handled as a CloneSet: strict decoding error: '
        'unknown field "spec.replica"'
    )


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"replicas": -1}, id="replicas"),
        pytest.param({"selector": {"matchLabels": {"app": "other"}}}, id="selector"),
        pytest.param({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}}, id="limits"),
        pytest.param({"replicas": "many"}, id="type"),
        pytest.param({"template": {"spec": {"containers": []}}}, id="template"),
    ],
)
def test_what_admission_refuses_is_refused_in_its_words(kruise: Kruise, tmp_path: Path, spec: Json) -> None:
    wrong = changed(WEB, **spec)
    said = kruise.refused("plan", "-f", file_of(tmp_path, wrong))
    with pytest.raises(ApiError) as refused:
        kruise.talk(lambda client: client.patch(CLONE_SETS, "web", {"spec": spec}, "default"))
    assert said == str(refused.value)


def test_wrong_flags(kruise: Kruise) -> None:
    assert kruise.refused("plan", "clone/web", "--image", "mian=x") == (
        'unable to find container named "mian" in cloneset.apps.kruise.io/web; its containers are main, side'
    )
    assert kruise.refused("plan", "clone/web", "--set", "spec.template.spec.containers[2].image=x", code=2) == (
        "--set: spec.template.spec.containers has no entry [2]; its entries are [0] (main), [1] (side)"
    )
    assert "unknown feature gate 'Foo'" in kruise.refused("plan", "clone/web", "--feature-gates=Foo=true", code=2)
    assert "-1 is not in the range" in kruise.refused("plan", "clone/web", "--replicas=-1", code=2)


def test_without_our_definitions(tmp_path: Path) -> None:
    file = file_of(tmp_path, WEB)
    with local_cluster(tmp_path / "state", "--bare", "--nodes=0") as kubeconfig:
        kruise = Kruise(kubeconfig)
        remedy = "this cluster does not know CloneSets: install PyKruise first: kruise install"
        assert kruise.refused("plan", "clone/web", "--replicas=3") == remedy
        assert kruise.refused("plan", "-f", file) == remedy


# On a terminal


PLAN = ("plan", "clone/web", "--image", "main=nginx:1.26")
DRAWN = (
    "cloneset.apps.kruise.io/web  default  stops as asked",
    "━━━━━━━━━━━━━━━━━┃┄┄┄┄┄┄┄┄┄┄┄┄ 3/5",
    "WAVE  BEGINS  TAKES  AVAILABLE       HOW                 PODS",
    "━━━━━┃┄┄┄┄ 3/5  2 updated in place  web-",
    "-> lower updateStrategy.rollingUpdate.partition",
)


def test_in_a_pseudo_terminal(kruise: Kruise) -> None:
    drawn = kruise.drawn(*PLAN, LANG="C.UTF-8")
    assert "\x1b[" in drawn, "colours"
    for part in DRAWN:
        assert part in plain(drawn)


@needs_tmux
def test_in_tmux(kruise: Kruise) -> None:
    """What a person sees: the screen of a terminal after the command."""
    shown = kruise.screen(*PLAN)
    for part in DRAWN:
        assert part in "\n".join(shown)
    assert max(map(len, shown)) <= 100


def test_plain_lines_on_demand(kruise: Kruise) -> None:
    """Piped, there is nothing to choose."""
    assert kruise.ok("plan", "clone/web", "--plain")[0].startswith("Plan:  ")


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from kruise.cli import main
sys.argv = ["kruise", "plan", "--help"]
try:
    main.main()
finally:
    print(sorted({name.split(".")[0] for name in sys.modules} & {"aiohttp", "msgspec", "rich", "yaml"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# Nodes that are lost


def test_a_loss_of_nodes_is_told_and_nothing_is_changed(kruise: Kruise, spy: type[Spy]) -> None:
    before = versions(kruise)
    hosts = {pod.spec.node_name for pod in kruise.talk(lambda client: client.list(PODS, "default")).items}
    host = sorted(hosts)[0]
    words = ("--lose-nodes", f"kubernetes.io/hostname={host}", "-o", "json")
    found = json.loads("\n".join(kruise.ok("plan", "cloneset/web", *words)))
    assert (found["kind"], found["nodes"], found["recovers"]) == ("Loss", [host], True)
    assert found["before"] - found["at_once"] == len(found["lost"]) == len(found["coming"])
    assert all(one["node"] not in ("", host) for one in found["coming"])
    assert {request.verb for request in spy.asked} <= {Verb.GET, Verb.LIST}
    assert versions(kruise) == before


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--lose-nodes", "zone=nowhere"), 1, "no node has the labels zone=nowhere; nodes have "),
        (("--lose-nodes", "a in"), 2, "--lose-nodes a in: "),
        (("--lose-nodes", "kubernetes.io/hostname", "--replicas", "3"), 2, "leave changes out"),
        (("--lose-nodes", "kubernetes.io/hostname"), 4, "does not recover: 5 pods find no node"),
    ],
)
def test_a_loss_that_cannot_be_told(kruise: Kruise, words: tuple[str, ...], code: int, said: str) -> None:
    done = kruise("plan", "cloneset/web", *words)
    assert done.code == code, done
    assert said in plain(done.out + done.err)


def test_who_cannot_follow_a_volume_is_told(kruise: Kruise) -> None:
    """A StatefulSet of Kubernetes, whose pod has a claim that is bound to a volume of one zone."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}
    kept = {"storageClassName": "", "accessModes": ["ReadWriteOnce"]}
    volume = {
        "metadata": {"name": "disk-b"},
        "spec": {
            **kept,
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "data"},
            "hostPath": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
        },
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {**kept, "volumeName": "disk-b", "resources": {"requests": {"storage": "1Gi"}}},
    }
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    database = {
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}], "volumes": mounted},
            },
        },
    }
    kruise.talk(lambda client: client.create(PERSISTENT_VOLUMES, volume))
    kruise.create(PERSISTENT_VOLUME_CLAIMS, claim)
    kruise.create(STATEFUL_SETS, database)
    try:
        kruise.ok("rollout", "status", "statefulset.apps/db", "--timeout=60s")
        done = kruise("plan", "statefulset.apps/db", "--lose-nodes", "topology.kubernetes.io/zone=b")
        assert done.code == 4, done
        said = plain(done.out)
        assert "node(s) didn't match PersistentVolume's node affinity" in said
        assert "db-0: its claim data is bound to volume disk-b, which no node that is left can use" in said
        assert "nothing happens" in plain(
            "\n".join(kruise.ok("plan", "statefulset.apps/db", "--lose-nodes", "topology.kubernetes.io/zone=a"))
        )
    finally:
        kruise.talk(lambda client: client.delete(STATEFUL_SETS, "db", "default"))


# Kinds whose pods Kubernetes makes


def test_subsets_of_native_workloads_are_played(kruise: Kruise) -> None:
    """Of the change that is asked about, by the decisions of those who make the pods."""
    labels = {"app": "zoned"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}
    inner = {"selector": {"matchLabels": labels}, "template": template}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"deploymentTemplate": {"metadata": {"labels": labels}, "spec": inner}},
        "topology": {"subsets": [{"name": "a", "replicas": "50%"}, {"name": "b"}]},
    }
    kruise.create(UNITED_DEPLOYMENTS, {"metadata": {"name": "zoned"}, "spec": spec})
    try:
        kruise.ok("rollout", "status", "ud/zoned", "--timeout=60s")
        for words, size, made in (((), "1 pod", "unchanged"), (("--replicas=6",), "3 pods", "4 created")):
            told = plain("\n".join(kruise.ok("plan", "ud/zoned", *words)))
            assert f"a: {size} (replicas 50%" in told
            assert f"b: {size} (an even share" in told
            assert made in told
        lost = kruise("plan", "ud/zoned", "--lose-nodes", "kubernetes.io/os=linux")
        assert lost.code == 4
        assert "2 before, 0 at once" in plain(lost.out)
    finally:
        kruise.talk(lambda client: client.delete(UNITED_DEPLOYMENTS, "zoned", "default"))
