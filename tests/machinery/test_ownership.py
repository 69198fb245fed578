"""Ownership: references, and what is claimed, adopted and released."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Object, ObjectMeta, OwnerReference, PartialObject
from kruise.api.resource import Resource
from kruise.machinery import ownership, selectors
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.ownership import Owner
from kruise.machinery.patches import merge, strategic
from kruise.machinery.plan import Target
from tests.machinery.patches.pod_schema import POD

PODS = Resource("", "v1", "pods", "Pod", True, PartialObject)
SETS = Resource("apps.kruise.io", "v1alpha1", "clonesets", "CloneSet", True, PartialObject)
OWNER = Owner(SETS, "ns", "web", "owner-uid")
SELECTOR = selectors.parse("app=web")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def reference(uid: str, *, controller: bool = True) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="K", name="n", uid=uid, controller=controller)


def pod(
    name: str = "p",
    *,
    app: str = "web",
    owners: tuple[OwnerReference, ...] = (),
    deleted: bool = False,
    namespace: str = "ns",
) -> PartialObject:
    return PartialObject(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            resource_version="7",
            labels={"app": app},
            owner_references=owners,
            deletion_timestamp=NOW if deleted else None,
        )
    )


def claim(obj: Object, *, owner: Owner = OWNER) -> str:
    decision = ownership.claim(owner, [obj], SELECTOR)
    found = [name for name in ("owned", "to_adopt", "to_release") if getattr(decision, name)]
    return " ".join(found)


def test_a_reference_names_the_owner_as_the_managing_one() -> None:
    assert OWNER.reference() == {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "name": "web",
        "uid": "owner-uid",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert OWNER.reference(controller=False)["controller"] is False


def test_an_owner_is_made_from_an_object() -> None:
    assert Owner.of(PODS, pod(deleted=True)) == Owner(PODS, "ns", "p", "uid-p", True)


def test_only_the_managing_owner_controls() -> None:
    obj = pod(owners=(reference("a", controller=False), reference("b")))
    assert ownership.is_controlled_by(obj, "b")
    assert not ownership.is_controlled_by(obj, "a")
    assert ownership.is_owned_by(obj, "a")
    assert not ownership.is_owned_by(obj, "c")


DELETED_OWNER = Owner(SETS, "ns", "web", "owner-uid", True)


@pytest.mark.parametrize(
    ("obj", "owner", "decision"),
    [
        (pod(owners=(reference("owner-uid"),)), OWNER, "owned"),
        (pod(owners=(reference("owner-uid"),)), DELETED_OWNER, "owned"),
        (pod(owners=(reference("owner-uid"),), deleted=True), OWNER, "owned"),
        (pod(owners=(reference("owner-uid"),), app="x"), OWNER, "to_release"),
        (pod(owners=(reference("owner-uid"),), app="x"), DELETED_OWNER, ""),
        (pod(owners=(reference("other"),)), OWNER, ""),
        (pod(owners=(reference("other"),), app="x"), OWNER, ""),
        (pod(), OWNER, "to_adopt"),
        (pod(owners=(reference("other", controller=False),)), OWNER, "to_adopt"),
        (pod(app="x"), OWNER, ""),
        (pod(deleted=True), OWNER, ""),
        (pod(), DELETED_OWNER, ""),
        (pod(namespace="elsewhere"), OWNER, ""),
        (pod(namespace="elsewhere"), Owner(SETS, "", "web", "owner-uid"), "to_adopt"),
    ],
)
def test_what_is_ours_adopted_and_released(obj: PartialObject, owner: Owner, decision: str) -> None:
    """ST-49 and the rules of Kubernetes' own controllers."""
    assert claim(obj, owner=owner) == decision


def test_a_claim_may_be_narrower_than_the_selector() -> None:
    """ST-49: the pods of a StatefulSet also carry its name."""
    decision = ownership.claim(
        OWNER,
        [pod("web-0"), pod("x-0"), pod("x-1", owners=(reference("owner-uid"),))],
        SELECTOR,
        belongs=lambda obj: obj.metadata.name.startswith("web-"),
    )
    assert [obj.metadata.name for obj in decision.to_adopt] == ["web-0"]
    assert [obj.metadata.name for obj in decision.to_release] == ["x-1"]


