"""PodProbeMarkers: probes of containers, run by the daemon of the node, and what their results do to pods."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.apps.probes import FINALIZER, NODE_POD_PROBES, POD_PROBE_MARKERS
from kruise.api.native.nodes import NODES
from kruise.machinery.client.errors import ApiError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from tests.scenarios.stage import Scenario, Stage, scenario
from tests.support.world import Json

SCENARIOS: dict[str, Scenario] = {}
READY = "game.example/ready"


def exec_probe(text: str = "exit 0", **numbers: int) -> Json:
    return {"exec": {"command": ["sh", "-c", text]}, **numbers}


class ProbeStage(Stage):
    """A CloneSet `web`, and markers for its pods."""

    def marker(
        self,
        name: str = "m",
        *,
        probes: Sequence[Mapping[str, Any]] | None = None,
        probe: Mapping[str, Any] | None = None,
        condition: str = READY,
        policy: Sequence[Mapping[str, Any]] = (),
    ) -> Json:
        one: Json = {"name": "p", "containerName": "main", "probe": dict(probe or exec_probe())}
        if condition:
            one["podConditionType"] = condition
        if policy:
            one["markerPolicy"] = [dict(entry) for entry in policy]
        return {
            "apiVersion": POD_PROBE_MARKERS.api_version,
            "kind": POD_PROBE_MARKERS.kind,
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "probes": [dict(entry) for entry in probes] if probes is not None else [one],
            },
        }

    async def mark(self, name: str = "m", **options: Any) -> Json:
        return await self.world.create(self.marker(name, **options))

    async def status(self, name: str = "m") -> Json:
        found: Json = (await self.world.get(POD_PROBE_MARKERS, name)).get("status", {})
        return found

    async def told(self, name: str = "m") -> None:
        """Wait until all nodes know the newest spec."""

        async def is_told() -> None:
            found = await self.world.get(POD_PROBE_MARKERS, name)
            assert found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"], found

        await self.until(is_told)

    async def node_probes(self) -> list[Json]:
        """The NodePodProbes, by node."""
        answer = await self.client.send(Request(Verb.LIST, NODE_POD_PROBES, ""))
        items: list[Json] = json.loads(answer.body)["items"]
        return items

    async def entries(self) -> dict[str, Json]:
        """What nodes are told of the pods of this namespace, by pod."""
        return {
            entry["name"]: entry
            for one in await self.node_probes()
            for entry in one["spec"].get("podProbes", ())
            if entry["namespace"] == self.namespace
        }

    async def conditions(self, kind: str = READY) -> list[tuple[str, str]]:
        """Status and message of a condition of each pod; none where it is missing."""
        found = []
        for pod in await self.pods("web"):
            conditions = {one["type"]: one for one in pod["status"].get("conditions", ())}
            if kind in conditions:
                found.append((conditions[kind]["status"], conditions[kind].get("message", "")))
        return found

    async def all_are(self, status: str, message: str | None = None, *, kind: str = READY) -> None:
        async def are_so() -> None:
            pods, found = await self.pods("web"), await self.conditions(kind)
            assert pods
            assert len(found) == len(pods), f"{len(found)} of {len(pods)} pods have the condition"
            assert all(one[0] == status for one in found), found
            assert message is None or all(one[1] == message for one in found), found

        await self.until(are_so)

    async def labels(self, key: str) -> set[str | None]:
        return {pod["metadata"].get("labels", {}).get(key) for pod in await self.pods("web")}

    async def annotations(self, key: str) -> set[str | None]:
        return {pod["metadata"].get("annotations", {}).get(key) for pod in await self.pods("web")}

    async def gone(self, name: str = "m") -> None:
        async def is_gone() -> None:
            try:
                await self.world.get(POD_PROBE_MARKERS, name)
            except NotFoundError:
                return
            raise AssertionError(f"{name} is still there")

        await self.until(is_gone)


def _results(probes: Json) -> list[Json]:
    found: list[Json] = probes.get("status", {}).get("podProbeStatuses", [])
    return found


behaviour = functools.partial(scenario, into=SCENARIOS, stage=ProbeStage)
BOTH = (
    {"state": "Succeeded", "labels": {"idle": "yes"}, "annotations": {"cost": "-10"}},
    {"state": "Failed", "annotations": {"cost": "10"}},
)


@behaviour(
    "PPM-20",
    "PPM-22",
    "PPM-24",
    "PPM-25",
    "PPM-27",
    "NPP-2",
    "NPP-11",
    "NPP-14",
    "PRB-1",
    "PRB-5",
    "NPP-15",
    smoke=True,
)
async def results_become_conditions_and_marks(stage: ProbeStage) -> None:
    """A probe that succeeds: the condition is True with what it printed, labels and annotations are set."""
    pods = await stage.start(replicas=2)
    await stage.mark(probe=exec_probe("echo fine"), policy=BOTH)
    await stage.told()
    await stage.all_are("True", "fine\n")
    assert await stage.labels("idle") == {"yes"}
    assert await stage.annotations("cost") == {"-10"}
    assert (await stage.status())["matchedPods"] == 2
    assert (await stage.world.get(POD_PROBE_MARKERS, "m"))["metadata"]["finalizers"] == [FINALIZER]
    entries = await stage.entries()
    assert set(entries) == {pod["metadata"]["name"] for pod in pods}
    for pod in pods:
        entry = entries[pod["metadata"]["name"]]
        assert entry["uid"] == pod["metadata"]["uid"]
        assert entry["IP"] == pod["status"]["podIP"]
        assert [one["name"] for one in entry["probes"]] == ["m#p"]


@behaviour("PPM-42", "NPP-12", "NPP-13", "PRB-1")
async def a_changed_command_changes_the_marks(stage: ProbeStage) -> None:
    """The command is edited to one that fails: the label of success goes, the annotation takes the other value."""
    await stage.start(replicas=1)
    await stage.mark(probe=exec_probe("echo fine"), policy=BOTH)
    await stage.all_are("True")
    probes = stage.marker(probe=exec_probe("echo busy; exit 3"), policy=BOTH)["spec"]["probes"]
    await stage.world.patch(POD_PROBE_MARKERS, "m", {"spec": {"probes": probes}})
    await stage.told()

    async def has_failed() -> None:
        assert await stage.labels("idle") == {None}
        assert await stage.annotations("cost") == {"10"}

    await stage.until(has_failed)
    await stage.all_are("False")
    probes = stage.marker(probe=exec_probe("echo fine"), policy=BOTH)["spec"]["probes"]
    await stage.world.patch(POD_PROBE_MARKERS, "m", {"spec": {"probes": probes}})
    await stage.all_are("True", "fine\n")
    assert await stage.labels("idle") == {"yes"}


@behaviour("PPM-23", "PRB-9")
async def two_markers_do_not_touch_each_other(stage: ProbeStage) -> None:
    """Markers whose names end alike, with probes of one container and equal results: both are reported, and
    deleting one leaves the other alone."""
    await stage.start(replicas=1)
    await stage.mark("b", condition="game.example/b")
    await stage.mark("a-b", condition="game.example/a-b")
    await stage.all_are("True", "", kind="game.example/b")
    await stage.all_are("True", "", kind="game.example/a-b")
    await stage.world.delete(POD_PROBE_MARKERS, "b")
    await stage.gone("b")
    [entry] = (await stage.entries()).values()
    assert [one["name"] for one in entry["probes"]] == ["a-b#p"]
    assert await stage.conditions("game.example/b"), "marks stay"


@behaviour("PPM-23", "PPM-26")
async def nothing_of_a_deleted_marker_stays_on_nodes(stage: ProbeStage) -> None:
    """A probe that is taken out of the spec goes from the nodes, and with the marker everything does."""
    await stage.start(replicas=2)
    probes = [
        {"name": one, "containerName": "main", "probe": exec_probe(), "podConditionType": f"game.example/{one}"}
        for one in ("one", "two")
    ]
    await stage.mark(probes=probes)
    await stage.all_are("True", kind="game.example/two")
    await stage.world.patch(POD_PROBE_MARKERS, "m", {"spec": {"probes": probes[:1]}})
    await stage.told()
    for entry in (await stage.entries()).values():
        assert [one["name"] for one in entry["probes"]] == ["m#one"]
    await stage.world.delete(POD_PROBE_MARKERS, "m")
    await stage.gone()
    assert await stage.entries() == {}


@behaviour("PPM-21", "NPP-3")
async def only_living_pods_are_probed(stage: ProbeStage) -> None:
    """Pods that go leave the nodes at once, pods that come are probed."""
    await stage.start(replicas=3)
    await stage.mark()
    await stage.all_are("True")
    await stage.scale(1)

    async def one_is_left() -> None:
        assert len(await stage.entries()) == 1

    await stage.until(one_is_left)
    await stage.scale(3)
    await stage.complete()
    await stage.all_are("True")
    uids = {pod["metadata"]["uid"] for pod in await stage.pods("web")}
    assert {entry["uid"] for entry in (await stage.entries()).values()} == uids


@behaviour("PPM-25", "PRB-6", "PRB-7")
async def ports_by_name_and_number(stage: ProbeStage) -> None:
    """TCP and HTTP probes ask the pod's address. A named port becomes its number; one that nobody knows is left out."""
    container = {"name": "main", "image": "nginx:1.25", "ports": [{"name": "web", "containerPort": 80}]}
    await stage.start(replicas=1, containers=[container])
    kinds = {
        "tcp": {"tcpSocket": {"port": "web"}},
        "http": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}},
        "odd": {"tcpSocket": {"port": "nobody"}},
    }
    probes = [
        {"name": name, "containerName": "main", "probe": probe, "podConditionType": f"game.example/{name}"}
        for name, probe in kinds.items()
    ]
    await stage.mark(probes=probes)
    await stage.all_are("True", kind="game.example/tcp")
    await stage.all_are("True", kind="game.example/http")
    [entry] = (await stage.entries()).values()
    assert {one["name"]: one["probe"] for one in entry["probes"]} == {
        "m#tcp": {"tcpSocket": {"port": 80}},
        "m#http": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}},
    }
    assert await stage.conditions("game.example/odd") == []


