"""Images on three real nodes: containerd pulls them from a registry, told by the node daemon."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kruise.api.apps.images import IMAGE_PULL_JOBS, NODE_IMAGES
from kruise.api.native.config import SECRETS
from kruise.api.native.events import EVENTS
from tests.scenarios.images import EXCHANGE, SCENARIOS, ImageStage
from tests.scenarios.stage import Pace
from tests.support.nodedaemons import Daemons, daemons_on
from tests.support.realnodes import RealNodes
from tests.support.realnodes_images import make_image

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]
PACE = Pace(seconds=3, calm=3.0, within=120.0, every=0.3, slack=10.0)
Play = Callable[[Callable[[ImageStage], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def daemons(own_nodes: RealNodes) -> Iterator[Daemons]:
    with daemons_on(own_nodes, "ImagePullJobGate") as made:
        yield made


@pytest.fixture
def play(daemons: Daemons) -> Play:
    def run(story: Callable[[ImageStage], Awaitable[None]]) -> None:
        daemons.play(lambda world: story(ImageStage(world, gates={}, pace=PACE)), "images")

    return run


def images_on(nodes: RealNodes, node: str) -> str:
    return str(nodes.run_on_node(node, "ctr", "--namespace=k8s.io", "images", "list", "-q"))


@pytest.mark.smoke
def test_a_job_brings_an_image_to_every_node(play: Play, own_nodes: RealNodes) -> None:
    """IPJ-45, DMN-39, DMN-41, NI-E2: by tag, then by digest, under both names of one image."""
    image = make_image(command=["sh"], contents={"/etc/version": "ahead 1\n"})
    digest = own_nodes.registry.push("nginx:ahead", image)

    async def story(stage: ImageStage) -> None:
        await stage.job("ahead", "nginx:ahead", parallelism=2)
        done = await stage.until_completed("ahead")
        assert (done.status.succeeded, done.status.failed) == (3, 0)
        for node in own_nodes.nodes:
            assert "docker.io/library/nginx:ahead" in images_on(own_nodes, node)
            told = (await stage.client.get(NODE_IMAGES, node)).status.image_statuses["nginx"].tags
            [tag] = [one for one in told if one.tag == "ahead"]
            assert (tag.phase, tag.progress) == ("Succeeded", 100)
            assert tag.image_id.startswith("nginx@sha256:")

        async def events() -> None:
            found = (await stage.client.list(EVENTS, "default")).items
            texts = [one.message for one in found if one.reason == "PullImageSucceed"]
            assert any(text.startswith("Image nginx:ahead, ecalpsedTime ") for text in texts)

        await stage.world.until(events, within=30)
        await stage.job("by-digest", f"docker.io/library/nginx@{digest}", parallelism=3)
        assert (await stage.until_completed("by-digest")).status.succeeded == 3
        for name in ("ahead", "by-digest"):
            await stage.client.delete(IMAGE_PULL_JOBS, name, stage.namespace)
        await stage.until_no_tasks()

    play(story)


@pytest.mark.smoke
def test_a_tag_that_is_not_there_fails_in_the_words_of_the_registry(play: Play) -> None:
    """DMN-38, DMN-45: at once after the last attempt."""

    async def story(stage: ImageStage) -> None:
        await stage.job(
            "none", "nginx:no-such-tag", parallelism=3, pullPolicy={"backoffLimit": 1, "timeoutSeconds": 30}
        )
        done = await stage.until_completed("none")
        assert len(done.status.failed_nodes) == 3
        node = done.status.failed_nodes[0]
        told = (await stage.client.get(NODE_IMAGES, node)).status.image_statuses["nginx"].tags
        [tag] = [one for one in told if one.tag == "no-such-tag"]
        assert tag.message.startswith('Failed to pull image reference "nginx:no-such-tag": rpc error: code = NotFound')
        assert tag.message.endswith("docker.io/library/nginx:no-such-tag: not found")
        assert tag.start_time is not None
        assert tag.completion_time is not None
        assert (tag.completion_time - tag.start_time).total_seconds() < 8
        await stage.client.delete(IMAGE_PULL_JOBS, "none", stage.namespace)

    play(story)


def test_secrets_reach_the_daemon(play: Play, daemons: Daemons, own_nodes: RealNodes) -> None:
    """IPJ-33 to IPJ-40, DMN-44: it reads the copy with its own rights, and the copy goes when the job is over."""

    async def story(stage: ImageStage) -> None:
        login = base64.b64encode(b"user:password").decode()
        config = json.dumps({"auths": {"https://index.docker.io/v1/": {"auth": login}}}).encode()
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "registry"},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": base64.b64encode(config).decode()},
        }
        await stage.client.create(SECRETS, body, stage.namespace)
        spec: dict[str, Any] = {"pullSecrets": ["registry"], "parallelism": 3, "imagePullPolicy": "Always"}
        await stage.job("private", "redis:7", **spec)
        assert (await stage.until_completed("private")).status.succeeded == 3

        async def given_back() -> None:
            names = [one.metadata.name for one in (await stage.client.list(SECRETS, EXCHANGE)).items]
            assert not any(name.startswith("registry-") for name in names)

        await stage.world.until(given_back, within=30)
        await stage.client.delete(IMAGE_PULL_JOBS, "private", stage.namespace)

    play(story)
    for node in own_nodes.nodes:
        assert "pull secret not read" not in daemons.log(node).read_text()


def test_a_daemon_that_was_killed_goes_on(play: Play, daemons: Daemons, own_nodes: RealNodes) -> None:
    """DMN-33, DMN-34, DMN-96: what is finished stays, the rest is pulled when it is back."""
    own_nodes.registry.push("busybox:later", make_image(command=["sh"], contents={"/etc/version": "later\n"}))
    node = own_nodes.nodes[0]

    async def story(stage: ImageStage) -> None:
        daemons.stop(node)
        await stage.job("later", "busybox:later", parallelism=3)
        await stage.until_job("later", succeeded=2, active=1)
        daemons.start(node)
        assert (await stage.until_completed("later")).status.succeeded == 3
        await stage.client.delete(IMAGE_PULL_JOBS, "later", stage.namespace)

    play(story)


@pytest.mark.parametrize(
    "name", ["every_ready_node_has_a_node_image", "a_task_by_hand_needs_no_job", "two_jobs_of_one_image_share_a_task"]
)
def test_scenarios_of_the_local_cluster_hold_here(play: Play, name: str) -> None:
    """NI-13, NI-20, IPJ-46: the same stories, with kubelets and containerd."""
    play(SCENARIOS[name].play)
