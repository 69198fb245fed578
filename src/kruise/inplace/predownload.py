"""Images pulled ahead of an in-place rollout (IPU section 17).

While a rollout waits for its first pods, ImagePullJobs bring the new images to the nodes of the others. Whether that is
worth it is decided once per revision and written on it as a label. Jobs come first and the label after them: a process
that ends in between finds its own jobs under the names they must have.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.apps.shared import (
    PREDOWNLOAD_MIN_READY,
    PREDOWNLOAD_PARALLELISM,
    PREDOWNLOAD_TIMEOUT,
    InPlaceUpdateStrategy,
)
from kruise.api.meta import LabelSelector, PartialObject
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.inplace import keys
from kruise.machinery import plan as plans
from kruise.machinery.codec import to_builtins
from kruise.machinery.intorpercent import IntOrPercent, IntOrPercentError, is_percent, scaled_fraction
from kruise.machinery.ownership import Owner, is_controlled_by
from kruise.machinery.plan import Action, OnError, Phase, Target
from kruise.machinery.revision_names import short_hash
from kruise.machinery.revisions import HASH_LABEL, template_of

JOBS_PHASE = "pull-jobs"
MARK_PHASE = "pull-jobs-mark"

FEW_REPLICAS = 3
"""With so few pods a rollout is over before its images are."""
DEFAULT_TIMEOUT_SECONDS = 300
BACKOFF_LIMIT = 1
TTL_SECONDS = 600

_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


def is_on(gates: Mapping[str, bool], *, served: bool, gate: str = "PreDownloadImageForInPlaceUpdate") -> bool:
    """Whether images are pulled ahead at all: needs the kind, the node daemon and the workload's gate."""
    return served and gates.get("KruiseDaemon", False) and gates.get(gate, False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What a workload says about its pull jobs."""

    parallelism: IntOrPercent = 1
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    min_updated_ready: int = 0
    """Pods that must be updated and ready before anything is pulled."""


def tuning_of(strategy: InPlaceUpdateStrategy | None, annotations: Mapping[str, str], replicas: int) -> Tuning:
    """From a strategy's fields (IPU-154). The minimum of ready pods may also stand in its annotation, as a number or a
    percentage of the replicas (IPU-155): the field holds no percentage, so a conversion cannot carry it."""
    strategy = strategy or InPlaceUpdateStrategy()
    parallelism = strategy.image_pre_download_parallelism
    timeout = strategy.image_pre_download_timeout_seconds
    minimum = strategy.image_pre_download_min_updated_ready_pods
    if minimum is None:
        minimum = _annotated(annotations.get(PREDOWNLOAD_MIN_READY, ""), replicas)
    return Tuning(
        parallelism=1 if parallelism is None else parallelism,
        timeout_seconds=DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout,
        min_updated_ready=minimum,
    )


def annotated_tuning(annotations: Mapping[str, str], replicas: int) -> Tuning:
    """Of a kind that says it in annotations alone (ST-110, DS-80). What is no number counts as absent."""
    text, timeout = annotations.get(PREDOWNLOAD_PARALLELISM, ""), annotations.get(PREDOWNLOAD_TIMEOUT, "")
    parallelism: IntOrPercent = text if is_percent(text) else 1
    return Tuning(
        parallelism=int(text) if _NUMBER.fullmatch(text) else parallelism,
        timeout_seconds=int(timeout) if _NUMBER.fullmatch(timeout) else DEFAULT_TIMEOUT_SECONDS,
        min_updated_ready=_annotated(annotations.get(PREDOWNLOAD_MIN_READY, ""), replicas),
    )


def _annotated(text: str, replicas: int) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    if not is_percent(text):
        return 0
    try:
        return max(0, scaled_fraction(text, replicas, round_up=True))
    except IntOrPercentError:
        return 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreDownload:
    """What there is to do about pull jobs."""

    jobs: tuple[Action, ...] = ()
    """Creates, or deletes where the rollout is over."""
    marks: tuple[Action, ...] = ()
    """What the update revision has to remember, after the jobs."""
    ignored: str = ""
    """Why nothing is pulled ahead of this revision, where that is being decided now."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """A rollout goes on without its images pulled ahead: nothing stops at a failure here."""
        built = (plans.single(name, *actions, on_error=OnError.CONTINUE) for name, actions in self._parts())
        return tuple(phase for phase in built if phase.chains)

    def _parts(self) -> Iterator[tuple[str, tuple[Action, ...]]]:
        yield JOBS_PHASE, self.jobs
        yield MARK_PHASE, self.marks


NOTHING = PreDownload()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFacts:
    """What a rollout looks like to this module."""

    owner: Owner
    current: ControllerRevision
    update: ControllerRevision
    selector: LabelSelector
    replicas: int
    updated_ready: int
    """Pods at the update revision that are ready; 0 while the status speaks of another one."""
    updates_in_place: bool
    """The policy allows updates in place."""
    is_at_once: bool
    """The first step may touch every pod."""
    too_few: int = FEW_REPLICAS
    """So many pods are not worth it."""
    older: tuple[ControllerRevision, ...] = ()
    """Further revisions that pods still have, where a kind tells."""
    can_be_in_place: Callable[[], bool]
    """Whether the way from the current to the update revision can be gone in place. Asked once per revision, not in
    every pass: comparing templates is dear."""


def pull_jobs(rollout: RolloutFacts, tuning: Tuning) -> PreDownload:
    """The jobs for a rollout's new images, or the mark that there will be none (IPU-150 to IPU-153)."""
    update = rollout.update.metadata
    is_decided = "true" in (
        update.labels.get(keys.PREDOWNLOAD_CREATED_LABEL),
        update.labels.get(keys.PREDOWNLOAD_IGNORED_LABEL),
    )
    # A revision that is only about to be created has no uid to guard its mark with: its turn is the next pass.
    if not update.uid or is_decided or rollout.updated_ready < tuning.min_updated_ready:
        return NOTHING
    if reason := _pointless(rollout):
        return PreDownload(marks=(_mark(rollout.update, keys.PREDOWNLOAD_IGNORED_LABEL, reason),), ignored=reason)
    template = template_of(rollout.update) or {}
    images = _images(template)
    before = [_images(template_of(revision) or {}) for revision in (rollout.current, *rollout.older)]
    return PreDownload(
        jobs=tuple(
            _job(rollout, tuning, template, container, image)
            for container, image in images.items()
            if any(known.get(container) != image for known in before)
        ),
        marks=(_mark(rollout.update, keys.PREDOWNLOAD_CREATED_LABEL, "pull jobs were created for this revision"),),
    )


def cleanup(owner: Owner, jobs: Iterable[PartialObject]) -> PreDownload:
    """The rollout is over, or was taken back: its jobs have nothing to do any more (IPU-150)."""
    return PreDownload(
        jobs=tuple(
            plans.delete(Target.of(IMAGE_PULL_JOBS, job), uid=job.metadata.uid, reason="the rollout is over")
            for job in jobs
            if is_controlled_by(job, owner.uid) and job.metadata.deletion_timestamp is None
        )
    )


def _pointless(rollout: RolloutFacts) -> str:
    if not rollout.updates_in_place:
        return "the update policy recreates pods"
    if rollout.replicas <= rollout.too_few:
        return f"images are pulled ahead for more than {rollout.too_few} replicas"
    if rollout.is_at_once:
        return "all pods may be updated at once"
    if not rollout.can_be_in_place():
        return "the change cannot be made in place"
    return ""


def _mark(revision: ControllerRevision, label: str, reason: str) -> Action:
    return plans.patch(
        Target.of(CONTROLLER_REVISIONS, revision),
        {"metadata": {"labels": {label: "true"}}},
        uid=revision.metadata.uid,
        reason=reason,
    )


def _images(template: Mapping[str, Any]) -> dict[str, str]:
    containers = (template.get("spec") or {}).get("containers") or ()
    return {container["name"]: container["image"] for container in containers if container.get("image")}


def _job(rollout: RolloutFacts, tuning: Tuning, template: Mapping[str, Any], container: str, image: str) -> Action:
    owner, revision = rollout.owner, rollout.update.metadata
    hashed = revision.labels.get(HASH_LABEL) or short_hash(revision.name)
    metadata, pod_spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = {**(metadata.get("labels") or {}), HASH_LABEL: hashed}
    spec: dict[str, Any] = {
        "image": image,
        "podSelector": _waiting_pods(rollout.selector, [revision.name, hashed]),
        "parallelism": tuning.parallelism,
        "pullPolicy": {"backoffLimit": BACKOFF_LIMIT, "timeoutSeconds": tuning.timeout_seconds},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": TTL_SECONDS},
        "sandboxConfig": {"labels": labels},
    }
    if annotations := metadata.get("annotations"):
        spec["sandboxConfig"]["annotations"] = dict(annotations)
    if secrets := [secret["name"] for secret in pod_spec.get("imagePullSecrets") or () if secret.get("name")]:
        spec["pullSecrets"] = secrets
    body = {
        "apiVersion": IMAGE_PULL_JOBS.api_version,
        "kind": IMAGE_PULL_JOBS.kind,
        "metadata": {
            "name": f"{revision.name}-{container}",
            "namespace": owner.namespace,
            "labels": labels,
            "ownerReferences": [owner.reference()],
        },
        "spec": spec,
    }
    reason = f"pull {image} ahead of the rollout to {revision.name}"
    return plans.create(IMAGE_PULL_JOBS, body, reason=reason, owner_uid=owner.uid)


def _waiting_pods(selector: LabelSelector, updated: list[str]) -> dict[str, Any]:
    """The workload's pods that are not at the update revision, whichever way their label names it."""
    built: dict[str, Any] = to_builtins(selector)
    requirement = {"key": keys.REVISION_LABEL, "operator": "NotIn", "values": updated}
    return {**built, "matchExpressions": [*built.get("matchExpressions", ()), requirement]}
