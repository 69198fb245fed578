"""What `kruise why` says of an EphemeralJob: every cause that only it knows, reached on the local cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kruise.machinery.causes import Act
from kruise.reasons.words import answer_lines
from kruise.workloads.ephemeraljob.causes import CAUSES
from tests.reasons.asking import ask, ask_journal, codes, is_helped
from tests.scenarios.ephemeral import ENDLESS, SCENARIOS, EphemeralStage
from tests.support.world import LocalWorld, run_local

Play = Callable[[EphemeralStage], Awaitable[None]]
SCENES: dict[str, Play] = {}


def reaches(code: str) -> Callable[[Play], Play]:
    def enlist(play: Play) -> Play:
        SCENES[code] = play
        return play

    return enlist


@reaches("no-target-pods")
async def no_pod_matches(stage: EphemeralStage) -> None:
    await stage.begin()
    await stage.counts(phase="Waiting")


@reaches("too-few-target-pods")
async def more_are_asked_for_than_there_are(stage: EphemeralStage) -> None:
    await stage.start(replicas=1)
    await stage.begin(replicas=2)
    await stage.counts(succeeded=1)


@reaches("mixed-job-results")
async def one_ends_well_and_one_does_not(stage: EphemeralStage) -> None:
    await stage.start(replicas=2)
    first = min(pod["metadata"]["name"] for pod in await stage.pods("web"))
    await stage.begin(command=("sh", "-c", f'if [ "$HOSTNAME" = "{first}" ]; then exit 0; else exit 1; fi'))
    await stage.counts(succeeded=1, failed=1)


@reaches("no-template-containers")
async def there_is_nothing_to_inject(stage: EphemeralStage) -> None:
    await stage.begin(containers=[])
    await stage.counts(phase="Error")


@reaches("container-name-taken")
async def another_job_has_the_name(stage: EphemeralStage) -> None:
    await stage.start(replicas=1)
    twin = stage.job("twin", command=ENDLESS)
    twin["spec"]["template"]["ephemeralContainers"][0]["name"] = "dbg"
    await stage.world.create(twin)
    await stage.counts("twin", running=1)
    await stage.begin()
    await stage.counts(match=0, phase="Waiting")


@reaches("injection-parallelism")
async def one_at_a_time(stage: EphemeralStage) -> None:
    await stage.start(replicas=2)
    await stage.begin(command=ENDLESS)
    await stage.counts(running=1)


@reaches("no-injection-parallelism")
async def none_at_a_time(stage: EphemeralStage) -> None:
    await stage.start(replicas=1)
    await stage.begin(parallelism=0)
    await stage.counts(match=1)


@reaches("injection-refused")
async def a_container_that_is_not_there(stage: EphemeralStage) -> None:
    await stage.start(replicas=1)
    job = stage.job()
    job["spec"]["template"]["ephemeralContainers"][0]["targetContainerName"] = "nobody"
    await stage.world.create(job)
    await stage.world.sleep(20)


@reaches("container-runs")
async def it_takes_its_time(stage: EphemeralStage) -> None:
    await stage.start(replicas=1)
    await stage.begin(command=ENDLESS)
    await stage.counts(running=1)


@reaches("container-not-reported")
async def its_node_says_nothing(stage: EphemeralStage) -> None:
    [pod] = await stage.start(replicas=1)
    assert isinstance(stage.world, LocalWorld)
    stage.world.cluster.nodes.stop_node(pod["spec"]["nodeName"])
    await stage.begin()
    await stage.world.sleep(5)


@reaches("pod-without-node")
async def no_node_suits_its_pod(stage: EphemeralStage) -> None:
    container = {"name": "main", "image": "nginx:1"}
    metadata = {"name": "lost", "labels": {"app": "web"}}
    spec = {"containers": [container], "nodeSelector": {"disk": "none"}}
    await stage.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await stage.begin()
    await stage.counts(match=1)


@reaches("container-starts")
async def the_image_is_large(stage: EphemeralStage) -> None:
    await stage.start(replicas=1, annotations={"sim.kruise.io/image-size.dbg": "100Gi"})
    await stage.begin()
    await stage.counts(waiting=1)


@reaches("container-cannot-start")
async def the_image_does_not_exist(stage: EphemeralStage) -> None:
    await stage.start(replicas=1)
    await stage.begin(image="busybox:missing")
    await stage.counts(waiting=1)
    await stage.world.sleep(15)


@reaches("container-failed")
async def the_command_fails(stage: EphemeralStage) -> None:
    await stage.start(replicas=1)
    await stage.begin(command=("sh", "-c", "exit 3"))
    await stage.counts(phase="Failed")


@pytest.mark.parametrize("code", list(SCENES))
def test_cause(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = EphemeralStage(world, gates=world.options.gates)
        await SCENES[code](stage)
        kind = "ephemeraljobs.apps.kruise.io"
        answer = await ask_journal(stage, monkeypatch, "dbg", kind=kind)
        assert code in codes(answer)
        is_helped(answer)
        if code != "injection-refused":  # only who was refused knows
            assert codes(await ask(stage, "dbg", kind=kind)) == codes(answer)
        assert "at the newest template" not in "\n".join(answer_lines(answer))

    run_local(play)


def test_no_cause_is_left_out() -> None:
    assert {cause.code for cause in CAUSES} == set(SCENES)
    assert SCENARIOS


def test_a_wrong_image_is_not_said_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = EphemeralStage(world, gates=world.options.gates)
        await the_image_does_not_exist(stage)
        answer = await ask_journal(stage, monkeypatch, "dbg", kind="ephemeraljobs.apps.kruise.io")
        text = "\n".join(answer_lines(answer))
        assert answer.act is Act.SOMEBODY
        assert "cannot start" in text
        assert "kubectl delete ejob dbg" in text
        assert "goes on by itself" not in text

    run_local(play)
