"""How an AdvancedCronJob is watched, and what it brings to the manager."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS, AdvancedCronJob
from kruise.api.apps.definitions.advancedcronjob import DEFINITION
from kruise.api.meta import Key, key_of
from kruise.feature import Feature, Settings
from kruise.machinery.plan import Conclusion, Outcomes, Plan, Result
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, View, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.machinery.zones import local_zone
from kruise.workloads.advancedcronjob.admission import ADMISSION
from kruise.workloads.advancedcronjob.children import KINDS, Child, child_of, closed_gate, kind_of
from kruise.workloads.advancedcronjob.conclude import conclude, events, refusal_of
from kruise.workloads.advancedcronjob.decide import RUN, Memo, Snapshot, decide
from kruise.workloads.shared.reading import tasks_of

NAME = "advancedcronjob-controller"


@dataclasses.dataclass(frozen=True, slots=True)
class _Note:
    uid: str
    generation: int
    """Of another spec nothing is known: it may let runs start that were given up, or refused (ACJ-63)."""
    floor: datetime | None = None
    refusal: str = ""


class _Notes(dict[Key, _Note]):
    """What this process remembers of objects between passes over them: a new one finds it out again."""

    def of(self, job: AdvancedCronJob) -> _Note:
        found, metadata = self.get(key_of(job)), job.metadata
        if found is not None and (found.uid, found.generation) == (metadata.uid, metadata.generation):
            return found
        return _Note(metadata.uid, metadata.generation)

    def note(self, job: AdvancedCronJob, plan: Plan, outcomes: Outcomes) -> None:
        memo, known = plan.memo_as(Memo), self.of(job)
        refusal = refusal_of(outcomes)
        is_made = any(outcome.result is Result.DONE for outcome in outcomes.within(RUN))
        floor = None if is_made else memo.floor or known.floor
        if floor is None and not refusal:
            self.pop(key_of(job), None)
        else:
            self[key_of(job)] = dataclasses.replace(known, floor=floor, refusal=refusal)


class _Snapshots:
    """Reads what a pass needs from the stores."""

    def __init__(self, notes: _Notes) -> None:
        self._notes = notes
        self._zone = local_zone()

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        job = view.store(ADVANCED_CRON_JOBS).get(*key)
        if job is None:
            self._notes.pop(key, None)
            return None
        known = self._notes.of(job)
        return Snapshot(
            job=job,
            children=_children(view, job),
            sees_runs=_sees_runs(view, job),
            local_zone=self._zone,
            floor=known.floor,
            refusal=known.refusal,
            closed_gate=_closed_gate(view, job),
            now=view.now,
        )


def _sees_runs(view: View, job: AdvancedCronJob) -> bool:
    kind = kind_of(job)
    return kind is None or view.store(kind.resource).synced


def _closed_gate(view: View, job: AdvancedCronJob) -> str:
    kind = kind_of(job)
    return closed_gate(kind, view.gates) if kind is not None else ""


def _children(view: View, job: AdvancedCronJob) -> tuple[Child, ...]:
    """Runs of the kind of its template that it controls (ACJ-41)."""
    kind = kind_of(job)
    if kind is None:
        return ()
    store = view.store(kind.resource)
    found = store.by_index(OWNER, job.metadata.uid) if store.synced else ()
    return tuple(child_of(kind, one, is_leaving=store.is_terminating(one)) for one in found)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    notes = _Notes()

    def concluded(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        if plan.memo is not None:
            notes.note(snapshot.job, plan, outcomes)
        return conclude(snapshot, plan, outcomes)

    mine = owner_keys(ADVANCED_CRON_JOBS)
    sources: tuple[Source[Any], ...] = (
        Source(ADVANCED_CRON_JOBS, own_key),
        *(Source(Watched(kind.resource, indexes=OWNER_INDEX, optional=not kind.path), mine) for kind in KINDS),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=ADVANCED_CRON_JOBS,
            sources=sources,
            snapshot=_Snapshots(notes),
            decide=decide,
            conclude=concluded,
            snapshot_type=Snapshot,
            events=events,
            workers=tasks_of(settings, "advancedcronjob"),
        ),
    )


FEATURE = Feature(
    name="advancedcronjob",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=ADMISSION.webhooks,
    conversions=(ADMISSION.conversion,),
)
