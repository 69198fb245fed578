"""The writes to one pod: another image for its sidecars, the rest of a hot upgrade, and what is told of it.

Several SidecarSets and the pod's workload may write to one pod at the same time. A write of images is a JSON patch that
tests everything it builds on: the annotations it rewrites, and the name and the image of each container. What somebody
else changed meanwhile is never undone; the pod is looked at again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kruise.api.meta import Condition
from kruise.api.native.pod import PODS, Pod, condition
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches.json_patch import escape
from kruise.machinery.plan import Action, Target
from kruise.machinery.times import format_time
from kruise.sidecars.sidecarset import keys, records
from kruise.sidecars.sidecarset.building import patch_annotations
from kruise.sidecars.sidecarset.content import Content, Json, is_hot, name_of, twins_of
from kruise.sidecars.sidecarset.facts import SidecarFacts, Twins, contributed, image_of, is_consistent, noted, state_in
from kruise.sidecars.sidecarset.records import UpdateState

_ANNOTATIONS = "/metadata/annotations"


@dataclasses.dataclass(slots=True)
class _Change:
    """What is to be different about a pod."""

    images: dict[str, str] = dataclasses.field(default_factory=dict)
    annotations: dict[str, str] = dataclasses.field(default_factory=dict)


def update(facts: SidecarFacts, content: Content, version: str, now: datetime) -> Action:
    """Bring a pod to the present content (SCS-100 to SCS-104). `version` is the resourceVersion of the SidecarSet.
    Raises InjectionError, where an annotation cannot be merged."""
    pod, change = facts.pod, _Change()
    for container in content.containers:
        if is_hot(container):
            _upgrade(pod, container, content.owner, version, change)
        elif image_of(pod, name := name_of(container)) != (image := str(container.get("image") or "")):
            change.images[name] = image
    entries = dict(noted(pod).hashes) | {content.owner: records.entry(content, now)}
    change.annotations[keys.HASH] = records.text_of(entries)
    _note_images(pod, content, change, now)
    patched = {**pod.metadata.annotations, **change.annotations}
    patch_annotations(patched, content)
    change.annotations |= {key: value for key, value in patched.items() if pod.metadata.annotations.get(key) != value}
    return _patch(pod, change, f"update to {content.revision}")


def reset(facts: SidecarFacts, content: Content, now: datetime) -> Action:
    """Let the containers rest that have handed over (SCS-111)."""
    pod, change = facts.pod, _Change()
    for twins in facts.twins:
        if image_of(pod, twins.other) == twins.empty_image:
            continue
        change.images[twins.other] = twins.empty_image
        change.annotations[keys.VERSION_PREFIX + twins.other] = "0"
        change.annotations[keys.VERSION_ALT_PREFIX + twins.working] = "0"
    _note_images(pod, content, change, now)
    return _patch(pod, change, "the new containers of a hot upgrade work, so the old ones rest")


def may_reset(facts: SidecarFacts, content: Content) -> bool:
    """SCS-111: everything but the containers that are to rest runs and is ready."""
    if not facts.awaits_reset:
        return False
    pod, resting = facts.pod, {twins.other for twins in facts.twins}
    names = contributed(content) - resting
    if not is_consistent(pod, names, state_in(noted(pod), content.owner)):
        return False
    statuses = [status for status in pod.status.container_statuses if status.name not in resting]
    known = {status.name for status in statuses}
    everyone = {item.name for item in pod.spec.containers} - resting
    return known == everyone and all(status.ready for status in statuses)


def _upgrade(pod: Pod, container: Json, owner: str, version: str, change: _Change) -> None:
    """SCS-101. Back at the image that the other container still runs, that one works again, and the one that was to
    replace it rests at the next look (SCS-114)."""
    image, twins = str(container.get("image") or ""), Twins.of(container, noted(pod).working)
    target = _twin_to_change(pod, twins, state_in(noted(pod), owner))
    other = twins.other if target == twins.working else twins.working
    if image_of(pod, other) == image:
        if other != twins.working:
            _make_working(pod, twins.name, other, change)
            change.annotations[keys.VERSION_PREFIX + other] = version
            change.annotations[keys.VERSION_ALT_PREFIX + target] = version
        return
    if image_of(pod, target) != image:
        change.images[target] = image
    _make_working(pod, twins.name, target, change)
    annotations = pod.metadata.annotations
    change.annotations[keys.VERSION_PREFIX + target] = version
    change.annotations[keys.VERSION_ALT_PREFIX + target] = annotations.get(keys.VERSION_PREFIX + other, "0")
    change.annotations[keys.VERSION_ALT_PREFIX + other] = version


def _make_working(pod: Pod, name: str, twin: str, change: _Change) -> None:
    text = change.annotations.get(keys.WORKING)
    known: dict[str, Any] = codec.decode(text.encode(), dict) if text else dict(noted(pod).working)
    change.annotations[keys.WORKING] = records.text_of(known | {name: twin})


def _twin_to_change(pod: Pod, twins: Twins, state: UpdateState | str | None) -> str:
    first, second = twins_of(twins.name)
    for twin in (first, second):
        if image_of(pod, twin) == twins.empty_image:
            return twin
    ready = {status.name for status in pod.status.container_statuses if status.ready}
    working = [twin for twin in (first, second) if twin in ready and is_consistent(pod, {twin}, state)]
    if len(working) == 1:
        return second if working[0] == first else first
    return twins.other


def _note_images(pod: Pod, content: Content, change: _Change, now: datetime) -> None:
    """SCS-103: which images ran before, so that everybody can tell when the new ones do."""
    if not change.images:
        return
    ran = {status.name: status.image_id for status in pod.status.container_statuses}
    states = dict(noted(pod).states)
    known = states.get(content.owner)
    known = known if isinstance(known, dict) else {}
    last = known.get("lastContainerStatuses")
    states[content.owner] = {
        "revision": known.get("revision") or content.hash,
        "updateTimestamp": known.get("updateTimestamp") or format_time(now),
        "lastContainerStatuses": {
            **(last if isinstance(last, dict) else {}),
            **{name: {"imageID": ran[name]} if ran.get(name) else {} for name in change.images},
        },
    }
    change.annotations[keys.UPDATE_STATE] = records.text_of(states)


def _patch(pod: Pod, change: _Change, reason: str) -> Action:
    present = pod.metadata.annotations
    operations: list[Json] = []
    for key in change.annotations:
        path = f"{_ANNOTATIONS}/{escape(key)}" if present else _ANNOTATIONS
        operations.append({"op": "test", "path": path, "value": present.get(key)})
    for place, container in enumerate(pod.spec.containers):
        if container.name in change.images:
            path = f"/spec/containers/{place}"
            operations += [
                {"op": "test", "path": f"{path}/name", "value": container.name},
                {"op": "test", "path": f"{path}/image", "value": container.image},
                {"op": "replace", "path": f"{path}/image", "value": change.images[container.name]},
            ]
    operations += [
        {"op": "add", "path": f"{_ANNOTATIONS}/{escape(key)}", "value": value}
        for key, value in change.annotations.items()
    ]
    return plans.patch(Target.of(PODS, pod), operations, uid=pod.metadata.uid, reason=reason, patch_type=PatchType.JSON)


# The condition


def verdicts_of(pod: Pod) -> dict[str, bool]:
    """SidecarSet -> whether the pod can be updated to its present content, as the condition tells it."""
    known = condition(pod, keys.UPGRADABLE)
    if known is None:
        return {}
    try:
        told = codec.decode(known.message.encode(), dict)
    except codec.DecodeError:
        return {}
    return {str(name): value for name, value in told.items() if isinstance(value, bool)}


def with_verdict(pod: Pod, name: str, upgradable: bool, now: datetime, *, known: Iterable[str]) -> Action | None:
    """The write of the condition with the entry of a SidecarSet (SCS-120); None: it says so already. Entries of others
    stay, as far as there are such SidecarSets (`known`)."""
    told = verdicts_of(pod)
    wanted = {key: value for key, value in told.items() if key in known} | {name: upgradable}
    if told == wanted:
        return None
    is_true = all(wanted.values())
    status = "True" if is_true else "False"
    before = condition(pod, keys.UPGRADABLE)
    since = before.last_transition_time if before is not None and before.status == status else now
    value: dict[str, Any] = {
        "type": keys.UPGRADABLE,
        "status": status,
        "lastTransitionTime": format_time(since or now),
        "reason": keys.ALL_UPGRADABLE if is_true else keys.IMMUTABLE_FIELD,
        "message": codec.canonical(wanted).decode(),
    }
    reason = f"it {'can' if upgradable else 'cannot'} be updated by SidecarSet {name}"
    return _condition_write(pod, before, value, reason, is_shared=any(other != name for other in known))


def _condition_write(
    pod: Pod, before: Condition | None, value: Mapping[str, Any], reason: str, *, is_shared: bool
) -> Action:
    """Other SidecarSets write their entries into the same message: where there are some (`is_shared`), the write holds
    only as long as it is as it was seen. Elsewhere a version would only collide with what the node writes."""
    target = Target.of(PODS, pod)
    if before is None:
        return plans.patch(
            target,
            {"status": {"conditions": [value]}},
            uid=pod.metadata.uid,
            reason=reason,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
            resource_version=pod.metadata.resource_version if is_shared else "",
        )
    path = f"/status/conditions/{[item.type for item in pod.status.conditions].index(keys.UPGRADABLE)}"
    operations = [
        {"op": "test", "path": f"{path}/type", "value": keys.UPGRADABLE},
        {"op": "test", "path": f"{path}/message", "value": before.message or None},
        {"op": "replace", "path": path, "value": {**value, "lastProbeTime": None}},
    ]
    return plans.patch(
        target, operations, uid=pod.metadata.uid, reason=reason, patch_type=PatchType.JSON, subresource="status"
    )
