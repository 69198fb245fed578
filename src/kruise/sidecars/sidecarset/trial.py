"""What a pod would get if it were made now, from which SidecarSet, and why not from the others. Pure.

The pod goes through the step of admission itself: nothing here decides who gets what.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from kruise.admission.decisions import HandlerView
from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.meta import LabelSelector
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.content import Content, Json, name_of, names_in_pods
from kruise.sidecars.sidecarset.injecting import Injection
from kruise.sidecars.sidecarset.matching import applying, base_of, is_empty

_BOOKKEEPING = (
    keys.HASH,
    keys.HASH_WITHOUT_IMAGE,
    keys.INJECTED_LIST,
    keys.WORKING,
    keys.VERSION_PREFIX,
    keys.VERSION_ALT_PREFIX,
)
"""Annotations, or how they begin, that a pod gets in any case."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Something that a pod gets."""

    kind: str
    """`container`, `init container`, `volume`, `pull secret` or `annotation`."""
    name: str
    about: str = ""
    """The image of a container, the value of an annotation."""
    place: str = ""
    """Where a container stands: `before` or `after` the pod's own."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a SidecarSet and a pod."""

    sidecar_set: str
    reason: str = ""
    """Why the pod gets nothing of it; empty: it does."""
    is_near: bool = True
    """False: it is about other pods altogether, as its selector says."""
    revision: str = ""
    gains: tuple[Gain, ...] = ()


def verdicts(
    sets: Iterable[SidecarSet], labels: Mapping[str, str], namespace: str, namespace_labels: Mapping[str, str] | None
) -> tuple[Verdict, ...]:
    """Of every SidecarSet, by name. `namespace_labels` is None where the namespace is not there yet."""
    every = sorted(sets, key=lambda one: one.metadata.name)
    reasons = {one.metadata.name: _why_not(one, labels, namespace, namespace_labels) for one in every}
    chosen = [one for one in every if not reasons[one.metadata.name][0]]
    kept = {one.metadata.name for one in applying(chosen, namespace)}
    canaries = {base_of(one): one.metadata.name for one in chosen}
    found = []
    for one in every:
        name = one.metadata.name
        reason, is_near = reasons[name]
        if not reason and name not in kept:
            reason = f"its canary, SidecarSet {canaries.get(name, '')}, takes its place"
        found.append(Verdict(sidecar_set=name, reason=reason, is_near=is_near))
    return tuple(found)


def _why_not(
    sidecar_set: SidecarSet, labels: Mapping[str, str], namespace: str, around: Mapping[str, str] | None
) -> tuple[str, bool]:
    """Empty where it selects the pod and gives it something; and whether it is about such pods at all."""
    spec = sidecar_set.spec
    if is_empty(spec.selector):
        return "its selector is empty, and selects no pod", False
    if reason := _unmatched(spec.selector, labels, "selector", "the pod"):
        return reason, False
    if spec.namespace_selector is not None:
        if around is None:
            return f"it has a namespaceSelector, and there is no namespace {namespace}", True
        if reason := _unmatched(spec.namespace_selector, around, "namespaceSelector", f"namespace {namespace}"):
            return reason, True
    if sidecar_set.metadata.deletion_timestamp is not None:
        return "it is being deleted", True
    if spec.injection_strategy.paused:
        return "spec.injectionStrategy.paused is true: new pods get nothing of it", True
    return "", True


def _unmatched(selector: LabelSelector | None, labels: Mapping[str, str], field: str, who: str) -> str:
    try:
        wanted = from_label_selector(selector)
    except SelectorError as error:
        return f"its {field} cannot be read: {error}"
    for requirement in wanted.requirements:
        if not requirement.matches(labels):
            value = labels.get(requirement.key)
            has = f"has no label {requirement.key}" if value is None else f"has {requirement.key}={value}"
            return f"its {field} asks for {requirement}, and {who} {has}"
    return ""


def with_gains(
    found: Iterable[Verdict],
    injection: Injection,
    view: HandlerView,
    before: Json,
    after: Json,
) -> tuple[Verdict, ...]:
    """The same, with what the pod got of each. `after` is the pod as admission left it. Raises InjectionError."""
    labels = (before.get("metadata") or {}).get("labels") or {}
    sets, revisions = view.store(SIDECAR_SETS), view.store(CONTROLLER_REVISIONS)
    told = []
    for verdict in found:
        sidecar_set = sets.get("", verdict.sidecar_set)
        if verdict.reason or sidecar_set is None:
            told.append(verdict)
            continue
        content = injection.content_for(sidecar_set, labels, revisions, view.seed)
        gains = tuple(_gains(content, before, after))
        told.append(dataclasses.replace(verdict, revision=content.revision, gains=gains))
    return tuple(told)


def _gains(content: Content, before: Json, after: Json) -> Iterator[Gain]:
    own, spec = before.get("spec") or {}, after.get("spec") or {}
    for kind, word, sidecars in (
        ("initContainers", "init container", content.init_containers),
        ("containers", "container", content.containers),
    ):
        present = {name_of(item) for item in own.get(kind) or ()}
        order = [name_of(item) for item in spec.get(kind) or ()]
        images = {name_of(item): str(item.get("image", "")) for item in spec.get(kind) or ()}
        first = next((place for place, name in enumerate(order) if name in present), len(order))
        for sidecar in sidecars:
            for name in names_in_pods(sidecar, kind):
                if name in images:
                    place = "before" if order.index(name) < first else "after"
                    yield Gain(kind=word, name=name, about=images[name], place=place if present else "")
    for field, word, names in (
        ("volumes", "volume", content.volumes),
        ("imagePullSecrets", "pull secret", content.pull_secrets),
    ):
        known = {name_of(item) for item in own.get(field) or ()}
        there = {name_of(item) for item in spec.get(field) or ()}
        for name in names:
            if name in there and name not in known:
                yield Gain(kind=word, name=name)
    had = (before.get("metadata") or {}).get("annotations") or {}
    has = (after.get("metadata") or {}).get("annotations") or {}
    for key in dict.fromkeys(key for patch in content.patches for key in patch.annotations):
        if has.get(key) != had.get(key) and not key.startswith(_BOOKKEEPING):
            yield Gain(kind="annotation", name=key, about=str(has.get(key, "")))
