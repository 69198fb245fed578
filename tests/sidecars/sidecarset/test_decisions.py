"""What is decided about pods with sidecars, without a cluster: facts, order, limits, and writes that meet."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.sidecarset import SidecarSet
from kruise.inplace.edits import PodEdit, writes
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches import json_patch
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.plan import Action, OnError
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.amounts import partition_of
from kruise.sidecars.sidecarset.content import content_of
from kruise.sidecars.sidecarset.decide import CONDITIONS, RESET, UPDATE, decide
from kruise.sidecars.sidecarset.facts import facts_of
from kruise.sidecars.sidecarset.failures import judged
from kruise.sidecars.sidecarset.memo import Memo
from kruise.sidecars.sidecarset.rolling import order
from kruise.sidecars.sidecarset.situation import Snapshot, situation_of
from kruise.workloads.shared.failure_budget import ANNOTATION
from tests.support.examples import story_settings
from tests.support.sidecarsets import NOW, SIDE, made, pod, read, running, sidecar_set, stored, with_sidecars

Json = dict[str, Any]


def snapshot(current: SidecarSet, *pods: Json) -> Snapshot:
    return Snapshot(
        sidecar_set=current, pods=tuple(map(read, pods)), own_namespace="kruise-system", now=NOW, revisions=()
    )


OLD = sidecar_set()
NEW = sidecar_set(containers=[{**SIDE, "image": "nginx:1.26"}])


def writes_of(current: SidecarSet, *pods: Json, phase: str = UPDATE) -> list[Action]:
    plan = decide(snapshot(current, *pods))
    return [action for one in plan.phases if one.name == phase for chain in one.chains for action in chain]


def patched(whole: Json, action: Action) -> Json:
    """What the API server makes of it. Raises PatchError where a test fails."""
    assert action.patch_type is PatchType.JSON
    changed: Json = json_patch.apply(copy.deepcopy(whole), action.body)
    return changed


# Facts


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (True, True, True)),
        ({"ready": False}, (True, True, False)),
    ],
)
def test_pods_with_the_present_content(change: Json, expected: tuple[bool, bool, bool]) -> None:
    """SCS-83, SCS-85, SCS-86, SCS-95."""
    fact = facts_of(read(made(OLD, **change)), content_of(stored(OLD)), is_selected=True)
    assert (fact.is_updated, fact.is_upgradable, fact.serves) == expected


def test_a_changed_pod_is_consistent_when_its_new_image_runs() -> None:
    """SCS-84, SCS-96, SCS-103: also where it was changed before it ever ran."""
    current = stored(NEW)
    before = made(OLD)
    (action,) = writes_of(current, before)
    changed = patched(before, action)
    fact = facts_of(read(changed), content_of(current), is_selected=True)
    assert (fact.is_updated, fact.is_consistent, fact.is_settled) == (True, False, False)
    arrived = running(changed)
    assert facts_of(read(arrived), content_of(current), is_selected=True).serves
    early = {**before, "status": {"phase": "Pending", "conditions": [], "containerStatuses": []}}
    (action,) = writes_of(current, early)
    changed = patched(early, action)
    state = json.loads(changed["metadata"]["annotations"][keys.UPDATE_STATE])["logs"]
    assert state["lastContainerStatuses"] == {"side": {}}
    late = running(changed, images={"side": "nginx:1.25"})
    assert not facts_of(read(late), content_of(current), is_selected=True).is_consistent
    assert facts_of(read(running(changed)), content_of(current), is_selected=True).is_consistent


def test_digests_are_compared_by_repository_and_digest() -> None:
    """SCS-84."""
    digest = f"repo/side@sha256:{'a' * 64}"
    current = stored(sidecar_set(containers=[{**SIDE, "image": digest}]))
    whole = made(sidecar_set(containers=[{**SIDE, "image": digest}]))
    status = next(item for item in whole["status"]["containerStatuses"] if item["name"] == "side")
    for image_id, is_same in (
        (f"docker-pullable://repo/side@sha256:{'a' * 64}", True),
        (f"repo/side@sha256:{'b' * 64}", False),
        (f"docker.io/repo/side@sha256:{'a' * 64}", False),
    ):
        status["imageID"] = image_id
        assert facts_of(read(whole), content_of(current), is_selected=True).is_consistent is is_same


def test_digests_are_not_compared_where_another_sidecar_has_a_tag() -> None:
    """SCS-84: what is said of a pod that has not arrived is about what it waits for."""
    digest = f"side@sha256:{'a' * 64}"
    more = {"name": "more", "image": "more:1"}
    manifest = sidecar_set(containers=[{**SIDE, "image": digest}, more])
    later = sidecar_set(containers=[{**SIDE, "image": digest}, {**more, "image": "more:2"}])
    before = made(manifest)
    (action,) = writes_of(stored(later), before)
    whole = patched(before, action)
    status = next(item for item in whole["status"]["containerStatuses"] if item["name"] == "side")
    status["imageID"] = f"docker.io/library/{digest}"
    fact = facts_of(read(whole), content_of(stored(later)), is_selected=True)
    assert (fact.is_consistent, fact.spelling) == (False, "")


@pytest.mark.parametrize("reported", ["docker.io/library/nginx:1.26", "nginx:1.26"])
@pytest.mark.parametrize("image", ["nginx:1.26", "docker.io/nginx:1.26", "index.docker.io/library/nginx:1.26"])
def test_an_image_is_the_same_however_it_is_written(image: str, reported: str) -> None:
    """SCS-84: two names of one image have one id, so its name tells that the new one runs."""
    current = stored(sidecar_set(containers=[{**SIDE, "image": image}]))
    before = made(OLD)
    (action,) = writes_of(current, before)
    whole = patched(before, action)
    for status in whole["status"]["containerStatuses"]:
        status["image"] = reported
    assert facts_of(read(whole), content_of(current), is_selected=True).is_consistent


def test_only_pods_with_all_its_containers_are_managed() -> None:
    """SCS-63: selected, active, injected by it, with every container that it has now; SCS-87."""
    current = stored(OLD)
    whole = made(OLD)

    def matched(*pods: Json) -> int:
        return len(situation_of(snapshot(current, *pods)).facts)

    assert matched(whole) == 1
    assert matched({**whole, "status": {**whole["status"], "phase": "Succeeded"}}) == 0
    assert matched(merge_metadata(whole, labels={"app": "other"})) == 0
    assert matched(merge_metadata(whole, annotations={keys.INJECTED_LIST: "somebody"})) == 0
    without = [item for item in whole["spec"]["containers"] if item["name"] != "side"]
    assert matched({**whole, "spec": {**whole["spec"], "containers": without}}) == 0
    hot = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}
    assert not situation_of(snapshot(stored(sidecar_set(containers=[hot])), whole)).facts


def merge_metadata(whole: Json, **parts: Json) -> Json:
    metadata = {**whole["metadata"], **{key: {**whole["metadata"].get(key, {}), **part} for key, part in parts.items()}}
    return {**whole, "metadata": metadata}


# Order and limits


def test_scatter_keeps_every_pod_in_its_place() -> None:
    """SCS-91, SCS-92: 10 pods of which 3 match are at 1, 6 and 10, however far the rollout is."""
    manifest = sidecar_set(
        containers=[{**SIDE, "image": "nginx:1.26"}],
        updateStrategy={"scatterStrategy": [{"key": "zone", "value": "a"}], "maxUnavailable": 10},
    )
    current = stored(manifest)
    pods = [made(OLD, f"web-{n}", {"zone": "a"} if n < 3 else {}) for n in range(10)]
    whole = [fact.name for fact in order(situation_of(snapshot(current, *pods)))]
    assert [place for place, name in enumerate(whole, 1) if name in ("web-0", "web-1", "web-2")] == [1, 6, 10]
    later = [made(manifest, one["metadata"]["name"], one["metadata"]["labels"]) for one in pods]
    for done in range(1, 10):
        mixed = [later[n] if one["metadata"]["name"] in whole[:done] else one for n, one in enumerate(pods)]
        assert [fact.name for fact in order(situation_of(snapshot(current, *mixed)))] == whole[done:]


def test_priorities() -> None:
    """SCS-91: by weight; a term that matches nothing changes nothing."""
    terms = [{"weight": 50, "matchSelector": {"matchLabels": {"first": "yes"}}}]
    current = stored(
        sidecar_set(
            containers=[{**SIDE, "image": "nginx:1.26"}],
            updateStrategy={"priorityStrategy": {"weightPriority": terms}},
        )
    )
    pods = [made(OLD, "web-1"), made(OLD, "web-2", {"first": "yes"}), made(OLD, "web-3", ready=False)]
    assert [fact.name for fact in order(situation_of(snapshot(current, *pods)))] == ["web-2", "web-3", "web-1"]


@pytest.mark.parametrize(
    ("given_partition", "matched", "kept"),
    [(None, 4, 0), (2, 4, 2), (9, 4, 4), ("50%", 3, 2), ("99%", 2, 1), ("100%", 2, 2), ("99%", 1, 1), ("0%", 5, 0)],
)
def test_partition(given_partition: int | str | None, matched: int, kept: int) -> None:
    """SCS-93: rounded up; a percentage but 100% lets at least one of several pods go."""
    assert partition_of(given_partition, matched) == kept


@story_settings(40)
@given(
    states=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=8),
    unavailable=st.sampled_from([0, 1, 2, "50%"]),
    partition=st.sampled_from([0, 1, 3, "50%"]),
)
def test_never_more_unavailable_than_allowed(
    states: list[tuple[bool, bool]], unavailable: int | str, partition: int | str
) -> None:
    """SCS-93, SCS-94, SCS-97: broken pods use up nothing, and the partition is kept."""
    manifest = sidecar_set(
        containers=[{**SIDE, "image": "nginx:1.26"}],
        updateStrategy={"maxUnavailable": unavailable, "partition": partition},
    )
    current = stored(manifest)
    pods = [made(manifest if updated else OLD, f"web-{n}", ready=ready) for n, (updated, ready) in enumerate(states)]
    total = len(pods)
    limit = unavailable if isinstance(unavailable, int) else -(-total // 2)
    chosen = {action.target.name for action in writes_of(current, *pods)}
    ready = {f"web-{n}" for n, (_, is_ready) in enumerate(states) if is_ready}
    down = sum(updated and not is_ready for updated, is_ready in states)
    assert not chosen & ready or len(chosen & ready) + down <= limit
    old = sum(not updated for updated, _ in states)
    assert old - len(chosen) >= min(partition_of(partition, total), old)
    assert all(not states[int(name[4:])][0] for name in chosen)


# Writes that meet


def test_two_sets_never_undo_each_other() -> None:
    """SCS-102, SCS-121: whichever write comes second is tried again over what the first one left."""
    other_old = sidecar_set("other", containers=[{"name": "second", "image": "nginx:1.25"}])
    other_new = sidecar_set("other", containers=[{"name": "second", "image": "nginx:1.26"}])
    submitted = pod()
    whole = running(with_sidecars(submitted, content_of(stored(OLD)), content_of(stored(other_old))))
    (first,) = writes_of(stored(NEW), whole)
    (second,) = writes_of(stored(other_new), whole)
    for one, late, late_set in ((first, second, other_new), (second, first, NEW)):
        changed = patched(whole, one)
        with pytest.raises(PatchError):
            patched(changed, late)
        (again,) = writes_of(stored(late_set), changed)
        both = patched(changed, again)
        images = {item["name"]: item["image"] for item in both["spec"]["containers"]}
        assert images == {"side": "nginx:1.26", "second": "nginx:1.26", "main": "nginx:1.24"}
        assert set(json.loads(both["metadata"]["annotations"][keys.UPDATE_STATE])) == {"logs", "other"}
        hashes = json.loads(both["metadata"]["annotations"][keys.HASH])
        assert hashes["logs"]["hash"] == content_of(stored(NEW)).hash
        assert hashes["other"]["hash"] == content_of(stored(other_new)).hash


def test_workload_and_set_do_not_undo_each_other() -> None:
    """SCS-100, SCS-132: both writes arrive, in whatever order."""
    whole = merge_metadata(made(OLD), labels={"controller-revision-hash": "a"})
    (of_set,) = writes_of(stored(NEW), whole)
    edit = PodEdit(images={"main": "nginx:1.30"}, annotations={"apps.kruise.io/inplace-update-state": "{}"}, exact=True)
    (of_workload,) = writes(read(whole), edit, reason="update")
    results = [patched(patched(whole, one), other) for one, other in ((of_set, of_workload), (of_workload, of_set))]
    for both in results:
        images = {item["name"]: item["image"] for item in both["spec"]["containers"]}
        assert images == {"side": "nginx:1.26", "main": "nginx:1.30"}
    assert results[0]["metadata"] == results[1]["metadata"]


def test_a_write_about_an_older_pod_does_nothing() -> None:
    """Somebody changed the image of the sidecar by hand meanwhile."""
    whole = made(OLD)
    (action,) = writes_of(stored(NEW), whole)
    meanwhile = copy.deepcopy(whole)
    meanwhile["spec"]["containers"][0]["image"] = "nginx:by-hand"
    with pytest.raises(PatchError):
        patched(meanwhile, action)


def test_a_condition_that_no_other_set_writes_collides_with_nobody() -> None:
    """SCS-120: what nodes write meanwhile does not matter; a second set that writes for the first time does."""
    changed = stored(sidecar_set(containers=[{**SIDE, "env": [{"name": "A", "value": "b"}]}]))
    (alone,) = writes_of(changed, made(OLD), phase=CONDITIONS)
    assert alone.resource_version == ""
    other = sidecar_set("other", containers=[{"name": "second", "image": "nginx:1.25"}])
    whole = running(with_sidecars(pod(), content_of(stored(OLD)), content_of(stored(other))))
    whole["metadata"]["resourceVersion"] = "7"
    (shared,) = writes_of(changed, whole, phase=CONDITIONS)
    assert shared.resource_version == "7"


def test_entries_of_the_condition_stay() -> None:
    """SCS-120, SCS-121."""
    other = sidecar_set("other", containers=[{"name": "second", "image": "nginx:1.25"}])
    whole = running(with_sidecars(pod(), content_of(stored(OLD)), content_of(stored(other))))
    told = {"type": keys.UPGRADABLE, "status": "False", "reason": keys.IMMUTABLE_FIELD, "message": '{"other":false}'}
    whole["status"]["conditions"].append(told)
    changed = stored(sidecar_set(containers=[{**SIDE, "env": [{"name": "A", "value": "b"}]}]))
    (action,) = writes_of(changed, whole, phase=CONDITIONS)
    after = patched(whole, action)["status"]["conditions"][1]
    assert json.loads(after["message"]) == {"logs": False, "other": False}
    whole["status"]["conditions"][1]["message"] = '{"third":true}'
    with pytest.raises(PatchError):
        patched(whole, action)


def test_patched_annotations_come_along_with_an_update() -> None:
    """SCS-104, SCS-107: not alone, and init containers are never rolled out."""
    patch = [{"annotations": {"k": "v"}, "patchPolicy": "Overwrite"}]
    whole = merge_metadata(made(OLD), annotations={"k": "old"})
    first = [{"name": "init", "image": "i:2"}]
    assert writes_of(stored(sidecar_set(patchPodMetadata=patch, initContainers=first)), whole) == []
    (action,) = writes_of(
        stored(sidecar_set(patchPodMetadata=patch, containers=[{**SIDE, "image": "nginx:1.26"}])), whole
    )
    assert patched(whole, action)["metadata"]["annotations"]["k"] == "v"


def test_a_pause_suspends_the_end_of_a_hot_upgrade() -> None:
    """SCS-111, SCS-115: and that is said, rather than that it goes on by itself."""
    hot = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}
    old, new = (sidecar_set(containers=[{**hot, "image": image}]) for image in ("nginx:1.25", "nginx:1.26"))
    whole = made(old)
    (action,) = writes_of(stored(new), whole)
    handed_over = running(patched(whole, action))
    assert len(writes_of(stored(new), handed_over, phase=RESET)) == 1
    for strategy, code in (({"paused": True}, "paused"), ({"type": "NotUpdate"}, "not-update")):
        held = stored(sidecar_set(containers=new["spec"]["containers"], updateStrategy=strategy))
        assert writes_of(held, handed_over, phase=RESET) == []
        [waiting] = decide(snapshot(held, handed_over)).held
        assert [cause.code for cause in waiting.causes] == [code]
        assert "both containers of its hot upgrade run" in waiting.causes[0].message
        starting = running(patched(whole, action), ready=False)
        assert [one.causes[0].code for one in decide(snapshot(held, starting)).held] == ["hot-upgrade"]


def test_a_reset_that_is_refused_does_not_hold_up_the_rollout() -> None:
    """SCS-111: the updates are planned beside it, skipped where a reset was done, and decided anew then."""
    hot = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}
    strategy = {"maxUnavailable": 2}
    old, new = (
        sidecar_set(containers=[{**hot, "image": image}], updateStrategy=strategy)
        for image in ("nginx:1.25", "nginx:1.26")
    )
    first = made(old)
    (action,) = writes_of(stored(new), first)
    plan = decide(snapshot(stored(new), running(patched(first, action)), made(old, "web-2")))
    phases = {phase.name: phase for phase in plan.phases}
    assert [[one.target.name for one in chain] for chain in phases[RESET].chains] == [["web-1"]]
    assert [[one.target.name for one in chain] for chain in phases[UPDATE].chains] == [["web-2"]]
    assert phases[RESET].on_error is OnError.CONTINUE
    assert phases[UPDATE].unless_done == (RESET,)


def test_unreadable_annotations_hold_nobody_else_up() -> None:
    """SCS-84: what somebody wrote by hand makes a pod wait, not the pass fail."""
    broken = merge_metadata(made(OLD, "web-1"), annotations={keys.UPDATE_STATE: "{", keys.WORKING: "[]"})
    strategy = {"maxUnavailable": 2}
    current = stored(sidecar_set(containers=[{**SIDE, "image": "nginx:1.26"}], updateStrategy=strategy))
    plan = decide(snapshot(current, broken, made(OLD, "web-2")))
    assert {action.target.name for action in plan.actions() if action.target.resource.plural == "pods"} == {"web-2"}
    (held,) = plan.held
    assert (held.target.name, [cause.code for cause in held.causes]) == ("web-1", ["broken-annotation"])


def test_an_annotation_of_others_says_nothing_of_what_runs() -> None:
    """SCS-84: only the update state tells whether a pod is consistent."""
    odd = merge_metadata(made(OLD), annotations={keys.WORKING: "["})
    assert facts_of(read(odd), content_of(stored(OLD)), is_selected=True).serves
    odd = merge_metadata(made(OLD), annotations={keys.UPDATE_STATE: "["})
    assert not facts_of(read(odd), content_of(stored(OLD)), is_selected=True).serves


@pytest.mark.parametrize("text", ["{", '{"logs": []}', '{"logs": {"lastContainerStatuses": 1}}'])
def test_nothing_rests_where_nobody_can_tell_what_runs(text: str) -> None:
    """SCS-84, SCS-111: an update state that cannot be read says that the pod is not consistent."""
    hot = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}
    old, new = (sidecar_set(containers=[{**hot, "image": image}]) for image in ("nginx:1.25", "nginx:1.26"))
    whole = made(old)
    (action,) = writes_of(stored(new), whole)
    handed_over = running(patched(whole, action))
    assert len(writes_of(stored(new), handed_over, phase=RESET)) == 1
    broken = merge_metadata(handed_over, annotations={keys.UPDATE_STATE: text})
    assert writes_of(stored(new), broken, phase=RESET) == []


def test_failures_count_in_each_namespace() -> None:
    """Pods of one name in two namespaces are two pods."""
    budget = {"annotations": {ANNOTATION: "1"}}
    bad = sidecar_set(metadata=budget, containers=[{**SIDE, "image": "nginx:none"}])
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "nginx:none"}}

    def failing(namespace: str) -> Json:
        whole = made(bad, ready=False)
        whole["metadata"]["namespace"] = namespace
        whole["metadata"]["uid"] = f"uid-{namespace}"
        for status in whole["status"]["containerStatuses"]:
            if status["name"] == "side":
                status["state"] = waiting
        return whole

    stop = judged(situation_of(snapshot(stored(bad), failing("one"), failing("two")))).stop
    assert stop is not None
    assert [one.name for one in stop.memory.pods] == ["one/web-1", "two/web-1"]


def test_a_sidecar_that_waits_for_its_turn_has_not_failed() -> None:
    """CLP-8: its barrier opens when the containers before it are ready."""
    barrier = {"name": "KRUISE_CONTAINER_BARRIER"}
    barrier["valueFrom"] = {"configMapKeyRef": {"name": "web-1-barrier", "key": "p_0"}}
    current = sidecar_set(metadata={"annotations": {ANNOTATION: "0"}})
    texts = ("couldn't find key p_0 in ConfigMap default/web-1-barrier", 'secret "password" not found')
    failures = []
    for text in texts:
        whole = made(current, ready=False)
        for container in whole["spec"]["containers"]:
            container["env"] = [*container.get("env", []), barrier]
        for status in whole["status"]["containerStatuses"]:
            if status["name"] == "side":
                status["state"] = {"waiting": {"reason": "CreateContainerConfigError", "message": text}}
        [facts] = situation_of(snapshot(stored(current), whole)).facts
        failures.append(facts.failure)
    assert failures == ["", "CreateContainerConfigError of container side"]


def test_who_stays_behind_is_counted() -> None:
    """SCS-90, SCS-95: pods that nothing will update are told apart from those whose turn comes."""
    changed = [{**SIDE, "image": "nginx:1.26", "env": [{"name": "A", "value": "b"}]}]
    selector = {"matchLabels": {"canary": "yes"}}
    current = stored(sidecar_set(containers=changed, updateStrategy={"selector": selector}))
    pods = [made(OLD, "web-1"), made(OLD, "web-2", {"canary": "yes"}), made(OLD, "web-3")]
    memo = decide(snapshot(current, *pods)).memo_as(Memo)
    assert (memo.matched, memo.updated, memo.not_selected, memo.stuck) == (3, 0, 2, 1)


@pytest.mark.parametrize(("is_paused", "codes"), [(False, ["revision-missing"]), (True, [])])
def test_a_revision_that_is_gone_is_missed_by_those_who_need_it(is_paused: bool, codes: list[str]) -> None:
    """SCS-35, SCS-39: while injection is paused, pods are made without it."""
    injection = {"paused": is_paused, "revision": {"revisionName": "logs-gone"}}
    plan = decide(snapshot(stored(sidecar_set(injectionStrategy=injection))))
    assert [cause.code for held in plan.held for cause in held.causes] == codes
