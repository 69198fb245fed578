"""Why a live workload or pod waits: the manager's last decision, or one made anew from the live objects; nothing is
written."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from kruise import kinds
from kruise.api.meta import Key
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.events import EVENTS, Event
from kruise.api.native.nodes import NAMESPACES, NODES, Node
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.api.resource import Resource
from kruise.cli import attending
from kruise.cli.session import Session, revision_selector, selector_text
from kruise.faces.face import Contribution, Face, Pods
from kruise.faces.forecast import Around
from kruise.inplace.availability import is_available
from kruise.machinery.causes import Act
from kruise.machinery.client.errors import ClientError, ForbiddenError, NotFoundError
from kruise.machinery.codec import convert, evolve
from kruise.machinery.documents import Json, name_of, namespace_of, uid_of, value_at
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.reasons.assembling import Facts, assemble, standalone
from kruise.reasons.decision import Decision, of_plan
from kruise.reasons.diagnosis import Surroundings, needs_events
from kruise.reasons.links import Answer, Link, Source
from kruise.reasons.manager import UNKNOWN, Manager
from kruise.verbs.errors import VerbError
from kruise.verbs.targets import Target

ANEW = "a decision made anew from the live objects"
PODS_ALONE = "the live pods; Kubernetes' own controllers leave no plan"
_NODES = 10
_AT_ONCE = 2
"""Requests about nodes and events that are under way together. Each needs a connection, and making one takes longer
than waiting for a turn."""
_BY_NAME = 8
"""Pods that are read one by one; for more of them, one list takes less time."""
_SILENT = 3
"""Pods whose events are read, since they do not say themselves what is wrong: mostly it is the same for all."""
_GENERATIONS = 3
"""Pod, ReplicaSet, Deployment."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How to come by the causes."""

    manager_url: str = ""
    gates: Mapping[str, bool] | None = None
    """Of the manager, for a decision made anew; None: the defaults."""
    journal: bool = True
    """False: decide anew in any case."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    source: Source
    decision: Decision | None = None
    pods: tuple[Pod, ...] | None = None
    """Those that were decided about; None: not read yet."""
    generation_seen: int = 0
    manager: Manager = UNKNOWN
    unreadable: tuple[str, ...] = ()


async def explain(session: Session, target: Target, document: Json, asking: Asking) -> Answer:
    """Everything about a workload that waits."""
    kind = target.kind
    if kind.progress is None and kind.standing is None:
        raise VerbError(f"{target} has no pods of its own that could wait; ask about a workload or a pod")
    decided = await _decide(session, kind, document, asking)
    pods = decided.pods if decided.pods is not None else await _pods(session, kind, document)
    new_pods, is_first = None, False
    if decided.decision is None and kind.history is not None:
        from kruise.verbs import podstates

        revisions = await session.revisions(target, document)
        states = podstates.states(kind, document, pods, revisions)
        new_pods = frozenset(state.name for state in states if state.is_new)
        pods = tuple(podstates.pods_of(kind, document, pods, revisions))
        is_first = len(revisions) < 2
    elif kind.pods is not Pods.SELECTED:
        from kruise.verbs.podstates import is_member

        pods = tuple(pod for pod in pods if is_member(kind, document, pod))
    elif kind.contribution is not None:
        pods = await _contributed(session, kind, kind.contribution, document, pods)
    now = session.clock.now()
    troubled = down(pods, kind, document, now)
    around = await surroundings(session, troubled, now)
    if troubled and decided.decision is not None:
        is_first = await _is_first(session, target, document)
    missing, manager = "", decided.manager
    if attending.is_unseen(document) and not decided.source.is_journal:
        missing, manager = await attending.who_acts(session, kind, manager)
    return assemble(
        Facts(
            kind=kind,
            document=document,
            pods=pods,
            now=now,
            source=decided.source,
            decision=decided.decision,
            generation_seen=decided.generation_seen,
            around=around,
            new_pods=new_pods,
            manager=manager,
            missing_controller=missing,
            unreadable=decided.unreadable,
            is_first=is_first,
            untouched=await _untouched(session, kind, document) if kind.contribution is not None else "",
        )
    )


async def explain_all(
    session: Session, found: Sequence[tuple[Target, Json]], asking: Asking
) -> tuple[list[Answer], list[tuple[Target, Exception]]]:
    """The workloads that wait, those first that somebody must act upon; and those that could not be looked at."""
    turns = asyncio.Semaphore(_AT_ONCE)
    failures: list[tuple[Target, Exception]] = []

    async def answer_for(target: Target, document: Json) -> Answer | None:
        async with turns:
            try:
                return await explain(session, target, document, asking)
            except (VerbError, ClientError) as error:
                failures.append((target, error))
                return None

    answers = await asyncio.gather(*(answer_for(target, document) for target, document in found))
    waiting = [answer for answer in answers if answer is not None and answer.act is not None]
    acts = list(Act)
    return sorted(waiting, key=lambda answer: (acts.index(answer.act or Act.NOBODY), answer.target)), failures


async def _is_first(session: Session, target: Target, document: Json) -> bool:
    """Whether there is no earlier template. Who may not list revisions is offered to go back: the server will tell."""
    if target.kind.history is None:
        return True
    try:
        return len(await session.revisions(target, document)) < 2
    except ClientError:
        return False


async def _pods(session: Session, kind: Face, document: Json) -> tuple[Pod, ...]:
    if kind.pods is Pods.NONE:
        return ()
    listed = await session.client.list(PODS, namespace_of(document), labels=selector_text(kind, document))
    return tuple(listed.items)


async def _as_they_are(session: Session, kind: Face, document: Json, seen: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Pods that a controller has seen, as they are now. Those of a kind that only looks at pods are the ones it found:
    which they are, a selector alone does not tell."""
    if kind.pods is not Pods.SELECTED:
        return await _pods(session, kind, document)
    if len(seen) > _BY_NAME:
        known = {pod.metadata.uid for pod in seen}
        return tuple(pod for pod in await _pods(session, kind, document) if pod.metadata.uid in known)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def again(pod: Pod) -> Pod | None:
        try:
            async with turns:
                found = await session.client.get(PODS, pod.metadata.name, pod.metadata.namespace)
        except NotFoundError:
            return None
        return found if found.metadata.uid == pod.metadata.uid else None

    return tuple(pod for pod in await asyncio.gather(*map(again, seen)) if pod is not None)


