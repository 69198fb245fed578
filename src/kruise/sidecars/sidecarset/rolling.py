"""Which pods are updated now, in which order, and why the others are not (SCS section 12)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from kruise.api.apps.shared import UpdateScatterTerm
from kruise.api.native.pod import PODS, Pod
from kruise.inplace.order import by_importance, by_priority, scattered
from kruise.machinery.causes import UNAVAILABLE, Cause
from kruise.machinery.plan import Held, Target
from kruise.machinery.wording import plural
from kruise.protection.podunavailablebudget.permits import Permits
from kruise.sidecars.sidecarset import causes
from kruise.sidecars.sidecarset.facts import SidecarFacts, noted
from kruise.sidecars.sidecarset.situation import Situation
from kruise.sidecars.sidecarset.writing import may_reset
from kruise.workloads.shared import causes as shared

_NAMED = 5
_TWO_RUN = "until then both containers of its hot upgrade run, the one before as well as the new one"
_NOT_SELECTED = causes.NOT_SELECTED.cause(
    "updateStrategy.selector does not select it",
    remedy="give the pod the labels that spec.updateStrategy.selector asks for, or take the selector away",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a look at the pods came to."""

    chosen: tuple[SidecarFacts, ...] = ()
    held: tuple[Held, ...] = ()


def order(situation: Situation) -> list[SidecarFacts]:
    """The pods that are to be updated, in order (SCS-91).

    With a scatter strategy the order is worked out over all pods of the rollout, those that are updated among them:
    so each pod keeps its place from round to round.
    """
    strategy = situation.sidecar_set.spec.update_strategy
    waiting = {id(fact.pod): fact for fact in situation.facts if _is_candidate(fact)}
    if not strategy.scatter_strategy:
        pods = by_priority(by_importance(fact.pod for fact in waiting.values()), strategy.priority_strategy)
        return [waiting[id(pod)] for pod in pods]
    everyone = [fact.pod for fact in situation.facts if fact.is_selected]
    stable = sorted(everyone, key=_age)
    terms = _expanded(strategy.scatter_strategy, everyone)
    pods = scattered(by_priority(stable, strategy.priority_strategy), everyone, terms)
    return [waiting[id(pod)] for pod in pods if id(pod) in waiting]


def _age(pod: Pod) -> tuple[float, str, str]:
    """Newer before older, as in the usual order; nothing that an update changes."""
    created = pod.metadata.creation_timestamp
    return (-created.timestamp() if created is not None else 0.0), pod.metadata.namespace, pod.metadata.name


def _expanded(terms: Sequence[UpdateScatterTerm], pods: Sequence[Pod]) -> list[UpdateScatterTerm]:
    found: dict[tuple[str, str], UpdateScatterTerm] = {}
    for term in terms:
        values = [term.value]
        if term.value == "*":
            values = sorted({pod.metadata.labels[term.key] for pod in pods if term.key in pod.metadata.labels})
        for value in values:
            found.setdefault((term.key, value), UpdateScatterTerm(key=term.key, value=value))
    return list(found.values())


def _is_candidate(fact: SidecarFacts) -> bool:
    """SCS-90."""
    return not fact.is_updated and fact.is_selected and fact.is_upgradable and fact.is_settled


def choose(situation: Situation, permits: Permits, stop: Cause | None) -> Round:
    """The pods whose turn it is. `stop`: why no further pod may be updated at all. Budgets are asked for each of them
    (PUB-101): a write that admission would refuse is not tried, again and again."""
    limits = situation.limits
    candidates = order(situation)
    blocked = _blocked(situation)
    held = list(_not_in_line(situation, blocked))
    free = max(len(candidates) - limits.partition, 0)
    line, kept = candidates[:free], candidates[free:]
    held += [_held(fact, _partition(situation)) for fact in kept]
    if (halt := blocked or stop) is not None:
        return Round(held=(*held, *(_held(fact, halt) for fact in line)))
    busy = [fact for fact in situation.facts if fact.is_updated and not fact.serves]
    count, chosen = len(busy), list[SidecarFacts]()
    rest: Sequence[SidecarFacts] = ()
    for position, fact in enumerate(line):
        if fact.is_ready and count >= limits.unavailable:
            rest = line[position:]
            break
        if (refused := permits.may_update(fact.pod)) is not None:
            held.append(_held(fact, refused))
            continue
        count += fact.is_ready
        chosen.append(fact)
    names = [fact.full_name for fact in (*busy, *(one for one in chosen if one.is_ready))]
    held += [_held(fact, _unavailable(situation, names)) for fact in rest]
    return Round(chosen=tuple(chosen), held=tuple(held))


