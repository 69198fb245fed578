"""Scaling: which step is taken, what it writes, and who waits for what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.patches.json_patch import pointer
from kruise.machinery.plan import Action, EventType, OnError
from kruise.workloads.cloneset.scale import ScaleStep, release, scale
from kruise.workloads.cloneset.situation import Situation
from tests.support.clonesets import (
    DATA_CLAIM,
    NEW,
    OLD,
    UID,
    make_claim,
    make_cloneset,
    make_pod,
    make_situation,
)
from tests.support.examples import EXAMPLES

STATE = "lifecycle.apps.kruise.io/state"
HOOK = {"preDelete": {"labelsHandler": {"hook": "true"}}}
HOOKED = {"hook": "true"}


def actions(step: ScaleStep) -> list[Action]:
    return [action for chain in step.phase.chains for action in chain] if step.phase is not None else []


def names(step: ScaleStep, verb: Verb) -> list[str]:
    return [action.target.name for action in actions(step) if action.verb is verb and action.target.resource == PODS]


def created_revisions(step: ScaleStep) -> list[str]:
    return [
        action.body["metadata"]["labels"]["controller-revision-hash"]
        for action in actions(step)
        if action.verb is Verb.CREATE and action.target.resource == PODS
    ]


def states(step: ScaleStep) -> dict[str, str]:
    """States that pods enter, by name, whatever way they are written."""
    found = ((action.target.name, _state_in(action.body)) for action in actions(step) if action.verb is Verb.PATCH)
    return {name: state for name, state in found if state}


def _state_in(body: Any) -> str:
    if isinstance(body, Mapping):
        return str(body.get("metadata", {}).get("labels", {}).get(STATE, ""))
    path = pointer("metadata", "labels", STATE)
    return "".join(item["value"] for item in body if item["path"] == path)


def causes(step: ScaleStep) -> dict[str, str]:
    return {held.target.name: held.causes[0].code for held in step.held}


def scaled(
    pods: Iterable[Pod] = (),
    *,
    replicas: int = 3,
    rolling: Mapping[str, Any] | None = None,
    scaling: Mapping[str, Any] | None = None,
    claims: Sequence[Any] = (),
    gates: Mapping[str, bool] | None = None,
    rollout: bool = False,
    excluded: bool = False,
    **spec: Any,
) -> ScaleStep:
    cloneset = make_cloneset(replicas=replicas, rolling=rolling, scale=scaling, **spec)
    return scale(
        make_situation(cloneset, pods, claims, gates=gates, rollout=rollout, exclude_preparing_delete=excluded)
    )


def several(ids: str, **facts: Any) -> list[Pod]:
    return [make_pod(instance_id, **facts) for instance_id in ids]


def test_nothing_to_do() -> None:
    assert scaled(several("abc")) == ScaleStep()


def test_a_cloneset_that_is_deleted_does_not_scale() -> None:  # CS-69, edge case 21
    assert scale(make_situation(make_cloneset(deleting=True), several("a"))) == ScaleStep()


# Scale up


def test_missing_pods_are_created_slowly_at_first() -> None:  # CS-81, CS-85
    step = scaled(several("a"))
    assert step.phase is not None
    assert (step.phase.name, step.phase.slow_start, step.phase.on_error) == ("scale", True, OnError.STOP_PHASE)
    assert len(names(step, Verb.CREATE)) == 2
    assert actions(step)[0].reason == "1 of 3 pods are there"
    assert step.touched == frozenset()


def test_inactive_pods_are_replaced_and_left_alone() -> None:  # edge cases 16 and 22
    step = scaled([make_pod("a"), make_pod("b", phase="Failed"), make_pod("c", terminating=True)])
    assert len(names(step, Verb.CREATE)) == 2
    assert names(step, Verb.DELETE) == []


def test_streaming_scale_up() -> None:  # CS-76, CS-81
    step = scaled([*several("ab"), make_pod("c", ready=False)], replicas=6, scaling={"maxUnavailable": 2})
    assert len(names(step, Verb.CREATE)) == 1
    (note,) = step.events
    assert (note.type, note.reason) == (EventType.WARNING, "ScaleUpLimited")
    assert note.message == "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 1"
    (held,) = step.held
    assert (held.target.name, held.causes[0].code) == ("web", "scale-limit")
    assert "web-c" in held.causes[0].message


def test_a_limit_of_zero_ends_the_phase_without_a_change() -> None:  # CS-81
    """No deletion happens in a pass that wants to scale up."""
    pods = [*several("a"), make_pod("c", ready=False), make_pod("d", ready=False, specified=True)]
    step = scaled(pods, replicas=6, scaling={"maxUnavailable": 1})
    assert step.phase is None
    assert step.events[0].message.endswith("limit: 0")


def test_a_pod_that_is_let_go_does_not_block_its_replacement() -> None:  # CS-81, CS-82
    """It counts as unavailable and uses up the limit; kept for the sake of the missing pod, it would stay for ever."""
    pods = [*several("ab"), make_pod("c", state="PreparingDelete", specified=True)]
    step = scaled(pods, replicas=4, scaling={"maxUnavailable": 1})
    assert names(step, Verb.DELETE) == ["web-c"]
    assert names(step, Verb.CREATE) == []
    assert step.phase is not None
    assert not step.phase.slow_start


def test_partition_decides_the_revision_of_new_pods() -> None:  # CS-76, CS-105
    step = scaled(several("a", old=True), replicas=5, rolling={"partition": 3}, rollout=True)
    assert created_revisions(step) == [OLD.metadata.name] * 2 + [NEW.metadata.name] * 2


def test_a_limited_scale_up_makes_current_pods_first() -> None:  # CS-85
    step = scaled(
        several("a", old=True),
        replicas=5,
        rolling={"partition": 3},
        rollout=True,
        scaling={"maxUnavailable": 3},
    )
    assert created_revisions(step) == [OLD.metadata.name] * 2 + [NEW.metadata.name]


def test_a_pod_that_prepares_its_update_counts_as_new() -> None:  # CS-112
    """R=2, partition 99 %, one pod PreparingUpdate: the other one is replaced at the old revision."""
    pods = [make_pod("a", old=True, state="PreparingUpdate")]
    options: dict[str, Any] = {"replicas": 2, "rolling": {"partition": "99%"}, "rollout": True}
    assert created_revisions(scaled(pods, gates={"PreparingUpdateAsUpdate": True}, **options)) == [OLD.metadata.name]
    assert created_revisions(scaled(pods, **options)) == [NEW.metadata.name]


def test_surge_pods_of_a_rollout_come_first() -> None:  # CS-74, CS-106
    step = scaled(
        several("abcde", old=True),
        replicas=5,
        rolling={"partition": 3, "maxUnavailable": 1, "maxSurge": 1},
        rollout=True,
    )
    assert created_revisions(step) == [NEW.metadata.name]
    assert actions(step)[0].reason == "5 pods are wanted and 1 more while pods are replaced"


def test_no_surge_while_paused() -> None:  # CS-89
    rolling = {"maxUnavailable": 1, "maxSurge": 1, "paused": True}
    assert scaled(several("abc", old=True), rolling=rolling, rollout=True).phase is None


def test_a_create_that_waits_for_a_name_is_told() -> None:  # CS-121
    step = scaled(
        [*several("ab"), make_pod("c", terminating=True)],
        claims=[make_claim("c")],
        scaling={"enablePVCReuse": True},
        volumeClaimTemplates=[DATA_CLAIM],
    )
    assert step.phase is None
    assert causes(step) == {"web-c": "terminating"}


# Deleting what somebody asked for


SURGE = {"maxUnavailable": 0, "maxSurge": 1}


def test_the_replacement_comes_before_the_deletion() -> None:  # CS-74, CS-83
    pods = [*several("abcd"), make_pod("e", specified=True)]
    step = scaled(pods, replicas=5, rolling=SURGE)
    assert (len(names(step, Verb.CREATE)), names(step, Verb.DELETE)) == (1, [])
    pods.append(make_pod("f", ready=False))
    step = scaled(pods, replicas=5, rolling=SURGE)
    assert step.phase is None
    assert causes(step) == {"web-e": "deletion-budget"}
    pods[-1] = make_pod("f")
    assert names(scaled(pods, replicas=5, rolling=SURGE), Verb.DELETE) == ["web-e"]


def test_specified_pods_go_as_the_budget_allows() -> None:  # CS-78, CS-83
    pods = [make_pod("a", specified=True), make_pod("b", specified=True), make_pod("c")]
    step = scaled(pods, rolling={"maxUnavailable": 1})
    assert names(step, Verb.DELETE) == ["web-a"]
    assert causes(step) == {"web-b": "deletion-budget"}
    assert "maxUnavailable 1 lets 1 ready pod " in step.held[0].causes[0].message
    assert step.touched == {"web-a"}
    assert step.phase is not None
    assert not step.phase.slow_start


def test_pods_that_are_not_ready_go_at_once() -> None:  # CS-83
    pods = [make_pod("a", ready=False, specified=True), make_pod("b", state="Updating", specified=True), make_pod("c")]
    assert names(scaled(pods, rolling={"maxUnavailable": 1}), Verb.DELETE) == ["web-a", "web-b"]


def test_a_specified_pod_that_is_down_counts_against_the_others() -> None:
    """The budget of CS-78 does not see web-a, but with web-b gone too only one of three would be available."""
    pods = [make_pod("a", ready=False, specified=True), make_pod("b", specified=True), make_pod("c")]
    step = scaled(pods, rolling={"maxUnavailable": 1})
    assert names(step, Verb.DELETE) == ["web-a"]
    assert causes(step) == {"web-b": "deletion-budget"}


def test_pods_within_min_ready_seconds_go_before_available_ones() -> None:  # CS-83
    young = make_pod("b", specified=True, ready_since="2030-01-01T11:59:50Z")
    step = scaled(
        [make_pod("a", specified=True), young, make_pod("c")], rolling={"maxUnavailable": 1}, minReadySeconds=60
    )
    assert names(step, Verb.DELETE) == ["web-b"]


@pytest.mark.parametrize("replicas", [3, 2])
def test_pods_named_in_pods_to_delete(replicas: int) -> None:  # CS-87
    """Named and replicas lowered: only the named one goes. Replicas as before: it goes, and is replaced later."""
    step = scaled(several("abc"), replicas=replicas, scaling={"podsToDelete": ["web-b", "no-such-pod"]})
    assert names(step, Verb.DELETE) == ["web-b"]
    assert names(step, Verb.CREATE) == []


def test_claims_go_with_their_pod() -> None:  # CS-86
    claims = [
        make_claim("a"),
        make_claim("a", template="logs"),
        make_claim("b"),
        make_claim("a", template="old", terminating=True),
    ]
    step = scaled([make_pod("a", specified=True), *several("bc")], rolling={"maxUnavailable": 1}, claims=claims)
    assert step.phase is not None
    (chain,) = step.phase.chains
    assert [(action.verb, action.target.name) for action in chain] == [
        (Verb.DELETE, "web-a"),
        (Verb.DELETE, "data-web-a"),
        (Verb.DELETE, "logs-web-a"),
    ]
    assert [action.uid for action in chain] == ["uid-a", "uid-data-a", "uid-logs-a"]


def test_a_pod_without_id_takes_no_claims_along() -> None:
    pod = make_pod("a", specified=True, labels={"apps.kruise.io/cloneset-instance-id": ""})
    claims = [make_claim("a", labelled=False)]
    step = scaled([pod, *several("bc")], rolling={"maxUnavailable": 1}, claims=claims)
    assert [action.target.name for action in actions(step)] == ["web-a"]


# Hooks


def test_a_hooked_pod_prepares_for_its_deletion() -> None:  # CS-86, CS-88
    pods = [make_pod("a", specified=True, labels=HOOKED), *several("bc")]
    step = scaled(pods, rolling={"maxUnavailable": 1}, lifecycle=HOOK)
    assert states(step) == {"web-a": "PreparingDelete"}
    assert names(step, Verb.DELETE) == []
    assert causes(step) == {"web-a": "hook"}
    assert "label hook=true must be removed" in step.held[0].causes[0].message
    assert step.touched == {"web-a"}


def test_a_hook_that_marks_pods_not_ready() -> None:  # CS-86, IPU-100
    hooks = {"preDelete": {"labelsHandler": {"hook": "true"}, "markPodNotReady": True}}
    pods = [make_pod("a", specified=True, labels=HOOKED), *several("bc")]
    step = scaled(pods, rolling={"maxUnavailable": 1}, lifecycle=hooks)
    (action,) = actions(step)
    assert action.subresource == "status"
    assert states(step) == {"web-a": "PreparingDelete"}


def test_a_pod_that_is_still_hooked_stays() -> None:  # CS-82
    pods = [make_pod("a", state="PreparingDelete", specified=True, labels=HOOKED), *several("bc")]
    step = scaled(pods, lifecycle=HOOK)
    assert (step.phase, causes(step), step.touched) == (None, {"web-a": "hook"}, frozenset())


def test_a_pod_that_is_let_go_is_deleted() -> None:  # CS-82
    pods = [make_pod("a", state="PreparingDelete", specified=True, labels={"hook": "false"}), *several("bc")]
    assert names(scaled(pods, lifecycle=HOOK), Verb.DELETE) == ["web-a"]


def test_pods_that_leave_are_replaced_at_once_when_they_do_not_count() -> None:  # CS-75, CS-88, edge case 8
    pods = [make_pod("a", state="PreparingDelete", specified=True, labels=HOOKED), *several("bc")]
    by_field = scaled(pods, lifecycle=HOOK, scaling={"excludePreparingDelete": True})
    assert len(names(by_field, Verb.CREATE)) == 1
    assert actions(by_field)[0].reason == "2 of 3 pods are there"
    assert len(names(scaled(pods, lifecycle=HOOK, excluded=True), Verb.CREATE)) == 1  # CS-141


def test_a_cancelled_scale_in_brings_pods_back() -> None:  # CS-80, CS-113, edge case 9
    pods = [make_pod("a", state="PreparingDelete", labels=HOOKED), *several("bc")]
    step = scaled(pods, lifecycle=HOOK)
    assert states(step) == {"web-a": "PreparingNormal"}
    assert step.touched == {"web-a"}


def test_as_many_come_back_as_are_wanted() -> None:  # CS-80
    pods = [*several("ab", state="PreparingDelete", labels=HOOKED), *several("cd")]
    assert states(scaled(pods, lifecycle=HOOK)) == {"web-a": "PreparingNormal"}
    assert states(scaled(pods, replicas=2, lifecycle=HOOK)) == {}


def test_specified_pods_do_not_come_back() -> None:  # CS-80
    pods = [make_pod("a", state="PreparingDelete", specified=True, labels=HOOKED), *several("bc")]
    assert states(scaled(pods, lifecycle=HOOK)) == {}


@pytest.mark.parametrize("hook", ["preDelete", "inPlaceUpdate"])
def test_a_hook_that_marks_pods_not_ready_forbids_coming_back(hook: str) -> None:  # CS-80
    hooks = {**HOOK, hook: {"labelsHandler": {"hook": "true"}, "markPodNotReady": True}}
    pods = [make_pod("a", state="PreparingDelete", labels=HOOKED), *several("bc")]
    assert states(scaled(pods, lifecycle=hooks)) in ({}, {"web-a": "PreparingDelete"})
    assert names(scaled(pods, lifecycle=hooks), Verb.CREATE) == []


# Scale down


def test_surplus_pods_go() -> None:  # CS-77, CS-84
    step = scaled(several("abcde"))
    assert len(names(step, Verb.DELETE)) == 2
    assert actions(step)[0].reason == "5 pods are there, 3 are wanted"
    assert step.touched == set(names(step, Verb.DELETE))


def test_old_pods_go_first() -> None:  # CS-77, CS-90, CS-107
    step = scaled([*several("abc"), *several("de", old=True)], rollout=True)
    assert sorted(names(step, Verb.DELETE)) == ["web-d", "web-e"]


def test_scale_down_waits_for_pods_that_leave() -> None:  # CS-84
    """Replicas 3 to 1 with one pod named: first the named one, the other one in a later pass."""
    pods = several("abc")
    step = scaled(pods, replicas=1, scaling={"podsToDelete": ["web-b"]})
    assert names(step, Verb.DELETE) == ["web-b"]
    hooked = [make_pod("a", state="PreparingDelete", specified=True, labels=HOOKED), *several("bc")]
    step = scaled(hooked, replicas=1, lifecycle=HOOK)
    assert step.phase is None
    assert causes(step) == {"web-a": "hook", "web": "preparing-delete"}


def test_scale_down_respects_the_budget() -> None:  # CS-78, CS-84
    """With many pods unavailable, ready pods wait."""
    pods = [*several("abc"), *several("de", ready_since="2030-01-01T11:59:50Z")]
    step = scaled(pods, replicas=4, rolling={"maxUnavailable": 1}, minReadySeconds=60)
    assert step.phase is None
    assert set(causes(step).values()) == {"deletion-budget"}


def test_many_pods_share_one_cause() -> None:
    """A long list of waiting pods costs one message."""
    pods = [make_pod(f"{number:05}", specified=True) for number in range(20)]
    step = scaled(pods, replicas=20, rolling={"maxUnavailable": 2})
    assert len(names(step, Verb.DELETE)) == 2
    assert len(step.held) == 18
    assert len({id(held.causes[0]) for held in step.held}) == 1


# Letting go (CS-67)


def test_a_pod_that_does_not_match_is_released_and_replaced() -> None:  # CS-67, edge case 15
    situation = make_situation(None, [make_pod("a", labels={"app": "other"}), *several("bc")])
    phase = release(situation)
    assert (phase.name, phase.on_error) == ("release", OnError.CONTINUE)
    ((action,),) = phase.chains
    assert (action.verb, action.target.name, action.uid) == (Verb.PATCH, "web-a", "uid-a")
    assert action.body == {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": UID}]}}
    assert len(names(scale(situation), Verb.CREATE)) == 1


def test_a_released_pod_keeps_its_claims() -> None:
    pods, claims = [make_pod("a", labels={"app": "other"})], [make_claim("a"), make_claim("b")]
    ((claim, pod),) = release(make_situation(None, pods, claims)).chains
    assert (claim.target.name, pod.target.name) == ("data-web-a", "web-a")
    assert claim.body["metadata"]["ownerReferences"][1]["uid"] == "uid-a"


def test_a_cloneset_that_is_deleted_releases_nothing() -> None:  # CS-67
    assert release(make_situation(make_cloneset(deleting=True), [make_pod("a", labels={"app": "other"})])).chains == ()


# Properties

pod_facts = st.fixed_dictionaries(
    {
        "old": st.booleans(),
        "state": st.sampled_from(["Normal", "Normal", "Normal", "PreparingDelete", "PreparingNormal", "Updating", ""]),
        "ready": st.sampled_from([True, True, False]),
        "ready_since": st.sampled_from(["2030-01-01T10:00:00Z", "2030-01-01T11:59:50Z"]),
        "terminating": st.sampled_from([False, False, False, True]),
        "phase": st.sampled_from(["Running", "Running", "Running", "Failed"]),
        "specified": st.sampled_from([False, False, True]),
        "labels": st.sampled_from([{}, {}, HOOKED, {"app": "other"}]),
        "claims": st.just(("data",)),
    }
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    facts: list[dict[str, Any]] = draw(st.lists(pod_facts, max_size=8))
    pods = [make_pod(f"{letter}" * 5, **fact) for letter, fact in zip("bcdfghjk", facts, strict=False)]
    owners = draw(st.lists(st.sampled_from("bcdfghjklm"), unique=True))
    claims = [make_claim(letter * 5, terminating=draw(st.booleans())) for letter in owners]
    mark = draw(st.booleans())
    hooks: Any = draw(st.sampled_from([None, {"preDelete": {"labelsHandler": HOOKED, "markPodNotReady": mark}}]))
    cloneset = make_cloneset(
        replicas=draw(st.integers(0, 8)),
        rolling={
            "maxUnavailable": draw(st.integers(0, 4)),
            "maxSurge": draw(st.integers(0, 3)),
            "partition": draw(st.integers(0, 8)),
        },
        scale={
            "enablePVCReuse": draw(st.booleans()),
            "maxUnavailable": draw(st.sampled_from([None, 0, 1, 3])),
            "excludePreparingDelete": draw(st.booleans()),
            "podsToDelete": draw(st.sampled_from([[], ["web-bbbbb"]])),
        },
        minReadySeconds=draw(st.sampled_from([0, 60])),
        volumeClaimTemplates=[DATA_CLAIM],
        lifecycle=hooks,
    )
    gates = {name: draw(st.booleans()) for name in ("CloneSetPartitionRollback", "PreparingUpdateAsUpdate")}
    return make_situation(
        cloneset, pods, claims, gates=gates, rollout=draw(st.booleans()), seed=draw(st.integers(0, 9))
    )


@settings(max_examples=100 * EXAMPLES, deadline=None)
@given(situation=situations())
def test_scaling_keeps_its_promises(situation: Situation) -> None:  # CS-72 to CS-86, CS-120 to CS-123
    step = scale(situation)
    by_name = {facts.name: facts for facts in situation.facts}
    creates, deletes, entered = names(step, Verb.CREATE), names(step, Verb.DELETE), states(step)

    # A pass does one thing, and says the same each time.
    assert sum(bool(part) for part in (creates, deletes or "PreparingDelete" in entered.values())) <= 1
    assert scale(situation) == step
    patched = {a.target.name for a in actions(step) if a.verb is Verb.PATCH and a.target.resource == PODS}
    assert step.touched == set(deletes) | patched
    assert step.touched <= by_name.keys()

    # Names are free, and as many are made as may be.
    there = {pod.metadata.name for pod in situation.snapshot.pods}
    assert len(set(creates)) == len(creates)
    assert there.isdisjoint(creates)
    claimed = {claim.metadata.name.replace("data-", "", 1): claim for claim in situation.snapshot.claims}
    for name in claimed.keys() & set(creates):
        assert situation.cloneset.spec.scale_strategy.enable_pvc_reuse
        assert claimed[name].metadata.deletion_timestamp is None
    limit = situation.limits.scale_max_unavailable
    if limit is not None:
        lasting = (facts for facts in situation.facts if not facts.is_specified or facts.is_preparing_delete)
        assert len(creates) <= max(limit - sum(not facts.is_available for facts in lasting), 0)

    # Never below the availability that was promised.
    available = sum(facts.is_available for facts in situation.facts)
    promised = min(available, max(situation.replicas - situation.limits.max_unavailable, 0))
    leaving = {*deletes, *(name for name, state in entered.items() if state == "PreparingDelete")}
    assert available - sum(by_name[name].is_available for name in leaving) >= promised

    # Hooked pods stay; claims go only with their pod.
    hooks = situation.cloneset.spec.lifecycle
    if hooks is not None:
        assert not any(by_name[name].pod.metadata.labels.get("hook") == "true" for name in deletes)
    gone = {a.target.name for a in actions(step) if a.verb is Verb.DELETE and a.target.resource != PODS}
    assert {name.replace("data-", "", 1) for name in gone} <= set(deletes)
    for name in deletes:
        claim = claimed.get(name)
        assert (f"data-{name}" in gone) == (claim is not None and claim.metadata.deletion_timestamp is None)


@settings(max_examples=60, deadline=None)
@given(situation=situations())
def test_scaling_converges(situation: Situation) -> None:
    """With pods that become ready and hooks that let go, it ends with the number of pods wanted."""
    cloneset = situation.cloneset
    replicas, unavailable = situation.replicas, situation.limits.max_unavailable
    if replicas and not unavailable and not situation.limits.max_surge:
        return  # refused at admission (CS-45): nothing may ever be replaced
    if cloneset.spec.scale_strategy.max_unavailable == 0:
        return  # nothing may ever be created
    pods = [facts.pod for facts in situation.facts]
    for number in range(60):
        pods = [_settled(pod) for pod in pods]
        step = scale(make_situation(cloneset, pods, gates=situation.snapshot.gates, seed=number))
        if step.phase is None:
            break
        pods = _after(pods, step)
    else:
        raise AssertionError("still scaling")
    assert len(pods) == replicas
    assert not any("apps.kruise.io/specified-delete" in pod.metadata.labels for pod in pods)


def _settled(pod: Pod) -> Pod:
    """Everybody else has done their part: the pod is updated and ready, and the hook lets it go where it is to go."""
    labels = {**pod.metadata.labels, "controller-revision-hash": NEW.metadata.name}
    if labels.get(STATE) == "PreparingDelete":
        labels.pop("hook", None)
    else:
        labels[STATE] = "Normal"
    fresh = make_pod(pod.metadata.name.removeprefix("web-"), specified="apps.kruise.io/specified-delete" in labels)
    metadata: ObjectMeta = codec.evolve(fresh.metadata, labels=labels)
    return codec.evolve(fresh, metadata=metadata)


def _after(pods: list[Pod], step: ScaleStep) -> list[Pod]:
    deleted, entered = set(names(step, Verb.DELETE)), states(step)
    kept = []
    for pod in pods:
        if pod.metadata.name in deleted:
            continue
        if pod.metadata.name in entered:
            labels = {**pod.metadata.labels, STATE: entered[pod.metadata.name]}
            pod = codec.evolve(pod, metadata=codec.evolve(pod.metadata, labels=labels))
        kept.append(pod)
    for action in actions(step):
        if action.verb is Verb.CREATE and action.target.resource == PODS:
            made = make_pod(action.target.name.removeprefix("web-"))
            labels = action.body["metadata"]["labels"]
            kept.append(codec.evolve(made, metadata=codec.evolve(made.metadata, labels=labels)))
    return kept