async def _contributed(
    session: Session, kind: Face, contribution: Contribution, document: Json, pods: Iterable[Pod]
) -> tuple[Pod, ...]:
    """Those that the object looks after: it has put something into them, and selects them still. Of the others nobody
    can say what becomes of them."""
    name, around = name_of(document), value_at(document, contribution.namespaces, None)
    try:
        selector = from_label_selector(value_at(document, kind.selector or (), None))
        namespaces = from_label_selector(around) if around is not None else None
    except SelectorError:
        return ()
    chosen: set[str] | None = None
    if namespaces is not None:
        with contextlib.suppress(ClientError):  # who may not list namespaces is told of all pods
            found = await session.client.list(NAMESPACES)
            chosen = {one.metadata.name for one in found.items if namespaces.matches(one.metadata.labels)}
    return tuple(
        pod
        for pod in pods
        if contribution.revision_of(pod.metadata.annotations, name)
        and selector.matches(pod.metadata.labels)
        and (chosen is None or pod.metadata.namespace in chosen)
    )


async def _untouched(session: Session, kind: Face, document: Json) -> str:
    """Which pods of others an object leaves as they are although it selects them: its controller does not look at
    these. Empty for whoever may not list them."""
    facts = kind.forecast_facts()
    if facts is None:
        return ""
    try:
        pods = await session.client.list(PODS, labels=selector_text(kind, document))
        namespaces = await session.client.list(NAMESPACES)
    except ClientError:
        return ""
    labels = {one.metadata.name: one.metadata.labels for one in namespaces.items}
    return facts.untouched(convert(document, facts.resource.type), Around(pods=pods.items, namespaces=labels))


