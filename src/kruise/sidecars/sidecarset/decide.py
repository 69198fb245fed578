"""What a SidecarSet needs, decided from a snapshot (SCS section 9).

The phases in order: the revision of the content and its version tag, hot upgrades that come to their end, pods that are
updated, what pods are told of it, and the bookkeeping in the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.machinery import plan as plans
from kruise.machinery import revisions
from kruise.machinery.plan import Action, Held, OnError, Plan, Target, single
from kruise.protection.podunavailablebudget.permits import Permits
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.building import InjectionError
from kruise.sidecars.sidecarset.causes import REVISION_MISSING
from kruise.sidecars.sidecarset.facts import SidecarFacts, injected_sets, noted
from kruise.sidecars.sidecarset.failures import judged, stop_of
from kruise.sidecars.sidecarset.matching import newest_tagged, pinned, why_unpinned
from kruise.sidecars.sidecarset.memo import Memo
from kruise.sidecars.sidecarset.rolling import choose
from kruise.sidecars.sidecarset.situation import Situation, Snapshot, situation_of
from kruise.sidecars.sidecarset.writing import may_reset, reset, update, verdicts_of, with_verdict
from kruise.workloads.shared import causes as shared

REVISION, TAG, RESET, UPDATE, CONDITIONS, HISTORY = "revision", "tag", "reset", "update", "conditions", "history"


def decide(snapshot: Snapshot) -> Plan:
    if snapshot.sidecar_set.metadata.deletion_timestamp is not None:
        return Plan()  # what pods have stays; its revisions go with it (SCS-65)
    situation = situation_of(snapshot)
    judgement = judged(situation)
    permits = Permits(snapshot.budgets, gates=snapshot.gates, now=snapshot.now)
    held = list(_unpinned(situation))
    resets = list(_resets(situation, permits, held))
    # Once a pod was reset, the updates are decided anew: nothing is taken from budgets for them here.
    booking = permits.phase if resets else None
    turn = choose(situation, permits, stop_of(situation, judgement))
    held += turn.held
    updates: list[Action] = []
    for fact in turn.chosen:
        try:
            updates.append(_update(situation, fact))
        except InjectionError as error:
            cause = shared.BROKEN_ANNOTATION.cause(str(error), remedy="repair that annotation")
            held.append(Held(target=Target.of(PODS, fact.pod), causes=(cause,)))
    conditions = list(_conditions(situation))
    phases = (
        *((single(REVISION, situation.choice.action),) if situation.choice.action is not None else ()),
        single(TAG, *_tags(situation), on_error=OnError.CONTINUE),
        booking or permits.phase,
        # A pod that refuses its reset holds up nobody else; where one was done, the updates are decided anew.
        dataclasses.replace(single(RESET, *resets, on_error=OnError.CONTINUE), not_after=permits.good_until),
        dataclasses.replace(
            single(UPDATE, *updates, on_error=OnError.STOP_PHASE), unless_done=(RESET,), not_after=permits.good_until
        ),
        single(CONDITIONS, *(action for action, _ in conditions), on_error=OnError.CONTINUE),
        single(HISTORY, *_truncated(situation), on_error=OnError.CONTINUE),
    )
    stop = judgement.stop
    return Plan(
        phases=tuple(phase for phase in phases if phase.chains),
        held=tuple(held),
        memo=Memo(
            matched=len(situation.facts),
            updated=sum(fact.is_updated for fact in situation.facts),
            ready=sum(fact.serves for fact in situation.facts),
            updated_ready=sum(fact.is_updated and fact.serves for fact in situation.facts),
            not_selected=sum(not fact.is_updated and not fact.is_selected for fact in situation.facts),
            stuck=sum(_is_stuck(fact) for fact in situation.facts),
            revision=situation.content.revision,
            collision_count=situation.choice.collision_count,
            has_newly_stuck=any(not upgradable for _, upgradable in conditions),
            failure_budget=stop.memory if stop is not None else None,
            stopped=stop.message if stop is not None and stop.is_new else "",
        ),
    )


def _unpinned(situation: Situation) -> Iterator[Held]:
    """Without a word only those would hear of it who make pods."""
    sidecar_set = situation.sidecar_set
    injection = sidecar_set.spec.injection_strategy
    if injection.paused or injection.revision is None or pinned(sidecar_set, situation.snapshot.revisions) is not None:
        return
    why, remedy = why_unpinned(sidecar_set)
    cause = REVISION_MISSING.cause(f"{why}: no pod that it selects can be made", remedy=remedy)
    yield Held(target=Target.of(SIDECAR_SETS, sidecar_set), causes=(cause,))


def _update(situation: Situation, fact: SidecarFacts) -> Action:
    version = situation.sidecar_set.metadata.resource_version
    return update(fact, situation.content, version, situation.now)


def _resets(situation: Situation, permits: Permits, held: list[Held]) -> Iterator[Action]:
    """SCS-111, SCS-115."""
    if situation.limits.is_paused or not situation.limits.is_rolling:
        return
    for fact in situation.facts:
        if not may_reset(fact, situation.content):
            continue
        if (refused := permits.may_update(fact.pod)) is not None:
            held.append(Held(target=Target.of(PODS, fact.pod), causes=(refused,)))
            continue
        yield reset(fact, situation.content, situation.now)


def _is_stuck(fact: SidecarFacts) -> bool:
    """It is to be updated, and cannot be (SCS-95)."""
    return not fact.is_updated and fact.is_selected and not fact.is_upgradable


def _conditions(situation: Situation) -> Iterator[tuple[Action, bool]]:
    """SCS-120, SCS-121: pods that cannot be updated, and pods that were."""
    name = situation.content.owner
    for fact in situation.facts:
        if _is_stuck(fact) and situation.limits.is_rolling:
            upgradable = False
        elif fact.is_updated and (name in noted(fact.pod).states or verdicts_of(fact.pod).get(name) is False):
            upgradable = True
        else:
            continue
        known = injected_sets(fact.pod)
        if (action := with_verdict(fact.pod, name, upgradable, situation.now, known=known)) is not None:
            yield action, upgradable


def _tags(situation: Situation) -> Iterator[Action]:
    """SCS-75."""
    tag, newest = situation.sidecar_set.spec.custom_version, situation.choice.revision
    if situation.choice.step is revisions.Step.CREATE or not tag:
        return
    if newest.metadata.labels.get(keys.CUSTOM_VERSION) != tag:
        yield plans.patch(
            Target.of(CONTROLLER_REVISIONS, newest),
            {"metadata": {"labels": {keys.CUSTOM_VERSION: tag}}},
            uid=newest.metadata.uid,
            reason=f"the version tag of the content is {tag}",
        )


def _truncated(situation: Situation) -> Iterator[Action]:
    """SCS-76."""
    spec = situation.sidecar_set.spec
    newest = situation.choice.revision.metadata.name
    used = {newest} | {
        str(entry.get("controllerRevision", ""))
        for fact in situation.facts
        if isinstance(entry := noted(fact.pod).hashes.get(situation.content.owner), dict)
    }
    wanted = spec.injection_strategy.revision
    if wanted is not None and wanted.revision_name:
        used.add(wanted.revision_name)
    if (tagged := newest_tagged(situation.sidecar_set, situation.history)) is not None:
        used.add(tagged.metadata.name)
    limit = max(
        revisions.DEFAULT_HISTORY_LIMIT if spec.revision_history_limit is None else spec.revision_history_limit, 1
    )
    alive = [one for one in situation.history if one.metadata.deletion_timestamp is None]
    count = len(alive) + (situation.choice.step is revisions.Step.CREATE)
    for one in revisions.in_order(alive):
        if count <= limit:
            return
        if one.metadata.name not in used:
            count -= 1
            yield plans.delete(
                Target.of(CONTROLLER_REVISIONS, one),
                uid=one.metadata.uid,
                reason="more revisions than revisionHistoryLimit keeps",
            )
