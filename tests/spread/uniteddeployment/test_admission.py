"""Defaults and refusals of UnitedDeployments, and how one version becomes the other."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.conversion.uniteddeployment import convert as converted
from kruise.machinery.patches import merge
from kruise.spread.uniteddeployment.admission import ADMISSION
from tests.support import admission
from tests.support.admission import messages_of

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}

SERVER = admission.Server(admission=ADMISSION)
STATUS = {
    "replicas": 3,
    "updatedReplicas": 3,
    "currentRevision": "r",
    "updatedRevision": "r",
    "subsetStatuses": [
        {"name": "a", "replicas": 1, "allocatedReplicas": 2, "partition": 1},
        {"name": "b", "replicas": 1},
    ],
}


def test_versions_differ_in_the_status() -> None:
    """UD-3, UD-4: what is allocated, and what is there."""
    newer = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment", "metadata": {}, "status": STATUS}
    older = converted(newer, "v1alpha1")
    assert older["status"]["subsetReplicas"] == {"a": 2, "b": 1}
    assert older["status"]["updateStatus"] == {"updatedRevision": "r", "currentPartitions": {"a": 1, "b": 0}}
    assert "updatedRevision" not in older["status"]
    back = converted(older, "v1beta1")
    assert back["status"]["subsetStatuses"] == [
        STATUS["subsetStatuses"][0],
        {"name": "b", "replicas": 1, "partition": 0},
    ]
    assert back["status"]["updatedRevision"] == "r"
    only = {"replicas": 0, "subsetReplicas": {"x": 4}, "updateStatus": {"currentPartitions": {"y": 2}}}
    raised = converted({**older, "status": only}, "v1beta1")["status"]["subsetStatuses"]
    assert raised == [{"name": "x", "replicas": 4}, {"name": "y", "partition": 2}]
    empty = converted({**newer, "status": {"replicas": 0}}, "v1alpha1")["status"]
    assert empty == {"replicas": 0}


def test_clone_sets_of_the_older_layout() -> None:
    """UD-5: no field is lost."""
    spec = {
        "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": 2, "paused": True},
        "scaleStrategy": {"disablePVCReuse": True},
    }
    older = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "UnitedDeployment",
        "metadata": {},
        "spec": {"template": {"cloneSetTemplate": {"spec": spec}}},
    }
    newer = converted(older, "v1beta1")["spec"]["template"]["cloneSetTemplate"]["spec"]
    rolling = {"maxUnavailable": 2, "paused": True, "podUpdatePolicy": "InPlaceIfPossible"}
    assert newer == {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "scaleStrategy": {"enablePVCReuse": False},
    }
    both = merge.apply(newer, {"updateStrategy": {"maxUnavailable": 3}})
    again = converted({**older, "spec": {"template": {"cloneSetTemplate": {"spec": both}}}}, "v1beta1")
    assert (
        again["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 3
    )


def body(version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    made = {"app": "web"}
    pod = {"metadata": {"labels": made}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}
    base = {
        "replicas": 2,
        "selector": {"matchLabels": made},
        "template": {"statefulSetTemplate": {"metadata": {"labels": made}, "spec": {"template": pod}}},
        "topology": {"subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b"}]},
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "UnitedDeployment",
        "metadata": {"name": "web"},
        "spec": merge.apply(base, spec),
    }


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_defaults(version: str) -> None:
    """UD-20, UD-21, UD-22: twice is once."""
    found = SERVER.defaults(body(version, replicas=None), version=version)["spec"]
    assert "replicas" not in found
    assert found["revisionHistoryLimit"] == 10
    assert found["updateStrategy"] == {"type": "Manual", "manualUpdate": {}}
    assert [subset["minReplicas"] for subset in found["topology"]["subsets"]] == [0, 0]
    pod = found["template"]["statefulSetTemplate"]["spec"]["template"]["spec"]
    assert (pod["restartPolicy"], pod["dnsPolicy"]) == ("Always", "ClusterFirst")
    again = SERVER.defaults({**body(version), "spec": found}, version=version)["spec"]
    assert again == found


def test_refusals_name_field_and_remedy() -> None:
    """UD-7, UD-25, UD-33, UD-34, UD-35."""
    wrong = body(
        replicas=-1,
        topology={"scheduleStrategy": {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}},
        updateStrategy={"manualUpdate": {"partitions": {"zone-x": 1}}},
    )
    said = messages_of(SERVER.send(wrong, version="v1beta1"))
    assert "spec.replicas" in said
    assert "reserveUnschedulablePods needs cloneSetTemplate or deploymentTemplate" in said
    assert "there is no subset zone-x: the subsets are a, b" in said
    only = body(replicas=None)
    assert "minReplicas and maxReplicas of subsets need it" in messages_of(SERVER.send(only, version="v1beta1"))
    huge = body(replicas=1, topology={"subsets": [{"name": "a", "minReplicas": 1_000_001}, {"name": "b"}]})
    said = messages_of(SERVER.send(huge, version="v1beta1"))
    assert "spec.topology.subsets[0].minReplicas" in said
    assert "must not be more than 1000000" in said
    several = body(template={"cloneSetTemplate": {"spec": {}}})
    said = messages_of(SERVER.send(several, version="v1beta1"))
    assert "found statefulSetTemplate, cloneSetTemplate" in said


def warnings_of(**spec: Any) -> tuple[str, ...]:
    return SERVER.changed(body(**spec)).warnings


def clone_sets(labels: Any) -> dict[str, Any]:
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}
    inner = {"selector": {"matchLabels": labels}, "template": pod}
    return {"statefulSetTemplate": None, "cloneSetTemplate": {"metadata": {"labels": labels}, "spec": inner}}


def test_another_selector_is_warned_of() -> None:
    """Workloads that it does not match are left over."""
    labels = {"app": "web", "tier": "front"}
    pod = {"metadata": {"labels": labels}, "spec": POD["spec"]}
    inner = {"selector": {"matchLabels": labels}, "template": pod}
    template = {"statefulSetTemplate": None, "cloneSetTemplate": {"metadata": {"labels": labels}, "spec": inner}}
    old = admission.stored(SERVER.defaults(body(template=template)))
    changed = merge.apply(old, {"spec": {"selector": {"matchLabels": {"tier": "front"}}}})
    [warning] = SERVER.changed(changed, old).warnings
    assert warning.startswith("spec.selector: it changes: for each subset whose workload it does not match")
    assert SERVER.changed(merge.apply(old, {"spec": {"replicas": 5}}), old).warnings == ()


def test_a_selector_in_other_words_is_the_same() -> None:
    labels = {"app": "web", "tier": "front"}
    some = admission.stored(SERVER.defaults(body(template=clone_sets(labels))))

    def warned(before: dict[str, Any], after: dict[str, Any]) -> bool:
        old, new = ({**some, "spec": {**some["spec"], "selector": selector}} for selector in (before, after))
        return bool(SERVER.changed(new, old).warnings)

    plain = {"matchLabels": labels}
    front, there = {"key": "tier", "operator": "In", "values": ["front"]}, {"key": "app", "operator": "Exists"}
    either = {"key": "app", "operator": "In", "values": ["web", "shop"]}
    both = {"matchExpressions": [either, there]}
    assert not warned(plain, {**plain, "matchExpressions": []})
    assert not warned(plain, {"matchLabels": {"app": "web"}, "matchExpressions": [front]})
    assert not warned(both, {"matchExpressions": [there, {**either, "values": ["shop", "web"]}]})
    assert warned(plain, {"matchLabels": {"app": "web"}})
    assert warned(plain, {**plain, "matchExpressions": [there]})
    assert warned(both, {"matchExpressions": [there, front]})


def test_what_gives_no_pods_is_warned_of() -> None:
    """UD-28: a cloneSetTemplate is judged only when its children are made."""
    assert warnings_of() == ()
    assert warnings_of(template=clone_sets({"app": "web", "more": "x"})) == ()
    [warning] = warnings_of(template=clone_sets({"app": "other"}))
    assert warning.startswith("spec.template.cloneSetTemplate.spec.template.metadata.labels: spec.selector does not")
    [warning] = warnings_of(selector={"matchLabels": {"tier": "x"}}, template=clone_sets({"app": "web"}))
    assert "no subset gets a workload" in warning
    assert warnings_of(selector={"matchLabels": {"app": "other"}}) == (), "refused, so not warned of"
    assert warnings_of(topology={"subsets": []}) == (
        "spec.topology.subsets: there are none, so no pods are made: name one at least",
    )
