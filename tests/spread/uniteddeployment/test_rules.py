"""The rules of UnitedDeployments, one by one, on the pure core."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS, UnitedDeployment
from kruise.api.meta import Key
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Raw, convert, decode, encode, evolve
from kruise.machinery.offline import view_of
from kruise.machinery.plan import OnError, Outcomes, Plan
from kruise.manager.options import Options
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.admission import ADMISSION
from kruise.spread.uniteddeployment.children import by_child, child_of
from kruise.spread.uniteddeployment.conclude import conclude
from kruise.spread.uniteddeployment.controller import FEATURE, _meaning
from kruise.spread.uniteddeployment.decide import decide
from kruise.spread.uniteddeployment.situation import Snapshot
from tests.spread.uniteddeployment.objects import (
    NOW,
    UID,
    carried_out,
    causes_of,
    child,
    condition,
    look,
    pods,
    revision_of,
    stamp,
    status_after,
    united,
)
from tests.support import admission

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}
TWO: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}]
SERVER = admission.Server(admission=ADMISSION)


def test_the_first_pass_makes_everything() -> None:
    """UD-39, UD-13, UD-85: the revision, the children; figures come with the next pass."""
    subject = united(TWO, replicas=3)
    snapshot = Snapshot(united=subject, now=NOW)
    plan = decide(snapshot)
    assert [phase.name for phase in plan.phases] == ["revision", "create"]
    status = status_after(snapshot, plan)
    assert (status["replicas"], status["updatedReplicas"]) == (0, 0)
    assert status["subsetStatuses"] == [{"name": "a", "allocatedReplicas": 1}, {"name": "b", "allocatedReplicas": 2}]
    assert condition(status, "UnitedDeploymentUpdated")["status"] == "True"
    assert condition(status, "SubsetProvisioned")["status"] == "True"


def test_names_are_the_same_at_each_try() -> None:
    """UD-51: a create whose answer was lost is not done twice."""
    first, again = (
        {action.target.name for action in decide(Snapshot(united=united(TWO), now=NOW, seed=seed)).actions()}
        for seed in (1, 2)
    )
    assert first == again
    long = united([{"name": "s" * 63}])
    long = evolve(long, metadata=evolve(long.metadata, name="n" * 60))
    names = [one.target.name for one in decide(Snapshot(united=long, now=NOW)).actions() if one.owner_uid == UID]
    assert max(map(len, names[1:])) <= 52


def test_a_refused_child_is_quoted() -> None:
    """UD-79, UD-54: with the subset, in the condition; nothing is called updated, and the text is in `why`."""
    subject = united(TWO, replicas=2)
    snapshot = Snapshot(united=subject, now=NOW)
    plan = decide(snapshot)
    status = status_after(snapshot, plan, refused="quota: no more pods")
    told = condition(status, "SubsetProvisioned")
    assert (told["status"], told["reason"]) == ("False", "Error")
    assert told["message"].startswith("subset a (CloneSet web-a-")
    assert told["message"].endswith(": quota: no more pods")
    assert condition(status, "UnitedDeploymentUpdated")["status"] == "False"
    later, plan = look(evolve(subject, status=convert(status, type(subject.status))))
    [cause] = [one for held in plan.held for one in held.causes if one.code == "subset-refused"]
    assert "quota: no more pods" in cause.message
    assert conclude(later, plan, carried_out(plan)).status is not None


def test_no_pass_writes_what_is_there() -> None:
    """UD-78, UD-84: once settled, a pass writes nothing."""
    subject = united(TWO, replicas=4)
    children = [child(subject, "a", 2), child(subject, "b", 2)]
    members = [*pods(children[0], 2), *pods(children[1], 2)]
    snapshot, plan = look(subject, children, members)
    assert list(plan.actions()) == []
    subject = evolve(subject, status=convert(status_after(snapshot, plan), type(subject.status)))
    snapshot, plan = look(subject, children, members)
    assert conclude(snapshot, plan, carried_out(plan)).status is None
    assert not plan.held


def test_what_others_wrote_stays() -> None:
    """UD-78, UD-8: a change names only what is to be changed; what the template says no more goes."""
    inner = {
        "selector": {"matchLabels": {"app": "web"}},
        "minReadySeconds": 5,
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "i:1"}]},
        },
    }
    before = united([{"name": "a"}], replicas=2, template={"cloneSetTemplate": {"spec": inner}})
    theirs = child(before, "a", 2, progressDeadlineSeconds=77, metadata={"annotations": {"x": "y", keys.PATCH: ""}})
    del inner["minReadySeconds"]
    after = united([{"name": "a"}], replicas=3, template={"cloneSetTemplate": {"spec": inner}})
    snapshot, plan = look(after, [theirs], pods(theirs, 2))
    snapshot = evolve(snapshot, revisions=(*snapshot.revisions, revision_of(before)))
    [action] = [one for one in decide(snapshot).actions() if one.target.name == theirs.metadata.name]
    assert action.uid == theirs.metadata.uid
    assert action.body["spec"]["minReadySeconds"] is None
    assert action.body["spec"]["replicas"] == 3
    assert set(action.body["spec"]) == {"minReadySeconds", "replicas", "template"}
    assert set(action.body["spec"]["template"]) == {"metadata"}
    assert "annotations" not in action.body["metadata"]
    assert plan.phases


def test_items_of_lists_keep_what_others_wrote() -> None:
    """UD-78: defaults of a container, and a container that somebody has added; one that the template drops goes."""
    main = {"name": "main", "image": "i:1", "env": [{"name": "A", "value": "1"}]}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [main, {"name": "side", "image": "s:1"}]},
    }
    inner: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    before = united([{"name": "a"}], replicas=1, template={"cloneSetTemplate": {"spec": inner}})
    theirs = child(before, "a", 1)
    live = decode(theirs.spec.template, dict[str, Any])
    live["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    live["spec"]["containers"].append({"name": "injected", "image": "x:1"})
    theirs = evolve(theirs, spec=evolve(theirs.spec, template=Raw(encode(live))))
    wanted = [{**main, "image": "i:2"}]
    inner = {**inner, "template": {**template, "spec": {"containers": wanted}}}
    after = united([{"name": "a"}], replicas=1, template={"cloneSetTemplate": {"spec": inner}})
    snapshot, _ = look(after, [theirs], pods(theirs, 1))
    snapshot = evolve(snapshot, revisions=(*snapshot.revisions, revision_of(before)))
    [action] = [one for one in decide(snapshot).actions() if one.target.name == theirs.metadata.name]
    found = action.body["spec"]["template"]["spec"]["containers"]
    assert found == [{**wanted[0], "imagePullPolicy": "Always"}, {"name": "injected", "image": "x:1"}]


@pytest.mark.parametrize("before", [None, True])
def test_what_the_template_turns_off_is_off(before: bool | None) -> None:
    """UD-8, UD-73: also where the API server has filled in the opposite, or the template said it before."""
    pod: dict[str, Any] = {"containers": [{"name": "main", "image": "i:1"}]}
    inner = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
    }
    asked = {**pod, **({} if before is None else {"enableServiceLinks": before})}
    first = {**inner, "template": {**inner["template"], "spec": asked}}
    former = united([{"name": "a"}], replicas=1, template={"cloneSetTemplate": {"spec": first}})
    there = child(former, "a", 1, template={**first["template"], "spec": {**asked, "enableServiceLinks": True}})
    later = {**inner, "template": {**inner["template"], "spec": {**pod, "enableServiceLinks": False}}}
    after = united([{"name": "a"}], replicas=1, template={"cloneSetTemplate": {"spec": later}})
    snapshot, _ = look(after, [there])
    snapshot = evolve(snapshot, revisions=(*snapshot.revisions, revision_of(former)))
    [action] = [one for one in decide(snapshot).actions() if one.target.name == there.metadata.name]
    assert action.body["spec"]["template"]["spec"] == {"enableServiceLinks": False}


def made_for_a(subject: UnitedDeployment) -> dict[str, Any]:
    """The child of subset a, as it is created."""
    created = decide(Snapshot(united=subject, now=NOW)).actions()
    [found] = [one.body for one in created if one.target.name.startswith("web-a")]
    made: dict[str, Any] = found
    return made


def test_the_template_reaches_the_child() -> None:
    """UD-55 to UD-58, UD-8."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                ]
            }
        }
    }
    pod = {"containers": [{"name": "main", "image": "i:1"}], "affinity": affinity, "tolerations": [{"key": "t"}]}
    inner = {
        "selector": {"matchLabels": {"app": "ignored"}},
        "lifecycle": {"preDelete": {"labelsHandler": {"a": "b"}}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
    }
    template = {"cloneSetTemplate": {"metadata": {"labels": {"l": "1"}, "annotations": {"n": "2"}}, "spec": inner}}
    subset = {"name": "a", "nodeSelectorTerm": term, "tolerations": [{"key": "u", "operator": "Exists"}]}
    subject = united([subset], template=template, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})
    [body] = [
        one.body for one in decide(Snapshot(united=subject, now=NOW)).actions() if one.target.name.startswith("web-a")
    ]
    revision = revision_of(subject).metadata.name
    assert body["metadata"]["labels"] == {"l": "1", keys.REVISION: revision, keys.SUBSET: "a"}
    assert body["metadata"]["annotations"] == {"n": "2", keys.PATCH: ""}
    spec = body["spec"]
    assert spec["selector"] == {
        "matchExpressions": [{"key": "app", "operator": "Exists"}],
        "matchLabels": {keys.SUBSET: "a"},
    }
    assert spec["lifecycle"] == inner["lifecycle"]
    assert spec["updateStrategy"] == {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "partition": 0}}
    made = spec["template"]
    assert made["metadata"]["labels"] == {"app": "web", keys.SUBSET: "a", keys.REVISION: revision}
    required = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    assert [term["matchExpressions"][-1] for term in required["nodeSelectorTerms"]] == [zone, zone]
    assert made["spec"]["tolerations"] == [{"key": "t"}, {"key": "u", "operator": "Exists"}]
    plain = united([{"name": "a", "nodeSelectorTerm": {}}])
    [body] = [
        one.body for one in decide(Snapshot(united=plain, now=NOW)).actions() if one.target.name.startswith("web-a")
    ]
    assert "affinity" not in body["spec"]["template"]["spec"]