def down(pods: Iterable[Pod], kind: Face, document: Json, now: datetime) -> list[Pod]:
    """The pods that do not serve, those that are stuck on their way out among them."""
    wait = int(value_at(document, kind.min_ready, 0) or 0)
    found = []
    for pod in pods:
        until = pod.metadata.deletion_timestamp
        if (is_active(pod) and not is_available(pod, wait, now)) or (until is not None and until <= now):
            found.append(pod)
    return found


# What the manager decided, or would


async def _decide(session: Session, kind: Face, document: Json, asking: Asking) -> _Decided:
    if not kind.is_ours:
        return _Decided(source=Source(words=PODS_ALONE))
    reason = lacks = ""
    if asking.journal:
        from kruise.cli import journal_access

        key = Key(namespace_of(document), name_of(document))
        try:
            dump, source = await journal_access.latest_decision(
                session, kind.controller, key, causes=kind.causes, manager_url=asking.manager_url
            )
        except journal_access.JournalUnavailable as error:
            reason = str(error)
            lacks = kind.controller if isinstance(error, journal_access.NoControllerError) else ""
        else:
            pods = dump.pods
            if pods and kind.overlooks_changes:
                # Who may read the journal, and no pods, has to do with what the manager saw.
                with contextlib.suppress(ForbiddenError):
                    pods = await _as_they_are(session, kind, document, pods)
            return _Decided(
                source=Source(words=f"the last decision of {source}", is_journal=True, time=dump.time),
                decision=dump.decision,
                pods=pods,
                generation_seen=dump.generations.get(uid_of(document), 0),
            )
    (decision, pods, unreadable), manager = await asyncio.gather(
        decide_anew(session, kind, document, asking.gates), attending.manager_of(session)
    )
    if lacks:
        manager = evolve(manager, is_down=True, lacks=lacks)
    return _Decided(
        source=Source(words=ANEW, reason=reason),
        decision=decision,
        pods=pods,
        manager=manager,
        unreadable=unreadable,
    )


async def decide_anew(
    session: Session, kind: Face, document: Json, gates: Mapping[str, bool] | None
) -> tuple[Decision, tuple[Pod, ...], tuple[str, ...]]:
    """What the kind's own code decides about the live objects, their pods, and what could not be read."""
    from kruise.machinery.offline import view_of
    from kruise.manager import gates as feature_gates
    from kruise.manager.options import Options

    chosen = dict(gates) if gates is not None else feature_gates.resolve({})
    feature = kinds.feature_of(*kind.group_kind)
    specs = feature.controllers(Options(gates=chosen)) if feature is not None else ()
    spec = next((one for one in specs if (one.subject.group, one.subject.kind) == kind.group_kind), None)
    if spec is None:
        if feature is not None:
            raise VerbError(
                f"under these feature gates nobody decides about {kind}s: name the gates of the manager with "
                "--feature-gates, or switch theirs on"
            )
        raise VerbError(f"nobody here decides about {kind}s: this version of kruise does not know their controller")
    pods, (objects, unreadable) = await asyncio.gather(
        _pods(session, kind, document), _sources(session, spec, kind, document)
    )
    if kind.pods is not Pods.NONE:
        objects[PODS] = pods
    siblings = (one for one in objects.get(spec.subject, ()) if one.metadata.uid != uid_of(document))
    objects[spec.subject] = (convert(document, spec.subject.type), *siblings)
    view = view_of(spec, objects, now=session.clock.now(), gates=chosen)
    snapshot = spec.snapshot(view, Key(namespace_of(document), name_of(document)))
    try:
        decision = of_plan(spec.decide(snapshot)) if snapshot is not None else Decision()
    except Exception as error:  # noqa: BLE001 - whatever a kind's code raises is the answer: the manager fails likewise
        decision = Decision(fault=f"{type(error).__name__}: {error}")
    seen: tuple[Pod, ...] = getattr(snapshot, "pods", pods)
    return decision, seen if kind.pods is Pods.SELECTED else pods, unreadable