@behaviour("PRB-3", "NPP-11", "NPP-13")
async def a_new_container_begins_anew(stage: ProbeStage) -> None:
    """An update in place replaces the container: the condition is False until the first success."""
    await stage.start(replicas=1)
    await stage.mark(probe=exec_probe(initialDelaySeconds=stage.pace.seconds), policy=BOTH[:1])
    await stage.all_are("True")
    await stage.set_image("nginx:1.26")
    await stage.all_are("False", "")
    await stage.all_are("True")
    assert await stage.labels("idle") == {"yes"}


@behaviour("PPM-10", "PPM-11", "PPM-12", "PPM-13", "PPM-15")
async def what_cannot_be_probed_is_refused(stage: ProbeStage) -> None:
    """A selector cannot change; a probe needs one handler and some effect."""
    await stage.mark()
    wrong: list[Json] = [
        {"selector": {"matchLabels": {"app": "other"}}},
        {"probes": []},
        {"probes": [{"name": "p", "containerName": "main", "probe": {}, "podConditionType": "a"}]},
        {"probes": [{"name": "p", "containerName": "main", "probe": exec_probe()}]},
    ]
    for spec in wrong:
        try:
            await stage.world.patch(POD_PROBE_MARKERS, "m", {"spec": spec})
        except ApiError as error:
            told = str(error)
        else:
            told = ""
        assert "denied the request" in told, spec


