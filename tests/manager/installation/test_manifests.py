"""What is installed (MGR sections 11 and 12)."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.daemon import options
from kruise.kinds import features
from kruise.machinery.codec import decode
from kruise.manager import options as manager_options
from kruise.manager.installation.manifests import manifests
from tests.toy.controller import FEATURE as TOY


def named(kind: str, name: str, **options: Any) -> dict[str, Any]:
    [found] = [m for m in manifests([TOY], **options) if (m["kind"], m["metadata"]["name"]) == (kind, name)]
    return found


def test_objects_have_the_names_of_the_original() -> None:
    assert [(m["kind"], m["metadata"]["name"]) for m in manifests([])] == [
        ("Namespace", "kruise-system"),
        ("Namespace", "kruise-daemon-config"),
        ("ServiceAccount", "kruise-manager"),
        ("ServiceAccount", "kruise-daemon"),
        ("ClusterRole", "kruise-manager-role"),
        ("ClusterRoleBinding", "kruise-manager-rolebinding"),
        ("Role", "kruise-leader-election-role"),
        ("RoleBinding", "kruise-leader-election-rolebinding"),
        ("Role", "kruise-webhook-role"),
        ("RoleBinding", "kruise-webhook-rolebinding"),
        ("ClusterRole", "kruise-daemon-role"),
        ("ClusterRoleBinding", "kruise-daemon-rolebinding"),
        ("Role", "kruise-daemon-secret-role"),
        ("RoleBinding", "kruise-daemon-secret-rolebinding"),
        ("ServiceAccount", "kruise-journal"),
        ("Role", "kruise-journal-reader"),
        ("ClusterRole", "aggregate-kruise-view"),
        ("ClusterRole", "aggregate-kruise-edit"),
        ("ClusterRole", "aggregate-kruise-admin"),
        ("Service", "kruise-webhook-service"),
        ("Secret", "kruise-webhook-certs"),
        ("MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration"),
        ("ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration"),
    ]


def test_who_may_edit_a_namespace_may_edit_what_is_of_ours_there() -> None:
    """What is of no namespace, only those who run the cluster, but for copies of Secrets: MGR section 12."""

    def may(into: str, verb: str) -> set[str]:
        [role] = [m for m in manifests(features()) if m["metadata"]["name"] == f"aggregate-kruise-{into}"]
        assert role["metadata"]["labels"] == {f"rbac.authorization.k8s.io/aggregate-to-{into}": "true"}
        return {name for rule in role["rules"] if verb in rule["verbs"] for name in rule["resources"]}

    everywhere = {"sidecarsets", "nodeimages", "nodepodprobes", "resourcedistributions"}
    assert everywhere | {"clonesets", "podunavailablebudgets"} <= may("view", "list")
    assert not everywhere & may("edit", "create")
    assert {"clonesets", "podunavailablebudgets", "statefulsets/scale"} <= may("edit", "update")
    assert may("admin", "create") == {"resourcedistributions"}
    assert not any(name.endswith("/status") for into in ("view", "edit", "admin") for name in may(into, "update"))


def test_own_namespaces_are_exempt_from_the_pod_webhooks() -> None:  # MGR-40
    for name in ("kruise-system", "kruise-daemon-config"):
        assert named("Namespace", name)["metadata"]["labels"] == {"control-plane": "controller-manager"}


def test_the_service_reaches_the_webhook_port() -> None:  # MGR-30
    spec = named("Service", "kruise-webhook-service")["spec"]
    assert spec["selector"] == {"control-plane": "controller-manager"}
    assert [(port["port"], port["targetPort"]) for port in spec["ports"]] == [(443, 9876)]


def test_no_entry_is_live_before_a_manager_serves_it() -> None:
    for kind in ("Mutating", "Validating"):
        found = named(f"{kind}WebhookConfiguration", f"kruise-{kind.lower()}-webhook-configuration")
        assert "webhooks" not in found
        assert decode(found["metadata"]["annotations"]["template"], list)


def test_definitions_and_entries_of_features_are_part_of_it() -> None:
    assert named("CustomResourceDefinition", "troupes.toy.pykruise.dev")["spec"]["group"] == "toy.pykruise.dev"
    found = named("ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration")
    names = [entry["name"] for entry in decode(found["metadata"]["annotations"]["template"], list)]
    assert names[-1] == "validate.troupe.toy.pykruise.dev"
    assert "vpod.kb.io" in names


def test_another_namespace_is_used_throughout() -> None:
    text = str(manifests([TOY], namespace="elsewhere"))
    assert "kruise-system" not in text


def test_the_manager_never_creates_or_deletes_what_only_users_own() -> None:  # MGR section 12
    verbs: dict[str, set[str]] = {}
    for rule in named("ClusterRole", "kruise-manager-role")["rules"]:
        for resource in rule["resources"]:
            if rule["apiGroups"] == ["apps.kruise.io"]:
                verbs.setdefault(resource, set()).update(rule["verbs"])
    assert "create" not in verbs["resourcedistributions"] | verbs["workloadspreads"] | verbs["ephemeraljobs"]
    assert "delete" not in verbs["resourcedistributions"] | verbs["workloadspreads"]
    assert verbs["clonesets"] >= {"create", "delete", "patch", "watch"}
    assert verbs["clonesets/status"] >= {"patch", "update"}


def test_definitions_are_converted_by_the_manager_of_this_installation() -> None:
    objects = manifests(features(), namespace="elsewhere", service="hooks")
    definitions = [m["spec"] for m in objects if m["kind"] == "CustomResourceDefinition"]
    stanzas = [spec["conversion"]["webhook"] for spec in definitions if "conversion" in spec]
    assert [stanza["clientConfig"]["service"] for stanza in stanzas] == [
        {"namespace": "elsewhere", "name": "hooks", "path": "/convert", "port": 443}
    ] * len(stanzas)
    assert len(stanzas) >= 3


def test_the_account_of_the_journal_has_no_rights_and_its_readers_may_only_ask_with_it() -> None:
    """Who may have a token for the journal may have one for the API server, too: it must be of no use there."""
    bindings = [found for found in manifests(features()) if found["kind"].endswith("Binding")]
    assert bindings
    subjects = {one["name"] for binding in bindings for one in binding["subjects"]}
    assert subjects == {"kruise-manager", "kruise-daemon"}
    [token] = [
        rule
        for rule in named("Role", "kruise-journal-reader", namespace="ops")["rules"]
        if rule["resources"] == ["serviceaccounts/token"]
    ]
    assert (token["verbs"], token["resourceNames"]) == (["create"], ["kruise-journal"])


def test_the_daemon_comes_to_every_node_with_no_more_than_it_needs() -> None:
    """DMN-5, DMN-6, DMN-10: last, when everything that it watches is there; not without an image."""
    values = {"manager.image.tag": "1", "daemon.socketLocation": "/run", "featureGates": "AllBeta=true"}
    made = manifests([TOY], namespace="own", values=values, runs=["daemon"])
    assert made[-1]["kind"] == "DaemonSet"
    assert all(manifest["kind"] != "Deployment" for manifest in made)
    assert all(manifest["kind"] != "DaemonSet" for manifest in manifests([TOY]))
    metadata, spec = made[-1]["metadata"], made[-1]["spec"]
    assert (metadata["namespace"], metadata["labels"]) == ("own", {"control-plane": "daemon"})
    assert (spec["minReadySeconds"], spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"]) == (3, "10%")
    pod = spec["template"]["spec"]
    assert (pod["hostNetwork"], pod["serviceAccountName"], pod["terminationGracePeriodSeconds"]) == (
        True,
        "kruise-daemon",
        10,
    )
    assert pod["tolerations"] == [{"operator": "Exists"}]
    [term] = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]}]
    assert pod["volumes"] == [{"name": "runtime-sockets", "hostPath": {"path": "/run", "type": "Directory"}}]
    [container] = pod["containers"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 10221}
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["volumeMounts"][0]["readOnly"]
    given = options.parse(container["args"], {"NODE_NAME": "n"})
    assert (given.address, given.socket_directory, given.feature_gates) == (":10221", "/hostvarrun", "AllBeta=true")
    assert [one["name"] for one in container["env"]] == ["NODE_NAME"]


def test_the_manager_runs_twice_apart_and_with_no_more_than_it_needs() -> None:  # MGR section 11
    values = {"manager.image.repository": "registry.example.com/kruise", "manager.image.tag": "1"}
    made = {m["kind"]: m for m in manifests([TOY], namespace="own", values=values, runs=["manager", "daemon"])}
    deployment = made["Deployment"]
    assert deployment["metadata"]["name"] == "kruise-controller-manager"
    spec = deployment["spec"]
    assert (spec["replicas"], spec["minReadySeconds"]) == (2, 3)
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": "100%", "maxUnavailable": 0}
    pod = spec["template"]["spec"]
    assert (pod["serviceAccountName"], pod["hostNetwork"]) == ("kruise-manager", False)
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65534)
    assert "nodeSelector" not in pod
    [container] = pod["containers"]
    assert container["image"] == "registry.example.com/kruise:1"
    assert container["securityContext"]["readOnlyRootFilesystem"]
    given = manager_options.parse(container["args"], {one["name"]: one.get("value", "own") for one in container["env"]})
    assert (given.own_namespace, given.webhook.port, given.gates["ImagePullJobGate"]) == ("own", 9876, True)
    # Whatever it writes is in a volume: its root is read-only.
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {given.webhook.directory.rpartition("/")[0], given.protection_log_path} == mounts
    assert made["PodDisruptionBudget"]["spec"]["selector"] == spec["selector"]


def test_rights_follow_gates() -> None:
    def groups(gates: str) -> set[tuple[str, str]]:
        role = named("ClusterRole", "kruise-manager-role", values={"featureGates": gates}, runs=["manager"])
        return {
            (group, resource) for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
        }

    plain = groups("")
    assert ("", "secrets") not in plain
    assert ("*", "*") not in plain
    copies = {("", "secrets"), ("apps.kruise.io", "resourcedistributions")}
    copies |= {("apps.kruise.io", f"resourcedistributions/{part}") for part in ("status", "finalizers")}
    assert groups("ResourceDistributionGate=true") - plain == copies
    # It turns ImagePullJobGate on.
    pulls = {("", "secrets"), ("apps.kruise.io", "imagepulljobs/status")}
    assert groups("PreDownloadImageForInPlaceUpdate=true") - plain == pulls
    # Only objects of a definition need looking for: whatever a namespace holds is known without.
    assert groups("ResourcesDeletionProtection=true") == plain
    cascading = "ResourcesDeletionProtection=true,DeletionProtectionForCRDCascadingGate=true"
    assert groups(cascading) - plain == {("*", "*")}
    assert groups("StatefulSetAutoResizePVCGate=true") - plain == {("storage.k8s.io", "storageclasses")}
    assert groups("InPlaceWorkloadVerticalScaling=true") - plain == {("", "pods/resize")}
    assert groups("PodWebhook=false") == plain - {
        ("*", "*/scale"),
        ("apps", "daemonsets"),
        ("apps", "replicasets"),
        ("apps.kruise.io", "workloadspreads/status"),
        ("policy.kruise.io", "podunavailablebudgets/status"),
    }


def test_without_daemons_nobody_has_their_rights() -> None:
    made = manifests([TOY], values={"featureGates": "KruiseDaemon=false"}, runs=["manager"])
    names = {manifest["metadata"]["name"] for manifest in made}
    assert not any(name.startswith("kruise-daemon-") and "role" in name for name in names)


def test_without_a_manager_of_its_own_there_are_rights_for_every_gate() -> None:
    """One that runs elsewhere has gates that nobody knows here."""
    role = named("ClusterRole", "kruise-manager-role")
    assert ["secrets"] in [rule["resources"] for rule in role["rules"]]


def test_certificates_from_outside_find_live_entries_and_are_not_written_over() -> None:  # MGR-36
    values = {"featureGates": "EnableExternalCerts=true", "externalCerts.annotations": {"inject": "ca"}}
    found = named(
        "ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration", values=values, runs=["manager"]
    )
    names = [entry["name"] for entry in found["webhooks"]]
    assert found["metadata"]["annotations"] == {"inject": "ca"}
    assert "vcloneset.kb.io" in names
    assert "vservice.kb.io" not in names  # its gate is off, so nobody would answer


@pytest.mark.parametrize("path", ["manager.replica", "daemon", "x"])
def test_a_value_that_does_not_exist_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=path):
        manifests([TOY], values={path: 1})
