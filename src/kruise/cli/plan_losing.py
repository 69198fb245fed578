"""`kruise plan KIND/NAME --lose-nodes SELECTOR`: what becomes of a workload when nodes are lost.

Only `get` and `list`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from kruise.api.meta import Key, LabelSelector
from kruise.api.native.nodes import NAMESPACES, NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import claim_names
from kruise.api.resource import Resource
from kruise.cli import plan_reading
from kruise.cli.plan_deciding import deciders
from kruise.cli.plan_deletion import guards_of
from kruise.cli.plan_reading import Others
from kruise.cli.session import Session
from kruise.foresight.errors import ForesightError
from kruise.foresight.needs import storage_needs
from kruise.foresight.removal import losing
from kruise.foresight.removal.losing import Around, Loss
from kruise.foresight.removal.returning import returning_needs
from kruise.kinds import features
from kruise.machinery import codec
from kruise.machinery.client.errors import ForbiddenError
from kruise.machinery.documents import Json, value_at
from kruise.machinery.selectors import Selector, SelectorError, from_label_selector, parse
from kruise.machinery.wording import listed
from kruise.manager.options import Options
from kruise.verbs import targets
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target


async def plan(session: Session, words: Sequence[str], text: str, options: Options) -> Loss:
    target = targets.only(targets.parse(tuple(words), can_select=False).targets, "plan")
    selector = _selector(text)
    kind = target.kind
    if kind.contribution is not None or (not kind.forecast and kind.selector is None):
        raise UsageError(f"{target}: --lose-nodes is for workloads that keep a number of pods, and this is none")
    namespace = (target.namespace or session.namespace) if kind.resource.namespaced else ""
    target = dataclasses.replace(target, namespace=namespace)
    document = await session.get(target)
    nodes = await _nodes(session, selector)
    others = await Others(session).read()
    notes: list[str] = [*others.notes]
    around = Around(
        target=str(target),
        key=Key(namespace, target.name),
        selector=selector,
        nodes=nodes,
        elsewhere=others.pods,
        guards=await guards_of(session, namespace, options.gates, notes.append),
        now=session.clock.now(),
    )
    if kind.forecast:
        found = await _played(session, target, around, options, notes.append)
    else:
        pods = await _pods(session, target, document)
        found = losing.lose_as_they_are(
            around,
            pods,
            await _namespaces(session),
            await _what_places(session, namespace, pods, options, notes),
            features=features(),
            settings=options,
        )
    return dataclasses.replace(found, notes=(*found.notes, *notes))


def _selector(text: str) -> Selector:
    try:
        found = parse(text)
    except SelectorError as error:
        raise UsageError(f"--lose-nodes {text}: {error}") from error
    if found.is_empty:
        raise UsageError("--lose-nodes: name labels of nodes, such as topology.kubernetes.io/zone=a")
    return found


async def _nodes(session: Session, selector: Selector) -> Sequence[Node]:
    nodes = (await session.client.list(NODES)).items
    if not any(selector.matches(node.metadata.labels) for node in nodes):
        keys = sorted({key for node in nodes for key in node.metadata.labels})
        raise VerbError(f"no node has the labels {selector}; nodes have {listed(keys, 8)}")
    return nodes


async def _played(
    session: Session, target: Target, around: Around, options: Options, note: Callable[[str], None]
) -> Loss:
    question = plan_reading.question_of(session, target, None, lambda fields, document: document, features())
    among = deciders(question.subject, options)
    situation = await plan_reading.read(session, question, features=among, settings=options)
    for one in situation.notes:
        note(one)
    try:
        return losing.lose(
            around,
            question.subject,
            situation.changed,
            situation.objects,
            features=among,
            settings=options,
            server_version=situation.server_version,
        )
    except ForesightError as error:
        raise VerbError(str(error)) from error


async def _pods(session: Session, target: Target, document: Json) -> Sequence[Pod]:
    """Those that its selector matches, and that somebody makes again."""
    given: Any = value_at(document, target.kind.selector or (), {})
    try:
        selector = from_label_selector(codec.convert(given, LabelSelector))
    except (codec.DecodeError, SelectorError) as error:
        raise VerbError(f"{target}, selector: {error}") from error
    if selector.is_empty:
        raise VerbError(f"{target} has no selector: nobody can tell which pods are its own")
    found = await session.client.list(PODS, target.namespace, labels=str(selector))
    return [pod for pod in found.items if pod.metadata.owner_references]


async def _what_places(
    session: Session, namespace: str, pods: Sequence[Pod], options: Options, notes: list[str]
) -> dict[Resource[Any], Sequence[Any]]:
    """What ties pods that come again to nodes: their volumes, and who remembers where they were."""
    needs = [*returning_needs(namespace, pods, features=features(), settings=options)]
    if any(map(claim_names, pods)):
        needs += storage_needs(namespace)
    found, told = await plan_reading.read_all(session, needs)
    notes += told
    return found


async def _namespaces(session: Session) -> dict[str, dict[str, str]]:
    try:
        found = await session.client.list(NAMESPACES)
    except ForbiddenError:
        return {}  # only selectors of namespaces in affinities ask for them
    return {one.metadata.name: dict(one.metadata.labels) for one in found.items}