def _held(fact: SidecarFacts, *causes: Cause) -> Held:
    return Held(target=Target.of(PODS, fact.pod), causes=causes)


def _blocked(situation: Situation) -> Cause | None:
    if not situation.limits.is_rolling:
        return causes.NOT_UPDATE.cause(
            "updateStrategy.type NotUpdate: only pods that are made anew get the present content",
            remedy="set spec.updateStrategy.type to RollingUpdate, or let the pods be made anew",
        )
    if situation.limits.is_paused:
        return shared.PAUSED.cause("updateStrategy.paused: nothing is updated")
    return None


def _not_in_line(situation: Situation, blocked: Cause | None) -> Iterator[Held]:
    content = situation.content
    for fact in situation.facts:
        if (broken := noted(fact.pod).error) and not _is_candidate(fact):
            yield _held(fact, shared.BROKEN_ANNOTATION.cause(broken, remedy="repair that annotation, or remove it"))
        elif fact.is_updated:
            cause = arriving(fact, content.owner)
            if blocked is not None and cause is not None and may_reset(fact, content):
                yield _held(fact, dataclasses.replace(blocked, message=f"{blocked.message}; {_TWO_RUN}"))  # SCS-115
            elif cause is not None:
                yield _held(fact, cause)
        elif not fact.is_selected:
            yield _held(fact, _NOT_SELECTED)
        elif not fact.is_upgradable:
            yield _held(
                fact,
                causes.NOT_UPGRADABLE.cause(
                    f"SidecarSet {content.owner} changed more than images since the pod was made, and nothing else of "
                    "a container can be changed while it runs",
                    remedy="delete the pod when that suits (a new one gets the present content), or take the other "
                    f"changes back: kruise rollout undo sidecarset/{content.owner}",
                ),
            )
        elif not fact.is_settled:
            yield _held(fact, causes.SIDECAR_STARTING.cause("its sidecar is still on its way to the image before"))


def arriving(fact: SidecarFacts, owner: str) -> Cause | None:
    """Why an updated pod does not serve yet, as far as the sidecars have to do with it."""
    if fact.serves:
        return None
    if fact.failure:
        return causes.SIDECAR_FAILED.cause(
            f"{fact.failure}: it is a sidecar of SidecarSet {owner}",
            details={"sidecarset": owner},
            remedy=f"give the sidecar an image that works: kruise set image sidecarset/{owner} CONTAINER=IMAGE, or go "
            f"back: kruise rollout undo sidecarset/{owner}",
        )
    if fact.spelling:
        return causes.IMAGE_SPELLING.cause(
            f"its node calls the image of a sidecar {fact.spelling}, and SidecarSet {owner} another way",
            remedy=f"spell it out, with the registry: kruise set image sidecarset/{owner} CONTAINER={fact.spelling}",
        )
    if not fact.is_consistent:
        return causes.SIDECAR_STARTING.cause(f"a sidecar of SidecarSet {owner} restarts with its new image")
    if fact.awaits_reset:
        return causes.HOT_UPGRADE.cause("the container before rests as soon as the new one is ready")
    return None


def _partition(situation: Situation) -> Cause:
    given = situation.sidecar_set.spec.update_strategy.partition
    pods = situation.limits.partition
    text = f"partition {given}" if given == pods else f"partition {given} ({plural(pods, 'pod')})"
    return shared.PARTITION.cause(
        f"{text} keeps it at its present content",
        remedy="lower spec.updateStrategy.partition, or let all follow: "
        f"kruise rollout promote sidecarset/{situation.content.owner}",
    )


def _unavailable(situation: Situation, names: Sequence[str]) -> Cause:
    limit, given = situation.limits.unavailable, situation.sidecar_set.spec.update_strategy.max_unavailable
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    text = f"maxUnavailable {limit if given is None else given}"
    if not names:
        return shared.MAX_UNAVAILABLE.cause(
            f"{text} lets no pod that serves be updated",
            details={"limit": limit, UNAVAILABLE: []},
            remedy="raise spec.updateStrategy.maxUnavailable",
        )
    return shared.MAX_UNAVAILABLE.cause(
        f"{text} is used up by {shown}", details={"limit": limit, UNAVAILABLE: list(names)}
    )
