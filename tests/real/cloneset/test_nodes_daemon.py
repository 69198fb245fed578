"""What CloneSets leave to the node daemon, on real nodes: environments from labels and annotations, images pulled
ahead, and an image that has two names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.inplace.keys import CONTAINERS_META_ANNOTATION
from tests.scenarios.stage import Pace, Stage
from tests.support.nodedaemons import Daemons, daemons_on
from tests.support.realnodes import RealNodes
from tests.support.realnodes_images import make_image
from tests.support.registry_fronts import Front
from tests.support.world import Json, World

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]
PACE = Pace(seconds=3, calm=3.0, within=150.0, every=0.3, slack=10.0)
IDLE = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]


@pytest.fixture(scope="module")
def daemons(own_nodes: RealNodes) -> Iterator[Daemons]:
    with daemons_on(own_nodes, "PreDownloadImageForInPlaceUpdate", "ImagePullJobGate") as made:
        yield made


def stage_of(world: World) -> Stage:
    return Stage(world, gates={}, pace=PACE)


def counts(pods: Sequence[Json]) -> list[dict[str, int]]:
    return [{one["name"]: one["restartCount"] for one in pod["status"]["containerStatuses"]} for pod in pods]


def from_metadata(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


async def environment(daemons: Daemons, pod: Json, container: str, variable: str) -> str:
    [status] = [one for one in pod["status"]["containerStatuses"] if one["name"] == container]
    identity = status["containerID"].removeprefix("containerd://")
    told = ""
    for attempt in range(5):
        name = f"look-{variable}-{identity[:8]}-{attempt}"
        run = ("ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", name, identity, "env")
        if told := await asyncio.to_thread(daemons.nodes.run_on_node, pod["spec"]["nodeName"], *run):
            break
        # A containerd that has just started may lose what a command prints.
        await asyncio.sleep(1.0)
    return dict(line.partition("=")[::2] for line in told.splitlines()).get(variable, "")


@pytest.mark.parametrize("dies", ["nobody", "daemon", "runtime"])
def test_environments_from_labels_and_annotations(daemons: Daemons, own_nodes: RealNodes, dies: str) -> None:
    """IPU-34, IPU-67, DMN-76, DMN-77, DMN-99, section 14 no. 10 and 13: a new value restarts the one container that
    reads it, once, also where it has several lines, and where daemon or runtime are killed meanwhile; one by hand
    restarts nothing."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        before = await stage.start(
            replicas=3,
            containers=[
                {"name": "main", "image": "busybox:1.36", "command": IDLE,
                 "env": [from_metadata("CONF", "metadata.labels['conf']")]},
                {"name": "side", "image": "busybox:1.36", "command": IDLE,
                 "env": [from_metadata("NOTE", "metadata.annotations['note']")]},
            ],
            labels={"conf": "one"},
            annotations={"note": "one\n two \n"},
            pod={"terminationGracePeriodSeconds": 3},
            rolling={"maxUnavailable": "100%"},
        )  # fmt: skip

        async def reported() -> None:
            assert all(CONTAINERS_META_ANNOTATION in pod["metadata"]["annotations"] for pod in await stage.pods())

        await stage.until(reported)
        by_hand = before[0]["metadata"]["name"]
        await stage.set_labels(by_hand, {"conf": "two"})
        await asyncio.sleep(8)
        assert counts(await stage.pods()) == [{"main": 0, "side": 0}] * 3

        await stage.edit_template({"metadata": {"labels": {"conf": "two"}}})
        for _ in range(2 if dies != "nobody" else 0):
            await asyncio.sleep(2.5)
            for node in own_nodes.nodes:
                if dies == "daemon":
                    daemons.restart(node)
                else:
                    own_nodes.kill_containerd(node)
            if dies == "runtime":
                await asyncio.sleep(1.0)
                for node in own_nodes.nodes:
                    own_nodes.start_containerd(node)
        after = await stage.complete()
        assert counts(after) == [{"main": 1, "side": 0}] * 3
        assert {pod["metadata"]["uid"] for pod in after} == {pod["metadata"]["uid"] for pod in before}
        for pod in after:
            assert await environment(daemons, pod, "main", "CONF") == "two"

        await stage.edit_template({"metadata": {"annotations": {"note": "three\n\nlines  "}}})
        after = await stage.complete()
        assert counts(after) == [{"main": 1, "side": 1}] * 3
        await asyncio.sleep(8)
        assert counts(await stage.pods()) == [{"main": 1, "side": 1}] * 3

        # With the image of the same container: one restart for both (IPU-68).
        containers = [{"name": "main", "image": "busybox:1.35.0"}]
        await stage.edit_template({"metadata": {"labels": {"conf": "three"}}, "spec": {"containers": containers}})
        after = await stage.complete()
        assert [one["side"] for one in counts(after)] == [1, 1, 1]
        assert {one["main"] for one in counts(after)} <= {2, 3}
        for pod in after:
            assert await environment(daemons, pod, "main", "CONF") == "three"

    daemons.play(story, "env")


