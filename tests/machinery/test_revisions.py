"""Revisions: data, hash, name, choice and history."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import ObjectMeta, OwnerReference, PartialObject
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.resource import Resource
from kruise.machinery import revision_names, revisions, selectors
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import Raw
from kruise.machinery.names import ALPHABET
from kruise.machinery.ownership import Owner
from kruise.machinery.revisions import Step

SETS = Resource("apps.kruise.io", "v1alpha1", "clonesets", "CloneSet", True, PartialObject)
OWNER = Owner(SETS, "ns", "web", "owner-uid")
START = datetime(2026, 1, 1, tzinfo=UTC)

GOLDEN_DATA = (
    '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},"spec":'
    '{"containers":[{"image":"nginx:alpine","imagePullPolicy":"Always","name":"nginx","resources":{},'
    '"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst",'
    '"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},'
    '"terminationGracePeriodSeconds":30}}}}'
)


def template(image: str = "nginx:alpine", app: str = "sample", policy: str = "Always") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN_DATA)["spec"]["template"]
    del found["$patch"]
    found["metadata"]["labels"] = {"app": app}
    found["spec"]["containers"][0].update(image=image, imagePullPolicy=policy)
    return found


def with_port(found: dict[str, Any]) -> dict[str, Any]:
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "protocol": "TCP"}]
    return found


@pytest.mark.parametrize(
    ("found", "hashed"),
    [
        (template("nginx:alpine"), "d4d4fb5bd"),
        (template("nginx:1.19.1"), "7b66b966b7"),
        (template("nginx:mainline"), "56dfb978d4"),
        (with_port(template("nginx:1.7.9", "cs", "IfNotPresent")), "7cb9c88699"),
        (with_port(template("nginx:latest", "cs", "IfNotPresent")), "7c4d79f5bc"),
    ],
)
def test_golden_vectors(found: dict[str, Any], hashed: str) -> None:
    """IPU-12, IPU-14"""
    assert revisions.data_hash(revisions.template_data(found)) == hashed


def test_the_data_is_a_patch_with_the_canonical_template() -> None:
    """IPU-10, IPU-11: whatever the client wrote, the bytes are the same."""
    assert revisions.template_data(template()) == GOLDEN_DATA.encode()
    written = template()
    written["$patch"] = "replace"
    written["unknown"] = 1
    del written["metadata"]["creationTimestamp"]
    del written["spec"]["containers"][0]["resources"]
    written["spec"]["containers"][0]["env"] = []
    written["spec"]["hostNetwork"] = False
    written["spec"]["nodeName"] = None
    assert revisions.template_data(written) == GOLDEN_DATA.encode()


def test_data_is_escaped_like_gos() -> None:
    """IPU-10"""
    found = template()
    found["metadata"]["annotations"] = {"a": "<&>\u2028ü"}
    data = revisions.template_data(found)
    assert b"\\u003c\\u0026\\u003e\\u2028\xc3\xbc" in data


def test_a_collision_count_changes_the_hash() -> None:
    """IPU-12"""
    hashes = {revisions.data_hash(b"{}", count) for count in range(12)}
    assert len(hashes) == 12
    assert all(1 <= len(hashed) <= 10 and set(hashed) <= set(ALPHABET) for hashed in hashes)


def test_names_are_cut_in_front_of_the_hash() -> None:
    """IPU-13"""
    assert revision_names.revision_name("web", "abc") == "web-abc"
    assert revision_names.revision_name("w" * 250, "abc") == "w" * 223 + "-abc"
    assert revision_names.short_hash("my-web-abc") == "abc"
    assert revision_names.short_hash("abc") == "abc"


def test_a_revision_is_of_one_owner() -> None:
    """IPU-13"""
    assert revision_names.is_of("web-abc", "web")
    assert revision_names.is_of("w" * 223 + "-abc", "w" * 250)
    assert not revision_names.is_of("web-2-abc", "web")
    assert not revision_names.is_of("", "web")
    assert not revision_names.is_of("web", "web")


@pytest.mark.parametrize(
    ("label", "name", "same"),
    [
        ("web-abc", "web-abc", True),
        ("abc", "web-abc", True),
        ("web-abc", "abc", True),
        ("web-abd", "web-abc", False),
        ("", "web-abc", False),
        ("abc", "", False),
    ],
)
def test_full_and_short_labels_mean_the_same(label: str, name: str, same: bool) -> None:
    """IPU-20"""
    assert revision_names.is_revision(label, name) is same


def revision(
    name: str,
    number: int,
    data: bytes | None = None,
    *,
    owner: str | None = "owner-uid",
    app: str = "sample",
    annotations: dict[str, str] | None = None,
    deleted: bool = False,
    age: int = 0,
    namespace: str = "ns",
) -> ControllerRevision:
    owners = (OwnerReference(uid=owner, controller=True),) if owner else ()
    return ControllerRevision(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            labels={"app": app},
            annotations=annotations or {},
            owner_references=owners,
            creation_timestamp=START - timedelta(hours=age),
            deletion_timestamp=START if deleted else None,
        ),
        data=Raw(data if data is not None else revisions.template_data(template(name))),
        revision=number,
    )


def names(found: list[ControllerRevision]) -> list[str]:
    return [item.metadata.name for item in found]


def test_listing_takes_ours_and_nobodys_that_match() -> None:
    """IPU-16"""
    candidates = [
        revision("c", 3),
        revision("orphan", 2, owner=None),
        revision("foreign", 1, owner="other"),
        revision("unmatched", 1, app="x"),
        revision("elsewhere", 1, namespace="other"),
        revision("a", 1),
    ]
    assert names(revisions.belonging_to(OWNER, candidates, selectors.parse("app=sample"))) == ["a", "orphan", "c"]


def test_equal_numbers_are_ordered_by_age_then_name() -> None:
    """ST-52"""
    found = revisions.in_order([revision("b", 1), revision("a", 1), revision("old", 1, age=2), revision("z", 0)])
    assert names(found) == ["z", "old", "a", "b"]


def choose(existing: list[ControllerRevision], data: bytes, **more: Any) -> revisions.Choice:
    return revisions.choose(OWNER, existing, data, labels={"app": "sample"}, **more)


DATA = GOLDEN_DATA.encode()


def test_the_first_revision_is_created_with_number_one() -> None:
    """IPU-15, IPU-17c"""
    choice = choose([], DATA, annotations={"kubernetes.io/change-cause": "why"}, refreshed={"claims": "x"})
    assert choice.step is Step.CREATE
    assert choice.action is not None
    assert (choice.action.verb, choice.action.owner_uid) == (Verb.CREATE, "owner-uid")
    assert choice.action.body == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "web-d4d4fb5bd",
            "namespace": "ns",
            "labels": {"app": "sample", "controller.kubernetes.io/hash": "d4d4fb5bd"},
            "annotations": {"kubernetes.io/change-cause": "why", "claims": "x"},
            "ownerReferences": [OWNER.reference()],
        },
        "data": json.loads(GOLDEN_DATA),
        "revision": 1,
    }
    assert choice.revision.metadata.name == "web-d4d4fb5bd"
    assert choice.revision.revision == 1
    assert choice.revision.metadata.owner_references[0].uid == "owner-uid"
    assert revisions.template_of(choice.revision) == template()
    assert choice.collision_count == 0


def test_the_newest_revision_with_equal_data_is_used_as_it_is() -> None:
    """IPU-17a: even where an annotation would be refreshed."""
    newest = revision("web-x", 5, DATA, annotations={"claims": "old"})
    choice = choose([revision("web-a", 4), newest], DATA, refreshed={"claims": "new"}, collision_count=2)
    assert (choice.step, choice.revision, choice.action) == (Step.NOTHING, newest, None)
    assert choice.collision_count == 2


def test_going_back_raises_the_number_of_the_older_revision() -> None:
    """IPU-17b"""
    older = revision("web-a", 1, DATA, annotations={"claims": "old", "keep": "1"})
    choice = choose([older, revision("web-b", 2)], DATA, refreshed={"claims": "new"})
    assert choice.step is Step.RAISE
    assert choice.action is not None
    assert (choice.action.verb, choice.action.patch_type) == (Verb.PATCH, PatchType.MERGE)
    assert (choice.action.target.name, choice.action.uid) == ("web-a", "uid-web-a")
    assert choice.action.body == {"revision": 3, "metadata": {"annotations": {"claims": "new"}}}
    assert choice.revision.revision == 3
    assert choice.revision.metadata.annotations == {"claims": "new", "keep": "1"}


def test_going_back_leaves_annotations_alone_that_are_right() -> None:
    older = revision("web-a", 1, DATA, annotations={"claims": "same"})
    choice = choose([older, revision("web-b", 2)], DATA, refreshed={"claims": "same"})
    assert choice.action is not None
    assert choice.action.body == {"revision": 3}


def test_going_back_works_without_any_annotation() -> None:
    """IPU section 20, case 16"""
    choice = choose([revision("web-a", 1, DATA), revision("web-b", 2)], DATA, refreshed={"claims": "new"})
    assert choice.revision.metadata.annotations == {"claims": "new"}


def test_of_several_equal_ones_the_last_is_used() -> None:
    """IPU-17b"""
    existing = [revision("web-a", 1, DATA), revision("web-b", 2, DATA), revision("web-c", 3)]
    assert choose(existing, DATA).revision.metadata.name == "web-b"
    assert names(revisions.equal_to(DATA, existing)) == ["web-a", "web-b"]


def test_there_and_back_again_makes_two_revisions() -> None:
    """IPU section 20, case 15: A, B, A gives two objects, and A has number 3."""
    first, second = revisions.template_data(template("a")), revisions.template_data(template("b"))
    one = choose([], first).revision
    two = choose([one], second).revision
    choice = choose([one, two], first)
    assert choice.step is Step.RAISE
    assert (choice.revision.metadata.name, choice.revision.revision) == (one.metadata.name, 3)


def test_a_name_taken_by_other_data_raises_the_collision_count() -> None:
    """IPU-17c"""
    other = revision("web-d4d4fb5bd", 1, revisions.template_data(template("other")))
    choice = choose([other], DATA)
    assert choice.step is Step.CREATE
    assert choice.collision_count == 1
    assert choice.revision.metadata.name == f"web-{revisions.data_hash(DATA, 1)}"
    assert choice.revision.revision == 2


def test_a_name_taken_elsewhere_with_the_same_data_is_used_if_nobody_manages_it() -> None:
    """IPU-17c: the object that AlreadyExists spoke of, with identical data."""
    orphan = revision("web-d4d4fb5bd", 1, DATA, owner=None)
    assert choose([], DATA, others=[orphan]).revision is orphan
    foreign = revision("web-d4d4fb5bd", 1, DATA, owner="other")
    choice = choose([], DATA, others=[foreign])
    assert (choice.step, choice.collision_count) == (Step.CREATE, 1)


def test_the_collision_count_of_the_status_is_where_the_search_begins() -> None:
    choice = choose([], DATA, collision_count=3)
    assert choice.collision_count == 3
    assert choice.revision.metadata.name == f"web-{revisions.data_hash(DATA, 3)}"


def test_another_hash_label_may_be_asked_for() -> None:
    """DS-23"""
    choice = choose([], DATA, hash_label="controller-revision-hash")
    assert choice.revision.metadata.labels == {"app": "sample", "controller-revision-hash": "d4d4fb5bd"}


def test_data_is_compared_by_what_it_means() -> None:
    """IPU-11, ST-51: order, spaces, nulls, absent defaults of Go's encoder, and ways to write an amount."""
    found = template()
    found["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    other = copy.deepcopy(found)
    other["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m"}}
    other["spec"]["nodeSelector"] = None
    del other["metadata"]["creationTimestamp"]
    as_written = json.dumps({"spec": {"template": {**other, "$patch": "replace"}}}, indent=1).encode()
    assert revisions.same_data(revisions.template_data(found), as_written)
    other["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
    assert not revisions.same_data(revisions.template_data(found), revisions.template_data(other))


def test_other_data_is_compared_by_its_values() -> None:
    assert revisions.same_data(b'{"a":1,"b":null,"c":{}}', b'{ "a": 1 }')
    assert not revisions.same_data(b'{"a":1}', b'{"a":true}')
    assert not revisions.same_data(b'{"spec":{"template":{}}}', b'{"spec":{"template":{},"x":1}}')
    assert revisions.same_data(b'{"spec":{"template":{"spec":1}}}', b'{"spec": {"template": {"spec": 1}}}')
    assert not revisions.same_data(b'{"spec":{"template":{"spec":1}}}', b'{"spec":{"template":{"spec":2}}}')


def test_data_without_a_template_has_none() -> None:
    assert revisions.template_of(revision("a", 1, b'{"spec":{"patches":[]}}')) is None
    assert revisions.template_of(revision("a", 1, b"[]")) is None


def test_the_current_revision_is_the_named_one_or_the_update_revision() -> None:
    """IPU-18"""
    one, two = revision("web-a", 1), revision("web-b", 2)
    assert revisions.current_revision([one, two], "web-a", two) is one
    assert revisions.current_revision([one, two], "gone", two) is two
    assert revisions.current_revision([one, two], "", two) is two


def deleted(found: list[Any]) -> list[str]:
    assert all(action.verb is Verb.DELETE and action.target.resource == CONTROLLER_REVISIONS for action in found)
    assert all(action.uid == f"uid-{action.target.name}" for action in found)
    return [action.target.name for action in found]


def test_history_is_cut_from_the_oldest_that_nothing_uses() -> None:
    """IPU-19, ST-54"""
    existing = [revision(f"web-r{number}", number) for number in range(8)]
    actions = revisions.truncate(existing, keep={"web-r1", "web-r7"}, pod_labels=["web-r0", "r3", ""], limit=2)
    assert deleted(actions) == ["web-r2", "web-r4"]


@pytest.mark.parametrize(("limit", "gone"), [(None, 2), (12, 0), (0, 12), (-1, 12), (100, 0)])
def test_the_history_limit(limit: int | None, gone: int) -> None:
    existing = [revision(f"web-r{number}", number) for number in range(12)]
    assert len(revisions.truncate(existing, keep=(), pod_labels=(), limit=limit)) == gone


def test_a_revision_that_is_going_is_not_deleted_again() -> None:
    existing = [revision("web-a", 1, deleted=True), revision("web-b", 2), revision("web-c", 3)]
    assert deleted(revisions.truncate(existing, keep=(), pod_labels=(), limit=1)) == ["web-b"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=8))
def test_any_course_of_templates_keeps_one_revision_for_each(course: list[str]) -> None:
    """After each step the update revision is the newest and holds the template; no data is stored twice."""
    existing: dict[str, ControllerRevision] = {}
    for image in course:
        data = revisions.template_data(template(image))
        choice = choose(list(existing.values()), data)
        existing[choice.revision.metadata.name] = choice.revision
        assert choice.revision.revision == max(item.revision for item in existing.values())
        assert revisions.same_data(bytes(choice.revision.data), data)
        assert choose(list(existing.values()), data).step is Step.NOTHING
    assert len(existing) == len(set(course))
