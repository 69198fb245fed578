"""The scripts for Argo CD say of every kind what `kruise rollout status` says, whatever an object looks like."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise import kinds
from kruise.cli.main import cli
from kruise.faces.face import Face, GroupKind
from kruise.gitops import argocd
from tests.support.argocd import argo_cd
from tests.support.health import Health, health_of

Json = dict[str, Any]
OURS = {face.group_kind: face for face, _ in kinds.packages() if face.resource.group.endswith("kruise.io")}
APPS = "apps.kruise.io"
SMALL = st.integers(0, 4)
MAYBE = st.sampled_from([None, True, False])
AMOUNT = st.sampled_from([None, 0, 1, 2, 9, "0%", "20%", "50%", "99%", "100%"])
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                [
                    *("Progressing", "FailureBudgetExceeded", "Failed", "JobSucceeded", "JobFailed", "JobError"),
                    *("SubsetProvisioned", "SubsetUpdated"),
                ]
            ),
            "status": st.sampled_from(["True", "False"]),
            "reason": st.sampled_from(["ProgressDeadlineExceeded", "Other"]),
            "message": st.sampled_from(["", "so it is"]),
        }
    ),
    max_size=2,
)
GENERATIONS = {"metadata.generation": st.sampled_from([1, 2]), "status.observedGeneration": st.sampled_from([1, 2])}
STRATEGY = {
    "spec.updateStrategy.type": st.sampled_from([None, "RollingUpdate", "OnDelete"]),
    "spec.updateStrategy.rollingUpdate.paused": MAYBE,
}
REPLICAS = {
    **GENERATIONS,
    **STRATEGY,
    "spec.replicas": st.none() | SMALL,
    "status.conditions": st.none() | CONDITIONS,
    "status.replicas": SMALL,
    "status.updatedReplicas": st.none() | SMALL,
    "status.readyReplicas": SMALL,
    "status.availableReplicas": SMALL,
}
SUBSETS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.just("a"),
            "replicas": SMALL,
            "allocatedReplicas": SMALL,
            "readyReplicas": SMALL,
            "partition": SMALL,
            "conditions": st.just([{"type": "Schedulable", "status": "False"}]),
        },
    ),
    max_size=2,
)
NODES = {
    "spec.parallelism": st.sampled_from([None, 0, 1, "0", "10%"]),
    "spec.completionPolicy.type": st.sampled_from([None, "Always", "Never"]),
    "status.desired": SMALL,
    "status.active": SMALL,
    "status.succeeded": SMALL,
    "status.failed": SMALL,
    "status.completed": SMALL,
    "status.startTime": st.sampled_from([None, "2030-01-01T00:00:00Z"]),
    "status.completionTime": st.sampled_from([None, "2030-01-01T00:00:00Z"]),
}
PLACES: dict[GroupKind, dict[str, st.SearchStrategy[Any]]] = {
    (APPS, "CloneSet"): {
        **REPLICAS,
        "spec.minReadySeconds": st.none() | SMALL,
        "spec.updateStrategy.rollingUpdate.partition": AMOUNT,
    },
    (APPS, "StatefulSet"): {
        **REPLICAS,
        "spec.updateStrategy.rollingUpdate.minReadySeconds": st.none() | SMALL,
        "spec.updateStrategy.rollingUpdate.partition": st.none() | SMALL,
    },
    (APPS, "DaemonSet"): {
        **GENERATIONS,
        **STRATEGY,
        "spec.updateStrategy.rollingUpdate.partition": AMOUNT,
        "status.conditions": st.none() | CONDITIONS,
        "status.desiredNumberScheduled": SMALL,
        "status.currentNumberScheduled": SMALL,
        "status.updatedNumberScheduled": SMALL,
        "status.numberAvailable": SMALL,
        "status.numberReady": SMALL,
    },
    (APPS, "EphemeralJob"): {
        "spec.replicas": st.none() | SMALL,
        "spec.paused": MAYBE,
        "status.phase": st.sampled_from(
            [None, "Waiting", "Running", "Succeeded", "Failed", "Paused", "Error", "Unknown"]
        ),
        "status.match": SMALL,
        "status.succeeded": SMALL,
        "status.failed": SMALL,
        "status.completionTime": st.sampled_from([None, "2030-01-01T00:00:00Z"]),
        "status.conditions": st.none() | CONDITIONS,
    },
    (APPS, "UnitedDeployment"): {
        **GENERATIONS,
        "spec.replicas": st.none() | SMALL,
        "status.conditions": st.none() | CONDITIONS,
        "status.subsetStatuses": st.none() | SUBSETS,
        "status.replicas": SMALL,
        "status.updatedReplicas": SMALL,
        "status.readyReplicas": SMALL,
        "status.updatedReadyReplicas": SMALL,
    },
    (APPS, "PodProbeMarker"): {**GENERATIONS, "status.matchedPods": SMALL},
    (APPS, "NodePodProbe"): {"metadata.generation": SMALL},
    (APPS, "ResourceDistribution"): {**GENERATIONS, "status.desired": SMALL, "status.succeeded": SMALL},
    (APPS, "BroadcastJob"): {
        **NODES,
        "status.phase": st.sampled_from([None, "running", "paused", "failed", "completed"]),
        "status.conditions": st.none() | CONDITIONS,
    },
    (APPS, "WorkloadSpread"): {**GENERATIONS, "status.subsetStatuses": st.none() | SUBSETS},
    (APPS, "SidecarSet"): {
        **GENERATIONS,
        "spec.updateStrategy.type": st.sampled_from([None, "RollingUpdate", "NotUpdate"]),
        "spec.updateStrategy.paused": MAYBE,
        "spec.updateStrategy.partition": AMOUNT,
        "status.matchedPods": SMALL,
        "status.updatedPods": SMALL,
        "status.updatedReadyPods": SMALL,
        "status.readyPods": SMALL,
        "status.notSelectedPods": st.none() | SMALL,
        "status.notUpgradablePods": st.none() | SMALL,
        "status.failureBudget.failed": st.sampled_from([None, None, 0, 1]),
    },
    (APPS, "ImagePullJob"): NODES,
    (APPS, "ImageListPullJob"): {
        **NODES,
        "status.failedImageStatuses": st.sampled_from([None, [], [{"name": "nginx:1"}]]),
    },
    (APPS, "NodeImage"): {
        "spec.images": st.dictionaries(
            st.sampled_from(["nginx", "busybox"]), st.just({"tags": [{"tag": "1"}, {"tag": "2"}]})
        ),
        "status.succeeded": SMALL,
        "status.failed": SMALL,
    },
    (APPS, "ContainerRecreateRequest"): {
        "spec.containers": st.lists(st.fixed_dictionaries({"name": st.sampled_from("abc")}), max_size=3),
        "status.phase": st.sampled_from([None, "Pending", "Recreating", "Completed"]),
        "status.message": st.sampled_from([None, "", "no daemon"]),
        "status.containerRecreateStates": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("abc"), "phase": st.sampled_from(["Succeeded", "Failed", "Pending"])},
                optional={"message": st.just("so it is")},
            ).map(lambda one: {"message": "", **one}),
            max_size=3,
        ),
    },
    (APPS, "PersistentPodState"): GENERATIONS,
    ("policy.kruise.io", "PodUnavailableBudget"): GENERATIONS,
    (APPS, "AdvancedCronJob"): {
        "spec.paused": MAYBE,
        "status.type": st.sampled_from([None, "", "Job"]),
        "status.lastScheduleTime": st.sampled_from([None, "2030-01-01T00:00:00Z"]),
    },
}
"""What health depends on, and what may stand there."""


def document_of(values: Json) -> Json:
    found: Json = {"metadata": {"name": "web", "namespace": "demo"}, "spec": {}, "status": {}}
    for path, value in values.items():
        *parents, last = path.split(".")
        place = found
        for name in parents:
            place = place.setdefault(name, {})
        if value is not None:
            place[last] = value
    return found


def test_every_kind_has_a_script() -> None:
    assert {face.group_kind for face, _ in argocd.scripts()} == set(OURS) == set(PLACES)


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind[1])
def test_a_script_says_what_rollout_status_says(kind: GroupKind) -> None:
    face: Face = OURS[kind]

    @settings(max_examples=400, deadline=None)
    @given(st.fixed_dictionaries(PLACES[kind]))
    def check(values: Json) -> None:
        document = document_of(values)
        status, _ = argo_cd().health(kind, document)
        assert status == health_of(face, document)

    check()


def test_an_object_that_nobody_has_looked_at_yet_is_not_healthy() -> None:
    """Kinds that are looked after: the rest have nothing to look at."""
    for kind, face in OURS.items():
        if face.tells_generation and kind != (APPS, "NodeImage"):
            document = {"metadata": {"name": "web", "generation": 1}, "spec": {}}
            assert argo_cd().health(kind, document)[0] == Health.PROGRESSING, kind


def test_the_config_map_has_a_key_for_each_kind() -> None:
    found = argocd.config_map("argocd")
    assert found["metadata"]["name"] == "argocd-cm"
    assert "resource.customizations.health.apps.kruise.io_CloneSet" in found["data"]
    assert len(found["data"]) == len(OURS)


def test_the_command_prints_what_kubectl_can_merge() -> None:
    done = CliRunner().invoke(cli, ["gitops", "argocd", "-n", "tools"])
    assert done.exit_code == 0
    assert yaml.safe_load(done.output) == argocd.config_map("tools")
    assert "\n    local function at(found, ...)" in done.output, "lines stay lines"
