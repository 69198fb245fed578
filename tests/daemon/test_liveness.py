"""Liveness probes in the daemon: what counts against a container, how it is stopped, and what is remembered."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from kruise.api.apps.containerrecreaterequest import ExecAction, Hook, Port
from kruise.api.apps.probes import LIVENESS_PROBES, NodePodProbe, Probe
from kruise.api.meta import Key
from kruise.daemon.kills import Ending, Kill, ending_of
from kruise.daemon.parts import Place, Settings
from kruise.daemon.pods import Pod
from kruise.daemon.probes import liveness, liveness_part, part
from kruise.daemon.probes.calls import Ask, Found
from kruise.daemon.probes.decide import Ended, Memo, Worker
from kruise.machinery.codec import convert, evolve
from kruise.machinery.plan import JobState, Outcome, Outcomes, PhaseOutcomes, Plan, Result
from tests.daemon.test_probes import live

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = Key("demo", "p")


def step(workers: dict[str, Worker], found: Found | None = None, **more: Any) -> tuple[Plan, dict[str, Worker]]:
    ended = {"main": Ended(began=NOW, found=found)} if found is not None else {}
    plan = liveness.decide(live(workers=workers, ended=ended, **more))
    return plan, plan.memo_as(liveness.Memo).workers


FAILED = Found(container_id="c2", is_running=True, state="Failed", message="no")


def test_a_container_that_is_about_to_start_is_not_stopped() -> None:
    """It was seen before it ran: that is no failed probe, and one failed probe is fewer than two."""
    _, workers = step({})
    for _ in range(3):
        plan, workers = step(workers, evolve(FAILED, is_running=False))
        assert plan.drops == ("main",)
        assert workers["main"].state == "Unknown"
    plan, workers = step(workers, evolve(FAILED, state=""))
    assert plan.jobs == ()
    plan, workers = step(workers, FAILED)
    assert plan.jobs == ()
    plan, workers = step(workers, FAILED)
    assert [job.name for job in plan.jobs] == ["stop main"]


def test_numbers_that_are_changed_count_at_once() -> None:
    """As the probe that is asked: both are the annotation's."""
    _, workers = step({}, FAILED)
    known = {
        "main": evolve(workers["main"], probe=evolve(workers["main"].probe, failure_threshold=9, period_seconds=50))
    }
    plan, workers = step(known, FAILED)
    assert [job.name for job in plan.jobs] == ["stop main"]
    assert workers["main"].probe.period_seconds == 5


def test_nothing_is_asked_before_the_startup_probe_has_succeeded() -> None:
    plan, workers = step({}, starting=("main",))
    assert (plan.jobs, plan.wakes) == ((), ())
    for _ in range(3):
        plan, workers = step(workers, FAILED, starting=("main",))
        assert (plan.jobs, plan.drops, workers["main"].run) == ((), ("main",), 0)
    plan, _ = step(workers)
    assert [job.name for job in plan.jobs] == ["main"]


@pytest.mark.parametrize(("told", "grace"), [(None, 9), (0, 0), (4, 4)])
def test_a_container_is_stopped_as_the_kubelet_would(told: int | None, grace: int) -> None:
    """With its preStop hook; a grace of 0 is one."""
    ending = Ending(hook=Hook(exec=ExecAction(command=("bye",))), ports=(Port(name="web", container_port=80),))
    failed = evolve(FAILED, ending=evolve(ending, grace=told))
    _, workers = step({})
    _, workers = step(workers, failed)
    plan, _ = step(workers, failed)
    [job] = plan.jobs
    assert isinstance(job.call, Kill)
    assert (job.call.hook, job.call.ports, job.call.grace) == (ending.hook, ending.ports, grace)
    assert (job.call.container_id, job.call.pod_ip) == ("c2", "10.0.0.7")


def test_what_the_kubelet_wrote_down() -> None:
    """DMN-55, DMN-57; what cannot be read counts as not told."""
    notes = {
        "io.kubernetes.container.preStopHandler": '{"exec":{"command":["bye"]}}',
        "io.kubernetes.container.ports": '[{"name":"web","containerPort":80,"protocol":"TCP"}]',
        "io.kubernetes.pod.terminationGracePeriod": "0",
    }
    found = ending_of(notes)
    assert found.hook == Hook(exec=ExecAction(command=("bye",)))
    assert [(port.name, port.container_port) for port in found.ports] == [("web", 80)]
    assert found.grace == 0
    assert ending_of(dict.fromkeys(notes, "{")) == Ending()


# What is remembered


class View:
    """As much of a view as a snapshot reads; the store in it has one object or none."""

    def __init__(self, found: Any, outside: Any = "containerd", jobs: dict[str, JobState] | None = None) -> None:
        self.found, self.outside, self.jobs = found, outside, jobs or {}
        self.now, self.seed = NOW, 1

    def store(self, resource: Any) -> Any:
        return SimpleNamespace(get=lambda *key: self.found)


