"""Container launch priority: what pods get at their creation, and which barriers open when (CLP)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kruise.admission.chain import PodChain
from kruise.admission.decisions import Allow, Change, Deny, HandlerView
from kruise.api.meta import Key
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.pod import PODS, Pod
from kruise.inplace.hashes import metadata_env
from kruise.machinery import codec
from kruise.machinery.offline import view_of
from kruise.machinery.plan import Outcome, Outcomes, PhaseOutcomes, Plan, Result
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.sidecars.launch_priority.controller import FEATURE
from kruise.sidecars.launch_priority.decide import OPEN, Memo, Opened, Snapshot, decide, is_concerned
from tests.admission.helpers import request_of
from tests.sidecars.launch_priority.stories import DONE, STORIES, container, pod
from tests.support.examples import story_settings
from tests.support.world import run_local

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("name", list(STORIES))
def test_story(name: str) -> None:
    run_local(STORIES[name])


# Admission


def admitted(body: Json) -> Allow | Change | Deny:
    chain = PodChain()
    for step, mutate, needs in FEATURE.pod_mutations(Options()):
        chain.register(step, mutate, needs=needs)
    answer = chain.decide(request_of(body, kind="Pod", resource="pods"), HandlerView(now=NOW, seed=1))
    assert isinstance(answer, Allow | Change | Deny)
    return answer


def barriers(body: Json) -> list[str]:
    answer = admitted(body)
    assert isinstance(answer, Change), answer
    return [one["env"][-1]["valueFrom"]["configMapKeyRef"]["key"] for one in answer.object["spec"]["containers"]]


def test_priorities_and_order() -> None:  # CLP-4 to CLP-6
    assert barriers(pod(container("a"), container("b", "10"), container("c", "-2"))) == ["p_0", "p_10", "p_-2"]
    assert barriers(pod(container("a", "1"), container("b", "10"), ordered=True)) == ["p_0", "p_-1"]
    twice = container("b", "1")
    twice["env"].append({"name": "KRUISE_CONTAINER_PRIORITY", "value": "7"})
    assert barriers(pod(container("a"), twice)) == ["p_0", "p_7"]


@pytest.mark.parametrize(
    "body",
    [
        pod(container("a", "5")),  # CLP-3
        pod(container("a"), container("b")),
        pod(container("a", "5"), container("b", "5")),  # CLP-5
        pod(container("a"), container("b", "0")),
        {"spec": "odd"},
        pod("odd", "odd"),  # type: ignore[arg-type]
    ],
)
def test_what_is_left_as_it_is(body: Json) -> None:
    assert isinstance(admitted(body), Allow)


@pytest.mark.parametrize("value", ["", "high", "1.5", "2147483648"])
def test_priorities_that_are_none_are_refused(value: str) -> None:  # CLP-5
    answer = admitted(pod(container("a"), container("b", value)))
    assert isinstance(answer, Deny)
    assert "spec.containers[1].env[KRUISE_CONTAINER_PRIORITY].value: must be an integer" in answer.message


def test_a_generated_name_is_given_now() -> None:  # CLP-7, PW-20
    body = pod(container("a"), container("b", "1"))
    del body["metadata"]["name"]
    body["metadata"]["generateName"] = "x" * 70 + "-"
    answer = admitted(body)
    assert isinstance(answer, Change)
    name = answer.object["metadata"]["name"]
    assert (len(name), name[:58]) == (63, "x" * 58)
    assert answer.object["metadata"]["generateName"] == body["metadata"]["generateName"]
    reference = answer.object["spec"]["containers"][0]["env"][-1]["valueFrom"]["configMapKeyRef"]
    assert reference["name"] == f"{name}-barrier"


def test_barriers_of_another_pod_are_taken_away_and_asking_twice_changes_nothing() -> None:  # CLP-8a, CLP-8b
    answer = admitted(pod(container("a"), container("b", "1")))
    assert isinstance(answer, Change)
    copied = {**answer.object, "metadata": {"name": "other"}}
    again = admitted(copied)
    assert isinstance(again, Change)
    first = again.object["spec"]["containers"][0]["env"]
    assert [item["valueFrom"]["configMapKeyRef"]["name"] for item in first] == ["other-barrier"]
    assert admitted(dict(again.object)) == Change(object=again.object)


def test_the_barrier_is_no_environment_from_metadata() -> None:  # CLP-20
    """So opening it restarts nothing."""
    answer = admitted(pod(container("a"), container("b", "1")))
    assert isinstance(answer, Change)
    for one in codec.convert(dict(answer.object), Pod).spec.containers:
        assert one.env[-1].name == "KRUISE_CONTAINER_BARRIER"
        assert metadata_env(one) == []


def test_a_copied_mark_of_completion_is_taken_away() -> None:  # CLP-8a
    body = pod(container("a"), container("b", "1"))
    body["metadata"]["annotations"] = {DONE: "true", "own": "x"}
    answer = admitted(body)
    assert isinstance(answer, Change)
    assert answer.object["metadata"]["annotations"] == {"own": "x"}


def test_it_goes_with_the_pod_webhook() -> None:  # CLP-1
    assert not FEATURE.controllers(Options(gates=gates.resolve({"PodWebhook": False})))


# The controller


def seen(*levels: int | None, ready: tuple[int, ...] = (), started: tuple[int, ...] = (), **more: Any) -> Pod:
    containers, statuses = [], []
    for position, level in enumerate(levels):
        name = f"c{position}"
        env = []
        if level is not None:
            reference = {"name": "p-barrier", "key": f"p_{level}"}
            env.append({"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": reference}})
        containers.append({"name": name, "env": env})
        is_ready = position in ready
        state: Json = {"running": {}} if is_ready or position in started else {"waiting": {}}
        if position in more.get("missing", ()):
            text = f"couldn't find key p_{level} in ConfigMap default/p-barrier"
            state = {"waiting": {"reason": "CreateContainerConfigError", "message": text}}
        if position in more.get("ended", {}):
            state = {"terminated": {"exitCode": more["ended"][position]}}
        statuses.append({"name": name, "ready": is_ready, "state": state})
    annotations = {DONE: "true"} if more.get("done") else {}
    document = {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "1",
            "annotations": annotations,
        },
        "spec": {"containers": containers, "restartPolicy": more.get("policy", "Always")},
        "status": {"phase": "Pending", "containerStatuses": statuses if more.get("statuses", True) else []},
    }
    return codec.convert(document, Pod)


def test_a_start_looks_only_at_pods_with_barriers_to_open() -> None:
    """Thousands of others must not hold up a manager that starts anew."""
    [spec] = FEATURE.controllers(Options())
    assert spec.at_start is not None
    pods = seen(1, 0), seen(None, None), seen(1, 0, done=True, ready=(0, 1))
    assert [spec.at_start(pod) for pod in pods] == [True, False, False]


def opened(plan: Plan) -> list[str]:
    found: list[str] = []
    for action in plan.actions():
        if action.target.resource == CONFIG_MAPS:
            assert action.target.name == "p-barrier"
            found = list(action.body["data"])
    return found


def marks(plan: Plan) -> bool:
    return any(action.target.resource != CONFIG_MAPS for action in plan.actions())


def decided(pod: Pod, lowest: int | None = None, *, after: float = 1) -> Plan:
    before = None if lowest is None else Opened(lowest=lowest, at=NOW - timedelta(seconds=after))
    return decide(Snapshot(pod=pod, now=NOW, opened=before))


def test_levels_open_one_after_the_other() -> None:  # CLP-11, CLP-13, CLP-14
    levels = (10, 5, 5, 0)
    assert (opened(decided(seen(*levels, statuses=False))), marks(decided(seen(*levels)))) == (["p_10"], False)
    assert list(decided(seen(*levels), 10).actions()) == []
    assert opened(decided(seen(*levels, ready=(0,)), 10)) == ["p_10", "p_5"]
    assert list(decided(seen(*levels, ready=(0, 1)), 5).actions()) == []
    last = decided(seen(*levels, ready=(0, 1, 2)), 5)
    assert (opened(last), marks(last)) == (["p_10", "p_5", "p_0"], True)


@pytest.mark.parametrize(
    ("policy", "code", "keys"),
    [
        ("Never", 0, ["p_10", "p_5", "p_0"]),
        ("OnFailure", 0, ["p_10", "p_5", "p_0"]),
        ("Always", 0, []),
        ("Never", 1, []),
        ("OnFailure", 1, []),
    ],
)
def test_a_container_that_has_run_to_its_end_holds_up_nobody(policy: str, code: int, keys: list[str]) -> None:
    """CLP-16: one that is started again, or that failed, does."""
    plan = decided(seen(10, 5, 0, ready=(1,), ended={0: code}, policy=policy), 5)
    assert (opened(plan), marks(plan)) == (keys, bool(keys))


def test_readiness_that_comes_and_goes_takes_nothing_away() -> None:  # CLP A6
    assert list(decided(seen(10, 5, 0, started=(0, 1)), 5).actions()) == []
    # A manager that starts anew takes nothing away, whatever was open; where a key is needed, no more was than is seen.
    assert list(decided(seen(10, 5, 0, started=(0, 1))).actions()) == []
    assert opened(decided(seen(10, 5, 5, 0, started=(0, 1)))) == ["p_10", "p_5"]


def test_after_the_mark_nobody_looks() -> None:  # CLP-12, CLP-15, CLP-16
    assert not is_concerned(seen(1, 0, done=True))
    assert not is_concerned(seen(None, None))
    missing = seen(1, 0, ready=(0,), missing=(1,), done=True)
    assert is_concerned(missing)  # the barrier is gone, and a container needs it
    assert opened(decided(missing)) == ["p_1", "p_0"]


def test_a_mark_that_a_dead_manager_did_not_write_comes() -> None:  # CLP-13
    everyone = seen(1, 0, ready=(0, 1))
    assert is_concerned(everyone)
    for known in (None, 0):
        assert (opened(decided(everyone, known)), marks(decided(everyone, known))) == ([], True)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["start", "ready", "unready", "crash"]), st.integers(0, 4)),
        st.sampled_from(["look", "manager dies"]),
    ),
    max_size=60,
)


@story_settings(100)
@example(levels=[2, 1, 0], happens=["look", ("start", 0), ("ready", 0), "look", ("unready", 0), "manager dies", "look"])
@given(levels=st.lists(st.integers(-2, 2), min_size=2, max_size=5), happens=EVENTS)
def test_no_level_opens_before_those_above_it_are_ready(levels: list[int], happens: list[Any]) -> None:
    """CLP-2, CLP-14, CLP-15: whatever happens in which order, and whichever manager looks; in the end all are open and
    the mark is there, and nothing that was open is ever closed."""
    open_levels: set[int] = set()
    began: set[int] = set()
    ready: set[int] = set()
    lowest: int | None = None
    done = False

    def look() -> None:
        nonlocal lowest, done
        pod = seen(*levels, ready=tuple(ready), started=tuple(began), done=done)
        if not is_concerned(pod):
            return
        plan = decided(pod, lowest)
        written = {int(key[2:]) for key in opened(plan)}
        assert not written or open_levels <= written, "what is left out would be closed"
        for level in written - open_levels:
            above = {place for place, one in enumerate(levels) if one > level}
            assert above <= ready, f"{level} opens, and {above - ready} are not ready"
        open_levels.update(written)
        if plan.memo is not None and plan.memo_as(Memo).lowest is not None:
            lowest = plan.memo_as(Memo).lowest
        done = done or marks(plan)

    for one in happens:
        match one:
            case "look":
                look()
            case "manager dies":
                lowest = None
            case ("start", place) if place < len(levels) and levels[place] in open_levels:
                began.add(place)
            case ("ready", place) if place in began:
                ready.add(place)
            case ("unready", place):
                ready.discard(place)
            case ("crash", place) if place in began:
                ready.discard(place)
    for _ in range(2 * len(levels)):
        look()
        began.update(place for place, level in enumerate(levels) if level in open_levels)
        ready.update(began)
    look()
    assert (open_levels, done) == (set(levels), True)


def test_a_barrier_that_is_gone_comes_back() -> None:
    missing = seen(1, 0, missing=(0,))
    soon = decided(missing, 1, after=1)
    assert (list(soon.actions()), [wake.after for wake in soon.wakes]) == ([], [4])
    assert opened(decided(missing, 1, after=5)) == ["p_1"]
    assert opened(decided(missing, 1, after=-3600)) == ["p_1"], "the clock was put back"
    assert opened(decided(seen(2, 1, 0, ready=(0,), started=(1,), missing=(1,)))) == ["p_2", "p_1"]


@pytest.mark.parametrize("after", [0, 1, 5, 9, 3600])
def test_a_level_that_is_not_open_yet_costs_nothing(after: float) -> None:  # CLP-8, CLP-16
    waiting = decided(seen(1, 0, started=(0,), missing=(1,)), 1, after=after)
    assert (list(waiting.actions()), waiting.wakes) == ([], ())


def test_odd_barriers_are_none() -> None:  # CLP-10
    odd = {"name": "c", "env": [{"name": "KRUISE_CONTAINER_BARRIER", "value": "x"}]}
    worse = {"name": "d", "env": [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": {"key": "q"}}}]}
    document = {"metadata": {"name": "p"}, "spec": {"containers": [odd, worse]}}
    assert not is_concerned(codec.convert(document, Pod))


def test_what_was_written_is_remembered_only_where_it_was() -> None:
    plan = decided(seen(1, 0))
    assert plan.memo == Memo(lowest=1)


def test_what_is_opened_of_a_pod_that_goes_meanwhile_is_forgotten() -> None:
    [spec] = FEATURE.controllers(Options())
    [source] = spec.all_sources
    going, key = seen(1, 0), Key("default", "p")
    gone = codec.evolve(going, metadata=codec.evolve(going.metadata, deletion_timestamp=NOW))

    def opened_before(*pods: Pod) -> Opened | None:
        found = spec.snapshot(view_of(spec, {PODS: pods}, now=NOW, gates={}), key)
        return found.opened if found is not None else None

    first = spec.snapshot(view_of(spec, {PODS: (going,)}, now=NOW, gates={}), key)
    assert first is not None
    plan = spec.decide(first)
    stores: Any = None
    assert source.keys(going, gone, stores) == ()
    assert source.keys(gone, None, stores) == (key,), "the pass is not over yet"
    [action] = [action for action in plan.actions() if action.target.resource == CONFIG_MAPS]
    done = (Outcome(action=action, result=Result.DONE),)
    spec.concluded(first, plan, Outcomes((PhaseOutcomes(OPEN, (done,)),)))
    assert opened_before(going) == Opened(lowest=1, at=NOW)
    assert opened_before() is None
    assert opened_before(going) is None
    assert source.keys(seen(None, None), None, stores) == (), "nothing is opened for pods without barriers"
