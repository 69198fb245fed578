"""Defaults of our workloads, of pods and of claims, by example. The API server's are compared in `test_recorded`."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.core import creation, defaults, images, pod_resources
from kruise.api.core.field_errors import TemplateTypeError
from tests.api.core.accepted_cases import container, template, with_container, with_volume

RICH = template(
    container(
        "web",
        "nginx:1.25",
        ports=[{"containerPort": 80, "name": "http"}],
        env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        resources={"limits": {"cpu": "0.5"}, "requests": {"cpu": "1.0001m"}},
        livenessProbe={"httpGet": {"port": 80}},
        readinessProbe={"grpc": {"port": 1}},
        lifecycle={"preStop": {"httpGet": {"port": 80}}},
    ),
    container("never", "redis:7", imagePullPolicy="Never"),
    initContainers=[container("i1", "busybox:1.36"), container("i2", "busybox")],
    volumes=[
        {"name": "e"},
        {"name": "h", "hostPath": {"path": "/h"}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "iscsi", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:s", "lun": 0}},
        {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i"}},
    ],
    serviceAccountName="sa",
)


def test_workload_defaults() -> None:
    """CS-31, BJ-14: what our workloads fill in, and what they leave for the API server."""
    spec = defaults.default_workload_template(RICH)["spec"]
    web, never = spec["containers"]
    assert web["imagePullPolicy"] == "Always"
    assert never["imagePullPolicy"] == "Never"
    assert [one["imagePullPolicy"] for one in spec["initContainers"]] == ["IfNotPresent", "Always"]
    assert web["ports"] == [{"name": "http", "containerPort": 80, "protocol": "TCP"}]
    assert web["env"][0]["valueFrom"]["fieldRef"] == {"apiVersion": "v1", "fieldPath": "status.podIP"}
    assert web["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "2m"}}
    assert web["livenessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert web["readinessProbe"]["grpc"] == {"port": 1, "service": None}
    assert web["lifecycle"]["preStop"]["httpGet"] == {"path": "/", "port": 80, "scheme": "HTTP"}
    assert spec["volumes"][:3] == [
        {"name": "e", "emptyDir": {}},
        {"name": "h", "hostPath": {"path": "/h", "type": ""}},
        {
            "name": "p",
            "projected": {
                "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                "defaultMode": 420,
            },
        },
    ]
    assert "iscsiInterface" not in spec["volumes"][3]["iscsi"]
    assert "pool" not in spec["volumes"][4]["rbd"]
    assert "serviceAccount" not in spec
    assert "enableServiceLinks" not in spec


def test_native_defaults_go_further() -> None:
    """The API server follows the tag and defaults every volume source."""
    spec = defaults.default_template(RICH)["spec"]
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["containers"][0]["readinessProbe"]["grpc"] == {"port": 1, "service": ""}
    assert spec["volumes"][3]["iscsi"]["iscsiInterface"] == "default"


@pytest.mark.parametrize(("gate", "host_port"), [(False, None), (True, 80)])
def test_host_ports_in_templates_are_gated(gate: bool, host_port: int | None) -> None:
    """CS-31 with the gate DefaultHostNetworkHostPortsInPodTemplates on and off."""
    sample = template(container(ports=[{"containerPort": 80}]), hostNetwork=True)
    (port,) = defaults.default_workload_template(sample, host_network_ports=gate)["spec"]["containers"][0]["ports"]
    assert port.get("hostPort") == host_port


def test_host_ports_need_the_host_network() -> None:
    sample = with_container(ports=[{"containerPort": 80}])
    (port,) = defaults.default_workload_template(sample, host_network_ports=True)["spec"]["containers"][0]["ports"]
    assert "hostPort" not in port


def test_wrong_types_are_reported_at_the_place_of_the_template() -> None:
    with pytest.raises(TemplateTypeError, match=r"^spec\.template\.spec\.containers: .*must be a list"):
        defaults.default_workload_template({"spec": {"containers": {}}}, path="spec.template")


@pytest.mark.parametrize("broken", [[], "x", {"spec": 1}, {"spec": {"containers": [1]}}, {"metadata": []}])
def test_what_is_no_template_is_refused(broken: Any) -> None:
    with pytest.raises(TemplateTypeError, match="must be an object"):
        defaults.default_workload_template(broken)


@pytest.mark.parametrize("nothing", [None, {}, {"spec": None}, {"spec": {"containers": None}}])
def test_an_empty_template_is_defaulted(nothing: Any) -> None:
    spec = defaults.default_workload_template(nothing)["spec"]
    assert (spec["containers"], spec["dnsPolicy"]) == (None, "ClusterFirst")


def test_pods_get_requests_from_limits() -> None:
    """Only pods: in templates the absence of requests stays visible."""
    sample = with_container(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}})
    assert "memory" not in defaults.default_template(sample)["spec"]["containers"][0]["resources"]["requests"]
    (made,) = defaults.default_pod(sample)["spec"]["containers"]
    assert made["resources"]["requests"] == {"cpu": "100m", "memory": "1Gi"}


def test_pod_level_requests_follow_from_containers_and_limits() -> None:
    sample = template(
        container("a", resources={"requests": {"cpu": "100m"}}),
        container("b", resources={"requests": {"cpu": "200m"}}),
        resources={"limits": {"cpu": "1", "memory": "1Gi"}},
        initContainers=[container("i", resources={"requests": {"cpu": "250m"}})],
    )
    assert defaults.default_pod(sample)["spec"]["resources"]["requests"] == {"cpu": "300m", "memory": "1Gi"}


def test_deprecated_names_are_kept_in_step() -> None:
    spec = defaults.default_pod(template(serviceAccount="sa"))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("sa", "sa")


def test_claims() -> None:
    """CS-32, ST-23: phase, rounded amounts, and the volume mode where it is wanted."""
    claim = {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": "1.0001m"}}}}
    made = defaults.default_claim(claim)
    assert made["spec"] == {"resources": {"requests": {"storage": "2m"}}, "volumeMode": "Filesystem"}
    assert made["status"] == {"phase": "Pending"}
    assert "volumeMode" not in defaults.default_claim(claim, volume_mode=False)["spec"]


def test_a_volume_with_a_source_gets_no_other() -> None:
    made = defaults.default_template(with_volume(persistentVolumeClaim={"claimName": "c"}))
    assert made["spec"]["volumes"] == [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:1", "1"),
        ("localhost:5000/nginx", "latest"),
        ("localhost:5000/nginx:2", "2"),
        (f"nginx@sha256:{'0' * 64}", ""),
        ("Nginx", ""),
        ("", ""),
    ],
)
def test_image_tags(image: str, tag: str) -> None:
    assert images.image_tag(image) == tag


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"cpu": "1", "memory": "1"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
        ([{"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "0", "memory": "0"}}], "BestEffort"),
        ([{"limits": {"ephemeral-storage": "1"}}], "BestEffort"),
    ],
)
def test_quality_of_service(resources: list[dict[str, Any]], expected: str) -> None:
    """IPU-33 compares the classes of two templates."""
    made = template(*(container(f"c{number}", resources=given) for number, given in enumerate(resources)))
    assert pod_resources.qos_class(defaults.default_pod(made)["spec"]) == expected


def test_aggregate_counts_sidecars_beside_init_containers() -> None:
    """An init container runs together with the sidecars that started before it."""
    spec = template(
        container(resources={"requests": {"cpu": "1"}}),
        initContainers=[
            container("s", restartPolicy="Always", resources={"requests": {"cpu": "500m"}}),
            container("i", resources={"requests": {"cpu": "2", "memory": "1Gi"}}),
        ],
    )["spec"]
    assert pod_resources.aggregate(spec, "requests") == {"cpu": "2500m", "memory": "1Gi"}


def test_a_new_pod_gets_a_status_of_its_own() -> None:
    """Whatever status was sent, a pod begins pending; a gated one says what holds it."""
    sent = {"metadata": {"name": "p", "generation": 7}, "status": {"phase": "Running", "podIP": "1.2.3.4"}}
    spec = template(schedulingGates=[{"name": "x/y"}])["spec"]
    pod = creation.prepare_new_pod(defaults.default_pod({**sent, "spec": spec}), now="2024-01-02T03:04:05Z")
    assert pod["metadata"]["generation"] == 1
    assert pod["status"] == {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": "2024-01-02T03:04:05Z",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ],
        "qosClass": "BestEffort",
    }