def pod(uid: str = "u", *, started: bool | None = True, **metadata: Any) -> Pod:
    probe = '[{"name":"main","livenessProbe":{"tcpSocket":{"port":80}}}]'
    return convert(
        {
            "metadata": {
                "name": "p",
                "namespace": "demo",
                "uid": uid,
                "annotations": {LIVENESS_PROBES: probe},
                **metadata,
            },
            "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "main", "started": started}]},
        },
        Pod,
    )


def test_a_pod_is_forgotten_when_it_goes() -> None:
    spec = liveness_part.spec(Place.of("n", Settings()))

    def seen(found: Any, outside: str = "containerd") -> liveness.Snapshot | None:
        view: Any = View(found, outside)
        return spec.snapshot(view, KEY)

    def learn() -> None:
        snapshot = seen(pod())
        assert snapshot is not None
        spec.concluded(snapshot, liveness.decide(snapshot), Outcomes())

    def known(uid: str = "u") -> list[str]:
        snapshot = seen(pod(uid))
        assert snapshot is not None
        return list(snapshot.workers)

    learn()
    assert (known(), known("other")) == (["main"], [])
    assert seen(None, "") is None
    assert known() == []
    learn()
    assert seen(pod(deletionTimestamp="2026-01-02T03:04:05Z"), "") is None
    assert known() == []


async def test_a_pod_that_is_gone_is_looked_at_once_more() -> None:
    """Only then is it forgotten; a node that is not here is none of that."""

    def scene(found: Any) -> Any:
        place = Place.of("n", Settings())
        return SimpleNamespace(place=place, stores=View(found), node=lambda name: None)

    assert await liveness_part.look(scene(None), KEY) == ""
    assert await liveness_part.look(scene(pod()), KEY) is None


def test_a_pod_that_has_started_is_looked_at() -> None:
    stores: Any = None
    assert list(liveness_part.keys(pod(started=False), pod(), stores)) == [KEY]
    assert list(liveness_part.keys(pod(started=None), pod(), stores)) == []
    assert liveness_part.starting(pod(started=False)) == ("main",)


def test_an_answer_counts_once_however_often_its_write_fails() -> None:
    """PRB-3."""
    spec = part.spec(Place.of("n", Settings()))
    probes = convert(
        {
            "metadata": {"name": "n", "uid": "n"},
            "spec": {
                "podProbes": [
                    {
                        "name": "p",
                        "namespace": "demo",
                        "uid": "u",
                        "IP": "10.0.0.7",
                        "probes": [
                            {
                                "name": "m#x",
                                "containerName": "main",
                                "probe": {"tcpSocket": {"port": 80}, "failureThreshold": 3},
                            }
                        ],
                    }
                ]
            },
        },
        NodePodProbe,
    )
    jobs: dict[str, JobState] = {}

    def pass_(result: Result) -> Worker:
        view: Any = View(probes, part.Looked(), jobs)
        snapshot = spec.snapshot(view, Key("", "n"))
        assert snapshot is not None
        plan = spec.decide(snapshot)
        phases = tuple(
            PhaseOutcomes(
                phase.name,
                tuple(tuple(Outcome(action=one, result=result) for one in chain) for chain in phase.chains),
            )
            for phase in plan.phases
        )
        spec.concluded(snapshot, plan, Outcomes(phases))
        [(name, worker)] = plan.memo_as(Memo).workers.items()
        jobs.setdefault(name, JobState(call=FAILED, began=NOW, ended=NOW, result=FAILED))
        return worker

    pass_(Result.DONE)
    for _ in range(4):
        worker = pass_(Result.FAILED)
        assert (worker.run, worker.state) == (1, "Unknown")
    assert pass_(Result.DONE).run == 1
    assert pass_(Result.DONE).run == 2


@pytest.mark.parametrize(("probe", "host"), [
    ({"httpGet": {"port": 80}}, "10.0.0.1"),
    ({"httpGet": {"port": 80, "host": "10.9.9.9"}}, "10.9.9.9"),
    ({"tcpSocket": {"port": 80, "host": "10.9.9.9"}}, "10.9.9.9"),
])  # fmt: skip
def test_a_host_of_its_own_is_asked(probe: dict[str, Any], host: str) -> None:
    """As by the kubelet, from which the probe was taken."""
    watch = liveness.Watch(name="main", probe=convert(probe, Probe))
    [job] = liveness.decide(evolve(live(), ip="10.0.0.1", watches=(watch,))).jobs
    assert isinstance(job.call, Ask)
    assert job.call.ip == host
