"""How ImageListPullJobs are watched, and what they bring to the manager."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.definitions.imagelistpulljob import DEFINITION
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, IMAGE_PULL_JOBS
from kruise.api.meta import Key
from kruise.feature import Feature, Settings
from kruise.machinery.spec import OWNER, ControllerSpec, Source, View, own_key, owner_keys
from kruise.operations.images.listjob.admission import handlers
from kruise.operations.images.listjob.conclude import conclude
from kruise.operations.images.listjob.decide import Snapshot, decide
from kruise.operations.images.templates import DAEMON_GATE, JOBS_GATE
from kruise.operations.images.watching import WATCHED_JOBS

NAME = "imagelistpulljob-controller"
WORKERS = 3


def snapshot(view: View, key: Key) -> Snapshot | None:
    job = view.store(IMAGE_LIST_PULL_JOBS).get(*key)
    if job is None:
        return None
    jobs = view.store(IMAGE_PULL_JOBS)
    children = tuple(one for one in jobs.by_index(OWNER, job.metadata.uid) if not jobs.is_terminating(one))
    return Snapshot(job=job, children=children, now=view.now, seed=view.seed)


def controllers(settings: Settings) -> tuple[ControllerSpec[Any], ...]:
    if not (settings.gates.get(DAEMON_GATE, False) and settings.gates.get(JOBS_GATE, False)):
        return ()
    return (
        ControllerSpec(
            name=NAME,
            subject=IMAGE_LIST_PULL_JOBS,
            sources=(
                Source(IMAGE_LIST_PULL_JOBS, own_key),
                Source(WATCHED_JOBS, owner_keys(IMAGE_LIST_PULL_JOBS)),
            ),
            snapshot=snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            workers=WORKERS,
        ),
    )


FEATURE = Feature(
    name="imagelistpulljob",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=lambda settings: handlers(),
)
