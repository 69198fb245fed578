"""Decisions about markers, nodes and results, rule by rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.probes import FINALIZER, NodePodProbe, PodProbeMarker, Probe
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.daemon.parts import Place, Settings
from kruise.daemon.probes import decide as prober
from kruise.daemon.probes import part
from kruise.daemon.probes.calls import Ask, Found
from kruise.machinery.codec import convert, encode, evolve
from kruise.machinery.plan import Plan
from kruise.operations.probes.marker import decide as markers
from kruise.operations.probes.marker.controller import marker_keys, rivals_of
from kruise.operations.probes.node import decide as nodes

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIME = "2026-01-02T03:04:05Z"
Json = dict[str, Any]


def pod(name: str = "p", *, labels: Any = None, ip: str = "10.0.0.7", **more: Any) -> Pod:
    return convert(
        {
            "metadata": {
                "name": name,
                "namespace": "demo",
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "labels": {"app": "game", **(labels or {})},
                "annotations": more.get("annotations", {}),
                **more.get("metadata", {}),
            },
            "spec": {
                "nodeName": more.get("node", "n"),
                "containers": [{"name": "main", "ports": [{"name": "web", "containerPort": 80}]}],
            },
            "status": {
                "phase": more.get("phase", "Running"),
                "podIP": ip,
                "conditions": [{"type": "Initialized", "status": "True"}, *more.get("conditions", ())],
            },
        },
        Pod,
    )


def marker(name: str = "m", *probes: Json, **metadata: Any) -> PodProbeMarker:
    meta = {"name": name, "namespace": "demo", "uid": f"uid-{name}", "generation": 2, "finalizers": [FINALIZER]}
    return convert(
        {
            "metadata": {**meta, **metadata},
            "spec": {"selector": {"matchLabels": {"app": "game"}}, "probes": list(probes or [probe()])},
        },
        PodProbeMarker,
    )


def probe(name: str = "x", handler: Json | None = None, **more: Any) -> Json:
    return {
        "name": name,
        "containerName": "main",
        "probe": handler or {"exec": {"command": ["true"]}},
        "podConditionType": f"c/{name}",
        **more,
    }


def node_probe(*entries: Json, states: Any = ()) -> NodePodProbe:
    return convert(
        {
            "metadata": {"name": "n", "uid": "npp", "resourceVersion": "5"},
            "spec": {"podProbes": list(entries)},
            "status": {"podProbeStatuses": list(states)},
        },
        NodePodProbe,
    )


def entry(name: str = "p", *probes: str, ip: str = "10.0.0.7", uid: str = "", namespace: str = "demo") -> Json:
    return {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "IP": ip,
        "probes": [
            {"name": one, "containerName": "main", "probe": {"exec": {"command": ["true"]}}}
            for one in probes or ("m#x",)
        ],
    }


def result(name: str = "p", uid: str = "", **states: str) -> Json:
    found = [
        {"name": one.replace("__", "#"), "state": state, "lastProbeTime": TIME, "lastTransitionTime": TIME}
        for one, state in states.items()
    ]
    return {"name": name, "namespace": "demo", "uid": uid or f"uid-{name}", "probeStates": found}


def node(**more: Any) -> Node:
    status = {"conditions": [{"type": "Ready", "status": more.pop("ready", "True")}]}
    return convert({"metadata": {"name": "n", "uid": "node", **more}, "status": status}, Node)


def at_node(
    *pods: Pod, probes: NodePodProbe | None = None, by: tuple[PodProbeMarker, ...] = (), here: Node | None = None
) -> Plan:
    return nodes.decide(
        nodes.Snapshot(name="n", node=here or node(), probes=probes, pods=pods, markers=by or (marker(),), now=NOW)
    )


def spec_written(plan: Plan) -> Any:
    [action] = [one for one in plan.actions() if one.target.resource.kind == "NodePodProbe"]
    assert action.resource_version == "5"  # PPM-47
    return json.loads(encode(action.body["spec"]["podProbes"]))


# What a node is told


def test_a_node_is_told_of_its_pods() -> None:
    """PPM-25, PPM-40."""
    assert spec_written(at_node(pod(), probes=node_probe())) == [entry()]
    assert list(at_node(pod(), probes=node_probe(entry())).actions()) == []


def test_an_address_is_filled_in() -> None:
    """PPM-25: the entry comes before the address."""
    assert spec_written(at_node(pod(ip=""), probes=node_probe()))[0]["IP"] == ""
    assert spec_written(at_node(pod(), probes=node_probe(entry(ip=""))))[0]["IP"] == "10.0.0.7"


@pytest.mark.parametrize(
    "gone",
    [
        pod(phase="Succeeded"),
        pod(metadata={"deletionTimestamp": TIME}),
        pod(metadata={"uid": "another"}),
        pod(labels={"app": "other"}),
        pod(conditions=()),
    ],
    ids=["ended", "going", "made anew", "other labels", "same"],
)
def test_who_is_not_probed_any_more_goes(gone: Pod) -> None:
    """NPP-3, PPM-22, section 11 no. 17."""
    plan = at_node(gone, probes=node_probe(entry()))
    if gone == pod():
        assert list(plan.actions()) == []
        return
    found = spec_written(plan) or []
    assert "uid-p" not in {one["uid"] for one in found}


def test_a_pod_that_is_not_initialized_is_not_probed_yet() -> None:
    """PPM-22."""
    early = convert({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}}, Pod)
    assert list(at_node(early, probes=node_probe()).actions()) == []


def test_several_markers_share_an_entry_and_go_one_by_one() -> None:
    """PPM-23, PPM-26, PPM-41."""
    both = (marker("b"), marker("a-b"))
    [found] = spec_written(at_node(pod(), probes=node_probe(), by=both))
    assert [one["name"] for one in found["probes"]] == ["a-b#x", "b#x"]
    going = (marker("b", deletionTimestamp=TIME), marker("a-b"))
    [left] = spec_written(at_node(pod(), probes=node_probe(entry("p", "b#x", "a-b#x")), by=going))
    assert [one["name"] for one in left["probes"]] == ["a-b#x"]


def test_probes_of_somebody_else_stay() -> None:
    [found] = spec_written(at_node(pod(), probes=node_probe(entry("p", "by-hand", "gone#x"))))
    assert [one["name"] for one in found["probes"]] == ["by-hand", "m#x"]


def test_a_named_port_is_a_number_and_an_unknown_one_is_left_out() -> None:
    """PPM-25."""
    by = (marker("m", probe("a", {"tcpSocket": {"port": "web"}}), probe("b", {"tcpSocket": {"port": "no"}})),)
    [found] = spec_written(at_node(pod(), probes=node_probe(), by=by))
    assert [(one["name"], one["probe"]) for one in found["probes"]] == [("m#a", {"tcpSocket": {"port": 80}})]
    by = (marker("m", probe("a", {"tcpSocket": {"port": "8080"}})),)
    [found] = spec_written(at_node(pod(), probes=node_probe(), by=by))
    assert found["probes"][0]["probe"] == {"tcpSocket": {"port": 8080}}


def test_objects_come_and_go_with_nodes() -> None:
    """NPP-1, NPP-2, SLS-5."""
    [made] = at_node(probes=None).actions()
    assert (made.verb.value, made.target.name) == ("create", "n")
    assert list(at_node(probes=None, here=node(ready="False")).actions()) == []
    assert list(at_node(probes=None, here=node(labels={"type": "virtual-kubelet"})).actions()) == []
    [gone] = at_node(probes=node_probe(), here=node(deletionTimestamp=TIME)).actions()
    assert gone.verb.value == "delete"


# Results


def marked(before: Pod, policy: Any = (), **states: str) -> Any:
    by = (marker("m", probe(markerPolicy=list(policy))),)
    plan = at_node(before, probes=node_probe(entry(), states=[result(**states)]), by=by)
    actions = [one for one in plan.actions() if one.target.resource.kind == "Pod"]
    return actions[0].body if actions else None


BOTH = (
    {"state": "Succeeded", "labels": {"idle": "yes"}, "annotations": {"cost": "-10"}},
    {"state": "Failed", "annotations": {"cost": "10"}},
)


def test_a_result_is_one_write() -> None:
    """NPP-11, NPP-13, NPP-14."""
    assert marked(pod(), BOTH, m__x="Succeeded") == {
        "metadata": {"labels": {"idle": "yes"}, "annotations": {"cost": "-10"}},
        "status": {
            "conditions": [
                {"type": "c/x", "status": "True", "message": None, "lastProbeTime": TIME, "lastTransitionTime": TIME}
            ]
        },
    }
    failed = marked(pod(labels={"idle": "yes"}, annotations={"cost": "-10"}), BOTH, m__x="Failed")
    assert failed["metadata"] == {"labels": {"idle": None}, "annotations": {"cost": "10"}}
    assert failed["status"]["conditions"][0]["status"] == "False"


def test_unknown_leaves_the_marks() -> None:
    """NPP-11, and marks stay until the result is known."""
    found = marked(pod(labels={"idle": "yes"}, annotations={"cost": "-10"}), BOTH, m__x="Unknown")
    assert "metadata" not in found
    assert found["status"]["conditions"][0]["status"] == "False"


def test_only_news_are_written() -> None:
    """NPP-12."""
    known = pod(conditions=[{"type": "c/x", "status": "True"}], labels={"idle": "yes"}, annotations={"cost": "-10"})
    assert marked(known, BOTH, m__x="Succeeded") is None


def test_results_of_nobody_count_for_nothing() -> None:
    """NPP-4, NPP-10: another uid, a marker that is gone or going, a probe that is gone."""
    assert marked(pod(), m__other="Succeeded") is None
    assert marked(pod(), nobody__x="Succeeded") is None
    other = node_probe(entry(), states=[result(uid="another", m__x="Succeeded")])
    assert list(at_node(pod(), probes=other).actions()) == []
    by = (marker("m", deletionTimestamp=TIME),)
    plan = at_node(pod(), probes=node_probe(entry(), states=[result(m__x="Succeeded")]), by=by)
    assert [one.target.resource.kind for one in plan.actions()] == ["NodePodProbe"]


def test_the_first_of_two_results_has_the_condition() -> None:
    """NPP-11."""
    by = (marker("a", probe(podConditionType="c")), marker("b", probe(podConditionType="c")))
    seen = node_probe(entry("p", "a#x", "b#x"), states=[result(a__x="Failed", b__x="Succeeded")])
    [action] = at_node(pod(), probes=seen, by=by).actions()
    assert [one["status"] for one in action.body["status"]["conditions"]] == ["False"]


# The marker


def of_marker(subject: PodProbeMarker, *pods: Pod, probes: tuple[NodePodProbe, ...] = (), **more: Any) -> Plan:
    return markers.decide(
        markers.Snapshot(marker=subject, pods=pods, virtual=more.pop("virtual", ()), probes=probes, now=NOW, **more)
    )


def test_finalizer_and_status() -> None:
    """PPM-24, PPM-27: the generation counts once all nodes know it."""
    plan = of_marker(marker(finalizers=[]), pod(), probes=(node_probe(),))
    [action] = plan.actions()
    assert action.body == {"metadata": {"finalizers": [FINALIZER]}}
    status = plan.memo_as(markers.Memo).status
    assert (status.observed_generation, status.matched_pods) == (0, 1)
    status = of_marker(marker(), pod(), probes=(node_probe(entry()),)).memo_as(markers.Memo).status
    assert status.observed_generation == 2


def test_a_marker_goes_when_no_node_knows_it() -> None:
    """PPM-23."""
    going = marker(deletionTimestamp=TIME)
    assert list(of_marker(going, probes=(node_probe(entry()),)).actions()) == []
    [action] = of_marker(going, probes=(node_probe(entry("p", "am#x")),)).actions()
    assert action.body == {"metadata": {"finalizers": None}}


def test_pods_on_virtual_nodes_are_marked_by_their_conditions() -> None:
    """SLS-4: nothing is removed, and only with the gate."""
    told = pod(conditions=[{"type": "c/x", "status": "False"}], labels={"idle": "yes"})
    by = marker("m", probe(markerPolicy=list(BOTH)))
    [action] = of_marker(by, told, virtual=("p",), marks_virtual=True).actions()
    assert (action.subresource, action.body) == ("", {"metadata": {"annotations": {"cost": "10"}}})
    assert list(of_marker(by, told, virtual=("p",)).actions()) == []
    plan = of_marker(by, told, virtual=("p",), marks_virtual=True)
    assert plan.memo_as(markers.Memo).status.matched_pods == 1


def waits(plan: Plan) -> list[str]:
    return [one.causes[0].code for one in plan.held]


def test_who_waits_for_a_result_and_why() -> None:
    assert waits(of_marker(marker())) == ["nothing-to-probe"]
    assert waits(of_marker(marker(), pod())) == ["no-node-probe"]
    assert waits(of_marker(marker(), pod(), probes=(node_probe(),))) == ["node-not-told"]
    assert waits(of_marker(marker(), pod(), probes=(node_probe(entry()),))) == ["no-probe-result"]
    done = node_probe(entry(), states=[result(m__x="Failed")])
    assert waits(of_marker(marker(), pod(), probes=(done,))) == []
    unknown = result(m__x="Unknown")
    assert waits(of_marker(marker(), pod(), probes=(node_probe(entry(), states=[unknown]),))) == []
    unknown["probeStates"][0]["message"] = "cannot be run"
    assert waits(of_marker(marker(), pod(), probes=(node_probe(entry(), states=[unknown]),))) == ["probe-cannot-run"]
    odd = marker("m", probe(containerName="nobody"))
    entries = entry()
    entries["probes"][0]["containerName"] = "nobody"
    assert waits(of_marker(odd, pod(), probes=(node_probe(entries),))) == ["no-such-container"]
    port = marker("m", probe(handler={"tcpSocket": {"port": "nobody"}}))
    assert waits(of_marker(port, pod(), probes=(node_probe(),))) == ["no-such-port"]
    early = convert(
        {
            "metadata": {"name": "p", "labels": {"app": "game"}},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Pending"},
        },
        Pod,
    )
    assert waits(of_marker(marker(), early)) == ["not-initialized"]


def test_who_shares_a_condition_is_told_who_has_it() -> None:
    """NPP-11: the first among the probes of the pod, as soon as it has a result."""
    a, b = marker("a", probe(podConditionType="c")), marker("b", probe(podConditionType="c"))
    seen = node_probe(entry("p", "a#x", "b#x"), states=[result(a__x="Failed", b__x="Succeeded")])

    def said(subject: PodProbeMarker, rival: PodProbeMarker, probes: NodePodProbe) -> list[str]:
        plan = of_marker(subject, pod(), probes=(probes,), rivals=(rival,))
        return [f"{one.causes[0].code}: {one.causes[0].message}" for one in plan.held]

    assert said(a, b, seen) == []
    assert said(b, a, seen) == [
        "condition-taken: condition c tells what podprobemarker a finds, not what probe x does",
    ]
    assert said(b, marker("a", probe(podConditionType="c"), deletionTimestamp=TIME), seen) == []
    assert said(b, marker("a", probe(podConditionType="d")), seen) == []
    early = node_probe(entry("p", "a#x", "b#x"), states=[result(b__x="Succeeded")])
    assert said(b, a, early) == []


def test_markers_that_share_a_condition_are_looked_at_together() -> None:
    a, b, c = (marker(name, probe(podConditionType=kind)) for name, kind in (("a", "x"), ("b", "x"), ("c", "y")))
    listed = SimpleNamespace(list=lambda namespace: (a, b, c))
    stores: Any = SimpleNamespace(store=lambda resource: listed)
    assert rivals_of(a, stores) == (b,)
    assert [key.name for key in marker_keys(None, a, stores)] == ["a", "b"]
    assert [key.name for key in marker_keys(a, None, stores)] == ["a", "b"]
    assert [key.name for key in marker_keys(a, marker("a", probe(podConditionType="y")), stores)] == ["a", "b", "c"]
    told = evolve(a, status=evolve(a.status, matched_pods=3))
    assert [key.name for key in marker_keys(a, told, stores)] == ["a"]


# The prober


def look(
    *entries: Json, at: float = 0.0, states: Any = (), workers: Any = None, ended: Any = None, **more: Any
) -> prober.Snapshot:
    return prober.Snapshot(
        node="n",
        probes=node_probe(*entries, states=states),
        now=NOW + timedelta(seconds=at),
        started=more.pop("started", NOW - timedelta(hours=1)),
        workers=workers or {},
        ended={
            name: prober.Ended(began=NOW + timedelta(seconds=at), found=found) for name, found in (ended or {}).items()
        },
        **more,
    )


def with_probe(**numbers: Any) -> Json:
    one = entry()
    one["probes"][0]["probe"] |= numbers
    return one


KEY = "uid-p/10.0.0.7/main/m#x"


def found(state: str = "Succeeded", message: str = "", container: str = "c1", *, running: bool = True) -> Found:
    return Found(container_id=container, started_at=0, is_running=running, state=state, message=message)


def workers_of(plan: Plan) -> dict[str, prober.Worker]:
    return plan.memo_as(prober.Memo).workers


def told_states(plan: Plan) -> list[tuple[str, str]]:
    written = [action.body[0]["value"] for action in plan.actions()]
    return [
        (state["state"], state.get("message", ""))
        for one in written
        for pods in one["podProbeStatuses"]
        for state in pods["probeStates"]
    ]


def story(one: Json, *answers: Found | None) -> list[list[tuple[str, str]]]:
    """What is reported after each answer."""
    workers: dict[str, prober.Worker] = {}
    states: list[Json] = []
    told = []
    for number, answer in enumerate(answers):
        plan = prober.decide(look(one, at=number, workers=workers, ended={KEY: answer}, states=states))
        workers = workers_of(plan)
        told.append(told_states(plan))
        for action in plan.actions():
            states = action.body[0]["value"]["podProbeStatuses"]
    return told


def test_a_new_probe_is_asked_at_once_and_then_each_period() -> None:
    """PRB-2, PRB-4: a period of 0 is a second."""
    plan = prober.decide(look(entry()))
    [job] = plan.jobs
    assert job.name == KEY
    again = prober.decide(look(entry(), at=0.5, workers=workers_of(plan), ended={KEY: found()}))
    assert again.jobs == ()
    assert again.drops == (KEY,)
    assert [wake.after for wake in again.wakes] == [0.5 + prober.beat_of(1)]
    due = prober.decide(look(entry(), at=1, workers=workers_of(again)))
    assert [one.name for one in due.jobs] == [KEY]


def test_late_looks_do_not_make_the_period_longer() -> None:
    """PRB-2: looks come late on a node with many probes; in ten periods there are ten probes all the same."""
    workers, count = workers_of(prober.decide(look(entry(), at=0))), 0
    for period in range(1, 11):
        plan = prober.decide(look(entry(), at=period + prober.LONGEST_BEAT, workers=workers, ended={KEY: found()}))
        workers, count = workers_of(plan), count + len(plan.jobs)
        [wake] = prober.decide(look(entry(), at=period + 0.5, workers=workers)).wakes
        assert wake.after == pytest.approx(0.5 + prober.beat_of(1))
    assert count == 10
    # Who was held up for longer begins anew, and makes up for nothing.
    plan = prober.decide(look(entry(), at=15.5, workers=workers))
    [wake] = prober.decide(look(entry(), at=15.6, workers=workers_of(plan))).wakes
    assert wake.after == pytest.approx(0.9 + prober.beat_of(1))


def test_looks_are_gathered_where_there_are_many_probes() -> None:
    """PRB-2, section 11 no. 13: a look at all probes of a node is not taken for each of them."""
    assert prober.beat_of(1) < 0.01
    assert prober.beat_of(100) == prober.beat_of(10_000) == prober.LONGEST_BEAT
    spec = part.spec(Place.of("n1", Settings()))
    assert spec.pace is not None
    assert spec.pace(look(entry(), workers=workers_of(prober.decide(look(entry()))))) == prober.beat_of(1)


def test_a_daemon_that_starts_spreads_its_probes() -> None:
    """PRB-2, DMN-85."""
    plan = prober.decide(look(with_probe(periodSeconds=100), started=NOW))
    assert plan.jobs == ()
    [wake] = plan.wakes
    assert 0 < wake.after < 100


def test_one_that_is_under_way_is_not_asked_again() -> None:
    workers = {KEY: prober.Worker(probe=convert({"exec": {"command": ["true"]}}, Probe), due=NOW)}
    assert prober.decide(look(entry(), at=9, workers=workers, running=(KEY,))).jobs == ()


def test_thresholds() -> None:
    """PRB-3: below the threshold nothing changes, and another answer begins to count anew."""
    answers = (found("Failed", "no"), found("Failed", "no"), found("Succeeded", "yes"), found("Failed", "no"))
    assert story(with_probe(failureThreshold=2), *answers) == [
        [("Unknown", "")],
        [("Failed", "no")],
        [("Succeeded", "yes")],
        [],
    ]


def test_a_message_alone_is_news() -> None:
    """PRB-9, section 11 no. 5."""
    assert story(entry(), found(message="a"), found(message="a"), found(message="b")) == [
        [("Succeeded", "a")],
        [],
        [("Succeeded", "b")],
    ]


def test_a_new_container_begins_anew() -> None:
    """PRB-3."""
    answers = (
        found(),
        found("", container="c2"),
        found("Failed", "Container(main) is Non-running", "c2", running=False),
    )
    assert story(with_probe(failureThreshold=3), *answers) == [
        [("Succeeded", "")],
        [("Unknown", "")],
        [("Failed", "Container(main) is Non-running")],
    ]


def test_what_says_nothing_of_the_container_changes_nothing() -> None:
    """PRB-3: no container, or a runtime that does not answer."""
    assert story(entry(), found(), Found(), None, found()) == [[("Succeeded", "")], [], [], []]


def test_a_changed_handler_begins_anew_and_an_old_answer_is_dropped() -> None:
    """PRB-1."""
    first = prober.decide(look(entry(), ended={KEY: found()}))
    changed = entry()
    changed["probes"][0]["probe"] = {"exec": {"command": ["false"]}}
    states = [result(m__x="Succeeded")]
    plan = prober.decide(look(changed, at=0.1, workers=workers_of(first), running=(KEY,), states=states))
    assert plan.drops == (KEY,)
    assert [one.name for one in plan.jobs] == [KEY]
    assert told_states(plan) == [("Unknown", "")]


def test_other_numbers_keep_the_result() -> None:
    """PRB-1."""
    first = prober.decide(look(entry(), ended={KEY: found()}))
    plan = prober.decide(
        look(with_probe(periodSeconds=9), at=0.1, workers=workers_of(first), states=[result(m__x="Succeeded")])
    )
    assert workers_of(plan)[KEY].state == "Succeeded"


def test_a_daemon_that_starts_again_keeps_what_was_reported() -> None:
    """DMN-98, better: nothing is taken back before something else is found."""
    states = [result(m__x="Succeeded")]
    first = prober.decide(look(entry(), states=states, ended={KEY: found("")}))
    assert list(first.actions()) == []
    plan = prober.decide(look(entry(), at=1, states=states, workers=workers_of(first), ended={KEY: found("Failed")}))
    assert told_states(plan) == [("Failed", "")]


def test_a_steady_result_is_repeated_after_ten_minutes() -> None:
    """PRB-9."""
    states = [result(m__x="Succeeded")]
    for seconds, writes in ((599, 0), (600, 1)):
        plan = prober.decide(look(entry(), at=seconds, states=states, ended={KEY: found()}))
        assert len(list(plan.actions())) == writes


def test_a_result_is_not_repeated_by_probes_that_could_not_be_made() -> None:
    """PRB-9: the time of the last probe is that of one that told something."""
    first = prober.decide(look(entry(), ended={KEY: found()}))
    states = [result(m__x="Succeeded")]
    for nothing in (None, found("")):
        plan = prober.decide(look(entry(), at=700, workers=workers_of(first), states=states, ended={KEY: nothing}))
        assert list(plan.actions()) == []
    plan = prober.decide(look(entry(), at=701, workers=workers_of(plan), states=states, ended={KEY: found()}))
    [action] = plan.actions()
    [pod] = action.body[0]["value"]["podProbeStatuses"]
    assert pod["probeStates"][0] == {
        "name": "m#x", "state": "Succeeded", "lastProbeTime": "2026-01-02T03:15:46Z", "lastTransitionTime": TIME
    }  # fmt: skip


def test_what_is_not_asked_for_any_more_goes() -> None:
    """PRB-1, PRB-10, PRB-11: worker, job and result."""
    first = prober.decide(look(entry(), ended={KEY: found()}))
    plan = prober.decide(look(workers=workers_of(first), running=(KEY,), states=[result(m__x="Succeeded")]))
    assert (plan.drops, workers_of(plan)) == ((KEY,), {})
    [action] = plan.actions()
    assert action.body[0]["value"] == {}


def test_two_probes_of_one_container_are_two() -> None:
    """PRB-9, section 11 no. 8."""
    both = entry("p", "m#x", "m#y")
    other = "uid-p/10.0.0.7/main/m#y"
    plan = prober.decide(look(both, ended={KEY: found(), other: found()}))
    assert told_states(plan) == [("Succeeded", ""), ("Succeeded", "")]
    assert len(plan.memo_as(prober.Memo).changes) == 2


def test_another_address_is_another_worker() -> None:
    """PRB-1, PRB-11: and the result of the one before stands."""
    first = prober.decide(look(entry(ip=""), ended={"uid-p//main/m#x": found()}))
    plan = prober.decide(look(entry(), workers=workers_of(first), states=[result(m__x="Succeeded")]))
    assert set(workers_of(plan)) == {KEY}
    assert list(plan.actions()) == []


def test_why_there_is_no_result_is_told() -> None:
    """PRB-3: as long as nothing is known; a result that stands is kept, and so are its words."""
    spec = convert({"exec": {"command": ["no"]}}, Probe)
    why = prober.Ended(began=NOW, found=Found(container_id="c", is_running=True, message="cannot be run"))
    worker = prober.after(prober.Worker(probe=spec, due=NOW), why)
    assert (worker.state, worker.message, worker.is_known) == ("Unknown", "cannot be run", True)
    known = prober.Worker(probe=spec, due=NOW, container_id="c", state="Succeeded", message="fine", is_known=True)
    assert prober.after(known, why) == known
    said = evolve(why, found=Found(container_id="c", is_running=True, state="Failed", message="no"))
    assert prober.after(worker, said).message == "no"


def test_a_clock_that_is_put_back_stops_no_probe() -> None:
    """PRB-2: what would be due in an hour is due now, and then with each period."""
    worker = prober.Worker(probe=convert({"exec": {"command": ["true"]}, "periodSeconds": 5}, Probe), due=NOW)
    for seconds, is_due in ((-1, True), (0, True), (1, False), (5, False), (6, True), (3600, True)):
        later = evolve(worker, due=NOW + timedelta(seconds=seconds))
        assert prober.is_due(later, NOW) is is_due, seconds


@given(data=st.data())
def test_a_result_is_never_told_of_another_pod(data: st.DataObject) -> None:
    """PRB-1, PRB-10: pods come back under their names with other uids and addresses, probes are renamed, late answers
    come in; what is told of a uid was found in its containers."""
    workers: dict[str, prober.Worker] = {}
    states: list[Json] = []
    running: set[str] = set()
    for second in range(data.draw(st.integers(1, 8))):
        pods = data.draw(st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12")))
        probes = data.draw(st.lists(st.sampled_from(["m#a", "m#b"]), min_size=1, unique=True))
        spec = [
            {
                "name": "same-name",
                "namespace": "demo",
                "uid": f"uid-{uid}",
                "IP": f"10.0.0.{ip}",
                "probes": [
                    {"name": one, "containerName": "main", "probe": {"exec": {"command": ["c"]}}} for one in probes
                ],
            }
            for uid, ip in pods.items()
        ]
        late = data.draw(st.sets(st.sampled_from(sorted(running)))) if running else set()
        ended = {name: found(message=f"of {name.partition('/')[0]}", container=name.partition("/")[0]) for name in late}
        seen = convert(
            {
                "metadata": {"name": "n", "uid": "u"},
                "spec": {"podProbes": spec},
                "status": {"podProbeStatuses": states},
            },
            NodePodProbe,
        )
        snapshot = prober.Snapshot(
            node="n",
            probes=seen,
            now=NOW + timedelta(seconds=second),
            started=NOW - timedelta(hours=1),
            workers=workers,
            ended={name: prober.Ended(began=NOW, found=one) for name, one in ended.items()},
            running=tuple(sorted(running - late)),
        )
        plan = prober.decide(snapshot)
        workers = workers_of(plan)
        running = (running - late - set(plan.drops)) | {job.name for job in plan.jobs}
        assert all(job.call.uid == job.name.partition("/")[0] for job in plan.jobs if isinstance(job.call, Ask))
        for action in plan.actions():
            states = action.body[0]["value"].get("podProbeStatuses", [])
        known = {f"uid-{uid}" for uid in pods}
        assert {one["uid"] for one in states} <= known
        for one in states:
            assert all(state.get("message", "") in ("", f"of {one['uid']}") for state in one["probeStates"])
