"""New pods: bodies, ids, and the chains that make them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.client.requests import Verb
from kruise.machinery.names import ALPHABET
from kruise.workloads.cloneset.creation import Creations, create_pods, revision_labels
from kruise.workloads.cloneset.situation import Situation
from tests.support.clonesets import (
    DATA_CLAIM,
    NEW,
    OLD,
    TEMPLATE,
    UID,
    make_claim,
    make_cloneset,
    make_pod,
    make_situation,
)

OWNER_REFERENCE = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "CloneSet",
    "name": "web",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}


def created(situation: Situation, *, at_current: int = 0, at_update: int = 0) -> Creations:
    return create_pods(situation, at_current=at_current, at_update=at_update, reason="wanted")


def bodies(creations: Creations, kind: str = "Pod") -> list[Any]:
    return [action.body for chain in creations.chains for action in chain if action.body["kind"] == kind]


def ids_of(creations: Creations) -> list[str]:
    return [body["metadata"]["labels"]["apps.kruise.io/cloneset-instance-id"] for body in bodies(creations)]


def one_pod(situation: Situation) -> Any:
    (body,) = bodies(created(situation, at_update=1))
    return body


def test_a_pod_looks_like_the_recorded_one() -> None:  # CS-85, CS-110, CS-153, IPU-21, IPU-75
    situation = make_situation()
    (instance_id,) = ids_of(created(situation, at_update=1))
    revision = NEW.metadata.name
    spec = copy.deepcopy(dict(TEMPLATE["spec"]))
    spec["containers"][0]["resources"] = {}
    assert one_pod(situation) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{instance_id}",
            "generateName": "web-",
            "namespace": "demo",
            "labels": {
                "app": "web",
                "apps.kruise.io/cloneset-instance-id": instance_id,
                "controller-revision-hash": revision,
                "lifecycle.apps.kruise.io/state": "PreparingNormal",
                "pod-template-hash": revision.removeprefix("web-"),
            },
            "annotations": {"lifecycle.apps.kruise.io/timestamp": "2030-01-01T12:00:00Z"},
            "ownerReferences": [OWNER_REFERENCE],
        },
        "spec": {**spec, "readinessGates": [{"conditionType": "InPlaceUpdateReady"}]},
    }


def test_a_create_is_settled_by_its_owner() -> None:
    (chain,) = created(make_situation(), at_update=1).chains
    (action,) = chain
    assert (action.verb, action.owner_uid, action.reason) == (Verb.CREATE, UID, "wanted")


def test_metadata_and_gates_of_the_template_are_kept() -> None:  # CS-85, CS-111
    template = copy.deepcopy(dict(TEMPLATE))
    template["metadata"] = {
        "labels": {"app": "web", "hook": "true"},
        "annotations": {"note": "x"},
        "finalizers": ["hook.io/pd"],
    }
    template["spec"]["readinessGates"] = [{"conditionType": "mine"}]
    body = one_pod(make_situation(make_cloneset(template=template)))
    assert body["metadata"]["labels"]["hook"] == "true"
    assert body["metadata"]["annotations"]["note"] == "x"
    assert body["metadata"]["finalizers"] == ["hook.io/pd"]
    assert body["spec"]["readinessGates"] == [{"conditionType": "mine"}, {"conditionType": "InPlaceUpdateReady"}]


def test_the_gate_is_not_added_twice() -> None:  # IPU-75
    template = copy.deepcopy(dict(TEMPLATE))
    template["spec"]["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
    body = one_pod(make_situation(make_cloneset(template=template)))
    assert body["spec"]["readinessGates"] == [{"conditionType": "InPlaceUpdateReady"}]


def test_revision_labels_are_long_or_short() -> None:  # IPU-21, CS-150
    assert revision_labels("web-abc", short=False) == {
        "controller-revision-hash": "web-abc",
        "pod-template-hash": "abc",
    }
    assert revision_labels("web-abc", short=True) == {"controller-revision-hash": "abc", "pod-template-hash": "abc"}
    labels = one_pod(make_situation(gates={"CloneSetShortHash": True}))["metadata"]["labels"]
    assert labels["controller-revision-hash"] == NEW.metadata.name.removeprefix("web-")


def test_current_pods_come_first_and_ids_are_sorted() -> None:  # CS-85, CS-105
    creations = created(make_situation(rollout=True), at_current=2, at_update=3)
    ids = ids_of(creations)
    assert ids == sorted(ids)
    images = [body["spec"]["containers"][0]["image"] for body in bodies(creations)]
    assert images == ["nginx:1.24"] * 2 + ["nginx:1.25"] * 3
    hashes = [body["metadata"]["labels"]["controller-revision-hash"] for body in bodies(creations)]
    assert hashes == [OLD.metadata.name] * 2 + [NEW.metadata.name] * 3


def test_nothing_to_create() -> None:
    assert created(make_situation()) == Creations()


def test_ids_depend_on_the_seed_alone() -> None:
    once, again = (ids_of(created(make_situation(seed=5), at_update=4)) for _ in range(2))
    assert once == again
    assert once != ids_of(created(make_situation(seed=6), at_update=4))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**64), count=st.integers(1, 30))
def test_ids_are_of_the_safe_alphabet_and_never_taken(seed: int, count: int) -> None:  # CS-85, CS-123
    """Whatever a first choice gave away is not given away again, be it to a pod or a claim that is on its way out."""
    first = ids_of(created(make_situation(seed=seed), at_update=count))
    pods = [make_pod(i, terminating=True) if n % 2 else make_pod(i) for n, i in enumerate(first[::2])]
    claims = [make_claim(i, terminating=True) for i in first[1::2]]
    second = ids_of(created(make_situation(pods=pods, claims=claims, seed=seed), at_update=count))
    assert len(set(second)) == count
    assert set(first).isdisjoint(second)
    assert all(len(i) == 5 and set(i) <= set(ALPHABET) for i in first + second)


def test_a_pod_without_its_id_label_still_has_its_name() -> None:
    (taken,) = ids_of(created(make_situation(), at_update=1))
    pod = make_pod(taken, labels={"apps.kruise.io/cloneset-instance-id": "other"})
    assert ids_of(created(make_situation(pods=[pod]), at_update=1)) != [taken]


# Claims


def with_claims(*templates: Any, reuse: bool = False, **spec: Any) -> Any:
    return make_cloneset(volumeClaimTemplates=list(templates), scale={"enablePVCReuse": reuse}, **spec)


def test_claims_are_made_before_their_pod() -> None:  # CS-85, CS-120
    (chain,) = created(make_situation(with_claims(DATA_CLAIM)), at_update=1).chains
    claim, pod = chain
    instance_id = pod.target.name.removeprefix("web-")
    assert claim.body == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"data-web-{instance_id}",
            "namespace": "demo",
            "labels": {"app": "web", "apps.kruise.io/cloneset-instance-id": instance_id},
            "ownerReferences": [OWNER_REFERENCE],
        },
        "spec": DATA_CLAIM["spec"],
    }
    assert claim.owner_uid == UID
    assert pod.body["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": f"data-web-{instance_id}"}}
    ]


def test_labels_and_annotations_of_a_claim_template_are_kept() -> None:  # CS-120
    template = copy.deepcopy(dict(DATA_CLAIM))
    template["metadata"] = {"name": "data", "labels": {"tier": "fast"}, "annotations": {"note": "x"}}
    (claim,) = bodies(created(make_situation(with_claims(template)), at_update=1), "PersistentVolumeClaim")
    assert claim["metadata"]["labels"]["tier"] == "fast"
    assert claim["metadata"]["annotations"] == {"note": "x"}


def test_a_claim_takes_the_place_of_a_volume_of_its_name() -> None:  # CS-85
    template = copy.deepcopy(dict(TEMPLATE))
    template["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    body = one_pod(make_situation(with_claims(DATA_CLAIM, template=template)))
    assert [volume["name"] for volume in body["spec"]["volumes"]] == ["data", "tmp"]
    assert "persistentVolumeClaim" in body["spec"]["volumes"][0]
    assert body["spec"]["volumes"][1] == {"name": "tmp", "emptyDir": {}}


def test_pods_of_the_current_revision_get_live_claims_too() -> None:  # CS-120
    situation = make_situation(with_claims(DATA_CLAIM), rollout=True)
    (claim,) = bodies(created(situation, at_current=1), "PersistentVolumeClaim")
    assert claim["spec"] == DATA_CLAIM["spec"]


def test_free_claims_are_taken_over_first() -> None:  # CS-121
    claims = [make_claim("zzzzz"), make_claim("bbbbb")]
    creations = created(make_situation(with_claims(DATA_CLAIM, reuse=True), claims=claims), at_update=3)
    assert {"bbbbb", "zzzzz"} < set(ids_of(creations))
    assert ids_of(creations) == sorted(ids_of(creations))
    made = [body["metadata"]["name"] for body in bodies(creations, "PersistentVolumeClaim")]
    (fresh,) = set(ids_of(creations)) - {"bbbbb", "zzzzz"}
    assert made == [f"data-web-{fresh}"]


def test_only_missing_claims_are_made() -> None:  # CS-120
    logs = {"metadata": {"name": "logs"}, "spec": DATA_CLAIM["spec"]}
    situation = make_situation(with_claims(DATA_CLAIM, logs, reuse=True), claims=[make_claim("bbbbb")])
    (chain,) = created(situation, at_update=1).chains
    assert [action.target.name for action in chain] == ["logs-web-bbbbb", "web-bbbbb"]


def test_claims_are_left_alone_without_reuse() -> None:  # CS-122
    situation = make_situation(with_claims(DATA_CLAIM), claims=[make_claim("bbbbb")])
    assert "bbbbb" not in ids_of(created(situation, at_update=1))


def test_a_new_pod_waits_for_its_predecessor() -> None:  # CS-121
    """The name is free only when the old pod is gone; asking for it earlier would fail."""
    situation = make_situation(
        with_claims(DATA_CLAIM, reuse=True), [make_pod("bbbbb", terminating=True)], [make_claim("bbbbb")]
    )
    creations = created(situation, at_update=2)
    assert len(creations.chains) == 1
    assert "bbbbb" not in ids_of(creations)
    (held,) = creations.held
    assert (held.target.name, held.causes[0].code) == ("web-bbbbb", "terminating")


def test_a_failed_pod_is_replaced_under_another_name() -> None:  # edge case 16
    situation = make_situation(
        with_claims(DATA_CLAIM, reuse=True), [make_pod("bbbbb", phase="Failed")], [make_claim("bbbbb")]
    )
    creations = created(situation, at_update=1)
    assert len(creations.chains) == 1
    assert "bbbbb" not in ids_of(creations)


def test_pods_of_one_revision_share_their_spec() -> None:
    """Two thousand creates do not cost two thousand copies of the template."""
    first, second = bodies(created(make_situation(), at_update=2))
    assert first["spec"] is second["spec"]