@behaviour("PPM-28", "PRB-9", "NPP-12")
async def steady_results_are_not_written_again(stage: ProbeStage) -> None:
    """A result that does not change costs no writes, neither of the pod nor of the node's object."""
    await stage.start(replicas=1)
    await stage.mark(probe=exec_probe("echo fine"))
    await stage.all_are("True")
    await stage.world.sleep(5)

    async def written() -> tuple[str, list[Json]]:
        """Others may be probed on the same node."""
        [pod] = await stage.pods("web")
        found = [status for one in await stage.node_probes() for status in _results(one)]
        return pod["metadata"]["resourceVersion"], [one for one in found if one["namespace"] == stage.namespace]

    before = await written()
    await stage.world.sleep(stage.pace.calm)
    assert await written() == before


@behaviour("NPP-1", "NPP-2")
async def every_ready_node_has_one_object(stage: ProbeStage) -> None:
    """Each node has its NodePodProbe, called like the node."""

    async def are_even() -> None:
        nodes = {node.metadata.name for node in (await stage.client.list(NODES)).items}
        assert {one["metadata"]["name"] for one in await stage.node_probes()} == nodes
        assert nodes

    await stage.until(are_even)


@behaviour("ELP-1", "ELP-2", gates={"EnhancedLivenessProbe": True})
async def a_moved_liveness_probe_restarts_the_container(stage: ProbeStage) -> None:
    """The kubelet has no liveness probe; the daemon runs it, and a container that fails is started again."""
    probe = {"exec": {"command": ["sh", "-c", "exit 1"]}, "periodSeconds": 1, "failureThreshold": 2}
    container = {"name": "main", "image": "nginx:1.25", "livenessProbe": probe}
    annotations = {"apps.kruise.io/using-enhanced-liveness": "true"}
    await stage.create(
        replicas=1, containers=[container], annotations=annotations, pod={"terminationGracePeriodSeconds": 1}
    )

    async def is_restarted() -> Json:
        pods: list[Json] = await stage.pods("web")
        assert pods
        assert pods[0]["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) >= 1
        return pods[0]

    pod: Json = await stage.until(is_restarted)
    assert "livenessProbe" not in pod["spec"]["containers"][0]
    assert "exit 1" in pod["metadata"]["annotations"]["apps.kruise.io/container-probe-context"]

    async def is_told() -> None:
        assert await stage.world.events(pod["metadata"]["name"], "Unhealthy")
        assert await stage.world.events(pod["metadata"]["name"], "Killing")

    await stage.until(is_told)
