"""Objects in all the states that tables tell apart."""

from __future__ import annotations

from typing import Any

from tests.local.kinds.cases import (
    RULES,
    Body,
    binding,
    budget,
    claim,
    cron_job,
    hook,
    job,
    pod,
    service,
    volume,
    workload,
)

LONG_AGO = "2023-05-01T00:00:00Z"
LATER = "2023-05-01T00:02:05Z"


def _state(name: str, state: Any, *, ready: bool = False, restarts: int = 0, **more: Any) -> Body:
    base = {"name": name, "image": "nginx:1", "imageID": "", "ready": ready, "restartCount": restarts, "state": state}
    last = {"terminated": {"exitCode": 1, "finishedAt": LONG_AGO, "startedAt": LONG_AGO}} if restarts else {}
    return {**base, "lastState": last, **more}


RUNNING = {"running": {"startedAt": LONG_AGO}}


def _waiting(reason: str) -> Body:
    return {"waiting": {"reason": reason}}


def _ended(code: int, reason: str = "", signal: int = 0) -> Body:
    ended = {"exitCode": code, "reason": reason, "signal": signal, "startedAt": LONG_AGO, "finishedAt": LONG_AGO}
    return {"terminated": ended}


def _condition(kind: str, status: str = "True", **more: Any) -> Body:
    return {"type": kind, "status": status, **more}


def _status(*containers: Body, phase: str = "Running", **more: Any) -> Body:
    return {"phase": phase, "containerStatuses": list(containers), **more}


INIT = {"initContainers": [{"name": "i", "image": "b"}, {"name": "j", "image": "b"}]}
SIDECAR = {"initContainers": [{"name": "s", "image": "b", "restartPolicy": "Always"}]}
TWO = {"containers": [{"name": "main", "image": "nginx:1"}, {"name": "other", "image": "nginx:2"}]}
GATES = {"readinessGates": [{"conditionType": "a.b/c"}, {"conditionType": "a.b/d"}]}

