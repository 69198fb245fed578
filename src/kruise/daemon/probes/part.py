"""How the prober is run: one key for the node, a job for each probe that is due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kruise.api.apps.probes import NODE_POD_PROBES, NodePodProbe
from kruise.api.meta import Key
from kruise.daemon.parts import Part, Place, Scene
from kruise.daemon.probes.asking import perform
from kruise.daemon.probes.calls import Found
from kruise.daemon.probes.decide import Ended, Memo, Snapshot, Worker, beat_of, conclude, decide
from kruise.machinery.plan import Conclusion, JobState, Outcomes, Plan, Result
from kruise.machinery.spec import ControllerSpec, Source, Stores, View

NAME = "sync_node_pod_probe"


class Looked:
    """What a look brings: the node is here."""


async def look(scene: Scene, key: Key) -> Looked | None:
    return Looked() if scene.node(key.name) is not None else None


def node_of(stores: Stores, key: Key) -> str:
    return key.name


def keys(old: NodePodProbe | None, new: NodePodProbe | None, stores: Stores) -> tuple[Key, ...]:
    """What was reported is our own doing."""
    if old is not None and new is not None and old.spec == new.spec and old.metadata.uid == new.metadata.uid:
        return ()
    changed = new if new is not None else old
    return (Key("", changed.metadata.name),) if changed is not None else ()


class _Memory:
    """What is remembered of the probes of each node, for as long as this daemon lives."""

    def __init__(self) -> None:
        self._workers: dict[str, dict[str, Worker]] = {}
        self._started: dict[str, datetime] = {}
        self._seed: dict[str, int] = {}

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        probes = view.store(NODE_POD_PROBES).get("", key.name)
        if probes is None or view.outside is None:
            self._workers.pop(key.name, None)
            self._started.pop(key.name, None)
            return None
        return Snapshot(
            node=key.name,
            probes=probes,
            workers=self._workers.get(key.name, {}),
            ended=_ended(view.jobs),
            running=tuple(name for name, state in view.jobs.items() if state.ended is None),
            now=view.now,
            started=self._started.setdefault(key.name, view.now),
            seed=self._seed.setdefault(key.name, view.seed),
        )

    def concluded(self, snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        if all(outcome.result is Result.DONE for outcome in outcomes):
            # Otherwise the answers are not dropped either, and would count once more in the next pass.
            self._workers[snapshot.node] = plan.memo_as(Memo).workers
        return conclude(snapshot, plan, outcomes)


def _ended(jobs: Mapping[str, JobState]) -> dict[str, Ended]:
    return {
        name: Ended(began=state.began, found=state.result if isinstance(state.result, Found) else None)
        for name, state in jobs.items()
        if state.ended is not None
    }


def spec(place: Place) -> ControllerSpec[Snapshot]:
    memory = _Memory()
    sources: tuple[Source[Any], ...] = (Source(place.own(NODE_POD_PROBES), keys),)
    return ControllerSpec(
        name=NAME,
        subject=NODE_POD_PROBES,
        sources=sources,
        snapshot=memory.snapshot,
        decide=decide,
        conclude=memory.concluded,
        snapshot_type=Snapshot,
        still_holds=lambda before, now: before.metadata.uid == now.metadata.uid,
        workers=4,
        pace=lambda snapshot: beat_of(len(snapshot.workers)),
    )


PART = Part(
    name=NAME,
    component="kruise-daemon-podprobe",
    gates=("PodProbeMarkerGate",),
    spec=spec,
    look=look,
    perform=perform,
    node_of=node_of,
)