def test_images_are_pulled_ahead(daemons: Daemons, own_nodes: RealNodes) -> None:
    """IPU-150 to IPU-153, IMG-20, IMG-21: while one pod is on the new image, the other nodes pull it; kubelets find it
    there. The jobs go with the rollout."""
    image = "ahead.example/team/ahead:2"
    own_nodes.registry.push("team/ahead:2", make_image(command=["sh"], contents={"/etc/version": "ahead 2\n"}))

    async def story(world: World) -> None:
        stage = stage_of(world)
        await stage.start(
            replicas=6,
            containers=[
                {"name": "main", "image": "busybox:1.36", "command": IDLE, "imagePullPolicy": "IfNotPresent"}
            ],
            pod={"terminationGracePeriodSeconds": 3, "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                 "labelSelector": {"matchLabels": {"app": "web"}}}]},
            rolling={"maxUnavailable": 1, "inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 3}},
        )  # fmt: skip
        await stage.roll({"partition": 5})
        await stage.set_image(image)

        async def ahead() -> None:
            jobs = await world.list(IMAGE_PULL_JOBS)
            assert jobs
            assert all(job["metadata"]["ownerReferences"][0]["kind"] == "CloneSet" for job in jobs)
            for node in own_nodes.nodes:
                assert image in str(own_nodes.run_on_node(node, "ctr", "-n", "k8s.io", "images", "list", "-q"))

        await world.until(ahead, within=PACE.within)
        await stage.roll({"partition": 0})
        after = await stage.complete()
        assert counts(after) == [{"main": 1}] * 6

        async def over() -> None:
            assert not await world.list(IMAGE_PULL_JOBS)

        await world.until(over, within=PACE.within)
        texts = [event["message"] for event in await world.events(reason="Pulled")]
        there = [text for text in texts if image in text and "already present on machine" in text]
        assert len(there) >= 4, texts

    with Front(own_nodes, "ahead.example"):
        daemons.play(story, "ahead")


@pytest.mark.parametrize(("first", "second"), [("nginx:1.26", "nginx:1.26-same"), ("nginx:1.26-same", "nginx:1.26")])
def test_two_names_of_one_image(daemons: Daemons, first: str, second: str) -> None:
    """IPU-61, DMN-80: the id of the image stays. The update ends with the restart, not too early: by what the node
    reports, or by the name of the image in the status where the runtime tells the new one."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        before = await stage.start(replicas=3, image=first, pod={"terminationGracePeriodSeconds": 3})

        async def reported() -> None:
            assert all(CONTAINERS_META_ANNOTATION in pod["metadata"]["annotations"] for pod in await stage.pods())

        await stage.until(reported)
        await stage.set_image(second)
        after = await stage.complete()
        assert counts(after) == [{"main": 1}] * 3
        known = {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0] for pod in before}
        for pod in after:
            [new], old = pod["status"]["containerStatuses"], known[pod["metadata"]["name"]]
            assert new["imageID"] == old["imageID"]
            assert new["containerID"] != old["containerID"]

        async def reported_again() -> None:
            for pod in await stage.pods():
                [status] = pod["status"]["containerStatuses"]
                assert status["containerID"] in pod["metadata"]["annotations"][CONTAINERS_META_ANNOTATION]

        await stage.until(reported_again)

    daemons.play(story, "names")
