"""Clusters that are broken in ways of which people are woken up: what is said, what is mended, and that all is well
afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from kruise.admission.certificates import issue
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.config import CONFIG_MAPS, SECRETS, SERVICES
from kruise.api.native.events import LEASES
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.cli.work.doctor import lines
from kruise.doctor.findings import Finding
from kruise.machinery.client.requests import PatchType
from tests.support.manifests import cloneset_manifest
from tests.support.patients import (
    CLUSTER_ROLES,
    CONFIGURATIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT,
    NAMES,
    NAMESPACE,
    SERVICE,
    Patient,
    long_ago,
    with_patient,
)

CLONESETS = "clonesets.apps.kruise.io"
DOCUMENT = Path(__file__).parents[2] / "docs" / "doctor.md"


async def documented(patient: Patient, what: str) -> None:
    """What is said of a cluster, what `--fix` mends, and what stays for people: each has its row in docs/doctor.md."""

    def codes(findings: Sequence[Finding]) -> str:
        return ", ".join(f"`{code}`" for code in dict.fromkeys(one.code for one in findings)) or "nothing"

    said = (await patient.examined()).findings
    mended = await patient.mend()
    assert [one.error for one in mended if one.error] == []
    left = (await patient.examined()).findings
    stays = codes(left) if mended else "all of it"
    row = f"| {what} | {codes(said)} | {codes([one.finding for one in mended])} | {stays} |"
    assert row in DOCUMENT.read_text(), f"docs/doctor.md should have:\n{row}"


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    async def scenario(patient: Patient) -> None:
        report = await patient.examined(preflight=True)
        assert lines(report)[2:] == [
            "nothing is wrong: 44 objects, 30 webhooks, 3 nodes, 0 workloads looked at, 23 webhooks asked"
        ]
        assert report.code == 0
        # Asking changes nothing.
        before = patient.world.cluster.core.storage.version
        await patient.examined(preflight=True)
        assert patient.world.cluster.core.storage.version == before

    with_patient(scenario)


def test_a_role_that_somebody_has_cut_down() -> None:
    async def scenario(patient: Patient) -> None:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
        await patient.patch(CLUSTER_ROLES, "kruise-daemon-role", {"rules": rules})
        await patient.world.client.delete(CLUSTER_ROLES, "kruise-manager-role")
        found = await patient.findings()
        assert set(found) == {"lacks-rights", "missing-object"}
        assert found["lacks-rights"].about == "clusterrole/kruise-daemon-role"
        assert "get, list, patch, update, watch nodeimages.apps.kruise.io" in found["lacks-rights"].message
        await documented(patient, "A role is cut down, and another one deleted")
        assert await patient.findings() == {}

    with_patient(scenario)


def test_trust_that_somebody_has_wiped_out() -> None:  # MGR-82
    async def scenario(patient: Patient) -> None:
        # What somebody has brought who makes certificates for all webhooks of a company.
        await patient.trust(issue("elsewhere.example.com", patient.world.clock.now()).bundle)
        report = await patient.examined()
        assert {finding.code for finding in report.findings} == {"other-ca"}
        abouts = [finding.about for finding in report.findings]
        assert abouts[:2] == [
            f"mutatingwebhookconfiguration/{NAMES[0]}",
            f"validatingwebhookconfiguration/{NAMES[1]}",
        ]
        assert f"customresourcedefinition/{CLONESETS}" in abouts
        await documented(patient, "Another CA is written into all configurations and definitions")
        assert await patient.findings() == {}

    with_patient(scenario)


def test_a_certificate_that_has_ended_or_soon_will() -> None:  # MGR-33
    async def scenario(patient: Patient) -> None:
        await patient.certify(long_ago(patient))
        found = await patient.findings()
        assert set(found) == {"bad-certificate"}
        assert "ends at" in found["bad-certificate"].message
        assert found["bad-certificate"].fix is None
        await documented(patient, "The certificate has ended")
        almost = patient.world.clock.now() - timedelta(days=3640)
        await patient.certify(issue(ENDPOINT.dns_name, almost))
        assert set(await patient.findings()) == {"certificate-ends"}
        await patient.patch(SECRETS, "kruise-webhook-certs", {"data": None}, NAMESPACE)
        assert (await patient.findings())["bad-certificate"].message == "it is empty"

    with_patient(scenario)


def test_no_manager_is_left() -> None:  # MGR-87
    async def scenario(patient: Patient) -> None:
        await patient.kill_manager()
        await patient.patch(DEPLOYMENTS, "kruise-controller-manager", {"spec": {"replicas": 0}}, NAMESPACE)
        await patient.world.sleep(90)
        found = await patient.findings()
        assert set(found) == {
            "no-manager",
            "webhooks-without-manager",
            "webhook-unanswered",
            "nobody-behind-service",
        }
        assert "renewed the lease kruise-system/kruise-manager last" in found["no-manager"].message
        assert "it asks 30 webhooks of which nobody answers" in found["webhooks-without-manager"].message
        assert found["webhook-unanswered"].about == "webhook mpod.kb.io"
        assert "--webhooks-only" in found["webhook-unanswered"].remedy
        # Whoever does not answer is asked once: each time may take long.
        assert len((await patient.examined()).seen.asked) == 1
        await documented(patient, "The Deployment of the manager is scaled to 0")

    with_patient(scenario)


def test_no_manager_is_left_and_new_pods_are_let_in() -> None:  # MGR-87
    async def scenario(patient: Patient) -> None:
        client = patient.world.client
        assert await patient.findings() == {}
        await patient.kill_manager()
        await patient.world.sleep(90)
        found = await patient.findings()
        # That a pod is let in does not mean that somebody has answered.
        assert {"no-manager", "webhooks-without-manager", "webhook-unanswered"} <= set(found)
        assert "it asks 29 webhooks" in found["webhooks-without-manager"].message
        assert "new pods come as they are" in found["webhooks-without-manager"].message
        assert found["webhook-unanswered"].about != "webhook mpod.kb.io"
        assert [asked for asked in (await patient.examined()).seen.asked if not asked.error] == []
        # Nor that somebody leads, where no lease tells of anybody.
        await client.delete(LEASES, "kruise-manager", NAMESPACE)
        assert not (await patient.examined()).seen.has_manager
        assert "no-manager" in await patient.findings()
        # What comes back is what was chosen.
        await client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, NAMES[0])
        assert [one.error for one in await patient.mend()] == [""]
        live = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, NAMES[0])
        policies = {each["name"]: each["failurePolicy"] for each in json.loads(live.metadata.annotations["template"])}
        assert {name for name, policy in policies.items() if policy == "Ignore"} == {"mpod.kb.io"}

    with_patient(scenario, webhookConfiguration__failurePolicy__pods="Ignore")


def test_a_manager_and_daemons_that_are_not_of_one_mind() -> None:
    async def scenario(patient: Patient) -> None:
        flag = [
            {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--feature-gates=AllAlpha=true"}
        ]
        await patient.world.client.patch(DAEMON_SETS, "kruise-daemon", flag, NAMESPACE, patch_type=PatchType.JSON)
        found = await patient.findings()
        assert "EnhancedLivenessProbe (off in the manager)" in found["gates-disagree"].message
        assert set(found) <= {"gates-disagree", "node-without-daemon"}
        await patient.world.sleep(60)
        await documented(patient, "Gates are turned on for the daemon alone")
        flag[0]["value"] = "--feature-gates=NoSuchGate=true"
        await patient.world.client.patch(
            DEPLOYMENTS, "kruise-controller-manager", flag, NAMESPACE, patch_type=PatchType.JSON
        )
        found = await patient.findings()
        assert "'NoSuchGate'" in found["unknown-gate"].message
        assert "gates-disagree" not in found

    with_patient(scenario, featureGates="ImagePullJobGate=true")


def test_nodes_without_a_daemon() -> None:
    async def scenario(patient: Patient) -> None:
        world = patient.world
        image = {"spec": {"template": {"spec": {"containers": [{"name": "daemon", "image": "kruise:missing"}]}}}}
        await world.client.patch(DAEMON_SETS, "kruise-daemon", image, NAMESPACE, patch_type=PatchType.STRATEGIC)
        await world.sleep(60)
        found = await patient.findings()
        assert set(found) == {"node-without-daemon", "two-versions"}
        await documented(patient, "The daemon gets an image that does not exist")
        assert found["node-without-daemon"].about.startswith("node/node-")
        assert "cannot get its image kruise:missing" in found["node-without-daemon"].message
        # A node that no daemon is meant for lacks none.
        name = found["node-without-daemon"].about.removeprefix("node/")
        await patient.patch(NODES, name, {"metadata": {"labels": {"type": "virtual-kubelet"}}})
        await world.sleep(1)
        after = await patient.findings()
        assert after.get("node-without-daemon") is None or name not in after["node-without-daemon"].about

    with_patient(scenario)


def test_an_object_that_is_held_for_ever() -> None:
    async def scenario(patient: Patient) -> None:
        manifest = cloneset_manifest("web")
        manifest["metadata"]["finalizers"] = ["example.com/backup", "apps.kruise.io/migration"]
        await patient.world.create(manifest)
        await patient.world.sleep(20)
        await patient.world.delete(CLONE_SETS, "web")
        assert "stuck-finalizer" not in await patient.findings()
        await patient.world.sleep(400)
        stuck = (await patient.findings())["stuck-finalizer"]
        assert stuck.about == "cloneset/web in namespace default"
        assert stuck.message.endswith("is held by example.com/backup, apps.kruise.io/migration")
        assert "whoever put example.com/backup there" in stuck.remedy
        assert stuck.fix is None
        await documented(patient, "A CloneSet is deleted whose finalizer belongs to something that is gone")

    with_patient(scenario)


def test_objects_that_may_be_stored_in_an_old_version() -> None:
    async def scenario(patient: Patient) -> None:
        await patient.world.create(cloneset_manifest("web"))
        await patient.world.sleep(20)
        versions = {"status": {"storedVersions": ["v1alpha1", "v1beta1"]}}
        await patient.world.client.patch(CUSTOM_RESOURCE_DEFINITIONS, CLONESETS, versions, subresource="status")
        found = await patient.findings()
        assert "still be stored in v1alpha1" in found["stored-versions"].message
        await documented(patient, "Objects may still be stored in an older version")
        definition = await patient.world.client.get(CUSTOM_RESOURCE_DEFINITIONS, CLONESETS)
        assert definition.status.stored_versions == ("v1beta1",)
        assert await patient.findings() == {}

    with_patient(scenario)


def test_definitions_of_an_older_installation() -> None:
    async def scenario(patient: Patient) -> None:
        place = "/spec/versions/1/schema/openAPIV3Schema/properties/status/properties/failureBudget"
        await patient.world.client.patch(
            CUSTOM_RESOURCE_DEFINITIONS,
            CLONESETS,
            [{"op": "remove", "path": place}],
            patch_type=PatchType.JSON,
        )
        found = await patient.findings()
        assert set(found) == {"old-definition"}
        assert "status.failureBudget of v1" in found["old-definition"].message
        # Another version of the manager may write to it: that is for whoever upgrades.
        assert found["old-definition"].fix is None
        await documented(patient, "A definition comes from an older installation")

    with_patient(scenario)


def test_people_who_wait_and_budgets_that_nobody_can_meet() -> None:
    async def scenario(patient: Patient) -> None:
        world = patient.world
        await world.create(cloneset_manifest("web"))
        await world.sleep(20)
        labels = {"matchLabels": {"app": "web"}}
        await world.client.create(
            POD_UNAVAILABLE_BUDGETS,
            {
                "apiVersion": "policy.kruise.io/v1beta1",
                "kind": "PodUnavailableBudget",
                "metadata": {"name": "all"},
                "spec": {"selector": labels, "minAvailable": "100%"},
            },
            "default",
        )
        await world.client.create(
            POD_DISRUPTION_BUDGETS,
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "four"},
                "spec": {"selector": labels, "minAvailable": 4},
            },
            "default",
        )
        await world.client.create(
            POD_UNAVAILABLE_BUDGETS,
            {
                "apiVersion": "policy.kruise.io/v1beta1",
                "kind": "PodUnavailableBudget",
                "metadata": {"name": "nobody"},
                "spec": {"selector": {"matchLabels": {"app": "gone"}}, "minAvailable": 1},
            },
            "default",
        )
        await world.sleep(400)
        report = await patient.examined()
        assert [(one.code, one.about) for one in report.findings] == [
            ("budget-never-met", "podunavailablebudget/all in namespace default"),
            ("budget-never-met", "poddisruptionbudget/four in namespace default"),
            ("budget-about-nobody", "podunavailablebudget/nobody in namespace default"),
        ]
        assert report.findings[0].message == "3 of 3 pods must stay available, so none may ever go"
        assert report.code == 4
        await documented(patient, "Budgets of two kinds demand every pod, and one protects none")
        await world.delete(POD_UNAVAILABLE_BUDGETS, "all")
        image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:missing"}]
        await world.patch(CLONE_SETS, "web", image, patch_type=PatchType.JSON)
        await world.sleep(60)
        waits = (await patient.findings())["waits"]
        assert waits.about == "cloneset/web in namespace default"
        assert "container main cannot get its image nginx:missing" in waits.message
        assert "kruise rollout undo cloneset/web" in waits.remedy
        await world.delete(POD_UNAVAILABLE_BUDGETS, "nobody")
        await world.delete(POD_DISRUPTION_BUDGETS, "four")
        await documented(patient, "A CloneSet rolls out an image that does not exist")

    with_patient(scenario)


def test_managers_that_do_not_start_any_more() -> None:
    async def scenario(patient: Patient) -> None:
        world = patient.world
        image = {"spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "kruise:missing"}]}}}}
        await world.client.patch(
            DEPLOYMENTS, "kruise-controller-manager", image, NAMESPACE, patch_type=PatchType.STRATEGIC
        )
        await world.sleep(60)
        found = await patient.findings()
        # The old ones serve on.
        assert set(found) == {"manager-not-ready", "two-versions", "other-version"}
        assert "cannot get its image kruise:missing" in found["manager-not-ready"].message
        await documented(patient, "The manager gets an image that does not exist")

    with_patient(scenario)


def test_a_namespace_a_service_and_values_that_somebody_has_changed() -> None:
    async def scenario(patient: Patient) -> None:
        client = patient.world.client
        change = {"metadata": {"labels": {"control-plane": None}, "annotations": {"kruise.io/removal": "true"}}}
        await patient.patch(NAMESPACES, NAMESPACE, change)
        await patient.patch(SERVICES, SERVICE, {"spec": {"selector": {"control-plane": "nobody"}}}, NAMESPACE)
        data = {"PPS_Watch_Custom_Workload_WhiteList": "{workloads:"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kruise-configuration"}, "data": data}
        await client.create(CONFIG_MAPS, body, NAMESPACE)
        found = await patient.findings()
        assert set(found) == {
            "namespace-not-exempt",
            "removal-began",
            "nobody-behind-service",
            "unreadable-configuration",
        }
        assert "selects control-plane=nobody: 0 pods" in found["nobody-behind-service"].message
        # Whoever began to remove it still does.
        await documented(
            patient, "A removal is broken off; labels, the Service's selector and a value are changed by hand"
        )

    with_patient(scenario)


def test_webhooks_that_somebody_has_taken_away_or_sent_elsewhere() -> None:
    async def scenario(patient: Patient) -> None:
        live = await patient.world.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, NAMES[1])
        entries = [dict(entry) for entry in live.webhooks]
        client = entries[0]["clientConfig"]
        moved = {**client, "service": {**client["service"], "namespace": "other"}}
        entries[0] = {**entries[0], "clientConfig": moved}
        await patient.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, NAMES[1], {"webhooks": entries})
        found = await patient.findings()
        assert set(found) == {"webhook-elsewhere"}
        assert "asks the Service other/kruise-webhook-service" in found["webhook-elsewhere"].message
        await documented(patient, "A webhook is sent to the Service of another namespace")
        for resource, name in zip(CONFIGURATIONS, NAMES, strict=True):
            await patient.patch(resource, name, {"webhooks": None})
        assert set(await patient.findings()) == {"not-registered"}
        await documented(patient, "The entries of both webhook configurations are deleted")

    with_patient(scenario)
