"""SidecarSets on real nodes: what containers do while their neighbours are changed, and what an app hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.native.pod import PODS
from tests.sidecars.sidecarset import stories
from tests.sidecars.sidecarset.stories import Sidecars, lives
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.world import World

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
Play = Callable[[Callable[[Sidecars], Awaitable[None]]], None]


def playing(kruise: KruiseCluster, namespace: str) -> Play:
    def run(story: Callable[[Sidecars], Awaitable[None]]) -> None:
        async def main() -> None:
            async with kruise.world(namespace) as world:
                stage = Sidecars(world)
                try:
                    await story(stage)
                finally:
                    await stage.end()

        asyncio.run(main())

    return run


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Play:
    return playing(kruise_on_nodes, nodes_namespace)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(stories.sidecars_change_and_the_app_runs_on, marks=pytest.mark.smoke),
        stories.canaries_by_label_then_all,
        stories.a_bad_image_is_corrected,
        stories.a_workload_and_two_sets_at_once,
    ],
    ids=lambda story: str(story.__name__),
)
def test_story(play: Play, story: Callable[[Sidecars], Awaitable[None]]) -> None:
    play(story)


# A hot upgrade under traffic

_PORT = "port=$((10000 + SIDECARSET_VERSION % 20000))"
SERVER = f"""\
trap 'exit 0' TERM INT QUIT
{_PORT}
httpd -f -p $port -h /www &
wait $!
"""
MIGRATE = f"""\
#!/bin/sh
# Whoever starts takes over: the app is told of the new socket once it answers.
{_PORT}
until wget -q -O /dev/null http://127.0.0.1:$port/; do sleep 0.1; done
echo $port > /shared/port.new
mv /shared/port.new /shared/port
"""
IDLE = "trap 'exit 0' TERM INT QUIT\nwhile :; do sleep 3600 & wait $!; done\n"
APP = """\
trap 'exit 0' TERM INT QUIT
while :; do
  if [ -e /shared/port ]; then
    if said=$(wget -q -O - http://127.0.0.1:$(cat /shared/port)/); then echo "heard $said"; else echo lost; fi
  fi
  sleep 0.1 & wait $!
done
"""


def push_images(nodes: RealNodes) -> None:
    for version in ("v1", "v2"):
        nodes.push_image(
            f"handover/agent:{version}", script=SERVER, contents={"/www/index.html": version, "/migrate.sh": MIGRATE}
        )
    nodes.push_image("handover/agent:empty", script=IDLE, contents={"/migrate.sh": "#!/bin/sh\nexit 0\n"})
    nodes.push_image("handover/app:v1", script=APP)


async def app(world: World) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    await world.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-0", "labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": "shared", "emptyDir": {}}],
                "containers": [{"name": "main", "image": "handover/app:v1", "volumeMounts": mounts}],
            },
        }
    )


def test_a_hot_upgrade_loses_no_request(play: Play, real_nodes: RealNodes, nodes_namespace: str) -> None:
    """SCS-110, SCS-113, SCS-W4: the app asks ten times a second, and hears the old one until it hears the new one."""
    push_images(real_nodes)

    def heard() -> list[str]:
        return real_nodes.kubectl("logs", "web-0", "--container=main", f"--namespace={nodes_namespace}").splitlines()

    async def until_heard(world: World, text: str) -> None:
        async def check() -> None:
            assert await asyncio.to_thread(lambda: heard()[-3:]) == [text] * 3

        await world.until(check, within=60)

    async def story(stage: Sidecars) -> None:
        agent = {
            "name": "agent",
            "image": "handover/agent:v1",
            "lifecycle": {"postStart": {"exec": {"command": ["sh", "/migrate.sh"]}}},
            "shareVolumePolicy": {"type": "enabled"},
            "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "handover/agent:empty"},
        }
        await stage.create(containers=[agent])
        await app(stage.world)
        await stage.counts(1, 1, 1, 1)
        await until_heard(stage.world, "heard v1")
        before = lives(await stage.world.pods("app=web"))
        await stage.set_image("handover/agent:v2")
        await stage.counts(1, 1, 1, 1)
        await until_heard(stage.world, "heard v2")
        found = heard()
        assert "lost" not in found
        assert found == ["heard v1"] * found.count("heard v1") + ["heard v2"] * found.count("heard v2")
        assert lives(await stage.world.pods("app=web")) == before
        images = {item["name"]: item["image"] for item in (await stage.world.get(PODS, "web-0"))["spec"]["containers"]}
        assert (images["agent-1"], images["agent-2"]) == ("handover/agent:empty", "handover/agent:v2")

    play(story)
