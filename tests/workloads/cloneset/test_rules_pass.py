"""One pass over a CloneSet: its phases in order, revisions and their history, and the end of podsToDelete."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Action, OnError, Plan
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.situation import Snapshot, situation_of
from tests.support.clonesets import (
    DATA_CLAIM,
    NEW,
    NOW,
    OLD,
    TEMPLATE,
    make_claim,
    make_cloneset,
    make_pod,
    make_revision,
    make_situation,
)


def phases(plan: Plan) -> list[str]:
    return [phase.name for phase in plan.phases]


def of_phase(plan: Plan, name: str) -> list[Action]:
    return [action for phase in plan.phases if phase.name == name for chain in phase.chains for action in chain]


def with_image(image: str) -> dict[str, Any]:
    template: dict[str, Any] = copy.deepcopy(dict(TEMPLATE))
    template["spec"]["containers"][0]["image"] = image
    return template


def test_the_order_of_a_pass() -> None:  # CS-63 to CS-69
    cloneset = make_cloneset(
        replicas=3,
        template=with_image("nginx:1.26"),
        rolling={"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"},
        scale={"podsToDelete": ["web-gone"]},
        revisionHistoryLimit=0,
        volumeClaimTemplates=[DATA_CLAIM],
    )
    spare = make_revision(with_image("nginx:1.20"), 1)
    pods = (
        make_pod("a", state="PreparingNormal"),
        make_pod("b", old=True),
        make_pod("c", labels={"app": "elsewhere"}),
    )
    plan = decide(
        Snapshot(cloneset=cloneset, now=NOW, pods=pods, claims=(make_claim("x"),), revisions=(spare, OLD, NEW))
    )
    assert phases(plan) == ["revision", "release", "claims", "scale", "refresh", "spec", "history"]


def test_without_a_revision_nothing_else_is_done() -> None:  # CS-68
    plan = decide(Snapshot(cloneset=make_cloneset(), now=NOW))
    first, *rest = plan.phases
    assert (first.name, first.on_error) == ("revision", OnError.STOP_PLAN)
    [[action]] = first.chains
    assert (action.verb, action.target.resource) == (Verb.CREATE, CONTROLLER_REVISIONS)
    assert action.body["revision"] == 1
    made = [chain[-1] for phase in rest for chain in phase.chains]
    assert [pod.body["metadata"]["labels"][keys.REVISION_LABEL] for pod in made] == [action.target.name] * 3


def test_a_cloneset_that_is_being_deleted_does_nothing() -> None:  # CS-69, edge case 21
    found = make_situation(
        make_cloneset(replicas=5, deleting=True, scale={"podsToDelete": ["web-x"]}),
        [make_pod("a", specified=True), make_pod("b", labels={"app": "elsewhere"})],
        [make_claim("x")],
    )
    assert decide(found.snapshot).phases == ()


def test_pods_that_no_longer_match_are_released_and_replaced() -> None:  # CS-67, edge case 15
    plan = decide(make_situation(make_cloneset(replicas=1), [make_pod("a", labels={"app": "elsewhere"})]).snapshot)
    [released] = of_phase(plan, "release")
    assert released.target.name == "web-a"
    [made] = of_phase(plan, "scale")
    assert (made.verb, made.target.resource) == (Verb.CREATE, PODS)


def test_only_active_pods_that_it_controls_count() -> None:  # CS-65, IPU-110, edge cases 16 and 22
    foreign = make_pod("a")
    reference = codec.evolve(foreign.metadata.owner_references[0], uid="somebody-else")
    foreign = codec.evolve(foreign, metadata=codec.evolve(foreign.metadata, owner_references=(reference,)))
    pods = [foreign, make_pod("b", phase="Failed"), make_pod("c", phase="Succeeded"), make_pod("d", terminating=True)]
    found = make_situation(make_cloneset(replicas=1), pods)
    assert found.facts == ()
    plan = decide(found.snapshot)
    assert [action.verb for action in plan.actions()] == [Verb.CREATE], "replaced, and never deleted"


# The names of pods to delete


def test_names_that_are_no_active_pods_leave_the_list() -> None:  # CS-69
    cloneset = make_cloneset(replicas=2, scale={"podsToDelete": ["web-a", "web-b", "web-never"]})
    pods = [make_pod("a", labels={"hook": "true"}), make_pod("b", terminating=True), make_pod("c")]
    [write] = of_phase(decide(make_situation(cloneset, pods).snapshot), "spec")
    assert write.body == {"spec": {"scaleStrategy": {"podsToDelete": ["web-a"]}}}
    assert write.resource_version == cloneset.metadata.resource_version, "nobody else's change may be lost"


def test_an_empty_list_goes_as_a_whole() -> None:  # CS-69
    cloneset = make_cloneset(replicas=1, scale={"podsToDelete": ["web-never"]})
    [write] = of_phase(decide(make_situation(cloneset, [make_pod("a")]).snapshot), "spec")
    assert write.body == {"spec": {"scaleStrategy": {"podsToDelete": None}}}


def test_a_pod_of_the_list_that_is_still_there_keeps_its_place() -> None:  # CS-69
    cloneset = make_cloneset(replicas=1, scale={"podsToDelete": ["web-a"]})
    assert of_phase(decide(make_situation(cloneset, [make_pod("a")]).snapshot), "spec") == []


# Revisions


def test_a_settled_cloneset_writes_nothing() -> None:  # IPU-17
    assert decide(make_situation(make_cloneset(replicas=1), [make_pod("a")]).snapshot).phases == ()


def test_going_back_to_an_earlier_template_uses_its_revision_again() -> None:  # IPU-17, edge case 19
    snapshot = Snapshot(
        cloneset=make_cloneset(replicas=2, template=with_image("nginx:1.24"), rolling={"maxUnavailable": "100%"}),
        now=NOW,
        pods=(make_pod("a", old=True), make_pod("b")),
        revisions=(OLD, NEW),
    )
    plan = decide(snapshot)
    [raised] = of_phase(plan, "revision")
    assert (raised.verb, raised.target.name) == (Verb.PATCH, OLD.metadata.name)
    assert raised.body["revision"] == 3
    assert {action.target.name for action in of_phase(plan, "update")} == {"web-b"}, "a is there already"


def test_annotations_of_the_cloneset_go_onto_its_revision() -> None:  # IPU-15, CS-152
    cloneset = make_cloneset(volumeClaimTemplates=[DATA_CLAIM])
    annotated = codec.evolve(cloneset.metadata, annotations={"kubernetes.io/change-cause": "first"})
    plan = decide(Snapshot(cloneset=codec.evolve(cloneset, metadata=annotated), now=NOW))
    annotations = of_phase(plan, "revision")[0].body["metadata"]["annotations"]
    assert annotations["kubernetes.io/change-cause"] == "first"
    assert annotations[keys.CLAIM_TEMPLATES_HASH].isdecimal()


def test_a_change_of_claim_templates_alone_is_no_change() -> None:  # CS-124, IPU-17
    """No revision, no pod, no claim: neither is the hash of the newest revision touched."""
    bigger = copy.deepcopy(dict(DATA_CLAIM))
    bigger["spec"]["resources"]["requests"]["storage"] = "5Gi"
    rolling = {"podUpdatePolicy": "InPlaceIfPossible"}
    cloneset = make_cloneset(replicas=1, volumeClaimTemplates=[bigger], rolling=rolling)
    pod = make_pod("a", claims=["data"])
    for gate in (False, True):
        gates = {"RecreatePodWhenChangeVCTInCloneSetGate": gate}
        assert decide(make_situation(cloneset, [pod], [make_claim("a")], gates=gates).snapshot).phases == ()


@pytest.mark.parametrize(("limit", "kept"), [(None, 10), (3, 3), (0, 0)])
def test_the_history_has_its_limit(limit: int | None, kept: int) -> None:  # IPU-19
    spare = [make_revision(with_image(f"nginx:1.{minor}"), minor) for minor in range(12)]
    newest = codec.evolve(NEW, revision=99)
    cloneset = make_cloneset(replicas=1, revisionHistoryLimit=limit)
    plan = decide(Snapshot(cloneset=cloneset, now=NOW, pods=(make_pod("a"),), revisions=(*spare, newest)))
    assert [action.target.name for action in of_phase(plan, "history")] == [
        revision.metadata.name for revision in spare[: 12 - kept]
    ]


@pytest.mark.parametrize("terminating", [False, True])
@pytest.mark.parametrize("short", [False, True])
def test_no_revision_goes_while_a_pod_carries_it(terminating: bool, short: bool) -> None:  # IPU-19, IPU-20
    label = OLD.metadata.name.rpartition("-")[2] if short else OLD.metadata.name
    pods = (make_pod("a"), make_pod("b", old=True, terminating=terminating, labels={keys.REVISION_LABEL: label}))
    cloneset = make_cloneset(replicas=1, revisionHistoryLimit=0)
    plan = decide(Snapshot(cloneset=cloneset, now=NOW, pods=pods, revisions=(OLD, NEW)))
    assert of_phase(plan, "history") == []


def test_the_current_revision_is_the_one_that_status_names() -> None:  # IPU-18
    status = {"currentRevision": OLD.metadata.name}
    found = Snapshot(cloneset=make_cloneset(status=status), now=NOW, revisions=(OLD, NEW))
    assert situation_of(found).current == OLD
    assert situation_of(codec.evolve(found, cloneset=make_cloneset())).current == NEW
    lost = make_cloneset(status={"currentRevision": "web-gone"})
    assert situation_of(codec.evolve(found, cloneset=lost)).current == NEW
