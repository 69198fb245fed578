"""Answers from few facts: chains, groups, bounds, and what is said in which words."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest

from kruise.api.meta import Condition
from kruise.api.native.events import Event, Lease
from kruise.api.native.nodes import Node
from kruise.api.native.pod import PODS, Pod
from kruise.faces.native import STATEFUL_SET
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.causes import Act, Catalogue, Cause
from kruise.machinery.digest import plan_to_data
from kruise.machinery.plan import Held, Plan, Target
from kruise.protection.podunavailablebudget.causes import BUDGET
from kruise.reasons import dump
from kruise.reasons.assembling import Facts, assemble
from kruise.reasons.data import as_data
from kruise.reasons.decision import About, Decision, Step, of_plan
from kruise.reasons.diagnosis import Place, Surroundings, diagnose
from kruise.reasons.links import OBJECT, Answer, Source
from kruise.reasons.manager import manager_by
from kruise.reasons.words import answer_lines, groups, in_short, listed, lone_pod_lines, pod_lines
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from kruise.workloads.cloneset.situation import Snapshot
from kruise.workloads.shared.causes import MAX_UNAVAILABLE
from tests.support.clonesets import NEW, NOW, OLD, make_cloneset, make_pod

Json = dict[str, Any]
JOURNAL = Source(words="the last decision of the manager", is_journal=True, time=NOW - timedelta(seconds=3))
PLACE = Place(target="cloneset/web", flags=" -n demo", can_undo=True)


def document(**options: Any) -> Json:
    status = {"updateRevision": NEW.metadata.name, "observedGeneration": 1, **options.pop("status", {})}
    found: Json = codec.decode(codec.encode(make_cloneset(status=status, **options)), dict)
    return found


def unknown(code: str, message: str, details: Json | None = None, remedy: str = "") -> Cause:
    """As it is read from the journal of another version."""
    return Catalogue(()).meaning(code, remedy).cause(message, details=details, remedy=remedy)


def held(name: str, *causes: Cause) -> tuple[About, tuple[Cause, ...]]:
    return About("", "pods", name), causes


def answer_of(pods: list[Pod], decision: Decision | None, doc: Json, **facts: Any) -> Answer:
    given = {"source": JOURNAL, "now": NOW, **facts}
    return assemble(Facts(kind=CLONE_SET, document=doc, pods=tuple(pods), decision=decision, **given))


def blocked(pods: int, down: int) -> Answer:
    """A rollout of which `down` pods cannot get their image, and the others wait for them."""
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    broken = [
        with_container(make_pod(f"d{number}", ready=False), waiting=waiting, image="nginx:nope")
        for number in range(down)
    ]
    others = [make_pod(f"o{number}", old=True) for number in range(pods - down)]
    users = [pod.metadata.name for pod in broken]
    cause = MAX_UNAVAILABLE.cause("used up", details={"unavailable": users}, remedy="wait")
    decision = Decision(held=tuple(held(pod.metadata.name, cause) for pod in others))
    return answer_of([*broken, *others], decision, document(replicas=pods))


def with_container(pod: Pod, *, image: str = "nginx:1.25", restarts: int = 0, **state: Any) -> Pod:
    data = codec.decode(codec.encode(pod), dict)
    data["spec"]["containers"] = [{"name": "main", "image": image}]
    last = state.pop("last", None)
    status: Json = {"name": "main", "image": image, "restartCount": restarts, "state": state, "ready": False}
    if last:
        status["lastState"] = {"terminated": last}
    data["status"]["containerStatuses"] = [status]
    return codec.convert(data, Pod)


def test_thousands_of_pods_are_one_paragraph() -> None:
    answer = blocked(2000, 200)
    lines = answer_lines(answer)
    assert len(lines) < 15
    assert lines[0] == (
        f"cloneset.apps.kruise.io/web in namespace demo: 200 of 2000 pods at revision {NEW.metadata.name}, "
        "1800 of 2000 available"
    )
    assert lines[1] == "from the last decision of the manager, 3s ago"
    assert lines[3] == "1800 pods are stuck: web-o0, web-o1, web-o10, web-o100, web-o1000 and 1795 more"
    assert lines[5].startswith("  └ web-d0, web-d1, web-d2, web-d3, web-d4 and 195 more:")
    assert "cannot get its image nginx:nope: not found [image-pull]" in lines[6]
    assert "kruise set image cloneset/web -n demo main=IMAGE" in lines[7]
    data = as_data(answer)
    assert len(data["waiting"]) == 2000, "data is complete"
    assert [end["code"] for end in data["waiting"][-1]["ends"]] == ["image-pull"]


def test_one_pod_of_them() -> None:
    answer = blocked(20, 2)
    lines = pod_lines(answer, "web-o7")
    place = f"revision {OLD.metadata.name}, available, on node-1"
    assert lines[0] == f"pod web-o7 of cloneset.apps.kruise.io/web in namespace demo: {place}"
    assert lines[3] == "pod web-o7 is stuck"
    data = as_data(answer, pod="web-o7")
    assert (data["pod"], data["act"]) == ("web-o7", "somebody")
    assert [item["pod"] for item in data["waiting"]] == ["web-d0", "web-d1", "web-o7"], "and those it waits for"
    assert pod_lines(answer_of([make_pod("a")], Decision(), document(replicas=1)), "web-a")[-1] == (
        "pod web-a is where it should be"
    )


def test_nothing_waits() -> None:
    answer = answer_of([make_pod("a"), make_pod("b")], Decision(), document(replicas=2))
    assert answer.act is None
    assert answer_lines(answer)[-1] == f"nothing waits: 2 of 2 pods at revision {NEW.metadata.name}, available"
    assert as_data(answer)["waits"] is False


def test_many_different_causes_are_bounded() -> None:
    pods = [make_pod(f"p{number}", old=True) for number in range(12)]
    decision = Decision(
        held=tuple(
            held(pod.metadata.name, unknown("new-code", f"cause {number}", remedy="do something"))
            for number, pod in enumerate(pods)
        )
    )
    answer = answer_of(pods, decision, document(replicas=12))
    assert len(groups(answer)) == 12
    assert answer_lines(answer)[-1] == "and 4 more pods with 4 other causes: -o json tells them all"
    assert len(in_short(answer)) == 12


def test_a_code_that_nobody_knows_is_taken_at_its_word() -> None:
    """A kind that came since brings its own causes."""
    decision = Decision(
        held=(
            held("web-a", unknown("moon", "the moon is not full", remedy="change the moon")),
            held("web-b", unknown("tide", "the tide is high", details={"hours": 3})),
        )
    )
    answer = answer_of([make_pod("a", old=True), make_pod("b", old=True)], decision, document(replicas=2))
    assert (answer.act_of("web-a"), answer.act_of("web-b")) == (Act.SOMEBODY, Act.NOBODY)


def test_who_used_up_a_limit_may_be_well_by_now() -> None:
    """A journal is a moment old."""
    cause = MAX_UNAVAILABLE.cause("used up", details={"unavailable": ["web-b", "web-gone"]})
    answer = answer_of(
        [make_pod("a", old=True), make_pod("b")], Decision(held=(held("web-a", cause),)), document(replicas=2)
    )
    [end] = answer.ends("web-a")
    assert (end.act, end.remedy) == (
        Act.NOBODY,
        "what it waited for is over; the manager goes on at its next look",
    )
    assert any("→ what it waited for is over" in line for line in answer_lines(answer))


def test_pods_that_wait_for_each_other_do_not_go_round_in_circles() -> None:
    down = [make_pod(name, old=True, ready=False) for name in "ab"]
    cause = MAX_UNAVAILABLE.cause("used up", details={"unavailable": ["web-a", "web-b"]})
    answer = answer_of(down, Decision(held=tuple(held(f"web-{name}", cause) for name in "ab")), document(replicas=2))
    assert {end.code for end in answer.ends("web-a")} == {"not-ready"}
    assert len(answer_lines(answer)) < 12


def test_what_holds_a_pod_twice_is_told_once() -> None:
    """A pod too many that a budget keeps, from its deletion as from its update (PUB-101)."""
    cause = BUDGET.cause("budget web is used up", remedy="wait")
    pods = [make_pod(name, old=True) for name in ("a", "b")]
    answer = answer_of(pods, Decision(held=(held("web-a", cause), held("web-a", cause))), document(replicas=1))
    assert [link.code for link in answer.waiting["web-a"].links] == [BUDGET.code]
    assert answer_lines(answer)[0].endswith(", 2 available, 1 wanted")


def test_a_limit_without_users_must_be_raised() -> None:
    cause = MAX_UNAVAILABLE.cause("no room", details={"budget": 0, "unavailable": []})
    pods, doc = [make_pod("a", old=True), make_pod("b", old=True)], document(replicas=2)
    alone = answer_of(pods, Decision(held=(held("web-a", cause), held("web-b", cause))), doc)
    assert [(end.act, end.remedy[:5]) for end in alone.ends("web-a")] == [(Act.SOMEBODY, "raise")]
    step = Step("patch", About("", "pods", "web-b"), "update in place", "uid-b")
    moving = answer_of(pods, Decision(held=(held("web-a", cause),), steps=(step,)), doc)
    assert [(end.code, end.act) for end in moving.ends("web-a")] == [("moving", Act.NOBODY)]
    missing = answer_of(pods, Decision(held=(held("web-a", cause),)), document(replicas=3))
    assert [end.code for end in missing.ends("web-a")] == ["creating"]


def test_nothing_of_what_is_stuck_goes_on_by_itself() -> None:
    """Of a part that is on its way, while somebody has to act upon another one, nothing is promised."""
    late, lost = unknown("subset-rolling", "subset a is rolling"), unknown("full", "no room", remedy="make room")
    pods, doc = [make_pod(name, old=True) for name in "ab"], document(replicas=2)
    lines = answer_lines(answer_of(pods, Decision(held=(held("web-a", late, lost), held("web-b", late))), doc))
    assert lines[3:] == [
        "pod web-a is stuck",
        "  subset a is rolling [subset-rolling]",
        "  no room [full]",
        "  → make room",
        "",
        "pod web-b is on its way",
        "  subset a is rolling [subset-rolling]",
        "  → it goes on by itself",
    ]


def test_writes_that_arrived_are_not_told_again() -> None:
    step = Step("patch", About("", "pods", "web-a"), "update in place", "uid-a")
    pods, doc = [make_pod("a", old=True)], document(replicas=1)
    fresh = answer_of(pods, Decision(steps=(step,), seen={"uid-a": "7"}), doc)
    assert [link.code for link in fresh.waiting["web-a"].links] == ["moving"]
    older = answer_of(pods, Decision(steps=(step,), seen={"uid-a": "6"}), doc)
    assert [link.code for link in older.waiting["web-a"].links] == ["next"]


def test_a_refusal_is_told_with_a_remedy() -> None:
    def refused(message: str, decision: Decision) -> list[tuple[str, str]]:
        failed = {"type": "FailedScale", "status": "True", "message": message}
        answer = answer_of([], decision, document(replicas=2, status={"conditions": [failed]}))
        return [(end.code, end.remedy) for end in answer.ends(OBJECT)]

    create = Step("create", About("", "pods", "web-x"), "0 of 2 pods are there", "")
    quota = 'pods "web-x" is forbidden: exceeded quota: small, requested: pods=1'
    [(code, remedy)] = refused(quota, Decision(steps=(create,)))
    assert code == "create-refused"
    assert "kubectl describe quota -n demo" in remedy
    [(_, remedy)] = refused('admission webhook "v.example.com" denied the request: no', Decision())
    assert "webhook" in remedy


def test_the_deadline_is_a_remark() -> None:
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}
    answer = answer_of([make_pod("a")], Decision(), document(replicas=1, status={"conditions": [late]}))
    assert answer_lines(answer)[-1] == "note: too late; that stops nothing by itself"
    assert as_data(answer)["remarks"][0]["code"] == "deadline-exceeded"


def test_the_generation_that_a_journal_saw_counts() -> None:
    """The status is written after the plan was made."""
    doc = document(replicas=1, status={"observedGeneration": 0})
    assert OBJECT in answer_of([make_pod("a")], Decision(), doc).waiting
    assert OBJECT not in answer_of([make_pod("a")], Decision(), doc, generation_seen=1).waiting


@pytest.mark.parametrize("causes_once", [False, True])
def test_a_dump_tells_what_its_plan_did(causes_once: bool) -> None:
    snapshot = Snapshot(
        cloneset=make_cloneset(rolling={"maxUnavailable": 1, "podUpdatePolicy": "InPlaceIfPossible"}),
        now=NOW,
        pods=(make_pod("a", old=True), make_pod("b", ready=False), make_pod("c", old=True)),
        revisions=(OLD, NEW),
    )
    plan = decide(snapshot)
    data = plan_to_data(plan, causes_once=causes_once)
    found = dump.read(codec.encode({"time": NOW, "snapshot": snapshot, "plan": data}))
    assert (found.time, found.pods) == (NOW, snapshot.pods)
    assert found.generations[snapshot.cloneset.metadata.uid] == 1
    read, made = found.decision, of_plan(plan)
    assert (read.held, read.steps, read.revision, read.told_error) == (
        made.held,
        made.steps,
        made.revision,
        made.told_error,
    )
    assert len(read.held) == 2
    assert read.seen is not None
    assert read.seen["uid-a"] == "7"


def test_one_cause_of_many_is_told_once() -> None:
    cause = MAX_UNAVAILABLE.cause("used up", details={"unavailable": ["x"]}, remedy="wait")
    held = tuple(Held(target=Target(PODS, "demo", name), causes=(cause,)) for name in "abc")
    data = plan_to_data(Plan(held=held), causes_once=True)
    assert [cause["code"] for cause in data["causes"]] == ["max-unavailable"]
    assert [held["causes"] for held in data["held"]] == [[0]] * 3
    read = dump.read(codec.encode({"plan": data})).decision
    assert [(about.name, causes) for about, causes in read.held] == [(name, (cause,)) for name in "abc"]
    assert len({id(one) for _, causes in read.held for one in causes}) == 1


@pytest.mark.parametrize(
    "document", [{}, {"plan": {"held": [{}], "phases": [{}]}}, {"snapshot": {"pods": [1], "x": [{}], "y": {}, "z": 1}}]
)
def test_a_dump_of_another_version_is_read_as_far_as_it_goes(document: Json) -> None:
    found = dump.read(codec.encode(document))
    assert (found.decision.steps, found.decision.seen, found.pods, found.generations) == ((), {}, None, {})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "malformed"),
        (b'{"plan": 1}', r"Expected `object`, got `int` - at `\$.plan`"),
        (b'{"plan": {"causes": [{}], "held": [{"causes": [1]}]}}', "names a cause beyond the 1 that it tells"),
    ],
)
def test_what_is_no_dump(body: bytes, said: str) -> None:
    with pytest.raises(codec.DecodeError, match=said):
        dump.read(body)


# Kubernetes' own kinds


def test_a_stateful_set_keeps_to_its_partition() -> None:
    doc = {
        "metadata": {"name": "db", "namespace": "demo", "generation": 1},
        "spec": {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
        "status": {"observedGeneration": 1, "updateRevision": "db-2"},
    }
    pods = [
        codec.evolve(make_pod(str(n)), metadata=codec.evolve(make_pod(str(n)).metadata, name=f"db-{n}"))
        for n in range(3)
    ]
    facts = Facts(
        kind=STATEFUL_SET,
        document=doc,
        pods=tuple(pods),
        now=NOW,
        source=Source(words="x"),
        new_pods=frozenset({"db-2"}),
    )
    answer = assemble(facts)
    assert {name: waiting.links[0].code for name, waiting in answer.waiting.items()} == {
        "db-0": "partition",
        "db-1": "old-template",
    }
    on_delete = {**doc, "spec": {"replicas": 3, "updateStrategy": {"type": "OnDelete"}}}
    assert assemble(dataclasses.replace(facts, document=on_delete)).act is Act.INTENDED


def test_a_stateful_set_makes_pods_one_by_one() -> None:
    """Those that are missing wait for the one that does not become available, and not for nothing."""
    spec = {"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}}
    metadata, status = {"name": "db", "namespace": "demo", "generation": 1}, {"observedGeneration": 1}
    doc = {"metadata": metadata, "spec": spec, "status": status}
    down = make_pod("0", ready=False)
    facts = Facts(
        kind=STATEFUL_SET,
        document=doc,
        pods=(codec.evolve(down, metadata=codec.evolve(down.metadata, name="db-0")),),
        now=NOW,
        source=Source(words="x"),
        new_pods=frozenset({"db-0"}),
    )
    [missing] = assemble(facts).waiting[OBJECT].links
    assert missing.message == "2 pods are missing; created one by one, each when the ones before are available"
    assert missing.leads_to == ("db-0",)
    together = {**doc, "spec": {**spec, "podManagementPolicy": "Parallel"}}
    [missing] = assemble(dataclasses.replace(facts, document=together)).waiting[OBJECT].links
    assert (missing.message, missing.leads_to) == ("2 pods are missing; created as soon as nothing is in the way", ())


# The manager


def lease(renewed: datetime | None, holder: str = "a_1") -> Lease:
    spec: Json = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return codec.convert({"metadata": {"name": "m", "namespace": "s"}, "spec": spec}, Lease)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (lease(NOW), ""),
        (lease(None), ""),
        (lease(NOW - timedelta(seconds=40)), ""),
        (lease(NOW - timedelta(seconds=50)), "no manager is at work: a_1 renewed the lease s/m last 50s ago"),
        (lease(NOW, ""), "no manager is at work: nobody holds the lease s/m"),
    ],
)
def test_a_lease_tells_whether_a_manager_is_at_work(found: Lease, words: str) -> None:
    manager = manager_by(found, NOW)
    assert (manager.words, manager.is_down) == (words, bool(words))


def test_without_a_lease_nobody_can_tell() -> None:
    manager = manager_by(None, NOW)
    assert (manager.is_down, manager.is_unknown) == (False, True)


# Pods


def diagnosed(pod: Pod, **around: Any) -> list[tuple[str, str, Act]]:
    found = diagnose(pod, min_ready_seconds=0, now=NOW, around=Surroundings(**around), place=PLACE)
    return [(link.code, link.message, link.act) for link in found]


def warning(reason: str, message: str) -> Event:
    return Event(reason=reason, message=message, type="Warning")


BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}


@pytest.mark.parametrize(
    ("pod", "around", "code", "text"),
    [
        (
            with_container(
                make_pod("a", ready=False),
                waiting={
                    "reason": "ImagePullBackOff",
                    "message": 'Back-off pulling image "x": ErrImagePull: rpc error: code = NotFound desc = failed to '
                    'pull and unpack image "docker.io/x": failed to resolve reference "docker.io/x": not found',
                },
                image="x",
            ),
            {},
            "image-pull",
            "container main cannot get its image x: not found",
        ),
        (
            with_container(
                make_pod("a", ready=False), waiting=BACK_OFF, restarts=4, last={"exitCode": 137, "reason": "OOMKilled"}
            ),
            {},
            "crash-loop",
            "container main crashes: it ended with exit code 137 (OOMKilled); 4 restarts so far",
        ),
        (
            with_container(
                make_pod("a", ready=False), running={}, restarts=2, last={"exitCode": 1, "message": "no\nconfig"}
            ),
            {},
            "crash-loop",
            "container main crashes: it ended with exit code 1: no config; 2 restarts so far",
        ),
        (
            with_container(make_pod("a", ready=False), waiting=BACK_OFF, image="x"),
            {"events": (warning("Failed", 'Failed to pull image "x": ErrImagePull: not found'),)},
            "image-pull",
            "container main cannot get its image x: not found",
        ),
        (
            with_container(make_pod("a", ready=False), waiting=BACK_OFF, image="x"),
            {},
            "starting",
            "container main is being started",
        ),
        (
            with_container(make_pod("a", ready=False), running={"startedAt": "2030-01-01T11:00:00Z"}),
            {"events": (warning("Unhealthy", "Readiness probe failed: 500"),)},
            "probe",
            "container main runs, but has not passed its readiness probe: Readiness probe failed: 500",
        ),
        (make_pod("a", node="", phase="Pending", ready=False), {}, "unscheduled", "no scheduler has looked at it"),
        (make_pod("a", ready=False), {"is_node_gone": True}, "node-gone", "its node node-1 is gone"),
        (make_pod("a", phase="Failed"), {}, "finished", "it has ended (Failed)"),
        (
            make_pod("a", state="PreparingDelete"),
            {},
            "lifecycle-state",
            "it is ready, but in lifecycle state PreparingDelete",
        ),
        (make_pod("a", terminating=True, finalizers=("x/y",)), {}, "terminating", "finalizers hold it: x/y"),
        (make_pod("a", terminating=True), {}, "terminating", "its node has not reported its end"),
        (make_pod("a", ready=False), {}, "not-ready", "it is not ready"),
    ],
)
def test_what_is_wrong_with_a_pod(pod: Pod, around: Json, code: str, text: str) -> None:
    [(found, message, _)] = diagnosed(pod, **around)
    assert (found, text in message) == (code, True), message


def test_a_pod_that_serves_has_nothing() -> None:
    assert diagnosed(make_pod("a")) == []
    assert lone_pod_lines("a", "demo", ())[-1] == "nothing waits: pod a is available"


def test_a_node_that_does_not_answer_comes_before_what_its_pods_say() -> None:
    node = codec.convert(
        {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "silent"}]}}, Node
    )
    pod = with_container(make_pod("a", ready=False), waiting=BACK_OFF, restarts=3)
    assert [code for code, _, _ in diagnosed(pod, node=node)] == ["node-not-ready"]
    going = make_pod("a", terminating=True)
    assert [code for code, _, _ in diagnosed(going, node=node)] == ["node-not-ready", "terminating"]


def test_a_container_that_has_just_started_has_time() -> None:
    pod = with_container(make_pod("a", ready=False), running={"startedAt": "2030-01-01T11:59:50Z"})
    [(code, _, act)] = diagnosed(pod)
    assert (code, act) == ("probe", Act.NOBODY)


def test_gates_tell_who_shuts_them() -> None:
    pod = make_pod("a", ready=False)
    message = '[{"userAgent":"PodUnavailableBudget","key":"maintenance"}]'
    shut = Condition(type=keys.KRUISE_POD_READY, status="False", message=message)
    others = [one for one in pod.status.conditions if one.type != keys.KRUISE_POD_READY]
    status = codec.evolve(pod.status, conditions=(*others, shut))
    [(code, told_message, _)] = diagnosed(codec.evolve(pod, status=status))
    assert (code, told_message) == (
        "readiness-gate",
        "somebody keeps it unready: PodUnavailableBudget (maintenance)",
    )
    without = codec.evolve(pod.status, conditions=tuple(others))
    assert [code for code, _, _ in diagnosed(codec.evolve(pod, status=without))] == ["lifecycle-state"]


def test_our_own_hook_is_nobody_elses_reason() -> None:
    pod = make_pod("a", ready=False)
    shut = Condition(
        type=keys.KRUISE_POD_READY, status="False", message='[{"userAgent":"Lifecycle","key":"preDeleteHook"}]'
    )
    others = [one for one in pod.status.conditions if one.type != keys.KRUISE_POD_READY]
    status = codec.evolve(pod.status, conditions=(*others, shut))
    assert diagnosed(codec.evolve(pod, status=status)) == [
        ("lifecycle-state", "the preDelete hook of its workload keeps it out of service", Act.NOBODY)
    ]


def test_a_pod_of_nobody_is_mended_by_a_command_that_asks_nothing() -> None:
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    pod = with_container(make_pod("solo", ready=False), waiting=waiting, image="nginx:nope")
    [link, *_] = diagnose(pod, min_ready_seconds=0, now=NOW, around=Surroundings(), place=Place())
    command = f"kubectl set image pod/{pod.metadata.name} -n demo {pod.spec.containers[0].name}=IMAGE"
    assert link.code == "image-pull"
    assert f"({command})" in link.remedy


def test_names_are_counted_where_there_are_many() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
