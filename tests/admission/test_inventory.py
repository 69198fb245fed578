"""The entries of the two configurations, compared with the contract's tables."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from kruise.admission import inventory
from kruise.admission.inventory import MUTATING, VALIDATING, RegistrationOptions, chart_options

BOTH_VERSIONS = ["v1alpha1", "v1beta1"]


def entries(configuration: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = json.loads(configuration["metadata"]["annotations"]["template"])
    return {entry["name"]: entry for entry in found}


def test_the_objects_ship_without_live_entries() -> None:
    """Entries with failurePolicy Fail would block pods before anybody serves them (MGR-87)."""
    mutating, validating = inventory.configurations(inventory.RegistrationOptions(namespace="ns", service="svc"))
    assert mutating["metadata"]["name"] == "kruise-mutating-webhook-configuration"
    assert validating["metadata"]["name"] == "kruise-validating-webhook-configuration"
    for configuration in (mutating, validating):
        assert "webhooks" not in configuration
        for entry in entries(configuration).values():
            assert entry["clientConfig"]["service"]["namespace"] == "ns"
            assert entry["clientConfig"]["service"]["name"] == "svc"


def test_every_entry_fails_closed_and_has_no_side_effects() -> None:  # MGR section 7, PW section 6
    for configuration in inventory.configurations():
        for entry in entries(configuration).values():
            assert entry["failurePolicy"] == "Fail"
            assert entry["sideEffects"] == "None"
            assert entry["admissionReviewVersions"] == ["v1", "v1beta1"]
            assert "timeoutSeconds" not in entry


def test_names_are_those_that_users_know() -> None:  # MGR-89
    assert {entry.name for entry in MUTATING} == {
        "mpod.kb.io",
        "madvancedcronjob.kb.io",
        "mbroadcastjob.kb.io",
        "mcloneset.kb.io",
        "mcontainerrecreaterequest.kb.io",
        "mdaemonset.kb.io",
        "mimagelistpulljob-v1beta1.kb.io",
        "mimagepulljob-v1beta1.kb.io",
        "mnodeimage.kb.io",
        "msidecarset.kb.io",
        "mstatefulset.kb.io",
        "muniteddeployment.kb.io",
    }
    assert {entry.name for entry in VALIDATING} == {
        "vpod.kb.io",
        "vpodeviction.kb.io",
        "vresourcedistribution.kb.io",
        "vworkloadspread.kb.io",
        "vadvancedcronjob.kb.io",
        "vbroadcastjob.kb.io",
        "vcloneset.kb.io",
        "vdaemonset.kb.io",
        "vephemeraljobs.kb.io",
        "vimagelistpulljob-v1beta1.kb.io",
        "vimagepulljob-v1beta1.kb.io",
        "vnodeimage.kb.io",
        "vpersistentpodstate.kb.io",
        "vpodprobemarker.kb.io",
        "vpodunavailablebudget.kb.io",
        "vsidecarset.kb.io",
        "vstatefulset.kb.io",
        "vuniteddeployment.kb.io",
        "vbuiltindeployment.kb.io",
        "vbuiltinreplicaset.kb.io",
        "vbuiltinstatefulset.kb.io",
        "vnamespace.kb.io",
        "vservice.kb.io",
        "vingress.kb.io",
        "vcustomresourcedefinition.kb.io",
    }


def test_rules_of_some_entries() -> None:  # MGR section 7
    mutating, validating = (entries(item) for item in inventory.configurations())

    def rule(entry: dict[str, Any]) -> tuple[Any, ...]:
        (only,) = entry["rules"]
        return only["apiGroups"][0], only["resources"][0], only["apiVersions"], only["operations"]

    def path(entry: dict[str, Any]) -> str:
        result: str = entry["clientConfig"]["service"]["path"]
        return result

    assert rule(mutating["mpod.kb.io"]) == ("", "pods", ["v1"], ["CREATE"])
    assert path(mutating["mpod.kb.io"]) == "/mutate-pod"
    assert path(mutating["mcloneset.kb.io"]) == "/mutate-apps-kruise-io-cloneset"
    assert path(mutating["mimagepulljob-v1beta1.kb.io"]) == "/mutate-apps-kruise-io-imagepulljob"
    assert rule(validating["vcloneset.kb.io"]) == (
        "apps.kruise.io",
        "clonesets",
        BOTH_VERSIONS,
        ["CREATE", "UPDATE", "DELETE"],
    )
    assert rule(validating["vpod.kb.io"]) == ("", "pods", ["v1"], ["UPDATE", "DELETE"])
    assert rule(validating["vpodeviction.kb.io"]) == ("", "pods/eviction", ["v1"], ["CREATE"])
    assert path(validating["vpodeviction.kb.io"]) == path(validating["vpod.kb.io"]) == "/validate-pod"
    assert rule(validating["vephemeraljobs.kb.io"])[1:3] == ("ephemeraljobs", ["v1alpha1"])
    assert path(validating["vephemeraljobs.kb.io"]) == "/validate-apps-kruise-io-v1alpha1-ephemeraljob"
    assert path(validating["vpodunavailablebudget.kb.io"]) == "/validate-policy-kruise-io-podunavailablebudget"
    assert rule(validating["vingress.kb.io"]) == ("networking.k8s.io", "ingresses", ["v1", "v1beta1"], ["DELETE"])


def test_pod_entries_spare_the_managers_own_namespaces() -> None:  # MGR-40, PW-43
    mutating, validating = (entries(item) for item in inventory.configurations())
    with_selector = {
        name: entry["namespaceSelector"]
        for name, entry in (mutating | validating).items()
        if entry.get("namespaceSelector")
    }
    own = {"key": "control-plane", "operator": "DoesNotExist"}
    # Unlike the original: a manager that is gone keeps no pod of kube-system from coming or going.
    not_system = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    spared = {"matchExpressions": [own, not_system]}
    assert with_selector == dict.fromkeys(("mpod.kb.io", "vpod.kb.io", "vpodeviction.kb.io"), spared)


def test_deletion_protection_looks_at_labelled_objects_only() -> None:  # MGR-41, PW-44, PW-47
    validating = entries(inventory.validating_configuration())
    protected = {name for name, entry in validating.items() if entry.get("objectSelector")}
    assert protected == {entry.name for entry in VALIDATING if entry.operations == ("DELETE",)}
    assert len(protected) == 7
    assert validating["vnamespace.kb.io"]["objectSelector"] == {
        "matchExpressions": [{"key": "policy.kruise.io/delete-protection", "operator": "Exists"}]
    }


def test_only_marked_pods_cause_calls_and_evictions_always_do() -> None:
    validating = entries(inventory.validating_configuration())
    with_conditions = {name for name, entry in validating.items() if "matchConditions" in entry}
    assert with_conditions == {"vpod.kb.io"}
    (condition,) = validating["vpod.kb.io"]["matchConditions"]
    for key in ("pub.kruise.io/related-pub", "kruise.io/related-pub", "apps.kruise.io/matched-workloadspread"):
        assert f"'{key}' in object.metadata.annotations" in condition["expression"]
        assert f"'{key}' in oldObject.metadata.annotations" in condition["expression"]


def test_as_the_chart_has_it() -> None:  # MGR-40, PW section 6, DP-4
    options = chart_options(aks=True)
    mutating = entries(inventory.mutating_configuration(options))
    validating = entries(inventory.validating_configuration(options))
    aks = [
        {"key": "control-plane", "operator": "NotIn", "values": ["true"]},
        {"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": ["aks"]},
    ]
    not_system = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    own = {"key": "control-plane", "operator": "NotIn", "values": ["openkruise"]}
    assert mutating["mpod.kb.io"]["namespaceSelector"] == {"matchExpressions": [own, not_system, *aks]}
    assert validating["vpod.kb.io"]["namespaceSelector"] == {"matchExpressions": [own, not_system, *aks]}
    assert mutating["mcloneset.kb.io"]["namespaceSelector"] == {"matchExpressions": aks}
    assert validating["vnamespace.kb.io"]["namespaceSelector"] == {"matchExpressions": [not_system, *aks]}
    assert validating["vnamespace.kb.io"]["failurePolicy"] == "Ignore"
    assert validating["vpod.kb.io"]["failurePolicy"] == "Fail"
    assert {entry["timeoutSeconds"] for entry in (mutating | validating).values()} == {30}


@pytest.mark.parametrize("options", [RegistrationOptions(), chart_options()], ids=["plain", "chart"])
def test_new_pods_alone_may_be_let_in_while_nobody_answers(options: RegistrationOptions) -> None:  # MGR-87
    """Not deletions and evictions of what a budget protects."""
    chosen = dataclasses.replace(options, pod_failure_policy="Ignore")
    changed = {
        name: (entry["failurePolicy"], other["failurePolicy"])
        for before, after in zip(inventory.configurations(options), inventory.configurations(chosen), strict=True)
        for (name, entry), other in zip(entries(before).items(), entries(after).values(), strict=True)
        if entry != other
    }
    assert changed == {"mpod.kb.io": ("Fail", "Ignore")}


def test_gated_entries() -> None:  # PW-48, MGR-42
    gates = {entry.path: entry.gate for entry in (*MUTATING, *VALIDATING) if entry.gate}
    assert gates == {
        "/mutate-pod": "PodWebhook",
        "/validate-pod": "PodWebhook",
        "/validate-service": "ResourcesDeletionProtection",
        "/validate-ingress": "ResourcesDeletionProtection",
    }
    assert RegistrationOptions().protection_failure_policy == "Fail"
