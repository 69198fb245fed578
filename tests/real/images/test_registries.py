"""Pulls that take long, that need a password, and that somebody dies in the middle of: containerd and the node daemon
on three real nodes, with a registry that does as it is told."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kruise.api.apps.images import IMAGE_PULL_JOBS, NODE_IMAGES, TagStatus
from kruise.api.native.config import SECRETS
from kruise.machinery.client.requests import PatchType
from tests.scenarios.images import ImageStage
from tests.scenarios.stage import Pace
from tests.support.nodedaemons import Daemons, daemons_on
from tests.support.realnodes import RealNodes
from tests.support.realnodes_images import make_image
from tests.support.registry_fronts import Front
from tests.support.world import Json, World

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]
PACE = Pace(seconds=3, calm=3.0, within=120.0, every=0.3, slack=10.0)
GATE = "ImagePullJobGate"
HASTY: Json = {"backoffLimit": 0, "timeoutSeconds": 90}


@pytest.fixture(scope="module")
def daemons(own_nodes: RealNodes) -> Iterator[Daemons]:
    with daemons_on(own_nodes, GATE) as made:
        yield made


def stage_of(world: World) -> ImageStage:
    return ImageStage(world, gates={}, pace=PACE)


def push(nodes: RealNodes, name: str) -> None:
    """An image of which no node has the last layer."""
    nodes.registry.push(name, make_image(command=["sh"], contents={"/etc/version": f"{name}\n"}))


async def tag_of(stage: ImageStage, node: str, name: str, tag: str) -> TagStatus | None:
    status = (await stage.client.get(NODE_IMAGES, node)).status
    entry = status.image_statuses.get(name)
    return next((one for one in entry.tags if one.tag == tag), None) if entry is not None else None


async def until_phase(stage: ImageStage, node: str, name: str, tag: str, *phases: str) -> TagStatus:
    async def check() -> TagStatus:
        found = await tag_of(stage, node, name, tag)
        assert found is not None
        assert found.phase in phases, found
        return found

    return await stage.world.until(check, within=PACE.within, every=0.2)


def lasted(tag: TagStatus) -> float:
    assert tag.start_time is not None
    assert tag.completion_time is not None
    return (tag.completion_time - tag.start_time).total_seconds()


def test_slow_pulls_are_cut_by_their_limits(daemons: Daemons, own_nodes: RealNodes) -> None:
    """DMN-36 to DMN-38, section 14 no. 7: by the time of an attempt, and by the deadline of the task. When the registry
    is quick again, the same image is pulled."""
    push(own_nodes, "team/slow:1")

    async def story(world: World) -> None:
        stage, name = stage_of(world), "slow.example/team/slow"
        front.hold()
        await stage.job("slow", f"{name}:1", parallelism=3, pullPolicy={"backoffLimit": 0, "timeoutSeconds": 4})
        began = await until_phase(stage, own_nodes.nodes[0], name, "1", "Pulling")
        assert began.start_time is not None
        done = await stage.until_completed("slow")
        assert sorted(done.status.failed_nodes) == list(own_nodes.nodes)
        for node in own_nodes.nodes:
            tag = await until_phase(stage, node, name, "1", "Failed")
            assert tag.message == f"pulling image {name}:1 is canceled"
            assert 4 <= lasted(tag) < 8
        await stage.client.delete(IMAGE_PULL_JOBS, "slow", stage.namespace)
        await stage.until_no_tasks()

        async def forgotten() -> None:
            assert await tag_of(stage, own_nodes.nodes[1], name, "1") is None

        # A task by hand, with time for many attempts and a deadline before the first one is over.
        await world.until(forgotten, within=PACE.within)
        policy = {"ttlSecondsAfterFinished": 300, "activeDeadlineSeconds": 5, "backoffLimit": 3}
        body = {"spec": {"images": {name: {"tags": [{"tag": "1", "pullPolicy": policy}]}}}}
        await stage.client.patch(NODE_IMAGES, own_nodes.nodes[1], body, patch_type=PatchType.MERGE)
        tag = await until_phase(stage, own_nodes.nodes[1], name, "1", "Failed")
        assert tag.message == "pulling exceeds the activeDeadlineSeconds"
        assert 5 <= lasted(tag) < 9
        body = {"spec": {"images": {name: None}}}  # type: ignore[dict-item]
        await stage.client.patch(NODE_IMAGES, own_nodes.nodes[1], body, patch_type=PatchType.MERGE)

        front.release()
        await stage.job("quick", f"{name}:1", parallelism=3, pullPolicy=HASTY)
        assert (await stage.until_completed("quick")).status.succeeded == 3
        await stage.client.delete(IMAGE_PULL_JOBS, "quick", stage.namespace)

    with Front(own_nodes, "slow.example") as front:
        daemons.play(story, "slow")


def login(host: str, user: str, password: str) -> Json:
    return {host: {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}}


def secret(name: str, auths: Json) -> Json:
    data = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    kind = "kubernetes.io/dockerconfigjson"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": kind,
        "data": {f".{kind[14:]}": data},
    }


def test_a_private_registry(daemons: Daemons, own_nodes: RealNodes) -> None:
    """DMN-44 to DMN-46, section 14 no. 9, IPJ-38: nobody without a password, the second of two passwords, and one that
    is put right while the daemon remembers the wrong one."""
    push(own_nodes, "team/private:1")

    async def story(world: World) -> None:
        stage, name, host = stage_of(world), "private.example/team/private", "private.example"
        policy = {"backoffLimit": 0, "timeoutSeconds": 30}
        await stage.job("stranger", f"{name}:1", parallelism=3, pullPolicy=policy)
        done = await stage.until_completed("stranger")
        assert sorted(done.status.failed_nodes) == list(own_nodes.nodes)
        tag = await until_phase(stage, own_nodes.nodes[0], name, "1", "Failed")
        assert tag.message.startswith(f'Failed to pull image reference "{name}:1": rpc error: code = ')
        words = next(word for word in ("authorization failed", "401 Unauthorized") if word in tag.message)
        code, said = await daemons.kruise(world, "why", "imagepulljob/stranger", f"--feature-gates={GATE}=true")
        assert (code, words in said) == (3, True), said

        for made in (secret("wrong", login(host, "u", "no")), secret("right", login(host, "user", "right"))):
            await stage.client.create(SECRETS, made, stage.namespace)
        await stage.job("wrong", f"{name}:1", parallelism=3, pullPolicy=policy, pullSecrets=["wrong"])
        done = await stage.until_completed("wrong")
        assert sorted(done.status.failed_nodes) == list(own_nodes.nodes)

        both: Any = {"pullSecrets": ["wrong", "right"], "pullPolicy": policy, "parallelism": 3}
        await stage.job("both", f"{name}:1", **both)
        assert (await stage.until_completed("both")).status.succeeded == 3
        code, said = await daemons.kruise(world, "images", f"{name}:1", "--check")
        assert (code, said.count(" present")) == (0, 3), said

        for job in ("stranger", "wrong", "both"):
            await stage.client.delete(IMAGE_PULL_JOBS, job, stage.namespace)
        await stage.until_no_tasks()

        # The nodes have it now; `Always` asks the registry all the same.
        again: Any = {"pullSecrets": ["wrong"], "parallelism": 3, "imagePullPolicy": "Always"}
        await stage.job("again", f"{name}:1", **again, pullPolicy={"backoffLimit": 6, "timeoutSeconds": 30})
        await until_phase(stage, own_nodes.nodes[0], name, "1", "Pulling")
        body = {"data": secret("wrong", login(host, "user", "right"))["data"]}
        await stage.client.patch(SECRETS, "wrong", body, stage.namespace, patch_type=PatchType.MERGE)
        assert (await stage.until_completed("again")).status.succeeded == 3
        await stage.client.delete(IMAGE_PULL_JOBS, "again", stage.namespace)
        await stage.until_no_tasks()

    with Front(own_nodes, "private.example", login="user:right"):
        daemons.play(story, "private")
    for node in own_nodes.nodes:
        for word in ("right", base64.b64encode(b"user:right").decode()):
            assert f'"{word}"' not in daemons.log(node).read_text()


def test_daemon_and_runtime_die_in_the_middle_of_a_pull(daemons: Daemons, own_nodes: RealNodes) -> None:
    """DMN-34, DMN-96, DMN-99: the daemon of one node and containerd of another are killed while all pull an image that
    may be tried once; all nodes have it in the end."""
    push(own_nodes, "team/torn:1")
    first, second, third = own_nodes.nodes

    async def story(world: World) -> None:
        stage, name = stage_of(world), "torn.example/team/torn"
        front.hold()
        await stage.job("torn", f"{name}:1", parallelism=3, pullPolicy=HASTY)
        for node in own_nodes.nodes:
            await until_phase(stage, node, name, "1", "Pulling")
        daemons.restart(first)
        own_nodes.kill_containerd(second)
        await world.sleep(2)
        own_nodes.start_containerd(second)
        await world.sleep(2)
        assert (await stage.client.get(IMAGE_PULL_JOBS, "torn", stage.namespace)).status.active == 3
        front.release()
        done = await stage.until_completed("torn")
        assert (done.status.succeeded, done.status.failed) == (3, 0)
        for node in own_nodes.nodes:
            tag = await until_phase(stage, node, name, "1", "Succeeded")
            assert tag.image_id.startswith(f"{name}@sha256:")
        # The daemons of the others have not been started anew.
        for node in (second, third):
            assert daemons.log(node).read_text().count("daemon started") == 1
        await stage.client.delete(IMAGE_PULL_JOBS, "torn", stage.namespace)

    with Front(own_nodes, "torn.example") as front:
        daemons.play(story, "torn")


def test_never_more_at_a_time_than_the_daemon_may(daemons: Daemons, own_nodes: RealNodes) -> None:
    """DMN-35, DMN-10a: two pull, the others wait and say so; by what the registry is asked for, too."""
    node, names = own_nodes.nodes[2], [f"team/many{number}" for number in range(5)]
    for name in names:
        push(own_nodes, f"{name}:1")

    async def story(world: World) -> None:
        stage = stage_of(world)
        front.hold()
        policy = {"ttlSecondsAfterFinished": 300, "timeoutSeconds": 60}
        images: Json = {f"many.example/{name}": {"tags": [{"tag": "1", "pullPolicy": policy}]} for name in names}
        await stage.client.patch(NODE_IMAGES, node, {"spec": {"images": images}}, patch_type=PatchType.MERGE)

        async def full() -> None:
            status = (await stage.client.get(NODE_IMAGES, node)).status
            assert (status.pulling, status.waiting) == (2, 3), status
            assert len(front.repositories) == 2

        await world.until(full, within=PACE.within)
        await world.sleep(3)
        await full()
        front.release()

        async def done() -> None:
            status = (await stage.client.get(NODE_IMAGES, node)).status
            assert (status.succeeded, status.desired) == (5, 5), status

        await world.until(done, within=PACE.within)
        images = dict.fromkeys(images)
        await stage.client.patch(NODE_IMAGES, node, {"spec": {"images": images}}, patch_type=PatchType.MERGE)

    daemons.restart(node, "--max-workers-for-pull-image=2")
    try:
        with Front(own_nodes, "many.example") as front:
            daemons.play(story, "many")
    finally:
        daemons.restart(node)
