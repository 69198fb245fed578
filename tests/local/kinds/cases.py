"""Objects and changes of all native kinds, good and bad, that a real API server and ours must treat alike."""

from __future__ import annotations

import dataclasses
from typing import Any

Body = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A create of `body`; with `patch`, the create is for real and the patch (a merge patch) is what is compared."""

    plural: str
    title: str
    body: Body
    patch: Any = None
    subresource: str = ""
    wet: bool = False
    """The create is for real: some things are not looked at in a dry run."""


def workload(**spec: Any) -> Body:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    return {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template, **spec}}


def template(labels: Any = None, **spec: Any) -> Body:
    return {
        "metadata": {"labels": labels or {"app": "x"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}], **spec},
    }


def job(labels: Any = None, restarts: str = "Never", **spec: Any) -> Body:
    pods: Body = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    if restarts:
        pods["spec"]["restartPolicy"] = restarts
    if labels:
        pods["metadata"] = {"labels": labels}
    return {"spec": {"template": pods, **spec}}


def cron_job(schedule: str = "*/5 * * * *", inner: Any = None, **spec: Any) -> Body:
    return {"spec": {"schedule": schedule, "jobTemplate": inner or job(), **spec}}


def pod(**spec: Any) -> Body:
    return {"spec": {"containers": [{"name": "main", "image": "nginx:1"}], **spec}}


def service(*ports: Any, **spec: Any) -> Body:
    return {"spec": {"ports": list(ports or ({"port": 80},)), "selector": {"app": "x"}, **spec}}


def claim(size: str = "1Gi", **spec: Any) -> Body:
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}}


def volume(**spec: Any) -> Body:
    base = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    return {"spec": {**base, **spec}}


def budget(**spec: Any) -> Body:
    return {"spec": {"selector": {"matchLabels": {"app": "x"}}, **spec}}


def hook(name: str = "a.b.c", **more: Any) -> Body:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    client = {"service": {"namespace": "n", "name": "s", "path": "/x"}}
    base = {"name": name, "clientConfig": client, "rules": [rule], "sideEffects": "None"}
    return {**base, "admissionReviewVersions": ["v1"], **more}


def without(body: Body, *names: str) -> Body:
    return {name: value for name, value in body.items() if name not in names}


def binding(**more: Any) -> Body:
    reference = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    return {"roleRef": reference, "subjects": [{"kind": "User", "name": "jane"}], **more}


RULES = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
GREAT = 10**6

CREATES: tuple[Case, ...] = (
    # Pods
    Case("pods", "plain", pod()),
    Case("pods", "no containers", {"spec": {}}),
    Case("pods", "no image", {"spec": {"containers": [{"name": "main"}]}}),
    Case("pods", "bad port", {"spec": {"containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 0}]}]}}),
    Case("pods", "no token", pod(automountServiceAccountToken=False)),
    Case("pods", "unknown account", pod(serviceAccountName="nobody")),
    Case("pods", "init containers get the token too", pod(initContainers=[{"name": "i", "image": "b"}])),
    Case("pods", "own tolerations", pod(tolerations=[{"operator": "Exists"}])),
    Case("pods", "tolerates one", pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}])),
    Case("pods", "critical", pod(priorityClassName="system-node-critical")),
    Case("pods", "unknown priority", pod(priorityClassName="nothing")),
    Case("pods", "own priority", pod(priority=5)),
    Case("pods", "own preemption", pod(preemptionPolicy="Never")),
    Case("pods", "gated", pod(schedulingGates=[{"name": "a.b/c"}])),
    Case(
        "pods",
        "limits become requests",
        {
            "spec": {
                "containers": [
                    {"name": "main", "image": "nginx", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
                ]
            }
        },
    ),
    Case("pods", "wrong type", {"spec": {"containers": "none"}}),
    Case("pods", "wrong number", pod(terminationGracePeriodSeconds="x")),
    Case("pods", "bad label", {**pod(), "metadata": {"labels": {"a b": "c"}}}),
    # Deployments
    Case("deployments", "plain", workload()),
    Case("deployments", "recreate", workload(strategy={"type": "Recreate"})),
    Case("deployments", "recreate and roll", workload(strategy={"type": "Recreate", "rollingUpdate": {}})),
    Case("deployments", "unknown strategy", workload(strategy={"type": "Other"})),
    Case("deployments", "half a strategy", workload(strategy={"rollingUpdate": {"maxSurge": 1}})),
    Case("deployments", "no room to roll", workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    Case("deployments", "too much", workload(strategy={"rollingUpdate": {"maxUnavailable": "101%"}})),
    Case("deployments", "bad percent", workload(strategy={"rollingUpdate": {"maxUnavailable": "x"}})),
    Case("deployments", "negative percent", workload(strategy={"rollingUpdate": {"maxUnavailable": -1}})),
    Case("deployments", "negative", workload(replicas=-1)),
    Case("deployments", "no selector", {"spec": {"template": template()}}),
    Case("deployments", "empty selector", workload(selector={})),
    Case("deployments", "other labels", workload(template=template({"app": "y"}))),
    Case("deployments", "bad selector", workload(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]})),
    Case("deployments", "never restarts", workload(template=template(restartPolicy="Never"))),
    Case("deployments", "deadline of pods", workload(template=template(activeDeadlineSeconds=5))),
    Case("deployments", "short deadline", workload(progressDeadlineSeconds=10, minReadySeconds=10)),
    Case("deployments", "negative times", workload(minReadySeconds=-1, revisionHistoryLimit=-1)),
    Case("deployments", "no containers", workload(template={"metadata": {"labels": {"app": "x"}}})),
    Case("deployments", "wrong type", workload(replicas="x")),
    Case("deployments", "unknown field", workload(extra=1)),
    Case("deployments", "status is dropped", {**workload(), "status": {"replicas": 3}}),
    # ReplicaSets
    Case("replicasets", "plain", workload()),
    Case("replicasets", "zero", workload(replicas=0)),
    Case("replicasets", "negative", workload(replicas=-1, minReadySeconds=-2)),
    Case("replicasets", "no selector", {"spec": {"template": template()}}),
    Case("replicasets", "other labels", workload(template=template({"app": "y"}))),
    # StatefulSets
    Case("statefulsets", "plain", workload(serviceName="s")),
    Case("statefulsets", "no service", workload()),
    Case("statefulsets", "bad service", workload(serviceName="S.x")),
    Case("statefulsets", "claims", workload(volumeClaimTemplates=[{"metadata": {"name": "data"}, **claim()}])),
    Case("statefulsets", "bad claims", workload(volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}])),
    Case("statefulsets", "partition", workload(updateStrategy={"rollingUpdate": {"partition": 2}})),
    Case("statefulsets", "rolling without settings", workload(updateStrategy={"type": "RollingUpdate"})),
    Case("statefulsets", "on delete", workload(updateStrategy={"type": "OnDelete"})),
    Case("statefulsets", "on delete with settings", workload(updateStrategy={"type": "OnDelete", "rollingUpdate": {}})),
    Case("statefulsets", "unknown strategy", workload(updateStrategy={"type": "Other"})),
    Case("statefulsets", "negative partition", workload(updateStrategy={"rollingUpdate": {"partition": -1}})),
    Case("statefulsets", "unknown management", workload(podManagementPolicy="Other")),
    Case("statefulsets", "unknown retention", workload(persistentVolumeClaimRetentionPolicy={"whenScaled": "x"})),
    Case("statefulsets", "negative", workload(replicas=-1, minReadySeconds=-1, ordinals={"start": -1})),
    Case("statefulsets", "no selector", {"spec": {"template": template()}}),
    Case("statefulsets", "never restarts", workload(template=template(restartPolicy="Never"))),
    Case("statefulsets", "dotted name", {**workload(), "metadata": {"name": "a.b"}}),
    # DaemonSets
    Case("daemonsets", "plain", workload()),
    Case("daemonsets", "on delete", workload(updateStrategy={"type": "OnDelete"})),
    Case("daemonsets", "unknown strategy", workload(updateStrategy={"type": "Other"})),
    Case("daemonsets", "surge", workload(updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})),
    Case("daemonsets", "both", workload(updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})),
    Case("daemonsets", "neither", workload(updateStrategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    Case("daemonsets", "no selector", {"spec": {"template": template()}}),
    Case("daemonsets", "empty selector", workload(selector={})),
    Case("daemonsets", "other labels", workload(template=template({"app": "y"}))),
    # ControllerRevisions
    Case("controllerrevisions", "plain", {"data": {"a": 1}, "revision": 2}),
    Case("controllerrevisions", "no data", {"revision": 1}),
    Case("controllerrevisions", "negative", {"data": {"a": 1}, "revision": -1}),
    # Jobs
    Case("jobs", "plain", job()),
    Case("jobs", "labels of the pods", job({"app": "x"})),
    Case("jobs", "on failure", job(restarts="OnFailure", parallelism=3)),
    Case("jobs", "completions alone", job(completions=3)),
    Case("jobs", "indexed", job(completionMode="Indexed", completions=3)),
    Case("jobs", "indexed without completions", job(completionMode="Indexed", parallelism=2)),
    Case("jobs", "unknown mode", job(completionMode="Other")),
    Case("jobs", "always restarts", job(restarts="Always")),
    Case("jobs", "no policy", job(restarts="")),
    Case("jobs", "negative", job(parallelism=-1, completions=-1, backoffLimit=-1, ttlSecondsAfterFinished=-1)),
    Case("jobs", "own selector", job(selector={"matchLabels": {"a": "b"}})),
    Case("jobs", "manual selector", job({"a": "b"}, manualSelector=True, selector={"matchLabels": {"a": "b"}})),
    Case("jobs", "manual without selector", job(manualSelector=True)),
    Case("jobs", "suspended", job(suspend=True, activeDeadlineSeconds=10)),
    Case("jobs", "per index", job(completionMode="Indexed", completions=3, backoffLimitPerIndex=1)),
    Case("jobs", "per index without index", job(backoffLimitPerIndex=1)),
    Case(
        "jobs",
        "failure policy",
        job(podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}),
    ),
    Case(
        "jobs",
        "bad failure policy",
        job(
            podFailurePolicy={
                "rules": [
                    {"action": "Other", "onExitCodes": {"operator": "In", "values": [0, 2, 1]}},
                    {"action": "FailJob"},
                ]
            }
        ),
    ),
    Case("jobs", "failure policy and restarts", job(restarts="OnFailure", podFailurePolicy={"rules": []})),
    Case("jobs", "unknown replacement", job(podReplacementPolicy="Other")),
    # CronJobs
    Case("cronjobs", "plain", cron_job()),
    Case("cronjobs", "names and steps", cron_job("0 0-12/2 * JAN,jul mon-FRI")),
    Case("cronjobs", "macro", cron_job("@daily", timeZone="Etc/UTC")),
    Case("cronjobs", "no schedule", cron_job("")),
    Case("cronjobs", "short schedule", cron_job("* * *")),
    Case("cronjobs", "late minute", cron_job("61 * * * *")),
    Case("cronjobs", "words", cron_job("a * * * *")),
    Case("cronjobs", "unknown macro", cron_job("@never")),
    Case("cronjobs", "zone in schedule", cron_job("TZ=UTC * * * * *")),
    Case("cronjobs", "unknown zone", cron_job(timeZone="Mars/Base")),
    Case("cronjobs", "unknown policy", cron_job(concurrencyPolicy="Other")),
    Case("cronjobs", "negative", cron_job(startingDeadlineSeconds=-1, successfulJobsHistoryLimit=-1)),
    Case("cronjobs", "selector", cron_job(inner=job(selector={"matchLabels": {"a": "b"}}))),
    Case("cronjobs", "always restarts", cron_job(inner=job(restarts="Always"))),
    Case("cronjobs", "long name", {**cron_job(), "metadata": {"name": "x" * 53}}),
    # Services
    Case("services", "plain", service()),
    Case("services", "named target", service({"port": 80, "targetPort": "http"})),
    Case("services", "two ports", service({"port": 80, "name": "a"}, {"port": 81, "name": "b"})),
    Case("services", "two ports without names", service({"port": 80}, {"port": 81})),
    Case("services", "same port", service({"port": 80, "name": "a"}, {"port": 80, "name": "b"})),
    Case("services", "same name", service({"port": 80, "name": "a"}, {"port": 81, "name": "a"})),
    Case("services", "no ports", {"spec": {"selector": {"app": "x"}}}),
    Case("services", "bad port", service({"port": 0, "protocol": "HTTP", "targetPort": 70000})),
    Case("services", "headless", service(clusterIP="None")),
    Case("services", "headless without selector", {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
    Case("services", "node port", service(type="NodePort")),
    Case("services", "given node port", service({"port": 80, "nodePort": 30080}, type="NodePort")),
    Case("services", "node port out of range", service({"port": 80, "nodePort": 80}, type="NodePort"), wet=True),
    Case("services", "address out of range", service(clusterIP="1.2.3.4"), wet=True),
    Case("services", "node port inside", service({"port": 80, "nodePort": 30080})),
    Case("services", "headless node port", service(type="NodePort", clusterIP="None")),
    Case("services", "balanced", service(type="LoadBalancer")),
    Case("services", "external", {"spec": {"type": "ExternalName", "externalName": "a.example.com"}}),
    Case("services", "external without name", {"spec": {"type": "ExternalName"}}),
    Case(
        "services",
        "external with address",
        {"spec": {"type": "ExternalName", "externalName": "a", "clusterIP": "None"}},
    ),
    Case("services", "unknown type", service(type="Other")),
    Case("services", "sticky", service(sessionAffinity="ClientIP")),
    Case(
        "services",
        "too sticky",
        service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": GREAT}}),
    ),
    Case("services", "unknown affinity", service(sessionAffinity="Other")),
    Case("services", "external policy inside", service(externalTrafficPolicy="Local")),
    Case(
        "services", "unknown policies", service(type="NodePort", externalTrafficPolicy="x", internalTrafficPolicy="y")
    ),
    Case("services", "bad address", service(clusterIP="1.2.3")),
    Case("services", "external IPs", service(externalIPs=["1.2.3.4"])),
    Case("services", "bad name", {**service(), "metadata": {"name": "1a"}}),
    # Configuration
    Case("configmaps", "plain", {"data": {"a": "1"}}),
    Case("configmaps", "empty", {}),
    Case("configmaps", "binary", {"binaryData": {"a": "AAAA"}, "immutable": True}),
    Case("configmaps", "bad key", {"data": {"a/b": "1", "..": "2"}}),
    Case("configmaps", "same key", {"data": {"a": "1"}, "binaryData": {"a": "AAAA"}}),
    Case("configmaps", "not base64", {"binaryData": {"a": "?"}}),
    Case("configmaps", "wrong type", {"data": {"a": 1}}),
    Case("secrets", "plain", {"data": {"a": "MQ=="}}),
    Case("secrets", "plain text", {"stringData": {"a": "1"}, "data": {"b": "Mg=="}}),
    Case("secrets", "bad key", {"stringData": {"a b": "1"}}),
    Case("secrets", "empty certificate", {"type": "kubernetes.io/tls"}),
    Case("secrets", "certificate", {"type": "kubernetes.io/tls", "stringData": {"tls.crt": "", "tls.key": ""}}),
    Case("secrets", "account", {"type": "kubernetes.io/service-account-token"}),
    Case("secrets", "login", {"type": "kubernetes.io/basic-auth"}),
    Case("secrets", "key", {"type": "kubernetes.io/ssh-auth"}),
    Case("secrets", "no registry", {"type": "kubernetes.io/dockerconfigjson"}),
    Case("secrets", "registry", {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{}"}}),
    Case("secrets", "own type", {"type": "example.com/x"}),
    Case("serviceaccounts", "plain", {}),
    Case(
        "serviceaccounts", "pull secrets", {"imagePullSecrets": [{"name": "a"}], "automountServiceAccountToken": False}
    ),
    # Storage
    Case("persistentvolumeclaims", "plain", claim()),
    Case("persistentvolumeclaims", "class", claim(storageClassName="fast", volumeMode="Block")),
    Case("persistentvolumeclaims", "no modes", claim(accessModes=[])),
    Case("persistentvolumeclaims", "bad modes", claim(accessModes=["ReadWriteOncePod", "Other", "ReadWriteOnce"])),
    Case("persistentvolumeclaims", "no size", {"spec": {"accessModes": ["ReadWriteOnce"]}}),
    Case("persistentvolumeclaims", "zero", claim("0")),
    Case("persistentvolumeclaims", "bad mode", claim(volumeMode="x")),
    Case("persistentvolumeclaims", "not a size", claim("big")),
    Case("persistentvolumes", "plain", volume()),
    Case("persistentvolumes", "no source", {"spec": without(volume()["spec"], "hostPath")}),
    Case("persistentvolumes", "two sources", volume(nfs={"server": "a", "path": "/"})),
    Case("persistentvolumes", "no capacity", {"spec": without(volume()["spec"], "capacity", "accessModes")}),
    Case("persistentvolumes", "other capacity", volume(capacity={"cpu": "1"})),
    Case(
        "persistentvolumes", "local without node", {"spec": without(volume(local={"path": "/x"})["spec"], "hostPath")}
    ),
    Case("persistentvolumes", "unknown reclaim", volume(persistentVolumeReclaimPolicy="Other")),
    Case("storageclasses", "plain", {"provisioner": "example.com/x"}),
    Case("storageclasses", "no provisioner", {}),
    Case("storageclasses", "unknown words", {"provisioner": "x", "reclaimPolicy": "y", "volumeBindingMode": "z"}),
    # Cluster
    Case("namespaces", "plain", {}),
    Case("namespaces", "finalizers", {"spec": {"finalizers": ["a.b/c"]}, "metadata": {"labels": {"a": "b"}}}),
    Case("namespaces", "bad finalizer", {"spec": {"finalizers": ["other"]}}),
    Case("namespaces", "bad name", {"metadata": {"name": "a.b"}}),
    Case(
        "nodes",
        "with status",
        {"status": {"capacity": {"cpu": "4", "memory": "1Gi"}}, "spec": {"podCIDR": "10.1.0.0/24"}},
    ),
    Case("nodes", "bad taints", {"spec": {"taints": [{"key": "a b", "effect": "x"}, {"key": "c"}]}}),
    Case("nodes", "same taint", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}}),
    Case("leases", "plain", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 10}}),
    Case("leases", "renewed", {"spec": {"renewTime": "2024-01-01T00:00:00.123456Z"}}),
    Case("leases", "bad", {"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}),
    Case(
        "events",
        "plain",
        {
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$namespace"},
            "reason": "R",
            "message": "M",
            "type": "Normal",
            "source": {"component": "c"},
            "firstTimestamp": "2024-01-01T00:00:00Z",
        },
    ),
    Case("events", "elsewhere", {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "other"}}),
    Case(
        "events",
        "new and incomplete",
        {
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$namespace"},
            "eventTime": "2024-01-01T00:00:00.000001Z",
        },
    ),
    Case("poddisruptionbudgets", "plain", budget(minAvailable=1)),
    Case("poddisruptionbudgets", "percent", budget(maxUnavailable="50%", unhealthyPodEvictionPolicy="AlwaysAllow")),
    Case("poddisruptionbudgets", "both", budget(minAvailable=1, maxUnavailable=1)),
    Case("poddisruptionbudgets", "bad", budget(minAvailable="101%", unhealthyPodEvictionPolicy="x")),
    Case("poddisruptionbudgets", "no selector", {"spec": {"maxUnavailable": -1}}),
    Case("priorityclasses", "plain", {"value": 100, "description": "d"}),
    Case("priorityclasses", "too high", {"value": 1_000_000_001}),
    Case("priorityclasses", "system", {"metadata": {"name": "system-mine"}, "value": 1}),
    Case("priorityclasses", "unknown preemption", {"value": 1, "preemptionPolicy": "x"}),
    Case(
        "endpointslices",
        "plain",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]},
    ),
    Case("endpointslices", "empty", {"addressType": "IPv6"}),
    Case(
        "endpointslices",
        "bad",
        {
            "addressType": "x",
            "endpoints": [{"addresses": []}],
            "ports": [{"name": "A"}, {"name": "A", "protocol": "x"}],
        },
    ),
    Case("endpointslices", "wrong family", {"addressType": "IPv4", "endpoints": [{"addresses": ["::1", "x"]}]}),
    Case("roles", "plain", {"rules": RULES}),
    Case("roles", "empty", {}),
    Case("roles", "urls", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
    Case("roles", "incomplete", {"rules": [{}]}),
    Case("clusterroles", "plain", {"rules": [*RULES, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
    Case("clusterroles", "aggregated", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
    Case("clusterroles", "aggregates nothing", {"aggregationRule": {}}),
    Case("rolebindings", "plain", binding()),
    Case("rolebindings", "account", binding(subjects=[{"kind": "ServiceAccount", "name": "a", "namespace": "b"}])),
    Case(
        "rolebindings",
        "unknown subject",
        binding(subjects=[{"kind": "Robot", "name": "a"}, {"kind": "Group", "name": ""}]),
    ),
    Case("rolebindings", "no role", {"subjects": []}),
    Case("clusterrolebindings", "plain", binding()),
    Case(
        "clusterrolebindings", "account without namespace", binding(subjects=[{"kind": "ServiceAccount", "name": "a"}])
    ),
    Case("clusterrolebindings", "role", binding(roleRef={"kind": "Role", "name": "x"})),
    # Webhooks
    Case("validatingwebhookconfigurations", "plain", {"webhooks": [hook()]}),
    Case("validatingwebhookconfigurations", "empty", {}),
    Case("validatingwebhookconfigurations", "no side effects said", {"webhooks": [without(hook(), "sideEffects")]}),
    Case("validatingwebhookconfigurations", "some side effects", {"webhooks": [hook(sideEffects="Some")]}),
    Case("validatingwebhookconfigurations", "short name", {"webhooks": [hook("a.b"), hook("A")]}),
    Case("validatingwebhookconfigurations", "same name", {"webhooks": [hook(), hook()]}),
    Case("validatingwebhookconfigurations", "no client", {"webhooks": [hook(clientConfig={})]}),
    Case("validatingwebhookconfigurations", "http", {"webhooks": [hook(clientConfig={"url": "http://u@x/y?z#w"})]}),
    Case(
        "validatingwebhookconfigurations",
        "unknown words",
        {"webhooks": [hook(failurePolicy="x", matchPolicy="y", timeoutSeconds=31, admissionReviewVersions=["v2"])]},
    ),
    Case(
        "validatingwebhookconfigurations",
        "bad rules",
        {
            "webhooks": [
                hook(
                    rules=[
                        {},
                        {
                            "operations": ["*", "GET"],
                            "apiGroups": ["*", "a"],
                            "apiVersions": [""],
                            "resources": ["*", "pods"],
                            "scope": "x",
                        },
                    ]
                )
            ]
        },
    ),
    Case(
        "validatingwebhookconfigurations",
        "bad service",
        {"webhooks": [hook(clientConfig={"service": {"name": "", "namespace": "n", "path": "x//y", "port": 0}})]},
    ),
    Case("mutatingwebhookconfigurations", "plain", {"webhooks": [hook()]}),
    Case("mutatingwebhookconfigurations", "unknown reinvocation", {"webhooks": [hook(reinvocationPolicy="x")]}),
    Case("podtemplates", "plain", {"template": template()}),
    Case(
        "limitranges",
        "defaults",
        {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "100m"}}]}},
    ),
    Case("resourcequotas", "plain", {"spec": {"hard": {"pods": "10"}}}),
)

UPDATES: tuple[Case, ...] = (
    Case(
        "pods",
        "image",
        pod(automountServiceAccountToken=False),
        {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}},
    ),
    Case("pods", "node", pod(), {"spec": {"nodeName": "n"}}),
    Case("pods", "labels", pod(), {"metadata": {"labels": {"a": "b"}}}),
    Case(
        "pods",
        "status with labels",
        pod(),
        {
            "metadata": {"labels": {"a": "b"}},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
            "spec": {"nodeName": "n"},
        },
        "status",
    ),
    Case("pods", "bad status", pod(), {"status": {"podIPs": [{"ip": "x"}]}}, "status"),
    Case(
        "pods",
        "ephemeral container",
        pod(),
        {"spec": {"ephemeralContainers": [{"name": "d", "image": "b"}]}},
        "ephemeralcontainers",
    ),
    Case(
        "pods",
        "resize",
        pod(automountServiceAccountToken=False),
        {"spec": {"containers": [{"name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}}}]}},
        "resize",
    ),
    Case("deployments", "replicas", workload(), {"spec": {"replicas": 3}}),
    Case("deployments", "selector", workload(), {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    Case("deployments", "template", workload(), {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}),
    Case(
        "deployments",
        "labels through the status",
        workload(),
        {"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 2}},
        "status",
    ),
    Case(
        "deployments",
        "impossible status",
        workload(),
        {"status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3}},
        "status",
    ),
    Case("deployments", "scale", workload(), {"spec": {"replicas": 5}}, "scale"),
    Case("deployments", "scale below zero", workload(), {"spec": {"replicas": -1}}, "scale"),
    Case("deployments", "strategy of the past", workload(), {"spec": {"strategy": {"type": "Recreate"}}}),
    Case("deployments", "strategy", workload(), {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}),
    Case("replicasets", "selector", workload(), {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    Case("replicasets", "status", workload(), {"status": {"replicas": 1, "fullyLabeledReplicas": 2}}, "status"),
    Case("statefulsets", "replicas", workload(serviceName="s"), {"spec": {"replicas": 3}}),
    Case("statefulsets", "service", workload(serviceName="s"), {"spec": {"serviceName": "t"}}),
    Case(
        "statefulsets", "status", workload(serviceName="s"), {"status": {"replicas": 1, "currentReplicas": 2}}, "status"
    ),
    Case(
        "daemonsets",
        "image",
        workload(),
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "b"}]}}}},
    ),
    Case("daemonsets", "selector", workload(), {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    Case("daemonsets", "status", workload(), {"status": {"numberReady": -1}}, "status"),
    Case("controllerrevisions", "data", {"data": {"a": 1}, "revision": 1}, {"data": {"a": 2}}),
    Case("controllerrevisions", "revision", {"data": {"a": 1}, "revision": 1}, {"revision": 2}),
    Case("jobs", "parallelism", job(), {"spec": {"parallelism": 2}}),
    Case("jobs", "completions", job(), {"spec": {"completions": 2}}),
    Case("jobs", "template", job(), {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}),
    Case(
        "jobs",
        "template while suspended",
        job(suspend=True),
        {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
    ),
    Case("jobs", "status", job(), {"status": {"active": 1, "startTime": "2024-01-01T00:00:00Z"}}, "status"),
    Case(
        "jobs",
        "complete without reason",
        job(),
        {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
        "status",
    ),
    Case(
        "jobs",
        "complete",
        job(),
        {
            "status": {
                "startTime": "2024-01-01T00:00:00Z",
                "completionTime": "2024-01-01T00:01:00Z",
                "succeeded": 1,
                "conditions": [
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "True"},
                ],
            }
        },
        "status",
    ),
    Case("cronjobs", "schedule", cron_job(), {"spec": {"schedule": "@hourly"}}),
    Case("cronjobs", "bad schedule", cron_job(), {"spec": {"schedule": "x"}}),
    Case("services", "selector", service(), {"spec": {"selector": {"a": "b"}}}),
    Case("services", "to node port", service(), {"spec": {"type": "NodePort"}}),
    Case("services", "from node port", service(type="NodePort"), {"spec": {"type": "ClusterIP"}}),
    Case("services", "to external", service(), {"spec": {"type": "ExternalName", "externalName": "a.b"}}),
    Case("services", "other address", service(), {"spec": {"clusterIP": "None"}}),
    Case(
        "services",
        "status",
        service(type="LoadBalancer"),
        {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
        "status",
    ),
    Case("configmaps", "data", {"data": {"a": "1"}}, {"data": {"a": "2"}}),
    Case("configmaps", "immutable", {"data": {"a": "1"}, "immutable": True}, {"data": {"a": "2"}, "immutable": False}),
    Case("secrets", "type", {"data": {"a": "MQ=="}}, {"type": "other"}),
    Case("secrets", "immutable", {"data": {"a": "MQ=="}, "immutable": True}, {"stringData": {"b": "1"}}),
    Case("persistentvolumeclaims", "size", claim(), {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
    Case("persistentvolumeclaims", "class", claim(storageClassName="a"), {"spec": {"storageClassName": "b"}}),
    Case("persistentvolumeclaims", "volume", claim(), {"spec": {"volumeName": "v"}}),
    Case(
        "persistentvolumeclaims",
        "status",
        claim(),
        {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}},
        "status",
    ),
    Case("persistentvolumes", "source", volume(), {"spec": {"hostPath": {"path": "/other"}}}),
    Case("persistentvolumes", "reclaim", volume(), {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}),
    Case("storageclasses", "provisioner", {"provisioner": "a"}, {"provisioner": "b"}),
    Case("storageclasses", "expansion", {"provisioner": "a"}, {"allowVolumeExpansion": True}),
    Case("storageclasses", "binding", {"provisioner": "a"}, {"volumeBindingMode": "WaitForFirstConsumer"}),
    Case("namespaces", "labels", {}, {"metadata": {"labels": {"a": "b"}}, "spec": {"finalizers": []}}),
    Case("namespaces", "own label", {}, {"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}}),
    Case("namespaces", "bad phase", {}, {"status": {"phase": "Terminating"}}, "status"),
    Case("nodes", "cordon", {}, {"spec": {"unschedulable": True}}),
    Case(
        "nodes",
        "other network",
        {"spec": {"podCIDR": "10.1.0.0/24"}},
        {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}},
    ),
    Case(
        "nodes",
        "status",
        {},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {"unschedulable": True}},
        "status",
    ),
    Case("leases", "holder", {"spec": {"holderIdentity": "me"}}, {"spec": {"holderIdentity": "you"}}),
    Case("poddisruptionbudgets", "limit", budget(minAvailable=1), {"spec": {"minAvailable": 2}}),
    Case("poddisruptionbudgets", "status", budget(minAvailable=1), {"status": {"disruptionsAllowed": -1}}, "status"),
    Case("priorityclasses", "value", {"value": 1}, {"value": 2, "preemptionPolicy": "Never"}),
    Case("priorityclasses", "description", {"value": 1}, {"description": "x"}),
    Case("endpointslices", "type", {"addressType": "IPv4"}, {"addressType": "IPv6"}),
    Case("rolebindings", "role", binding(), {"roleRef": {"name": "edit"}}),
    Case("clusterroles", "rules", {"rules": RULES}, {"rules": []}),
    Case("mutatingwebhookconfigurations", "timeout", {"webhooks": [hook()]}, {"webhooks": [hook(timeoutSeconds=5)]}),
)
