"""A pod that is only thought of, taken through the steps of admission that put sidecars into it; only `get` and `list`
are asked of the cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.admission.chain import PATH, PodChain, PodStep
from kruise.admission.configurations import MUTATING_NAME, entry_path
from kruise.admission.decisions import Change, Deny, HandlerView
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.cli.session import Session
from kruise.feature import PodMutation
from kruise.inplace.barriers import priority_of
from kruise.kinds import face_of, features
from kruise.machinery import codec
from kruise.machinery.client.errors import ForbiddenError, NotFoundError
from kruise.machinery.codec import Raw
from kruise.machinery.documents import Json, name_of, namespace_of, value_at
from kruise.machinery.plan import Target
from kruise.machinery.selectors import from_label_selector
from kruise.machinery.store import Store, parse_version
from kruise.machinery.watched import watched
from kruise.machinery.wording import plural
from kruise.manager.options import Options
from kruise.sidecars.launch_priority.decide import levels_of
from kruise.sidecars.sidecarset import keys, trial
from kruise.sidecars.sidecarset.injecting import Injection
from kruise.sidecars.sidecarset.trial import Gain, Verdict
from kruise.verbs.errors import UsageError

Gates = Mapping[str, bool]
Stores = Mapping[Resource[Any], Store[Any]]
Entry = Mapping[str, Any]
"""Of a webhook configuration."""

_STEPS = (PodStep.SIDECAR_SET, PodStep.LAUNCH_PRIORITY)
"""Injection, and the order of start that may follow from it."""
_TEMPLATES = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))
_FAR = 5
"""How many SidecarSets for other pods are named."""


# The pods


@dataclasses.dataclass(frozen=True, slots=True)
class Planned:
    title: str
    """`pod web`, `a pod of deployment/web`."""
    pod: Json

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])


def pod_of(document: Json, namespace: str) -> Planned | None:
    """The pod that a manifest makes, or one of those; None where it makes none."""
    kind, name = str(document.get("kind", "")), name_of(document)
    where = {"namespace": namespace_of(document) or namespace}
    if kind == "Pod":
        metadata = {**(document.get("metadata") or {}), **where}
        return _planned(f"pod {name or metadata.get('generateName', '')}", {**document, "metadata": metadata})
    face = face_of(str(document.get("apiVersion", "")).rpartition("/")[0], kind)
    own = face.template_of(document) if face is not None else None
    for path in (own, *_TEMPLATES):
        template = value_at(document, path, None) if path else None
        if isinstance(template, dict) and isinstance(value_at(template, ("spec", "containers"), None), list):
            metadata = {**(template.get("metadata") or {}), "generateName": f"{name}-", **where}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
            return _planned(f"a pod of {kind.lower()}/{name}", pod)
    return None


def _planned(title: str, pod: Json) -> Planned:
    try:
        codec.convert(pod, Pod)
    except codec.DecodeError as error:
        raise UsageError(f"{title} is no pod that an API server takes: {error}") from error
    return Planned(title, pod)


# The answer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What becomes of a pod."""

    title: str
    pod: Json
    """As admission would leave it."""
    namespace: str
    verdicts: tuple[Verdict, ...]
    unasked: str = ""
    """Why nobody is asked about the pod, so that it gets no sidecars; empty: somebody is."""
    refusal: str = ""
    starts: tuple[tuple[str, ...], ...] = ()
    """The containers in the order of their start, where they have one."""

    def as_data(self) -> dict[str, Any]:
        is_made = not self.refusal and not self.unasked
        return {
            "pod": self.pod,
            "refused": self.refusal,
            "unasked": self.unasked,
            "startOrder": [list(level) for level in self.starts],
            "sidecarSets": [
                {
                    "name": one.sidecar_set,
                    "injected": is_made and not one.reason,
                    "reason": one.reason,
                    "revision": one.revision,
                    "gains": [dataclasses.asdict(gain) for gain in one.gains],
                }
                for one in self.verdicts
            ],
        }

    def lines(self) -> Iterator[str]:
        who = f"{self.title} in namespace {self.namespace}"
        if self.unasked:
            yield f"{who} gets no sidecars: {self.unasked}"
            return
        giving = [one for one in self.verdicts if not one.reason]
        if self.refusal:
            yield f"{who} would be refused"
        elif giving:
            yield f"{who} gets the sidecars of {plural(len(giving), 'SidecarSet')}"
        else:
            nobody = "no SidecarSet gives it any" if self.verdicts else "there is no SidecarSet"
            yield f"{who} gets no sidecars: {nobody}"
        for one in giving:
            at = f" (revision {one.revision})" if one.revision else ""
            yield f"  {one.sidecar_set}{at}"
            yield from (f"    {_gain(gain)}" for gain in one.gains)
        if self.starts:
            yield f"its containers start in this order: {'; then '.join(', '.join(level) for level in self.starts)}"
        yield from self._others()

    def _others(self) -> Iterator[str]:
        near = [one for one in self.verdicts if one.reason and one.is_near]
        far = [one for one in self.verdicts if one.reason and not one.is_near]
        if near or far:
            yield "nothing from"
        for one in (*near, *far[:_FAR]):
            yield f"  {one.sidecar_set}: {one.reason}"
        if len(far) > _FAR:
            yield f"  and {plural(len(far) - _FAR, 'other SidecarSet')} for other pods: -o json tells them all"


