"""From Kubernetes' kinds to ours and back with the pods kept: what is translated, and which step comes next."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kruise.faces.native import DAEMON_SET, DEPLOYMENT, STATEFUL_SET
from kruise.machinery.documents import Json, with_value
from kruise.verbs import handover
from kruise.verbs.errors import VerbError
from kruise.verbs.handover import FINALIZER, Act, Route, Seen
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from kruise.workloads.daemonset.face import FACE as OUR_DAEMON_SET
from kruise.workloads.statefulset.face import FACE as OURS
from tests.verbs.objects import native, template


def route(source: Any = STATEFUL_SET, destination: Any = OURS) -> Route:
    found = handover.route(source, destination)
    assert found is not None
    return found


STATUS = {
    "observedGeneration": 1,
    "replicas": 2,
    "readyReplicas": 2,
    "updatedReplicas": 2,
    "availableReplicas": 2,
    "updateRevision": "web-abc",
}


def stateful_set(**spec: Any) -> Json:
    made = native("StatefulSet", replicas=2, status=dict(STATUS), **spec)
    made["metadata"] |= {"uid": "native", "generation": 1}
    return made


def revision(name: str, owner: str, image: str = "nginx:1.25") -> Json:
    pods = template()
    pods["spec"]["containers"][0]["image"] = image
    return {
        "metadata": {"name": name, "ownerReferences": [{"uid": owner, "controller": True}]},
        "data": {"spec": {"template": {**pods, "$patch": "replace"}}},
        "revision": 1,
    }


def pod(name: str, owner: str, label: str = "web-abc") -> Json:
    owners = [{"uid": owner, "controller": True}] if owner else []
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {"controller-revision-hash": label},
            "ownerReferences": owners,
        }
    }


def test_what_can_be_migrated() -> None:
    assert route(OURS, STATEFUL_SET).destination is STATEFUL_SET
    assert route(DAEMON_SET, OUR_DAEMON_SET).destination is OUR_DAEMON_SET
    for pair in ((DEPLOYMENT, CLONE_SET), (STATEFUL_SET, STATEFUL_SET), (DAEMON_SET, OURS), (OURS, OURS)):
        assert handover.route(*pair) is None


def test_there_and_back_is_the_same() -> None:
    spec = {
        "minReadySeconds": 5,
        "serviceName": "web",
        "podManagementPolicy": "Parallel",
        "ordinals": {"start": 3},
        "revisionHistoryLimit": 4,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}},
    }
    source = stateful_set(**spec)
    source["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "a"}
    made = handover.manifest(route(), source)
    assert made["apiVersion"] == "apps.kruise.io/v1beta1"
    assert made["metadata"] == {
        "name": "web",
        "namespace": "demo",
        "labels": {"app": "web"},
        "annotations": {"team": "a"},
    }
    rolling = made["spec"]["updateStrategy"]["rollingUpdate"]
    assert rolling == {"partition": 1, "maxUnavailable": 2, "minReadySeconds": 5}
    assert handover.manifest(route(OURS, STATEFUL_SET), made)["spec"] == source["spec"]
    assert route().translated(source).lost == ()


@pytest.mark.parametrize(
    ("spec", "lost", "binding"),
    [
        ({"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "ReCreate", "paused": False}}}, [], []),
        ({"volumeClaimUpdateStrategy": {}, "scaleStrategy": {}, "reserveOrdinals": []}, [], []),
        (
            {"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}},
            ["updateStrategy.rollingUpdate.podUpdatePolicy"],
            [],
        ),
        ({"aFieldOfTomorrow": {"a": 1}}, ["aFieldOfTomorrow.a"], []),
        ({"reserveOrdinals": [1]}, [], ["reserveOrdinals"]),
    ],
)
def test_what_the_other_kind_does_not_have(spec: Json, lost: list[str], binding: list[str]) -> None:
    found = route(OURS, STATEFUL_SET).translated({"spec": spec})
    assert [".".join(path) for path in found.lost] == lost
    assert [".".join(path) for path in found.binding] == binding


def test_a_limit_that_only_rolling_updates_have_is_named_where_it_stands() -> None:
    found = route().translated({"spec": {"minReadySeconds": 5, "updateStrategy": {"type": "OnDelete"}}})
    assert found.spec == {"updateStrategy": {"type": "OnDelete"}}
    assert found.lost == (("minReadySeconds",),)


def test_a_daemon_set_names_its_partition() -> None:
    spec = {"burstReplicas": 250, "updateStrategy": {"rollingUpdate": {"partition": 2, "maxSurge": 1}}}
    found = route(OUR_DAEMON_SET, DAEMON_SET).translated({"spec": spec})
    assert found.spec == {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}
    assert found.lost == (("updateStrategy", "rollingUpdate", "partition"),)


def test_every_step() -> None:
    """Played on values: each state has one next step, and no step is taken before the one that makes it safe."""
    source = stateful_set(updateStrategy={"type": "RollingUpdate"})
    pods = [pod("web-0", "native"), pod("web-1", "native")]
    revisions = [revision("web-abc", "native")]

    def step(made: Json | None = None) -> Any:
        return handover.next_step(route(), Seen(source=source, destination=made, pods=pods, revisions=revisions))

    assert step().act is Act.HOLD
    source = handover.with_finalizer(source)
    assert step().act is Act.LET_GO
    source["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER, "orphan"]}
    assert step().act is Act.WAIT
    source["metadata"]["finalizers"] = [FINALIZER]
    assert step().act is Act.LET_GO  # somebody deleted it in another way: the pods would go with it
    pods = [pod("web-0", ""), pod("web-1", "")]
    assert step().act is Act.CREATE
    made = handover.held(route(), source)
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    made["metadata"] |= {"uid": "ours", "generation": 1}
    assert step(made).act is Act.WAIT
    made["status"] = {**STATUS, "updateRevision": "web-xyz", "updatedReplicas": 0}
    revisions.append(revision("web-xyz", "ours"))
    pods = [pod("web-0", "ours"), pod("web-1", "ours")]
    relabel = step(made)
    assert (relabel.act, relabel.label, len(relabel.pods)) == (Act.RELABEL, "web-xyz", 2)
    pods = [pod("web-0", "ours", "web-xyz"), pod("web-1", "ours", "web-xyz")]
    assert step(made).act is Act.WAIT
    made["status"]["updatedReplicas"] = 2
    assert step(made).act is Act.ROLL
    made = handover.with_strategy(route(), source, made)
    assert step(made).act is Act.DROP
    assert handover.without_finalizer(source)["metadata"]["finalizers"] == []
    source = handover.without_finalizer(source)
    assert step(made).act is Act.WAIT
    source = None
    assert step(made).act is Act.UNMARK
    assert step(handover.without_mark(made)).act is Act.DONE


def test_a_pod_of_another_template_stops_it() -> None:
    source = handover.with_finalizer(stateful_set())
    source["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    made = handover.held(route(), source)
    made["metadata"] |= {"uid": "ours", "generation": 1}
    made["status"] = {**STATUS, "updateRevision": "web-xyz"}
    seen = Seen(
        source=source,
        destination=made,
        pods=[pod("web-0", "ours")],
        revisions=[revision("web-abc", "ours", "nginx:1.24"), revision("web-xyz", "ours")],
    )
    with pytest.raises(VerbError, match="web-0 has another template"):
        handover.next_step(route(), seen)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("metadata", "finalizers"), ["a/b"], "has the finalizer a/b"),
        (("metadata", "ownerReferences"), [{"kind": "Db", "name": "x", "controller": True}], "belongs to Db x"),
        (("metadata", "generation"), 2, "has not seen the newest spec"),
        (("status", "updatedReplicas"), 1, "1 of 2 pods have the newest template"),
        (("status", "readyReplicas"), 1, "1 of 2 pods are ready"),
        (("status", "replicas"), 3, "it has 3 pods instead of 2"),
    ],
)
def test_what_must_be_settled_first(path: tuple[str, ...], value: Any, message: str) -> None:
    source, pods = stateful_set(), [pod("web-0", "native"), pod("web-1", "native")]
    handover.check(route(), Seen(source=source, destination=None, pods=pods), lossy=False, gates={})
    unsettled = Seen(source=with_value(source, path, value), destination=None, pods=pods)
    with pytest.raises(VerbError, match=message):
        handover.check(route(), unsettled, lossy=False, gates={})
    seen = Seen(source=source, destination=handover.with_finalizer(source))
    with pytest.raises(VerbError, match="Let that end first: kruise migrate statefulset"):
        handover.check(route(), seen, lossy=False, gates={})
    with pytest.raises(VerbError, match="exists already"):
        handover.check(route(), Seen(source=source, destination=copy.deepcopy(source)), lossy=True, gates={})


GATE = "StatefulSetStartOrdinal"


@pytest.mark.parametrize(
    ("to_ours", "pods", "gates", "message"),
    [
        (True, (3, 4), {GATE: True}, ""),
        (
            True,
            (3, 4),
            {},
            "would delete web-3, web-4 and make web-0, web-1; .*--feature-gates=StatefulSetStartOrdinal",
        ),
        (False, (3, 4), {}, ""),
        (False, (0, 1), {}, "would delete web-0, web-1 and make web-3, web-4"),
    ],
)
def test_pods_that_the_destination_would_number_otherwise_stop_it(  # ST-40
    to_ours: bool, pods: tuple[int, ...], gates: dict[str, bool], message: str
) -> None:
    """Ours counts from `ordinals.start` on with a gate alone: without it, every pod would be replaced."""
    source = stateful_set(ordinals={"start": 3})
    owned = [pod(f"web-{ordinal}", "native") for ordinal in pods]
    chosen = route() if to_ours else route(OURS, STATEFUL_SET)
    seen = Seen(source=source, destination=None, pods=owned)
    if not message:
        handover.check(chosen, seen, lossy=False, gates=gates)
        return
    with pytest.raises(VerbError, match=message):
        handover.check(chosen, seen, lossy=False, gates=gates)


def test_somebody_elses_deletion_and_destination_are_left_alone() -> None:
    source = stateful_set()
    source["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(VerbError, match="not by a migration"):
        handover.next_step(route(), Seen(source=source, destination=None))
    other = handover.held(route(), with_value(source, ("metadata", "uid"), "another"))
    with pytest.raises(VerbError, match="was made by somebody else"):
        handover.next_step(route(), Seen(source=handover.with_finalizer(source), destination=other))