TABLES: dict[str, tuple[tuple[Body, Any], ...]] = {
    "pods": (
        (pod(), None),
        (pod(nodeName="n1"), _status(_state("main", RUNNING, ready=True), podIPs=[{"ip": "10.0.0.1"}])),
        (pod(), _status(_state("main", _waiting("CrashLoopBackOff"), restarts=3))),
        (pod(), _status(_state("main", _waiting("ImagePullBackOff")), phase="Pending")),
        (pod(), _status(_state("main", _ended(0, "Completed")), phase="Succeeded")),
        (pod(), _status(_state("main", _ended(3)), phase="Failed")),
        (pod(), _status(_state("main", _ended(137, signal=9)), phase="Failed")),
        (pod(), {"phase": "Failed", "reason": "Evicted"}),
        (pod(schedulingGates=[{"name": "a.b/c"}]), None),
        (pod(**INIT), _status(phase="Pending", initContainerStatuses=[_state("i", RUNNING)])),
        (pod(**INIT), _status(phase="Pending", initContainerStatuses=[_state("i", _ended(0)), _state("j", _ended(2))])),
        (pod(**INIT), _status(phase="Pending", initContainerStatuses=[_state("i", _ended(1, "Error"), restarts=2)])),
        (pod(**INIT), _status(phase="Pending", initContainerStatuses=[_state("i", _waiting("CrashLoopBackOff"))])),
        (
            pod(**SIDECAR),
            _status(
                _state("main", RUNNING, ready=True),
                initContainerStatuses=[_state("s", RUNNING, ready=True, restarts=1, started=True)],
                conditions=[_condition("Initialized")],
            ),
        ),
        (pod(**TWO), _status(_state("main", _ended(0, "Completed")), _state("other", RUNNING, ready=True))),
        (
            pod(**TWO),
            _status(
                _state("main", _ended(0, "Completed")),
                _state("other", RUNNING, ready=True),
                conditions=[_condition("Ready")],
            ),
        ),
        (pod(**GATES), _status(conditions=[_condition("a.b/c"), _condition("a.b/d", "False")], nominatedNodeName="n")),
        ({**pod(nodeName="gone"), "metadata": {"finalizers": ["a.b/c"]}}, "delete"),
    ),
    "deployments": (
        (workload(), None),
        (workload(replicas=3), {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}),
    ),
    "replicasets": ((workload(replicas=2), {"replicas": 2, "readyReplicas": 1}),),
    "statefulsets": ((workload(serviceName="s", replicas=2), {"replicas": 2, "readyReplicas": 1}),),
    "daemonsets": (
        (
            workload(),
            {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1, "numberMisscheduled": 0},
        ),
    ),
    "controllerrevisions": (({"data": {"a": 1}, "revision": 3}, None),),
    "jobs": (
        (job(), None),
        (job(parallelism=3), {"active": 1, "startTime": LONG_AGO}),
        (job(suspend=True), {"conditions": [_condition("Suspended")]}),
        (
            job(completions=2),
            {
                "startTime": LONG_AGO,
                "completionTime": LATER,
                "succeeded": 2,
                "conditions": [_condition("SuccessCriteriaMet"), _condition("Complete")],
            },
        ),
        (
            job(),
            {"startTime": LONG_AGO, "failed": 1, "conditions": [_condition("FailureTarget"), _condition("Failed")]},
        ),
    ),
    "cronjobs": ((cron_job(), None), (cron_job(suspend=True, timeZone="Etc/UTC"), {"lastScheduleTime": LONG_AGO})),
    "services": (
        (service(), None),
        (service(type="NodePort", externalIPs=["1.2.3.4"]), None),
        (service(type="LoadBalancer"), None),
        (service(type="LoadBalancer"), {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a.b"}]}}),
        ({"spec": {"type": "ExternalName", "externalName": "a.example.com"}}, None),
        ({"spec": {"clusterIP": "None"}}, None),
    ),
    "endpointslices": (
        ({"addressType": "IPv4"}, None),
        (
            {
                "addressType": "IPv4",
                "endpoints": [{"addresses": [f"10.0.0.{number}"]} for number in range(1, 6)],
                "ports": [{"port": 80, "name": "a"}, {"name": "b"}],
            },
            None,
        ),
    ),
    "nodes": (
        ({}, None),
        (
            {"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "x"}}},
            {
                "conditions": [_condition("Ready")],
                "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
                "nodeInfo": {
                    "kubeletVersion": "v1.34.4",
                    "osImage": "Linux",
                    "kernelVersion": "6",
                    "machineID": "",
                    "containerRuntimeVersion": "x://1",
                    "systemUUID": "",
                    "bootID": "",
                    "kubeProxyVersion": "",
                    "operatingSystem": "linux",
                    "architecture": "amd64",
                },
            },
        ),
        ({"spec": {"unschedulable": True}}, {"conditions": [_condition("Ready", "False")]}),
    ),
    "events": (
        (
            {
                "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$namespace", "fieldPath": "spec.x"},
                "reason": "Pulled",
                "message": " done ",
                "type": "Normal",
                "count": 3,
                "source": {"component": "kubelet", "host": "n"},
                "firstTimestamp": LONG_AGO,
                "lastTimestamp": LATER,
            },
            None,
        ),
    ),
    "namespaces": (({}, None),),
    "secrets": (({"data": {"a": "MQ=="}}, None),),
    "serviceaccounts": (({}, None),),
    "configmaps": (({"data": {"a": "1"}, "binaryData": {"b": "MQ=="}}, None),),
    "persistentvolumeclaims": (
        (claim(), None),
        (
            claim(volumeName="v", storageClassName="c"),
            {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]},
        ),
    ),
    "persistentvolumes": (
        (volume(), None),
        (volume(claimRef={"namespace": "a", "name": "b"}, storageClassName="c"), {"phase": "Bound", "reason": "x"}),
    ),
    "leases": (({"spec": {"holderIdentity": "me"}}, None), ({}, None)),
    "storageclasses": (
        ({"provisioner": "x", "allowVolumeExpansion": True}, None),
        (
            {"provisioner": "x", "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
            None,
        ),
    ),
    "priorityclasses": (({"value": 5}, None),),
    "poddisruptionbudgets": ((budget(minAvailable="50%"), {"disruptionsAllowed": 2}),),
    "roles": (({"rules": RULES}, None),),
    "clusterroles": (({"rules": RULES}, None),),
    "rolebindings": ((binding(), None),),
    "clusterrolebindings": (
        (
            binding(
                subjects=[{"kind": "ServiceAccount", "name": "a", "namespace": "b"}, {"kind": "Group", "name": "g"}]
            ),
            None,
        ),
    ),
    "mutatingwebhookconfigurations": (({"webhooks": [hook(failurePolicy="Ignore")]}, None),),
    "validatingwebhookconfigurations": (({}, None),),
    "limitranges": (({"spec": {"limits": []}}, None),),
    "resourcequotas": (
        ({"spec": {}}, {"hard": {"pods": "10", "limits.cpu": "2"}, "used": {"pods": "1", "limits.cpu": "1"}}),
    ),
    "podtemplates": (({"template": workload()["spec"]["template"]}, None),),
}
