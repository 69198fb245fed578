"""The rules of PersistentPodStates, one by one, on the pure core."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change
from kruise.api.apps.conversion.persistentpodstate import convert as converted
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES, PersistentPodState
from kruise.api.apps.shared import GROUP
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED
from kruise.api.apps.statefulset import StatefulSet
from kruise.api.meta import Key
from kruise.api.native.apps import STATEFUL_SETS, Ordinals, Workload
from kruise.api.native.config import WhitelistError
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.codec import convert, evolve
from kruise.machinery.mapping import NODE_INDEX
from kruise.machinery.plan import Outcomes
from kruise.machinery.spec import OWNER_INDEX
from kruise.machinery.watched import Watched
from kruise.model.world import World
from kruise.spread.persistentpodstate import keys
from kruise.spread.persistentpodstate.admission import _placed, inject
from kruise.spread.persistentpodstate.controller import _node_keys, _pod_keys, _WorkloadKeys
from kruise.spread.persistentpodstate.decide import Snapshot, conclude, decide
from kruise.spread.persistentpodstate.targets import WATCHED_STATES, whitelisted
from tests.spread.uniteddeployment.objects import NOW

Json = dict[str, Any]
ZONE, HOST = "zone", "host"


def state(*, known: Json | None = None, annotations: Json | None = None, **spec: Any) -> PersistentPodState:
    body = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
        "requiredPersistentTopology": {"keys": [HOST]},
        "preferredPersistentTopology": [{"weight": 5, "preference": {"keys": [ZONE]}}],
        **spec,
    }
    metadata = {"name": "web", "namespace": "default", "uid": "s", "generation": 3, "annotations": annotations or {}}
    status = {"observedGeneration": 3, "podStates": known or {}}
    return convert({"metadata": metadata, "spec": body, "status": status}, PersistentPodState)


def workload(replicas: int | None = 3, *, annotations: Json | None = None, gone: bool = False) -> Workload:
    metadata: Json = {"name": "web", "namespace": "default", "uid": "w", "annotations": annotations or {}}
    if gone:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return convert({"metadata": metadata, "spec": {"replicas": replicas}}, Workload)


def pod(ordinal: int | str, node: str = "n1", *, ready: bool = True, **metadata: Any) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "w", "controller": True}
    return convert(
        {
            "metadata": {
                "name": f"web-{ordinal}",
                "namespace": "default",
                "uid": f"p{ordinal}",
                "ownerReferences": [owner],
                **metadata,
            },
            "spec": {"nodeName": node},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]},
        },
        Pod,
    )


def node(name: str, **labels: str) -> Node:
    return convert({"metadata": {"name": name, "uid": name, "labels": {HOST: name, **labels}}}, Node)


def recorded(subject: PersistentPodState, **seen: Any) -> dict[str, Json]:
    """What is written then; what is there where nothing is."""
    snapshot = Snapshot(namespace="default", name="web", state=subject, **seen)
    plan = decide(snapshot)
    written = conclude(snapshot, plan, Outcomes()).status
    known = convert(written.body[0]["value"], type(subject.status)) if written is not None else subject.status
    return {
        name: {"node": one.node_name, **one.node_topology_labels, **one.annotations}
        for name, one in known.pod_states.items()
    }


NODES_THERE = (node("n1", zone="a"), node("n2", zone="b"))
FIRST = {"web-0": {"nodeName": "n1", "nodeTopologyLabels": {HOST: "n1", ZONE: "a"}}}


def test_ready_pods_are_recorded() -> None:
    """PPS-18 to PPS-21, PPS-26: with the labels that their node has; others keep what is known of them."""
    seen = {"native_target": workload(), "nodes": NODES_THERE}
    pods = (pod(0, "n1"), pod(1, "n2", ready=False), pod(2, "gone"))
    assert recorded(state(), pods=pods, **seen) == {"web-0": {"node": "n1", HOST: "n1", ZONE: "a"}}
    moved = recorded(state(known=FIRST), pods=(pod(0, "n2"),), **seen)
    assert moved == {"web-0": {"node": "n2", HOST: "n2", ZONE: "b"}}
    waiting = recorded(state(known=FIRST), pods=(pod(0, "n2", ready=False),), **seen)
    assert waiting["web-0"]["node"] == "n1"


def test_a_label_that_changed_later_does_not_count() -> None:
    """PPS-20: the state stays while pod, node and keys are the same; other keys refresh it."""
    there = (node("n1", zone="later"),)
    seen = {"native_target": workload(), "pods": (pod(0),), "nodes": there}
    assert recorded(state(known=FIRST), **seen)["web-0"][ZONE] == "a"
    fewer = state(known=FIRST, requiredPersistentTopology=None)
    assert recorded(fewer, **seen) == {"web-0": {"node": "n1", ZONE: "later"}}


def test_annotations_follow() -> None:
    """PPS-22, PPS-33."""
    subject = state(known=FIRST, persistentPodAnnotations=[{"key": "ip"}, {"key": "none"}])
    found = recorded(
        subject, native_target=workload(), pods=(pod(0, annotations={"ip": "1", "other": "2"}),), nodes=NODES_THERE
    )
    assert found["web-0"]["ip"] == "1"
    assert "other" not in found["web-0"]


@pytest.mark.parametrize("gone", [None, workload(gone=True)])
def test_with_the_workload_all_is_forgotten(gone: Workload | None) -> None:
    """PPS-17, PPS-25: whatever the policy."""
    subject = state(known=FIRST, persistentPodStateRetentionPolicy="WhenDeleted")
    assert recorded(subject, native_target=gone, pods=(pod(0),), nodes=NODES_THERE) == {}


def test_scaled_down_pods_are_forgotten() -> None:
    """PPS-23, PPS-24: unless they are still there; names without a number stay."""
    known = {f"web-{ordinal}": FIRST["web-0"] for ordinal in (0, 7, 8, 9, "x")}
    subject = state(known=known)
    going = pod(9, deletionTimestamp="2030-01-01T00:00:00Z")
    found = recorded(subject, native_target=workload(8), pods=(pod(8), going), nodes=NODES_THERE)
    assert set(found) == {"web-0", "web-7", "web-8", "web-x"}
    kept = evolve(subject, spec=evolve(subject.spec, persistent_pod_state_retention_policy="WhenDeleted"))
    assert set(recorded(kept, native_target=workload(8), pods=(pod(8), going), nodes=NODES_THERE)) == set(known)
    assert set(recorded(subject, native_target=workload(0))) == {"web-x"}


def test_reserved_ordinals_and_a_start_count() -> None:
    """PPS-23: replicas 8 without 0, 3 and 7 are 1, 2, 4, 5, 6, 8, 9 and 10."""
    body = {
        "metadata": {"name": "web", "namespace": "default", "uid": "w"},
        "spec": {"replicas": 8, "reserveOrdinals": [0, 3, "7-7"]},
    }
    known = {f"web-{ordinal}": FIRST["web-0"] for ordinal in range(12)}
    found = recorded(state(known=known), advanced_target=convert(body, StatefulSet))
    assert sorted(int(name[4:]) for name in found) == [1, 2, 4, 5, 6, 8, 9, 10]
    begun = evolve(workload(2), spec=convert({"replicas": 2, "ordinals": {"start": 5}}, type(workload().spec)))
    assert set(recorded(state(known=known), native_target=begun)) == {"web-5", "web-6"}


# Made for annotations

ASKING = {keys.AUTO: "true", keys.REQUIRED: "os,zone", keys.PREFERRED: HOST, keys.ANNOTATIONS: "ip"}


def written(**seen: Any) -> Any:
    [phase] = decide(Snapshot(namespace="default", name="web", **seen)).phases
    return phase.chains[0][0]


def test_what_annotations_ask_for() -> None:
    """PPS-12, PPS-13, PPS-14: keys are split at commas, all preferred ones are one term."""
    action = written(native=workload(annotations=ASKING))
    spec = action.body["spec"]
    assert spec["requiredPersistentTopology"] == {"keys": ["os", "zone"]}
    assert spec["preferredPersistentTopology"] == [{"weight": 100, "preference": {"keys": [HOST]}}]
    assert spec["persistentPodAnnotations"] == [{"key": "ip"}]
    made = state(annotations=action.body["metadata"]["annotations"])
    assert not decide(Snapshot(namespace="default", name="web", state=made, native=workload(annotations=ASKING))).phases
    other = workload(annotations={**ASKING, keys.PREFERRED: "rack"})
    change = written(state=made, native=other).body
    assert change["spec"]["preferredPersistentTopology"][0]["preference"]["keys"] == ["rack"]
    assert change["spec"]["persistentPodStateRetentionPolicy"] is None
    gone = written(state=made, native=workload(annotations={**ASKING, keys.AUTO: "True"}))
    assert gone.verb.value == "delete"


def test_another_choice_of_recorded_annotations_alone_changes_nothing() -> None:
    """PPS-12: nor is what users wrote, such as the retention policy, undone by it."""
    made = state(annotations=written(native=workload(annotations=ASKING)).body["metadata"]["annotations"])
    other = workload(annotations={**ASKING, keys.ANNOTATIONS: "name"})
    assert not decide(Snapshot(namespace="default", name="web", state=made, native=other)).phases
    assert list(_WorkloadKeys("apps")(workload(annotations=ASKING), other, world())) == []


@pytest.mark.parametrize("group", ["apps/v1", "apps.kruise.io/v1beta1"])
def test_one_without_owner_goes_with_the_annotations_of_its_target(group: str) -> None:
    """PPS-13.2: whoever made it; the target says whose annotations count."""
    target = {"apiVersion": group, "kind": "StatefulSet", "name": "web"}
    made = state(annotations={keys.GENERATED_FROM: "{}"}, targetRef=target)
    native = workload()
    advanced = convert({"metadata": {"name": "web", "namespace": "default", "uid": "a"}}, StatefulSet)
    asking = evolve(advanced, metadata=evolve(advanced.metadata, annotations=ASKING))
    its_own = {"native": native} if group == "apps/v1" else {"advanced": advanced}
    assert written(state=made, **its_own).verb.value == "delete"
    others = {"advanced": asking} if group == "apps/v1" else {"native": workload(annotations=ASKING)}
    assert written(state=made, **its_own, **others).verb.value != "delete"


@pytest.mark.parametrize("annotations", [{keys.AUTO: "true"}, {keys.AUTO: "yes", keys.REQUIRED: "a"}, {}])
def test_what_asks_for_nothing(annotations: Json) -> None:
    """PPS-13: one that users have made stays."""
    seen = {"namespace": "default", "name": "web", "native": workload(annotations=annotations)}
    assert not decide(Snapshot(**seen)).phases
    assert not decide(Snapshot(**seen, state=state())).phases


# Who is woken


def world() -> World:
    made = World(NOW)
    made.add(WATCHED_STATES, [state()])
    made.add(Watched(PODS, indexes={**OWNER_INDEX, **NODE_INDEX}), [pod(0, "n1"), pod(1, "n2")])
    made.add(NODES, NODES_THERE)
    made.add(STATEFUL_SETS, [workload()])
    made.add(ADVANCED, [])
    return made


def test_which_changes_are_looked_at() -> None:
    """PPS-16: a pod that becomes ready or goes; neither its creation nor anything else."""
    stores, mine = world(), [Key("default", "web")]
    unready = pod(0, ready=False)
    assert list(_pod_keys(unready, pod(0), stores)) == mine
    assert list(_pod_keys(None, unready, stores)) == []
    assert list(_pod_keys(pod(0), pod(0, annotations={"x": "y"}), stores)) == []
    going = pod(0, deletionTimestamp="2030-01-01T00:00:00Z")
    assert list(_pod_keys(pod(0), going, stores)) == mine
    assert list(_pod_keys(going, None, stores)) == mine
    named = pod(0, annotations={keys.INJECTED: "by-name"}, deletionTimestamp="2030-01-01T00:00:00Z")
    assert list(_pod_keys(named, None, stores)) == [Key("default", "by-name"), *mine], "another one may have taken over"
    again = pod(0, annotations={keys.INJECTED: "web"}, deletionTimestamp="2030-01-01T00:00:00Z")
    assert list(_pod_keys(again, None, stores)) == mine
    for api_version, wanted in (("games.example.io/v1", [Key("default", "web")]), ("batch/v1", [])):
        owner = {"apiVersion": api_version, "kind": "Game", "name": "web", "uid": "g", "controller": True}
        theirs = pod(0, ownerReferences=[owner])
        assert list(_pod_keys(None, theirs, stores)) == wanted, "whoever is not watched may ask for it"
    assert list(_WorkloadKeys("apps")(workload(), None, stores)) == mine
    assert list(_WorkloadKeys("apps")(workload(), workload(annotations={"x": "y"}), stores)) == []
    later = evolve(workload(), spec=evolve(workload().spec, ordinals=Ordinals(start=5)))
    assert list(_WorkloadKeys("apps")(workload(), later, stores)) == mine, "others are wanted then"
    assert list(_WorkloadKeys(GROUP)(workload(), None, stores)) == []


def test_a_node_that_joins_wakes_only_whom_it_concerns() -> None:
    """PPS-20: those who remember pods that are on it already."""
    stores = world()
    assert list(_node_keys(None, node("n3"), stores)) == []
    assert list(_node_keys(None, NODES_THERE[0], stores)) == [Key("default", "web")]
    assert list(_node_keys(NODES_THERE[0], node("n1", zone="z"), stores)) == []


# Pods that are made again


def test_the_place_is_injected() -> None:
    """PPS-29 to PPS-32, PW-26: required keys overwrite, preferred terms are appended, in the order of the spec."""
    subject = state(known=FIRST)
    body = {"metadata": {"name": "web-0"}, "spec": {"nodeSelector": {HOST: "x", "disk": "ssd"}}}
    known = subject.status.pod_states["web-0"]
    change = _placed(body, body["metadata"], body["spec"], subject, known)
    assert isinstance(change, Change)
    made = dict(change.object)
    assert made["spec"]["nodeSelector"] == {HOST: "n1", "disk": "ssd"}
    [term] = made["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "weight": 5,
        "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]},
    }
    assert made["metadata"]["annotations"] == {keys.INJECTED: "web"}
    unknown = state(known=FIRST, requiredPersistentTopology={"keys": ["rack"]}, preferredPersistentTopology=[])
    assert _placed(body, body["metadata"], body["spec"], unknown, known) is None


def test_only_known_pods_are_touched() -> None:
    """PPS-29, PW-25: a first creation, a pod of another workload and one of nobody are left alone."""
    stores = world()
    stores.put(PERSISTENT_POD_STATES, state(known=FIRST))
    view = SimpleNamespace(store=stores.store)
    request = SimpleNamespace(operation="CREATE", sub_resource="")
    context = StepContext(request, view, "default")  # type: ignore[arg-type]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True}

    def made(name: str, **changes: Any) -> Change | None:
        return inject({"metadata": {"name": name, "ownerReferences": [{**owner, **changes}]}, "spec": {}}, context)

    assert made("web-0") is not None
    assert made("web-1") is None
    assert made("web-0", apiVersion=f"{GROUP}/v1beta1") is None
    assert made("web-0", controller=False) is None
    assert inject({"metadata": {"name": "web-0"}, "spec": {}}, context) is None


# Versions and the whitelist


def test_keys_have_another_name_in_v1alpha1() -> None:
    """PPS-2: the order stays; an empty policy is left out."""
    newer = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "PersistentPodState",
        "metadata": {},
        "spec": {
            "targetRef": {},
            "requiredPersistentTopology": {"keys": ["b", "a"]},
            "preferredPersistentTopology": [{"weight": 1, "preference": {"keys": ["c"]}}],
        },
    }
    older = converted(newer, "v1alpha1")
    assert older["spec"]["requiredPersistentTopology"] == {"nodeTopologyKeys": ["b", "a"]}
    assert older["spec"]["preferredPersistentTopology"][0]["preference"] == {"nodeTopologyKeys": ["c"]}
    assert converted(older, "v1beta1")["spec"] == newer["spec"]
    empty = {
        **older,
        "spec": {"targetRef": {}, "requiredPersistentTopology": {}, "persistentPodStateRetentionPolicy": ""},
    }
    assert converted(empty, "v1beta1")["spec"] == {"targetRef": {}, "requiredPersistentTopology": {"keys": []}}


def test_the_whitelist_is_read_in_any_case() -> None:
    """PPS-4."""
    text = '{"workloads": [{"Group": "apps.example.io", "version": "v1", "KIND": "Game"}]}'
    assert whitelisted({keys.WHITELIST: text}) == (("apps.example.io", "Game"),)
    assert whitelisted(None) == whitelisted({keys.WHITELIST: " "}) == ()
    with pytest.raises(WhitelistError, match="kruise-configuration"):
        whitelisted({keys.WHITELIST: "{"})