def test_only_adoption_needs_a_live_owner() -> None:
    assert ownership.claim(OWNER, [pod()], SELECTOR).needs_live_owner
    assert not ownership.claim(OWNER, [pod(owners=(reference("owner-uid"),))], SELECTOR).needs_live_owner


def test_a_selector_for_nothing_adopts_nothing() -> None:
    decision = ownership.claim(OWNER, [pod(), pod("q", owners=(reference("owner-uid"),))], selectors.NOTHING)
    assert not decision.to_adopt
    assert [obj.metadata.name for obj in decision.to_release] == ["q"]


@pytest.mark.parametrize(
    ("live", "words"),
    [
        (PartialObject(metadata=ObjectMeta(name="web", uid="owner-uid")), ""),
        (None, "is gone"),
        (PartialObject(metadata=ObjectMeta(uid="new")), "got uid new, wanted owner-uid"),
        (
            PartialObject(metadata=ObjectMeta(uid="owner-uid", deletion_timestamp=NOW)),
            "has just been deleted at 2026-01-02T03:04:05Z",
        ),
    ],
)
def test_an_owner_that_changed_must_not_adopt(live: PartialObject | None, words: str) -> None:
    problem = ownership.adoption_problem(OWNER, live)
    assert problem.endswith(words)
    assert bool(problem) == bool(words)


def as_document(obj: PartialObject) -> dict[str, Any]:
    references = [
        {"apiVersion": item.api_version, "kind": item.kind, "name": item.name, "uid": item.uid}
        | ({"controller": True} if item.controller else {})
        for item in obj.metadata.owner_references
    ]
    return {"metadata": {"ownerReferences": references}}


def test_adoption_adds_our_reference_and_is_guarded_by_the_uid() -> None:
    obj = pod(owners=(reference("other", controller=False),))
    action = ownership.adopt(PODS, obj, OWNER)
    assert (action.verb, action.target, action.uid) == (Verb.PATCH, Target(PODS, "ns", "p"), "uid-p")
    assert action.patch_type is PatchType.STRATEGIC
    assert action.resource_version == ""
    result = strategic.apply(as_document(obj), action.body, POD)
    assert {item["uid"] for item in result["metadata"]["ownerReferences"]} == {"other", "owner-uid"}


def test_release_removes_only_our_reference() -> None:
    obj = pod(owners=(reference("other", controller=False), reference("owner-uid")))
    action = ownership.release(PODS, obj, OWNER)
    assert action.uid == "uid-p"
    result = strategic.apply(as_document(obj), action.body, POD)
    assert [item["uid"] for item in result["metadata"]["ownerReferences"]] == ["other"]


def test_custom_resources_get_the_whole_list_guarded_by_its_version() -> None:
    obj = pod(owners=(reference("other", controller=False),))
    action = ownership.adopt(SETS, obj, OWNER, strategic=False)
    assert (action.patch_type, action.resource_version) == (PatchType.MERGE, "7")
    adopted = merge.apply(as_document(obj), action.body)
    assert adopted["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "other"},
        OWNER.reference(),
    ]
    both = pod(owners=(reference("other", controller=False), reference("owner-uid")))
    released = merge.apply(as_document(both), ownership.release(SETS, both, OWNER, strategic=False).body)
    assert [item["uid"] for item in released["metadata"]["ownerReferences"]] == ["other"]


OBJECTS = st.builds(
    lambda index, app, owners, deleted: pod(f"p{index}", app=app, owners=owners, deleted=deleted),
    st.integers(0, 9),
    st.sampled_from(["web", "x"]),
    st.sampled_from([(), (reference("owner-uid"),), (reference("other"),), (reference("other", controller=False),)]),
    st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(OBJECTS, max_size=8), st.booleans())
def test_nothing_is_claimed_twice_and_nobody_is_robbed(objects: list[PartialObject], deleted: bool) -> None:
    owner = DELETED_OWNER if deleted else OWNER
    decision = ownership.claim(owner, objects, SELECTOR)
    everything = [*decision.owned, *decision.to_adopt, *decision.to_release]
    assert len({id(obj) for obj in everything}) == len(everything)
    assert all(not ownership.is_controlled_by(obj, "other") for obj in everything)
    assert not deleted or not (decision.to_adopt or decision.to_release)
    assert all(obj.metadata.labels["app"] == "web" for obj in [*decision.owned, *decision.to_adopt])