def test_revisions_hold_the_template_alone() -> None:
    """UD-75, UD-76, UD-80: what is spelt in another way, sizes and patches make no other one."""
    subject = united(TWO)
    first = revision_of(subject)
    data = json.loads(bytes(first.data))
    assert data["spec"]["template"]["$patch"] == "replace"
    assert first.metadata.labels["app"] == "web"
    template = decode(subject.spec.template, dict[str, Any])
    spelt = copy.deepcopy(template)
    spelt["cloneSetTemplate"]["metadata"]["creationTimestamp"] = None
    spelt["cloneSetTemplate"]["spec"]["scaleStrategy"] = {}
    same = united([{"name": "c", "patch": {"spec": {}}}], replicas=9, template=spelt)
    assert revision_of(same).metadata.name == first.metadata.name
    spelt["cloneSetTemplate"]["spec"]["updateStrategy"] = {"type": "OnDelete"}
    other = united(TWO, template=spelt)
    assert revision_of(other).metadata.name != first.metadata.name
    snapshot = Snapshot(united=other, now=NOW, revisions=(first, revision_of(other)))
    back = evolve(snapshot, united=subject)
    newest = evolve(revision_of(other), revision=2)
    [raised] = [
        one
        for one in decide(evolve(back, revisions=(first, newest))).actions()
        if one.target.name == first.metadata.name
    ]
    assert raised.body["revision"] == 3


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            {"updateStrategy": {}, "scaleStrategy": {}},
            {"updateStrategy": {}, "scaleStrategy": {"enablePVCReuse": False}},
        ),
        (
            {"updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": 2, "partition": 0}},
            {
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2, "partition": 0},
                }
            },
        ),
    ],
)
def test_revisions_that_openkruise_wrote_stay(older: dict[str, Any], newer: dict[str, Any]) -> None:
    """UD-5, UD-75, UD-77: CloneSets the older way, in a revision without the template's labels. None is made anew
    and no child is written, also where the API server has filled in a default."""
    template = decode(united(TWO).spec.template, dict[str, Any])
    given = template["cloneSetTemplate"]["spec"]
    subject = united(TWO, template={"cloneSetTemplate": {**template["cloneSetTemplate"], "spec": {**given, **newer}}})
    mine = revision_of(subject)
    written = {"cloneSetTemplate": {"metadata": {"creationTimestamp": None, "labels": {"app": "web"}}}}
    written["cloneSetTemplate"]["spec"] = {**given, **older}
    theirs = evolve(
        mine,
        metadata=evolve(mine.metadata, name="web-86b956f596", labels={"controller.kubernetes.io/hash": "86b956f596"}),
        data=Raw(encode({"spec": {"template": {**written, "$patch": "replace"}}})),
    )
    there = []
    for name in ("a", "b"):
        made = encode(child(subject, name, 3)).decode().replace(mine.metadata.name, "web-86b956f596")
        body = decode(made, dict[str, Any])
        body["spec"].setdefault("scaleStrategy", {})["enablePVCReuse"] = True
        there.append(convert(body, CloneSet))
    assert mine.metadata.name not in encode(there).decode()
    snapshot = Snapshot(united=subject, clone_sets=tuple(there), revisions=(theirs,), now=NOW)
    assert list(decide(snapshot).actions()) == []
    # What somebody asks for is another matter.
    asked = copy.deepcopy(decode(subject.spec.template, dict[str, Any]))
    asked["cloneSetTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    changed = evolve(snapshot, united=united(TWO, template=asked))
    assert "create" in {action.verb.value for action in decide(changed).actions()}


def test_history_keeps_what_is_in_use() -> None:
    """UD-77: what children still have stays, whatever the limit."""
    old = united([{"name": "a"}], replicas=1)
    worn = child(old, "a", 1)
    names = []
    revisions = [revision_of(old)]
    for number in range(3):
        inner = decode(old.spec.template, dict[str, Any])
        inner["cloneSetTemplate"]["spec"]["minReadySeconds"] = number + 1
        subject = united([{"name": "a"}], replicas=1, template=inner, revisionHistoryLimit=0)
        revisions.append(evolve(revision_of(subject), revision=number + 2))
        names.append(revisions[-1].metadata.name)
    snapshot = Snapshot(
        united=subject, clone_sets=(worn,), pods=tuple(pods(worn, 1)), revisions=tuple(revisions), now=NOW
    )
    gone = {one.target.name for one in decide(snapshot).actions() if one.verb.value == "delete"}
    assert gone == set(names[:2])


def test_further_children_of_a_subset_go() -> None:
    """UD-48, UD-52: the oldest stays; so do none of a subset that is not defined."""
    subject = united([{"name": "a"}], replicas=2)
    first = child(subject, "a", 2)
    second = evolve(first, metadata=evolve(first.metadata, name="web-a-zzz", uid="second", creation_timestamp=NOW))
    both = united(TWO)
    gone = child(both, "b", 1)
    _, plan = look(subject, [second, first, gone], pods(first, 2))
    deleted = {one.target.name: one for one in plan.actions() if one.verb.value == "delete"}
    assert set(deleted) == {"web-a-zzz", gone.metadata.name}
    assert all(one.propagation == "Background" and one.uid for one in deleted.values())


def test_a_child_on_its_way_out_counts_as_there() -> None:
    """UD-49."""
    subject = united([{"name": "a"}], replicas=2)
    leaving = child(subject, "a", 1)
    leaving = evolve(leaving, metadata=evolve(leaving.metadata, deletion_timestamp=NOW))
    _, plan = look(subject, [leaving])
    assert list(plan.actions()) == []


def test_patches_that_cannot_be_applied() -> None:
    """UD-59: the subset is named, the others are made."""
    subject = united([{"name": "a", "patch": {"spec": {"containers": [{"image": "x"}]}}}, {"name": "b"}])
    snapshot = Snapshot(united=subject, now=NOW)
    plan = decide(snapshot)
    assert [one.target.name[:6] for one in plan.actions() if one.owner_uid][1:] == ["web-b-"]
    assert any(
        cause.code == "subset-shape" and "subset a" in cause.message for held in plan.held for cause in held.causes
    )
    told = condition(status_after(snapshot, plan), "SubsetProvisioned")
    assert told["status"] == "False"
    assert "merge key" in told["message"]


def test_a_template_of_no_kind_is_told() -> None:
    """UD-27: one from before there was admission."""
    plan = decide(Snapshot(united=united(TWO, template={}), now=NOW))
    assert [cause.code for held in plan.held for cause in held.causes] == ["subset-template"]


def test_on_its_way_out_nothing_is_done() -> None:
    """UD-38."""
    subject = united(TWO)
    subject = evolve(subject, metadata=evolve(subject.metadata, deletion_timestamp=NOW))
    assert decide(Snapshot(united=subject, now=NOW)) == Plan()


# Status


def test_the_current_revision_moves_when_all_have_arrived() -> None:
    """UD-83, UD-10: the condition's time is when the update began, and then when it ended."""
    old = united([{"name": "a"}], replicas=2)
    inner = decode(old.spec.template, dict[str, Any])
    inner["cloneSetTemplate"]["spec"]["minReadySeconds"] = 1
    before = {"type": "UnitedDeploymentUpdated", "status": "True", "lastTransitionTime": stamp(500)}
    status = {"currentRevision": revision_of(old).metadata.name, "conditions": [before]}
    new = united([{"name": "a"}], replicas=2, template=inner, status=status)
    worn = child(old, "a", 2)
    snapshot, plan = look(new, [worn], pods(worn, 2))
    shown = status_after(snapshot, plan)
    assert shown["currentRevision"] == revision_of(old).metadata.name
    told = condition(shown, "UnitedDeploymentUpdated")
    assert (told["status"], told["lastTransitionTime"]) == ("False", stamp(0))
    renewed = child(new, "a", 2)
    snapshot, plan = look(new, [renewed], pods(renewed, 2))
    shown = status_after(snapshot, plan)
    assert shown["currentRevision"] == shown["updatedRevision"] == revision_of(new).metadata.name
    assert condition(shown, "UnitedDeploymentUpdated")["status"] == "True"


def test_reserved_pods_are_not_counted() -> None:
    """Never more is told than was asked for, whatever stands beside."""
    topology = {"scheduleStrategy": {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}}
    subject = united(TWO, replicas=2, topology=topology)
    one, other = child(subject, "a", 2, ready=2), child(subject, "b", 2)
    members = [*pods(one, 2, labels={keys.RESERVED: "true"}, age=1), *pods(other, 2, labels={keys.RESERVED: "false"})]
    snapshot, plan = look(subject, [one, other], members)
    shown = status_after(snapshot, plan)
    assert {name: shown[name] for name in ("replicas", "readyReplicas", "updatedReplicas", "reservedPods")} == {
        "replicas": 2,
        "readyReplicas": 2,
        "updatedReplicas": 2,
        "reservedPods": 2,
    }
    assert shown["labelSelector"] == f"app=web,{keys.RESERVED}=false"


# Which pods wake whom


def test_a_pod_write_that_changes_nothing_wakes_nobody() -> None:
    """UD-37: annotations, times and container states are of no interest here."""
    subject = united([{"name": "a"}])
    owner = child(subject, "a", 1)
    [pod] = pods(owner, 1)
    annotated = evolve(pod, metadata=evolve(pod.metadata, annotations={"x": "y"}, resource_version="9"))
    assert _meaning(pod) == _meaning(annotated)
    assert _meaning(pod) != _meaning(evolve(pod, status=evolve(pod.status, phase="Failed")))
    assert _meaning(pod) != _meaning(evolve(pod, status=evolve(pod.status, conditions=())))
    assert by_child(pod) == (f"default/apps.kruise.io/CloneSet/{owner.metadata.name}",)
    assert child_of(evolve(pod, metadata=evolve(pod.metadata, labels={}))) is None


def test_pods_of_a_deployment_are_found_by_their_hash() -> None:
    """UD-49."""
    subject = united([{"name": "a"}])
    [pod] = pods(child(subject, "a", 1), 1)
    owner = evolve(pod.metadata.owner_references[0], api_version="apps/v1", kind="ReplicaSet", name="web-a-1-77f")
    labels = {**pod.metadata.labels, "pod-template-hash": "77f"}
    pod = evolve(pod, metadata=evolve(pod.metadata, owner_references=(owner,), labels=labels))
    assert child_of(pod) == ("apps/Deployment", "web-a-1")


def test_workloads_stay_until_their_replacements_are_there() -> None:
    """UD-52: subset a is renamed to b; the API may refuse the new workload, or it cannot be made."""
    old = child(united([{"name": "a"}]), "a", 6)
    _, plan = look(united([{"name": "b"}]), [old])
    phases = {phase.name: phase for phase in plan.phases}
    assert list(phases)[-2:] == ["create", "delete"]
    assert phases["create"].on_error is OnError.STOP_PLAN
    _, plan = look(united([{"name": "b", "patch": {"spec": {"containers": [{"image": "x"}]}}}]), [old])
    assert "subset-shape" in dict(causes_of(plan))
    assert "delete" not in [phase.name for phase in plan.phases]
    _, plan = look(united([{"name": "a"}, {"name": "b"}]), [old])
    assert {phase.on_error for phase in plan.phases if phase.name == "create"} == {OnError.STOP_PHASE}


@pytest.mark.parametrize("selector", [{}, {"matchExpressions": [{"key": "a", "operator": "Odd"}]}])
def test_a_selector_that_selects_nothing_useful_is_told(selector: dict[str, Any]) -> None:
    subject = united(TWO, selector=selector)
    subject = evolve(subject, metadata=evolve(subject.metadata, resource_version="7"))
    [spec] = FEATURE.controllers(Options())
    view = view_of(spec, {UNITED_DEPLOYMENTS: (subject,)}, now=NOW, gates={})
    snapshot = spec.snapshot(view, Key("default", "web"))
    assert snapshot is not None
    plan = decide(snapshot)
    assert causes_of(plan) == [("subset-selector", "set spec.selector to labels that its template has")]
    assert not plan.phases
    assert conclude(snapshot, plan, Outcomes()).status is None


def test_workloads_that_another_selector_left_over_are_told() -> None:
    """UD-47: the selector may be changed; what it does not match any more runs on."""
    old = child(united([{"name": "a"}]), "a", 6)
    labels = {"app": "web", "tier": "front"}
    inner = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}},
    }
    subject = united(
        [{"name": "a"}],
        selector={"matchLabels": labels},
        template={"cloneSetTemplate": {"metadata": {"labels": labels}, "spec": inner}},
    )
    _, plan = look(subject, [old], pods(old, 6))
    [told] = [cause for held in plan.held for cause in held.causes if cause.code == "subset-leftover"]
    assert told.message == (
        f"CloneSet {old.metadata.name} (6 pods): its labels do not match spec.selector, so it is left over: "
        "it runs on, and is neither counted nor changed"
    )
    assert f"kubectl delete clonesets.apps.kruise.io {old.metadata.name} -n default" in told.remedy
    assert not [action for action in plan.actions() if action.target.name == old.metadata.name]
    _, plan = look(united([{"name": "a"}]), [old], pods(old, 6))
    assert "subset-leftover" not in dict(causes_of(plan))