async def _sources(
    session: Session, spec: Any, kind: Face, document: Json
) -> tuple[dict[Resource[Any], Sequence[Any]], tuple[str, ...]]:
    """The objects that a controller looks at: those of the namespace, and of these what the selector matches where it
    is known to reach all that count."""
    namespace, selector = namespace_of(document), revision_selector(kind, document)
    objects: dict[Resource[Any], Sequence[Any]] = {}
    unreadable: list[str] = []
    # One after the other, while the pods are read, which takes longer: together each would need its own connection.
    for resource in (source.resource for source in spec.sources):
        is_alone = resource == spec.subject and not spec.looks_at_siblings
        if is_alone or (resource == PODS and kind.pods is not Pods.NONE):
            continue
        where = namespace if resource.namespaced else ""
        labels = selector if resource == CONTROLLER_REVISIONS else ""
        try:
            objects[resource] = (await session.client.list(resource, where, labels=labels)).items
        except NotFoundError:
            continue  # not served: the controller works without it
        except ForbiddenError as error:
            unreadable.append(f"decided without {resource.plural}: {error}")
            objects[resource] = ()
    return objects, tuple(unreadable)


# What is around pods that are down


async def surroundings(session: Session, pods: Sequence[Pod], now: datetime) -> dict[str, Surroundings]:
    """Nodes and warnings of pods that do not serve. Whatever may not be read is left out."""
    if not pods:
        return {}
    names = sorted({pod.spec.node_name for pod in pods if pod.spec.node_name})[:_NODES]
    silent = list(islice((pod for pod in pods if needs_events(pod, now)), _SILENT))
    turns = asyncio.Semaphore(_AT_ONCE)
    # Events first: they take a server longest, as it looks through all of a namespace.
    events, nodes = await asyncio.gather(
        asyncio.gather(*(_warnings(session, pod, turns) for pod in silent)),
        asyncio.gather(*(_node(session, name, turns) for name in names)),
    )
    known = dict(zip(names, nodes, strict=True))
    warned = {pod.metadata.uid: found for pod, found in zip(silent, events, strict=True)}
    around = {}
    for pod in pods:
        node = known.get(pod.spec.node_name)
        around[pod.metadata.uid] = Surroundings(
            node=node if isinstance(node, Node) else None,
            is_node_gone=node is _GONE,
            events=warned.get(pod.metadata.uid, ()),
        )
    return around


_GONE = object()


async def _node(session: Session, name: str, turns: asyncio.Semaphore) -> Node | object | None:
    try:
        async with turns:
            return await session.client.get(NODES, name)
    except NotFoundError:
        return _GONE
    except ClientError:
        return None


async def _warnings(session: Session, pod: Pod, turns: asyncio.Semaphore) -> tuple[Event, ...]:
    """The newest first."""
    fields = f"involvedObject.uid={pod.metadata.uid},type=Warning"
    try:
        async with turns:
            found = await session.client.list(EVENTS, pod.metadata.namespace, fields=fields)
    except ClientError:
        return ()
    return tuple(sorted(found.items, key=_last_seen, reverse=True))


def _last_seen(event: Event) -> str:
    time = event.last_timestamp or event.first_timestamp or event.metadata.creation_timestamp
    return time.isoformat() if time is not None else ""


# Pods


async def owner_of(session: Session, document: Json) -> tuple[Target, Json] | None:
    """The workload that a pod belongs to, by way of its ReplicaSet if it has one; None: none that is known here."""
    namespace = namespace_of(document)
    current = document
    for _ in range(_GENERATIONS):
        references = value_at(current, ("metadata", "ownerReferences"), ())
        reference = next((one for one in references if one.get("controller")), None)
        if reference is None:
            return None
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        kind = kinds.face_of(group, str(reference.get("kind", "")))
        if kind is None:
            return None
        target = Target(kind, str(reference.get("name", "")), namespace)
        try:
            current = await session.get(target)
        except (VerbError, ForbiddenError):
            return None  # gone meanwhile, or not to be seen: then the pod has to do alone
        if uid_of(current) != reference.get("uid"):
            return None
        if target.kind.progress is not None:
            return target, current
    return None


async def lone_pod(session: Session, document: Json) -> tuple[Link, ...]:
    """What is wrong with a pod of nobody."""
    pod = convert(document, Pod)
    now = session.clock.now()
    around = await surroundings(session, [pod], now)
    return standalone(pod, around=around[pod.metadata.uid], now=now)
