"""Claims: their hash, which ones a new pod takes over, and which ones go."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.cloneset import CloneSet
from kruise.api.core import schema
from kruise.api.native.pod import Pod
from kruise.api.native.storage import PersistentVolumeClaim
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import Raw, encode
from kruise.machinery.patches import strategic
from kruise.machinery.plan import Action, OnError
from kruise.workloads.cloneset.claims import GOES_WITH_ANNOTATION, clean_claims, reusable_ids
from kruise.workloads.shared.claims import claim_templates, claim_templates_hash
from tests.support.clonesets import DATA_CLAIM, UID, make_claim, make_cloneset, make_pod, make_situation
from tests.support.examples import EXAMPLES


def hashed(*templates: Any) -> str:
    return claim_templates_hash([Raw(encode(template)) for template in templates])


def claim_template(name: str, size: str = "1Gi") -> dict[str, Any]:
    template = copy.deepcopy(dict(DATA_CLAIM))
    template["metadata"]["name"] = name
    template["spec"]["resources"]["requests"]["storage"] = size
    return template


# The hash (CS-126)


def test_the_recorded_hash() -> None:  # CS-126
    assert hashed(DATA_CLAIM) == "1428724668"


def test_no_templates_have_an_empty_hash() -> None:  # IPU-31
    assert hashed() == ""


def test_the_hash_is_of_names_and_specs() -> None:  # CS-126
    """Labels, annotations and status do not count, nor how a client writes a quantity."""
    other = claim_template("data", "1024Mi")
    other["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    del other["status"]
    assert hashed(other) == hashed(DATA_CLAIM)


def test_the_hash_does_not_depend_on_the_order() -> None:  # CS-126
    one, two = claim_template("a"), claim_template("b", "2Gi")
    assert hashed(one, two) == hashed(two, one)


@pytest.mark.parametrize("other", [claim_template("data", "2Gi"), claim_template("logs")])
def test_another_name_or_size_is_another_hash(other: dict[str, Any]) -> None:  # CS-125
    assert hashed(other) != hashed(DATA_CLAIM)


def test_a_template_without_metadata_is_read_all_the_same() -> None:
    (template,) = claim_templates([Raw(encode({"spec": {}}))])
    assert (template.name, template.labels, template.spec) == ("", {}, {})


# Taking over (CS-121)


def with_reuse(reuse: bool = True, **scale: Any) -> CloneSet:
    return make_cloneset(volumeClaimTemplates=[DATA_CLAIM], scale={"enablePVCReuse": reuse, **scale})


def reusable(pods: Iterable[Pod], claims: Iterable[PersistentVolumeClaim], **scale: Any) -> dict[str, str]:
    """Reusable ids with the name of the pod that has to go first."""
    found = reusable_ids(make_situation(with_reuse(**scale), pods, claims))
    return {instance_id: pod.metadata.name if pod is not None else "" for instance_id, pod in found.items()}


def test_a_claim_without_pod_is_reusable() -> None:  # CS-121
    assert reusable([], [make_claim("b"), make_claim("a")]) == {"a": "", "b": ""}


def test_a_claim_of_an_active_pod_is_not_reusable() -> None:  # CS-121
    assert reusable([make_pod("a")], [make_claim("a")]) == {}


def test_a_claim_of_a_released_pod_is_not_reusable() -> None:
    assert reusable([make_pod("a", labels={"app": "other"})], [make_claim("a")]) == {}


def test_a_terminating_claim_takes_its_id_along() -> None:  # CS-123
    claims = [make_claim("a"), make_claim("a", template="logs", terminating=True), make_claim("b", terminating=True)]
    assert reusable([], claims) == {}


def test_a_terminating_pod_has_to_go_first() -> None:  # CS-121
    assert reusable([make_pod("a", terminating=True)], [make_claim("a")]) == {"a": "web-a"}


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_finished_pod_keeps_its_name(phase: str) -> None:  # edge case 16
    assert reusable([make_pod("a", phase=phase)], [make_claim("a")]) == {}


@pytest.mark.parametrize(
    ("pod", "scale"),
    [
        (make_pod("a", terminating=True, specified=True), {}),
        (make_pod("a", terminating=True, state="PreparingDelete"), {}),
        (make_pod("a", terminating=True), {"podsToDelete": ["web-a"]}),
    ],
)
def test_claims_that_go_with_their_pod_are_not_reusable(pod: Pod, scale: dict[str, Any]) -> None:  # CS-86, CS-104
    assert reusable([pod], [make_claim("a")], **scale) == {}


def test_nothing_is_reusable_without_reuse() -> None:  # CS-122
    assert reusable([], [make_claim("a")], reuse=False) == {}


# Cleaning up (CS-66, CS-122)


def cleaned(cloneset: CloneSet, pods: Iterable[Pod], claims: Iterable[PersistentVolumeClaim]) -> list[Action]:
    phase = clean_claims(make_situation(cloneset, pods, claims))
    assert (phase.name, phase.on_error) == ("claims", OnError.CONTINUE)
    return [action for chain in phase.chains for action in chain]


def test_an_unused_claim_is_deleted() -> None:  # CS-122
    (action,) = cleaned(with_reuse(False), [make_pod("b")], [make_claim("a"), make_claim("b")])
    assert (action.verb, action.target.name, action.uid) == (Verb.DELETE, "data-web-a", "uid-data-a")
    assert action.resource_version == "9"


@pytest.mark.parametrize("pod", [make_pod("a", terminating=True), make_pod("a", phase="Failed")])
def test_a_claim_goes_over_to_its_inactive_pod(pod: Pod) -> None:  # CS-122
    (action,) = cleaned(with_reuse(False), [pod], [make_claim("a")])
    assert (action.verb, action.patch_type, action.target.name) == (Verb.PATCH, PatchType.STRATEGIC, "data-web-a")
    assert (action.uid, action.resource_version) == ("uid-data-a", "9")
    claim = {"metadata": {"ownerReferences": [{"kind": "CloneSet", "uid": UID, "controller": True}]}}
    patched = strategic.apply(claim, action.body, schema.merge_schema("v1", "PersistentVolumeClaim"))
    assert patched["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "web-a",
            "uid": "uid-a",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_terminating_claims_are_left_alone() -> None:  # CS-123
    assert cleaned(with_reuse(False), [], [make_claim("a", terminating=True)]) == []


def test_a_claim_without_id_is_left_alone() -> None:
    assert cleaned(with_reuse(False), [], [make_claim("a", labelled=False)]) == []


def test_a_claim_that_an_active_pod_mounts_is_left_alone() -> None:
    """Somebody changed the id label of the pod: it still needs its storage."""
    pod = make_pod("a", labels={"apps.kruise.io/cloneset-instance-id": "b"}, claims=["data"])
    assert cleaned(with_reuse(False), [pod], [make_claim("a")]) == []


def test_a_claim_of_a_released_pod_is_left_alone() -> None:  # CS-67
    assert cleaned(with_reuse(False), [make_pod("a", labels={"app": "other"})], [make_claim("a")]) == []


def test_claims_stay_with_reuse() -> None:  # CS-121
    pods = [make_pod("a", terminating=True), make_pod("b", phase="Failed")]
    assert cleaned(with_reuse(), pods, [make_claim("a"), make_claim("b"), make_claim("c")]) == []


def test_what_a_broken_off_deletion_left_is_deleted() -> None:  # CS-86
    """The pod is on its way out because it was to be deleted, but its claims were not reached."""
    pods = [make_pod("a", terminating=True, specified=True), make_pod("b", terminating=True)]
    (action,) = cleaned(with_reuse(), pods, [make_claim("a"), make_claim("b")])
    assert (action.verb, action.target.name, action.uid) == (Verb.DELETE, "data-web-a", "uid-data-a")


def test_a_claim_that_was_to_go_with_a_pod_that_is_gone_is_deleted() -> None:  # CS-86
    """The manager ended between the deletions: nothing of the pod is left to tell."""
    marked = make_claim("a", annotations={GOES_WITH_ANNOTATION: "uid-of-a-pod-that-is-gone"})
    (action,) = cleaned(with_reuse(), [make_pod("b")], [marked, make_claim("b"), make_claim("c")])
    assert (action.verb, action.target.name, action.uid) == (Verb.DELETE, "data-web-a", "uid-data-a")
    assert reusable([make_pod("b")], [marked, make_claim("c")]) == {"c": ""}


def test_a_pod_that_was_not_deleted_after_all_keeps_its_claims() -> None:
    pod = make_pod("a")
    marked = make_claim("a", annotations={GOES_WITH_ANNOTATION: pod.metadata.uid})
    (action,) = cleaned(with_reuse(), [pod], [marked])
    assert (action.verb, action.target.name) == (Verb.PATCH, "data-web-a")
    assert action.body == {"metadata": {"annotations": {GOES_WITH_ANNOTATION: None}}}


@pytest.mark.parametrize("reuse", [True, False])
def test_a_cloneset_that_is_deleted_touches_no_claim(reuse: bool) -> None:  # edge case 21
    cloneset = make_cloneset(deleting=True, scale={"enablePVCReuse": reuse})
    assert (
        cleaned(cloneset, [make_pod("b", terminating=True, specified=True)], [make_claim("a"), make_claim("b")]) == []
    )


pods = st.builds(
    make_pod,
    st.sampled_from("abcdef"),
    terminating=st.booleans(),
    specified=st.booleans(),
    phase=st.sampled_from(["Running", "Failed"]),
    state=st.sampled_from(["Normal", "PreparingDelete"]),
    labels=st.sampled_from([{}, {"app": "other"}]),
)
claims = st.builds(
    make_claim,
    st.sampled_from("abcdefgh"),
    template=st.sampled_from(["data", "logs"]),
    terminating=st.booleans(),
    labelled=st.booleans(),
)


def was_to_be_deleted(pod: Pod) -> bool:
    labels = pod.metadata.labels
    asked_for = "apps.kruise.io/specified-delete" in labels
    prepared = labels["lifecycle.apps.kruise.io/state"] == "PreparingDelete"
    return pod.metadata.deletion_timestamp is not None and (asked_for or prepared)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(
    pods=st.lists(pods, unique_by=lambda pod: pod.metadata.name, max_size=6),
    claims=st.lists(claims, unique_by=lambda claim: claim.metadata.name, max_size=8),
    reuse=st.booleans(),
)
def test_only_claims_that_may_go_are_touched(
    pods: list[Pod], claims: list[PersistentVolumeClaim], reuse: bool
) -> None:  # CS-120 to CS-123
    touched = {action.target.name: action for action in cleaned(with_reuse(reuse), pods, claims)}
    by_name = {pod.metadata.name: pod for pod in pods}
    for claim in claims:
        action = touched.get(claim.metadata.name)
        instance_id = claim.metadata.labels.get("apps.kruise.io/cloneset-instance-id", "")
        pod = by_name.get(f"web-{instance_id}")
        inactive = pod is not None and (pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed")
        if not instance_id or claim.metadata.deletion_timestamp is not None or (pod is not None and not inactive):
            assert action is None
        elif reuse:
            assert (action is not None) == (pod is not None and was_to_be_deleted(pod))
        else:
            assert action is not None
            assert action.verb is (Verb.DELETE if pod is None else Verb.PATCH)
