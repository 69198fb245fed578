"""The sidecar terminator: when a pod is due, what is done, and which environment gets a warning (JST)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.admission.chain import PodChain
from kruise.admission.decisions import Allow, HandlerView
from kruise.api.apps.containerrecreaterequest import REQUESTS, ContainerRecreateRequest
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Action, Outcome, Outcomes, Plan, Result
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.sidecars.terminator.containers import is_due, verdict
from kruise.sidecars.terminator.controller import FEATURE
from kruise.sidecars.terminator.decide import Snapshot, conclude, decide, events, is_concerned
from tests.admission.helpers import request_of
from tests.support.examples import story_settings

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KILL = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
IMAGE = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
IGNORE = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
RUNNING: Json = {"running": {}}


def over(code: int = 0) -> Json:
    return {"terminated": {"exitCode": code}}


def container(name: str, state: Json | None, **env: Any) -> tuple[Json, Json | None]:
    variables = [
        {"name": key, "value": value} if isinstance(value, str) else {"name": key, "valueFrom": {}}
        for key, value in env.items()
    ]
    status = None if state is None else {"name": name, "state": state, "restartCount": 0}
    return {"name": name, "image": "app:1", "env": variables}, status


def pod(*containers: tuple[Json, Json | None], policy: str = "Never", phase: str = "Running", **metadata: Any) -> Pod:
    conditions = metadata.pop("conditions", [])
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u", **metadata},
        "spec": {"restartPolicy": policy, "nodeName": "n", "containers": [one for one, _ in containers]},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [status for _, status in containers if status is not None],
        },
    }
    return codec.convert(document, Pod)


DONE = container("main", over())
SIDE = container("side", RUNNING, **{KILL: "true"})


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pod(DONE, SIDE), True),
        (pod(container("main", over(1)), SIDE), True),
        (pod(DONE, SIDE, policy="OnFailure"), True),
        (pod(container("main", over(1)), SIDE, policy="OnFailure"), False),  # JST-5
        (pod(DONE, SIDE, policy="Always"), False),  # JST-3
        (pod(container("main", RUNNING), SIDE), False),
        (pod(DONE, container("two", RUNNING), SIDE), False),
        (pod(DONE, container("side", over(), **{KILL: "true"})), False),
        (pod(DONE, container("side", None, **{KILL: "true"})), False),
        (pod(DONE, SIDE, phase="Pending"), False),
        (pod(DONE, SIDE, phase="Succeeded"), True),  # JST-6
        (pod(DONE, SIDE, deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (pod(SIDE), True),  # JST-7
        (pod(DONE, container("x", RUNNING)), False),
        (pod(DONE, container("x", RUNNING, **{KILL: "TRUE"})), True),
        (pod(DONE, container("x", RUNNING, **{KILL: "1"})), False),
        (pod(DONE, container("x", RUNNING, **{KILL: None})), False),  # JST-1
        (pod(DONE, container("x", RUNNING, **{IMAGE: "end:1"})), True),
    ],
)
def test_when_a_pod_is_due(found: Pod, wanted: bool) -> None:  # JST-2, JST-4, JST-8
    assert is_due(found) is wanted


def decided(found: Pod, *, virtual: bool = False, request: ContainerRecreateRequest | None = None) -> Plan:
    labels = {"type": "virtual-kubelet"} if virtual else {}
    node = codec.convert({"metadata": {"name": "n", "labels": labels}}, Node)
    return decide(Snapshot(pod=found, now=NOW, node=node, request=request))


def killed(plan: Plan) -> list[list[str]]:
    return [
        [one["name"] for one in action.body["spec"]["containers"]]
        for action in plan.actions()
        if action.verb is Verb.CREATE
    ]


def phases(plan: Plan) -> list[str]:
    return [action.body["status"]["phase"] for action in plan.actions() if action.subresource == "status"]


def request(name: str = "side", restarts: int = 0) -> ContainerRecreateRequest:
    one = {"name": name, "statusContext": {"containerID": "c1", "restartCount": restarts}}
    return codec.convert({"metadata": {"name": "r"}, "spec": {"podName": "p", "containers": [one]}}, REQUESTS.type)


STATES = st.sampled_from([RUNNING, over(), over(3), {"waiting": {}}])
SIDECARS = st.lists(st.tuples(STATES, st.booleans(), st.booleans(), st.booleans()), max_size=4)


@story_settings(150)
@given(
    mains=st.lists(STATES, max_size=3),
    sidecars=SIDECARS,
    policy=st.sampled_from(["Never", "OnFailure", "Always"]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    virtual=st.booleans(),
    asked=st.booleans(),
)
def test_nothing_is_ended_too_early_and_nothing_twice(
    mains: list[Json], sidecars: list[Any], policy: str, phase: str, virtual: bool, asked: bool
) -> None:
    """JST-3, JST-4, JST-10 to JST-14, JST-18, JST-21, JST-22: of whatever pod."""
    parts, ways = [container(f"m{place}", state) for place, state in enumerate(mains)], dict[str, tuple[Any, ...]]()
    for place, (state, kill, ignore, image) in enumerate(sidecars):
        env = {
            **({KILL: "true"} if kill else {}),
            **({IGNORE: "true"} if ignore else {}),
            **({IMAGE: "e:1"} if image else {}),
        }
        parts.append(container(f"s{place}", state, **env))
        ways[f"s{place}"] = ("terminated" in state, kill, kill and ignore, image)
    found = pod(*parts, policy=policy, phase=phase)
    request_of_it = request("s0") if asked else None
    plan = decided(found, virtual=virtual, request=request_of_it)
    beside = [name for name, (_, kill, _, image) in ways.items() if kill or image]
    others = [status for status in found.status.container_statuses if status.name not in beside]
    codes = [one.state.terminated.exit_code if one.state.terminated is not None else None for one in others]
    are_done = None not in codes and not (policy == "OnFailure" and any(codes))
    if policy == "Always" or phase == "Pending" or not beside or not are_done:
        assert list(plan.actions()) == []
        return
    for names in killed(plan):
        assert not virtual
        assert not asked, "there is one request in the life of a pod"
        assert names
        assert all(not ways[name][0] and ways[name][1] for name in names)
        assert len({ways[name][2] for name in names}) == 1, "one sort at a time"
    for action in plan.actions():
        if action.subresource == "" and action.verb is Verb.PATCH:
            assert virtual
            assert all(ways[one["name"]][3] and not ways[one["name"]][0] for one in action.body["spec"]["containers"])
    for told in phases(plan):
        assert phase == "Running", "a terminal phase stays"
        assert told == ("Failed" if any(codes) else "Succeeded")
        waited_for = [name for name in beside if ways[name][1] and not ways[name][2] and not virtual]
        assert asked or all(ways[name][0] for name in waited_for), "those whose exit counts come first"


def test_sidecars_are_killed_through_the_daemon() -> None:  # JST-10 to JST-14
    plan = decided(pod(DONE, SIDE, container("ended", over(), **{KILL: "true"})))
    assert killed(plan) == [["side"]]
    action = next(iter(plan.actions()))
    assert action.target.name == "sidecar-termination-u"
    assert action.body["metadata"]["ownerReferences"][0]["controller"] is True
    assert action.body["spec"]["strategy"] == {"forceRecreate": True, "failurePolicy": "Ignore"}
    assert phases(plan) == []
    assert list(decided(pod(DONE, SIDE), request=request()).actions()) == []  # once in the life of a pod
    assert killed(decided(pod(DONE, container("x", RUNNING, **{IMAGE: "end:1"})))) == []


def test_images_are_replaced_on_virtual_nodes() -> None:  # JST-10, JST-18
    found = pod(
        DONE,
        container("a", RUNNING, **{KILL: "true", IMAGE: "end:1"}),
        container("b", RUNNING, **{KILL: "true"}),
        container("c", RUNNING, **{IMAGE: "app:1"}),
    )
    actions: list[Action] = list(decided(found, virtual=True).actions())
    assert [action.body for action in actions] == [{"spec": {"containers": [{"name": "a", "image": "end:1"}]}}]


def test_ignored_exits_end_the_pod() -> None:  # JST-11, JST-12, JST-17, JST-21, JST-24
    ignoring = container("side", RUNNING, **{KILL: "true", IGNORE: "true"})
    plan = decided(pod(DONE, ignoring))
    assert (phases(plan), killed(plan)) == (["Succeeded"], [["side"]])
    assert phases(decided(pod(container("main", over(3)), ignoring))) == ["Failed"]
    both = decided(pod(DONE, ignoring, container("other", RUNNING, **{KILL: "true"})))
    assert (phases(both), killed(both)) == ([], [["other"]])
    last = decided(pod(DONE, ignoring, container("other", over(1), **{KILL: "true"})), request=request("other"))
    assert (phases(last), killed(last)) == (["Succeeded"], [])  # JST-14
    finished = decided(pod(DONE, ignoring, phase="Succeeded"))
    assert (phases(finished), killed(finished)) == ([], [["side"]])
    only = container("side", RUNNING, **{IGNORE: "true"})
    assert not is_due(pod(DONE, only))


def test_a_terminal_phase_stays() -> None:  # JST-22
    told = {"type": "SidecarTerminated", "status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z"}
    ignoring = container("side", over(7), **{KILL: "true", IGNORE: "true"})
    undone = pod(DONE, ignoring, conditions=[told])
    assert is_concerned(undone)
    assert not is_due(undone)
    plan = decided(undone, request=request())
    assert phases(plan) == ["Succeeded"]
    kept = next(iter(plan.actions())).body["status"]["conditions"][0]["lastTransitionTime"]
    assert kept == "2025-12-31T00:00:00Z"


def test_a_sidecar_that_is_started_again_does_not_keep_the_pod() -> None:  # JST-16, JST-23
    spec, status = container("side", RUNNING, **{KILL: "true"})
    again = pod(DONE, (spec, {**(status or {}), "restartCount": 1}), policy="OnFailure")
    assert phases(decided(again, request=request())) == ["Succeeded"]
    assert phases(decided(again, request=request(restarts=1))) == []
    waiting = {"name": "side", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 0}
    waiting["lastState"] = {"terminated": {"exitCode": 1, "containerID": "c1"}}
    assert phases(decided(pod(DONE, (spec, waiting), policy="OnFailure"), request=request())) == ["Succeeded"]


def test_without_its_node_it_is_tried_again() -> None:  # JST-9
    snapshot = Snapshot(pod=pod(DONE, SIDE), now=NOW)
    plan = decide(snapshot)
    assert plan == Plan()
    assert "node n of pod p is not there" in conclude(snapshot, plan, Outcomes()).retry


def test_events() -> None:  # JST-15, JST-19
    plan = decided(pod(DONE, SIDE))
    done = tuple(Outcome(action=action, result=Result.DONE) for action in plan.actions())
    assert [note.message for note in events(plan, "kill", done)] == [
        "Kruise SidecarTerminator is trying to terminate sidecar [side] using crr"
    ]
    virtual = decided(pod(DONE, container("a", RUNNING, **{IMAGE: "end:1"})), virtual=True)
    done = tuple(Outcome(action=action, result=Result.DONE) for action in virtual.actions())
    assert next(events(virtual, "replace", done)).message.endswith("[a] using in-place update")
    failed = tuple(Outcome(action=action, result=Result.FAILED) for action in plan.actions())
    assert list(events(plan, "kill", failed)) == []


def test_the_verdict_is_that_of_the_main_containers() -> None:  # JST-21
    side = container("side", over(9), **{KILL: "true"})
    assert verdict(pod(DONE, side)) == "Succeeded"
    assert verdict(pod(DONE, container("two", over(2)), side)) == "Failed"


def test_the_gate() -> None:  # JST-1
    assert not FEATURE.controllers(Options())
    assert FEATURE.controllers(Options(gates=gates.resolve({"SidecarTerminator": True})))
    assert not FEATURE.controllers(Options(gates=gates.resolve({"SidecarTerminator": True, "KruiseDaemon": False})))


def warned(env: list[Json], *, policy: str = "Never", on: bool = True) -> tuple[str, ...]:
    chain = PodChain()
    for step, mutate, needs in FEATURE.pod_mutations(Options()):
        chain.register(step, mutate, needs=needs)
    body = {
        "metadata": {"name": "p"},
        "spec": {"restartPolicy": policy, "containers": [{"name": "main"}, {"name": "side", "env": env}]},
    }
    view = HandlerView(now=NOW, seed=1, gates={"SidecarTerminator": on})
    answer = chain.decide(request_of(body, kind="Pod", resource="pods"), view)
    assert isinstance(answer, Allow)
    return answer.warnings


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ([{"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXISTS", "value": "true"}], f"did you mean {KILL}?"),
        ([{"name": KILL, "value": "yes"}], '"yes" is not true'),
        ([{"name": KILL, "valueFrom": {"fieldRef": {}}}], "only a value that is written here counts"),
        ([{"name": IMAGE, "value": ""}], "is empty"),
        ([{"name": IGNORE, "value": "true"}], f"only together with {KILL}"),
    ],
)
def test_environment_without_effect_gets_a_warning(env: list[Json], words: str) -> None:
    assert any(words in text for text in warned(env)), warned(env)


def test_what_gets_no_warning_and_what_does_as_a_whole() -> None:
    right = [{"name": KILL, "value": "True"}, {"name": IGNORE, "value": "false"}]
    assert warned(right) == ()
    assert warned([{"name": "OTHER", "value": "x"}], on=False) == ()
    assert "feature gate SidecarTerminator is off" in warned(right, on=False)[0]
    assert "spec.restartPolicy" in warned(right, policy="Always")[0]