def _gain(gain: Gain) -> str:
    if gain.kind == "annotation":
        return f"annotation {gain.name}: {gain.about}"
    image = f", image {gain.about}" if gain.about else ""
    place = f", {gain.place} the pod's own" if gain.place else ""
    return f"{gain.kind} {gain.name}{image}{place}"


# How it is found


async def asked(session: Session, pods: Sequence[Planned], gates: Gates) -> list[Asked]:
    options = Options(gates=dict(gates))
    steps = [step for feature in features() for step in feature.pod_mutations(options) if step.step in _STEPS]
    stores = await _read(session, steps, {pod.namespace for pod in pods}, options.own_namespace)
    entries = await _entries(session)
    return [_answer(session, one, steps, stores, options, entries) for one in pods]


async def _read(session: Session, steps: Sequence[PodMutation], namespaces: set[str], own_namespace: str) -> Stores:
    """What the steps look at."""
    sets = (await session.client.list(SIDECAR_SETS)).items
    objects: dict[Resource[Any], Sequence[Any]] = {SIDECAR_SETS: sets}
    if any(one.spec.injection_strategy.revision is not None for one in sets):
        listed = await session.client.list(CONTROLLER_REVISIONS, own_namespace, labels=keys.NAME_LABEL)
        objects[CONTROLLER_REVISIONS] = listed.items
    around = []
    for name in sorted(namespaces):
        try:
            around.append(await session.client.get(NAMESPACES, name))
        except NotFoundError:
            continue  # it may be made together with the pod
    objects[NAMESPACES] = around
    stores: dict[Resource[Any], Store[Any]] = {}
    for kind in (watched(kind) for step in steps for kind in step.needs):
        if (known := stores.get(kind.resource)) is not None:
            known.add_indexes(kind)
            continue
        found = objects.get(kind.resource, ())
        stores[kind.resource] = store = Store(kind)
        store.replace(found, max((parse_version(one.metadata.resource_version, kind) for one in found), default=0))
    return stores


async def _entries(session: Session) -> tuple[Entry, ...] | None:
    """What the API server asks about new pods; None: nobody may look."""
    try:
        found = await session.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
    except NotFoundError:
        return ()
    except ForbiddenError:
        return None
    return tuple(entry for entry in found.webhooks if entry_path(entry) == PATH)


def _unasked(entries: Sequence[Entry] | None, gates: Gates, namespace: str, labels: Mapping[str, str] | None) -> str:
    if not gates.get("PodWebhook", True):
        return "the feature gate PodWebhook is off"
    if entries is None:
        return ""
    if not entries:
        return "no webhook for pods is registered: kruise doctor says more"
    own = labels if labels is not None else {keys.NAMESPACE_NAME: namespace}  # as it will have
    if any(from_label_selector(entry.get("namespaceSelector") or {}).matches(own) for entry in entries):
        return ""
    return f"no webhook is asked about pods in namespace {namespace}"


def _answer(
    session: Session,
    planned: Planned,
    steps: Sequence[PodMutation],
    stores: Stores,
    options: Options,
    entries: Sequence[Entry] | None,
) -> Asked:
    pod, namespace = planned.pod, planned.namespace
    around = stores[NAMESPACES].get("", namespace) if NAMESPACES in stores else None
    labels = around.metadata.labels if around is not None else None
    sets = stores[SIDECAR_SETS].list() if SIDECAR_SETS in stores else ()
    found = trial.verdicts(sets, pod["metadata"].get("labels") or {}, namespace, labels)
    answer = Asked(title=planned.title, pod=pod, namespace=namespace, verdicts=found)
    if unasked := _unasked(entries, options.gates, namespace, labels):
        return dataclasses.replace(answer, unasked=unasked)
    chain = PodChain()
    for step, mutate, needs in steps:
        chain.register(step, mutate, needs=needs)
    view = HandlerView(
        now=session.clock.now(),
        seed=0,
        gates=options.gates,
        stores=stores.__getitem__,
        reads={Target(NAMESPACES, "", namespace): around},
    )
    request = AdmissionRequest(uid="inject", operation="CREATE", namespace=namespace, object=Raw(codec.encode(pod)))
    said = chain.decide(request, view)
    if isinstance(said, Deny):
        return dataclasses.replace(answer, refusal=said.message)
    after = dict(said.object) if isinstance(said, Change) else pod
    return dataclasses.replace(
        answer,
        pod=after,
        verdicts=trial.with_gains(found, Injection(options.own_namespace), view, pod, after),
        starts=tuple(_starts(codec.convert(after, Pod))),
    )


def _starts(pod: Pod) -> Iterator[tuple[str, ...]]:
    for level in levels_of(pod):
        yield tuple(one.name for one in pod.spec.containers if priority_of(one) == level)