def test_no_subsets_are_told() -> None:
    _, plan = look(united([]), [])
    assert [code for code, _ in causes_of(plan)] == ["no-subsets"]
    _, plan = look(united([], replicas=0), [])
    assert causes_of(plan) == []


def test_adoption_is_told() -> None:  # UD-47
    subject = united([{"name": "a"}])
    orphan = child(subject, "a", 6, metadata={"ownerReferences": []})
    _, plan = look(subject, [orphan])
    assert [phase.name for phase in plan.phases] == ["adopt"]
    assert [code for code, _ in causes_of(plan)] == ["subset-adoption"]


def test_a_label_that_was_edited_by_hand_costs_no_workload_its_pods() -> None:  # UD-48, UD-55
    """Its selector says which subset it is of. The label is put right."""
    subject = united([{"name": "a"}, {"name": "b"}], replicas=4)
    first, second = child(subject, "a", 2), child(subject, "b", 2)
    for labels in ({"app": "web"}, {"app": "web", keys.SUBSET: "b"}):
        edited = evolve(
            first,
            metadata=evolve(first.metadata, labels={**labels, keys.REVISION: first.metadata.labels[keys.REVISION]}),
        )
        _, plan = look(subject, [edited, second])
        [action] = [one for one in plan.actions() if one.target.resource == CLONE_SETS]
        assert (action.verb, action.target.name) == (Verb.PATCH, first.metadata.name)
        assert action.body == {"metadata": {"labels": {keys.SUBSET: "a"}}}
        assert "subset a" in action.reason


def test_a_workload_that_lost_the_selectors_labels_does_not_stand_in_the_way() -> None:  # UD-47
    subject = united([{"name": "a"}], replicas=2)
    lost = child(subject, "a", 2)
    lost = evolve(lost, metadata=evolve(lost.metadata, labels={keys.SUBSET: "a"}))
    _, plan = look(subject, [lost])
    [action] = [one for one in plan.actions() if one.target.resource == CLONE_SETS]
    assert action.verb is Verb.CREATE
    assert action.target.name != lost.metadata.name
    _, again = look(subject, [lost])
    assert [one.target for one in again.actions()] == [one.target for one in plan.actions()]
