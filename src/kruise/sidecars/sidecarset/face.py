"""What verbs, status, forecasts and readiness must know of a SidecarSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Contribution, Face, History, Pods, resource
from kruise.faces.progress import Progress, is_observed, number, partition_complete, partitioned
from kruise.machinery import codec
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import plural
from kruise.sidecars.sidecarset import causes, keys
from kruise.sidecars.sidecarset.amounts import partition_of

_STRATEGY = ("spec", "updateStrategy")


def progress(document: Json) -> Progress:
    """Done when the controller has seen the newest spec, the pods that it updates have the present content, and these
    are ready. It updates all pods but those that the selector leaves out, that cannot be updated in place, or that the
    partition keeps."""
    name, strategy = name_of(document), value_at(document, _STRATEGY, {})
    matched = number(document, "status", "matchedPods")
    updated = number(document, "status", "updatedPods")
    ready = number(document, "status", "updatedReadyPods")
    outside = number(document, "status", "notSelectedPods")
    stuck = number(document, "status", "notUpgradablePods")
    kept = partition_of(strategy.get("partition"), matched)
    expected = max(matched - outside - stuck - kept, 0)
    seen = Progress(
        wanted=matched,
        expected=expected,
        updated=updated,
        ready=number(document, "status", "readyPods"),
        available=number(document, "status", "readyPods"),
        total=matched,
        is_paused=bool(strategy.get("paused")),
    )
    if not is_observed(document):
        return seen.waiting("Waiting for SidecarSet spec update to be observed...")
    if strategy.get("type") == "NotUpdate":
        older = matched - updated
        if older:
            return seen.done(
                f"updateStrategy.type is NotUpdate: {plural(older, 'pod')} of {matched} keep an older content until "
                "they are made anew"
            )
        return seen.done(f'sidecar set "{name}" successfully rolled out')
    if value_at(document, ("status", "failureBudget", "failed"), 0):
        pods = value_at(document, ("status", "failureBudget", "pods"), ())
        named = ", ".join(f"{one.get('name')} ({one.get('failure')})" for one in pods)
        return seen.failed(f'sidecar set "{name}" exceeded its failure budget: {named}')
    if updated < expected:
        paused = " (the SidecarSet is paused: kruise rollout resume lets it go on)" if seen.is_paused else ""
        return seen.waiting(f"{partitioned(updated, expected)}{paused}")
    if ready < updated:
        return seen.waiting(f"Waiting for {plural(updated - ready, 'updated pod')} to be ready...")
    left = [
        f"{plural(count, 'pod')} {words}"
        for count, words in (
            (outside, "outside of updateStrategy.selector"),
            (stuck, f"that cannot be updated in place (kruise why sidecarset/{name})"),
        )
        if count
    ]
    if left:
        return seen.done(f"{plural(updated, 'pod')} updated; {' and '.join(left)} keep an older content")
    if expected < matched:
        return seen.done(partition_complete(updated))
    return seen.done(f'sidecar set "{name}" successfully rolled out')


def _json(annotations: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        return codec.decode(annotations.get(key, "{}").encode(), dict)
    except codec.DecodeError:
        return {}


def owner_of(annotations: Mapping[str, str], container: str) -> tuple[str, str] | None:
    """The SidecarSet that has put a container into a pod; one of a hot upgrade has a number behind its name."""
    plain, _, number = container.rpartition("-")
    is_twin = number in ("1", "2") and plain in _json(annotations, keys.WORKING)
    wanted = plain if is_twin else container
    for name, entry in _json(annotations, keys.HASH).items():
        listed = entry.get("sidecarList") or () if isinstance(entry, dict) else ()
        if wanted in listed:
            return str(name), wanted
    return None


def revision_of(annotations: Mapping[str, str], name: str) -> str:
    entry = _json(annotations, keys.HASH).get(name)
    if isinstance(entry, dict):
        return str(entry.get("controllerRevision") or entry.get("hash", ""))
    return entry if isinstance(entry, str) else ""  # the form of long ago: a hash alone


def is_current(annotations: Mapping[str, str], document: Json) -> bool:
    """SCS-83: init containers, volumes and patches of metadata are no part of the hash, and of no update (SCS-14)."""
    entry = _json(annotations, keys.HASH).get(name_of(document))
    recorded = entry.get("hash") if isinstance(entry, dict) else entry
    return bool(recorded) and recorded == value_at(document, ("metadata", "annotations"), {}).get(keys.HASH)


def ran_before(annotations: Mapping[str, str], container: str) -> str:
    for entry in _json(annotations, keys.UPDATE_STATE).values():
        statuses = entry.get("lastContainerStatuses") if isinstance(entry, dict) else None
        known = statuses.get(container) if isinstance(statuses, dict) else None
        if isinstance(known, dict) and known.get("imageID"):
            return str(known["imageID"])
    return ""


FACE = Face(
    resource=resource(GROUP, "v1beta1", "sidecarsets", "SidecarSet", namespaced=False),
    versions=("v1alpha1", "v1beta1"),
    is_ours=True,
    template=(),
    revision_field=("status", "latestRevision"),
    replicas=None,
    paused=(*_STRATEGY, "paused"),
    partition=(*_STRATEGY, "partition"),
    partition_may_be_percent=True,
    pods=Pods.SELECTED,
    progress=progress,
    settings="kruise.sidecars.sidecarset.settings:settings",
    forecast="kruise.sidecars.sidecarset.forecast:FORECAST",
    history=History.CONTROLLER_REVISIONS,
    contribution=Contribution(
        owner_of=owner_of,
        revision_of=revision_of,
        is_current=is_current,
        ran_before=ran_before,
        revision_label=keys.NAME_LABEL,
        recorded=("containers", "initContainers", "imagePullSecrets", "patchPodMetadata", "volumes"),
        namespaces=("spec", "namespaceSelector"),
    ),
    causes=causes.CAUSES,
)
