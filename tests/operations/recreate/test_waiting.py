"""Every cause of a request comes up, and how far a request is."""

from __future__ import annotations

from datetime import datetime, timedelta

from kruise.api.apps.containerrecreaterequest import ContainerRecreateRequest, RequestCondition
from kruise.api.native.pod import Pod
from kruise.daemon.recreate import decide as daemon
from kruise.daemon.recreate import situation as daemons
from kruise.daemon.runtime import ContainerState
from kruise.machinery.codec import convert, evolve
from kruise.machinery.plan import Plan
from kruise.operations.recreate.causes import CAUSES, UNREADY_GRACE
from kruise.operations.recreate.decide import decide
from kruise.operations.recreate.face import progress
from kruise.operations.recreate.situation import Snapshot
from kruise.operations.recreate.waiting import causes_of
from tests.daemon.recreate.test_decide import NOW, container, request, state


def test_every_cause_comes_up() -> None:
    since = RequestCondition(type="PreRecreateGrace", status="True", last_transition_time=NOW)
    requests = [
        request(phase=""),
        request(phase="Pending"),
        request(unready_grace_period_seconds=5),
        request(unready_grace_period_seconds=5, status={"conditions": (since,)}),
        request("a", status={"container_recreate_states": (state("a"),)}),
        request("a", status={"container_recreate_states": (state("a", message="not found container on Node"),)}),
        request(
            "a",
            "b",
            ordered_recreate=True,
            status={"container_recreate_states": (state("a", "Recreating"), state("b"))},
        ),
    ]
    requests.append(request("a", phase="Completed"))
    found = [cause for one in requests for cause in causes_of(one, NOW)]
    assert {cause.meaning for cause in found} == set(CAUSES)
    assert "its containers are stopped in 5 s" in [cause.message for cause in found]
    over = request(unready_grace_period_seconds=5, status={"conditions": (since,)})
    assert list(causes_of(over, NOW + timedelta(seconds=6))) == []


def said_of(known: ContainerRecreateRequest) -> list[tuple[str, str]]:
    assert manager(known).phases == ()
    return [(cause.message, cause.remedy) for one in manager(known).held for cause in one.causes]


def test_what_has_ended_tells_what_was_not_done() -> None:  # CRR-22, CRR-26 to CRR-28
    done = state("a", "Succeeded")
    assert said_of(request("a", phase="Completed", status={"container_recreate_states": (done,)})) == []
    states = (done, state("b", "Recreating"), state("c", "Failed", "no such process"))
    late = {"container_recreate_states": states, "message": "recreating has exceeded the activeDeadlineSeconds"}
    assert said_of(request("a", "b", "c", "d", phase="Completed", status=late)) == [
        (
            "container b was stopped, and had not been started and ready for long enough when the time was over",
            "see what keeps it from that: kruise why pod/p -n ns",
        ),
        ("container c: no such process", "ask once more: kruise restart p -n ns -c c"),
        ("container d: it was not stopped", "ask once more: kruise restart p -n ns -c d"),
    ]
    gone = {"container_recreate_states": states, "message": "pod has gone"}
    [(said, _)] = said_of(request("a", "b", "c", phase="Completed", status=gone))
    assert said == "pod p went before b, c had been recreated"
    silent = {"message": "daemon has not responded for a long time"}
    [(said, remedy)] = said_of(request("a", "b", phase="Completed", status=silent))
    assert said == "the daemon of node n did not take it up in time"
    assert "kruise-daemon" in remedy


def test_a_container_that_nothing_starts_again_is_not_asked_for_once_more() -> None:  # CRR-46
    known = request("a")
    view = daemons.Seen(runtime="containerd", containers=(container("a", 0, ContainerState.EXITED, 3),))
    seen = daemons.Snapshot("ns", "p", "n", (known,), view, NOW, restart_policy="Never")
    [action] = daemon.decide(seen).actions()
    [told] = action.body[0]["value"]
    states = (state("a", told["phase"], told["message"]),)
    [(said, remedy)] = said_of(request("a", phase="Completed", status={"container_recreate_states": states}))
    assert (
        said == "container a: the container has ended with exit code 3, and restartPolicy Never does not start it again"
    )
    assert remedy == "nothing starts it again: make the pod anew"


def test_progress() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    states = [{"name": "a", "phase": "Succeeded"}, {"name": "b", "phase": "Failed", "message": "no"}]
    document = {"metadata": {"name": "r"}, "spec": spec}
    assert progress(document).message == "0 of 2 containers have been recreated..."
    ended = {**document, "status": {"phase": "Completed", "containerRecreateStates": states}}
    assert progress(ended).message == 'request "r": 1 of 2 containers recreated: b: no'
    gone = {**document, "status": {"phase": "Completed", "message": "pod has gone"}}
    assert progress(gone).message == 'request "r": 0 of 2 containers recreated: pod has gone'


def manager(known: ContainerRecreateRequest, now: datetime = NOW) -> Plan:
    pod = convert({"metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"}}, Pod)
    return decide(Snapshot(request=known, pod=pod, now=now))


def test_a_deadline_may_be_any_number() -> None:
    known = request(unready_grace_period_seconds=2**62)
    since = RequestCondition(type="PreRecreateGrace", status="True", last_transition_time=NOW)
    held = evolve(known, status=evolve(known.status, conditions=(since,)))
    late = evolve(held, spec=evolve(held.spec, active_deadline_seconds=10**12))
    [wake] = manager(late).wakes
    assert wake.after > 10**11
    assert [cause.meaning.code for cause in causes_of(late, NOW)] == [UNREADY_GRACE.code]
    [wait] = daemon.decide(daemons.Snapshot("ns", "p", "n", (late,), daemons.Seen(runtime="containerd"), NOW)).wakes
    assert wait.after > 10**11


def test_an_end_is_told_once() -> None:
    """CRR-29: the daemon may have told another one meanwhile."""
    known = request()
    late = evolve(known, spec=evolve(known.spec, active_deadline_seconds=5))
    [action] = manager(late, NOW + timedelta(minutes=1)).actions()
    assert action.body[0] == {"op": "test", "path": "/status/phase", "value": "Recreating"}
    assert {"op": "add", "path": "/status/phase", "value": "Completed"} in action.body
