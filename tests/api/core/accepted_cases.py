"""Templates that Kubernetes accepts, chosen for the corners of defaulting and of the canonical form."""

from __future__ import annotations

from typing import Any

Template = dict[str, Any]


def container(name: str = "main", image: str = "nginx:1.25", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **fields}


def template(*containers: dict[str, Any], meta: dict[str, Any] | None = None, **spec: Any) -> Template:
    return {
        "metadata": {"labels": {"app": "x"}} if meta is None else meta,
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def with_container(**fields: Any) -> Template:
    return template(container(**fields))


def with_volume(**source: Any) -> Template:
    mounted = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return template(mounted, volumes=[{"name": "v", **source}])


DIGEST = "sha256:" + "0123456789abcdef" * 4

IMAGES = {
    "tag": "nginx:1.25",
    "no tag": "nginx",
    "latest": "nginx:latest",
    "digest": f"nginx@{DIGEST}",
    "tag and digest": f"nginx:1.25@{DIGEST}",
    "latest and digest": f"nginx:latest@{DIGEST}",
    "registry with port": "localhost:5000/nginx",
    "registry with port and tag": "registry.example.com:5000/a/b/nginx:latest",
    "capital letters": "Nginx",
    "capital registry": "Registry/nginx",
    "not a reference": "nginx:!!",
    "spaces around": " nginx ",
    "image id": "a" * 64,
    "short digest": "nginx@sha256:abc",
    "unknown digest algorithm": "nginx@md5:" + "a" * 32,
    "underscores": "a__b/c_d",
    "three underscores": "a___b",
    "tag of 128 characters": "nginx:" + "a" * 128,
    "tag of 129 characters": "nginx:" + "a" * 129,
    "docker.io": "docker.io/nginx",
    "ipv6 registry": "[fd00::1]:5000/nginx",
    "name too long": "a" * 256,
}

QUANTITIES = (
    "0.5", "1000m", "1", "1.5", "0.1", "100m", "1e3", "1E3", "12e-1", "1Gi", "1024Mi", "1.5Gi", "0.5Ki", "1500u", "1n",
    "1.0001m", "0", "+1", "1.", ".5", "1000000", "1k", "1000k", "1M", "100000Mi", "1e18", "00100m", "1.500", "8Ki",
    "2048", "123456789012", "0.000001", "1Ei", "3T", "5P", 1, 2.5, 0, 1024, 100,
)  # fmt: skip


def _image_cases() -> dict[str, Template]:
    return {f"image: {name}": with_container(image=image) for name, image in IMAGES.items()}


def _quantity_cases() -> dict[str, Template]:
    return {
        f"quantity: {amount!r}": with_container(
            resources={"limits": {"memory": amount}, "requests": {"memory": amount}}
        )
        for amount in QUANTITIES
    }


def _volume_cases() -> dict[str, Template]:
    sources: dict[str, dict[str, Any]] = {
        "none": {},
        "null source": {"emptyDir": None},
        "emptyDir": {"emptyDir": {}},
        "emptyDir memory": {"emptyDir": {"medium": "Memory", "sizeLimit": "0.5Gi"}},
        "hostPath": {"hostPath": {"path": "/h"}},
        "hostPath typed": {"hostPath": {"path": "/h", "type": "Directory"}},
        "secret": {"secret": {"secretName": "s", "items": [{"key": "k", "path": "p", "mode": 0}]}},
        "secret mode 0": {"secret": {"secretName": "s", "defaultMode": 0, "optional": False}},
        "configMap": {"configMap": {"name": "c", "optional": True}},
        "downwardAPI": {
            "downwardAPI": {
                "items": [
                    {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}},
                    {"path": "a", "fieldRef": {"fieldPath": "metadata.annotations['x/y']"}},
                    {"path": "c", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
                    {
                        "path": "m",
                        "resourceFieldRef": {
                            "containerName": "main",
                            "resource": "requests.memory",
                            "divisor": "1024Ki",
                        },
                    },
                ]
            }
        },
        "projected": {
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "t"}},
                    {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                    {"secret": {"name": "s"}},
                    {"configMap": {"name": "c", "items": [{"key": "k", "path": "kk"}]}},
                ]
            }
        },
        "projected empty": {"projected": {"sources": []}},
        "projected null": {"projected": {"sources": None}},
        "claim": {"persistentVolumeClaim": {"claimName": "p", "readOnly": False}},
        "ephemeral": {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0.5Gi"}}},
                }
            }
        },
        "nfs": {"nfs": {"server": "s", "path": "/p"}},
        "csi": {"csi": {"driver": "Csi.Example.com", "volumeAttributes": {"b": "1", "a": "2"}}},
        "iscsi": {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}},
        "rbd": {"rbd": {"monitors": ["m"], "image": "i"}},
        "cephfs": {"cephfs": {"monitors": ["m"]}},
        "azureDisk": {"azureDisk": {"diskName": "d", "diskURI": "https://x"}},
        "azureFile": {"azureFile": {"secretName": "s", "shareName": "t"}},
        "scaleIO": {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "x"}}},
        "gce": {"gcePersistentDisk": {"pdName": "p"}},
        "aws": {"awsElasticBlockStore": {"volumeID": "v"}},
        "fc": {"fc": {"targetWWNs": ["a"], "lun": 0}},
        "flex": {"flexVolume": {"driver": "d", "options": {"a": "b"}}},
        "flocker": {"flocker": {"datasetName": "d"}},
        "glusterfs": {"glusterfs": {"endpoints": "e", "path": "p"}},
        "cinder": {"cinder": {"volumeID": "v"}},
        "quobyte": {"quobyte": {"registry": "a:1,b:2", "volume": "v"}},
        "vsphere": {"vsphereVolume": {"volumePath": "v"}},
        "portworx": {"portworxVolume": {"volumeID": "v"}},
        "photon": {"photonPersistentDisk": {"pdID": "v"}},
        "storageos": {"storageos": {"volumeName": "v"}},
        "gitRepo": {"gitRepo": {"repository": "r"}},
    }
    return {f"volume: {name}": with_volume(**source) for name, source in sources.items()}


def _container_cases() -> dict[str, Template]:
    http = {"httpGet": {"port": 80}}
    return {
        "ports": with_container(ports=[{"containerPort": 80}, {"containerPort": 81, "name": "b", "protocol": "UDP"}]),
        "port 0 of the host": with_container(ports=[{"containerPort": 80, "hostPort": 0}]),
        "probes": with_container(
            livenessProbe=http,
            readinessProbe={"tcpSocket": {"port": "http"}, "periodSeconds": 5},
            startupProbe={"exec": {"command": ["true"]}, "failureThreshold": 30, "timeoutSeconds": 0},
        ),
        "grpc probe": with_container(livenessProbe={"grpc": {"port": 1}}),
        "grpc probe with service": with_container(livenessProbe={"grpc": {"port": 1, "service": "s"}}),
        "probe with headers": with_container(
            livenessProbe={"httpGet": {"port": "p", "httpHeaders": [{"name": "A", "value": ""}], "scheme": "HTTPS"}}
        ),
        "probe grace period": with_container(livenessProbe={**http, "terminationGracePeriodSeconds": 5}),
        "lifecycle": with_container(lifecycle={"preStop": http, "postStart": {"exec": {"command": ["a"]}}}),
        "lifecycle sleep": with_container(lifecycle={"preStop": {"sleep": {"seconds": 0}}}),
        "empty lifecycle": with_container(lifecycle={}),
        "stop signal": with_container(lifecycle={"stopSignal": "SIGTERM"}),
        "env": with_container(
            env=[
                {"name": "A", "value": ""},
                {"name": "B", "value": "1", "unknown": 1},
                {"name": "odd name!", "value": "1"},
                {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": False}}},
                {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "F", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}},
                {"name": "G", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                {"name": "H", "valueFrom": {"fieldRef": {"fieldPath": "spec.host"}}},
                {"name": "I", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ]
        ),
        "envFrom": with_container(
            envFrom=[{"configMapRef": {"name": "a"}}, {"prefix": "P_", "secretRef": {"name": "b"}}]
        ),
        "empty lists and strings": with_container(args=[], command=[], env=[], workingDir="", stdin=False, tty=False),
        "nulls": with_container(args=None, resources=None, securityContext=None, livenessProbe=None, ports=None),
        "null in a list": with_container(args=["a", None]),
        "null label": template(meta={"labels": {"a": None}, "annotations": None}),
        "unknown fields": {**with_container(foo=1, bar={"x": []}), "$patch": "replace", "status": {}},
        "empty structs": with_container(securityContext={}, resources={}),
        "security context": with_container(
            securityContext={
                "runAsUser": 0,
                "privileged": False,
                "capabilities": {"add": ["NET_ADMIN"], "drop": []},
                "seccompProfile": {"type": "RuntimeDefault"},
                "readOnlyRootFilesystem": True,
            }
        ),
        "privileged": with_container(securityContext={"privileged": True}),
        "resources": with_container(
            resources={"limits": {"cpu": "0.5", "memory": "128Mi"}, "requests": {"cpu": "1.0001m"}}
        ),
        "limits only": with_container(resources={"limits": {"cpu": 1, "memory": "1Gi", "ephemeral-storage": "1G"}}),
        "extended resource": with_container(
            resources={"limits": {"example.com/gpu": 2, "cpu": 1}, "requests": {"example.com/gpu": "2"}}
        ),
        "huge pages": with_container(resources={"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}),
        "resize policy": with_container(
            resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}], resources={"limits": {"cpu": "1"}}
        ),
        "restart policy of a container": with_container(restartPolicy="Never"),
        "mounts": template(
            container(
                volumeMounts=[
                    {"name": "v", "mountPath": "/a", "subPath": "x/y", "readOnly": True},
                    {"name": "v", "mountPath": "/b", "subPathExpr": "$(A)", "mountPropagation": "None"},
                    {"name": "v", "mountPath": "/c", "readOnly": True, "recursiveReadOnly": "Enabled"},
                ]
            ),
            volumes=[{"name": "v"}],
        ),
        "block device": template(
            container(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]),
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        ),
        "escapes": with_container(args=['<a href="x">&</a>', "\u2028\u2029", "tab\tline\n\x01", "ü€😀"]),
        "termination": with_container(
            terminationMessagePath="/x", terminationMessagePolicy="FallbackToLogsOnError", imagePullPolicy="Never"
        ),
        "image volume": template(
            container(volumeMounts=[{"name": "i", "mountPath": "/i"}]),
            volumes=[{"name": "i", "image": {"reference": "a:b"}}],
        ),
    }


def _spec_cases() -> dict[str, Template]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    zone = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
    return {
        "bare": template(),
        "no metadata": {"spec": {"containers": [container()]}},
        "metadata fields": template(
            meta={
                "name": "n",
                "namespace": "m",
                "labels": {"b": "1", "a": "2"},
                "annotations": {"z": "", "Y.example.com/X": "<>&"},
                "finalizers": ["a/b"],
                "creationTimestamp": None,
                "generateName": "",
            }
        ),
        "metadata time": template(meta={"creationTimestamp": "2024-01-02T03:04:05+02:00"}),
        "init containers": template(initContainers=[container("i1", "busybox"), container("i2", "busybox:1.36")]),
        "sidecar": template(
            initContainers=[
                container(
                    "s",
                    restartPolicy="Always",
                    livenessProbe={"httpGet": {"port": 1}},
                    lifecycle={"preStop": {"exec": {"command": ["x"]}}},
                )
            ]
        ),
        "host network": template(container(ports=[{"containerPort": 80}]), hostNetwork=True),
        "host network with host port": template(
            container(ports=[{"containerPort": 80, "hostPort": 80}]), hostNetwork=True
        ),
        "host flags": template(hostPID=True, hostIPC=True, shareProcessNamespace=False, hostUsers=True),
        "service account": template(serviceAccountName="sa"),
        "deprecated service account": template(serviceAccount="sa"),
        "both service accounts": template(serviceAccount="old", serviceAccountName="new"),
        "pod security context": template(
            securityContext={
                "runAsNonRoot": True,
                "fsGroup": 0,
                "supplementalGroups": [1, 2],
                "sysctls": [{"name": "net/ipv4/ip_forward", "value": "1"}],
                "fsGroupChangePolicy": "OnRootMismatch",
                "seLinuxOptions": {"level": "s0"},
                "seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"},
                "appArmorProfile": {"type": "Unconfined"},
                "supplementalGroupsPolicy": "Strict",
                "seLinuxChangePolicy": "Recursive",
            }
        ),
        "grace period 0": template(terminationGracePeriodSeconds=0),
        "negative grace period": template(terminationGracePeriodSeconds=-5),
        "active deadline": template(activeDeadlineSeconds=1),
        "restart policies": template(restartPolicy="Never"),
        "dns": template(
            dnsPolicy="None",
            dnsConfig={
                "nameservers": ["1.1.1.1", "010.1.2.3", "::1"],
                "searches": ["a_b.example.com.", "."],
                "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
            },
        ),
        "host aliases": template(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a.b"]}, {"ip": "::"}]),
        "node selector": template(nodeSelector={"b": "", "a": "1"}, nodeName="n.1"),
        "affinity": template(
            affinity={
                "nodeAffinity": {
                    required: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]},
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                            {},
                        ]
                    },
                    preferred: [
                        {
                            "weight": 1,
                            "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["!"]}]},
                        }
                    ],
                },
                "podAffinity": {required: [zone], preferred: [{"weight": 100, "podAffinityTerm": zone}]},
                "podAntiAffinity": {required: [{"topologyKey": "zone", "namespaces": ["a"], "namespaceSelector": {}}]},
            }
        ),
        "affinity label keys with values": template(
            meta={"labels": {"k": "1", "l": "2"}},
            affinity={
                "podAffinity": {required: [{**zone, "matchLabelKeys": ["k"], "mismatchLabelKeys": ["l"]}]},
                "podAntiAffinity": {
                    preferred: [{"weight": 1, "podAffinityTerm": {**zone, "matchLabelKeys": ["k", "n"]}}]
                },
            },
            topologySpreadConstraints=[
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {},
                    "matchLabelKeys": ["k"],
                }
            ],
        ),
        "empty affinity": template(affinity={}),
        "affinity label keys": template(
            affinity={"podAffinity": {required: [{**zone, "matchLabelKeys": ["k"], "mismatchLabelKeys": ["l"]}]}}
        ),
        "tolerations": template(
            tolerations=[
                {"operator": "Exists"},
                {"key": "a", "value": "b", "effect": "NoSchedule"},
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
                {"key": "c", "operator": "Equal"},
            ]
        ),
        "spread": template(
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2},
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    "nodeAffinityPolicy": "Ignore",
                    "matchLabelKeys": ["pod-template-hash"],
                },
            ]
        ),
        "gates": template(
            readinessGates=[{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "a.b/C"}],
            schedulingGates=[{"name": "a/b"}],
        ),
        "pull secrets": template(imagePullSecrets=[{"name": "a"}, {}]),
        "names": template(
            hostname="h", subdomain="s", priorityClassName="", runtimeClassName="r", schedulerName="mine"
        ),
        "os": template(os={"name": "linux"}),
        "windows": template(
            container(securityContext={"windowsOptions": {"runAsUserName": "DOMAIN\\user"}}), os={"name": "windows"}
        ),
        "preemption": template(preemptionPolicy="Never"),
        "overhead": template(overhead={"cpu": "0.1", "memory": "1500u"}, runtimeClassName="r"),
        "service links": template(enableServiceLinks=False, automountServiceAccountToken=False, setHostnameAsFQDN=True),
        "resource claims": template(
            container(resources={"claims": [{"name": "c", "request": "r"}]}),
            resourceClaims=[{"name": "c", "resourceClaimName": "rc"}, {"name": "d", "resourceClaimTemplateName": "rt"}],
        ),
        "pod level resources": template(
            container(resources={"requests": {"cpu": "100m"}}),
            container("b", resources={"limits": {"cpu": "200m"}}),
            resources={"limits": {"cpu": "1", "memory": "1Gi"}},
        ),
        "pod level requests": template(resources={"requests": {"cpu": "1"}}),
        "pod level empty": template(resources={}),
        "deletion cost": template(meta={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}),
        "seccomp annotation": template(
            meta={"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}
        ),
        "apparmor annotations": template(
            container(),
            container("local"),
            container("same", securityContext={"appArmorProfile": {"type": "Unconfined"}}),
            container("padded"),
            meta={
                "annotations": {
                    f"container.apparmor.security.beta.kubernetes.io/{name}": profile
                    for name, profile in (
                        ("main", "unconfined"),
                        ("local", "localhost/x"),
                        ("same", "unconfined"),
                        ("padded", "localhost/ x"),
                    )
                }
            },
        ),
        "apparmor annotation like the pod": template(
            meta={"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "runtime/default"}},
            securityContext={"appArmorProfile": {"type": "RuntimeDefault"}},
        ),
        "tolerations annotation": template(
            meta={"annotations": {"scheduler.alpha.kubernetes.io/tolerations": '[{"key":"a","operator":"Exists"}]'}}
        ),
        "init container annotation": template(meta={"annotations": {"pod.beta.kubernetes.io/init-containers": "[]"}}),
    }


def accepted_cases() -> dict[str, Template]:
    return {**_spec_cases(), **_container_cases(), **_volume_cases(), **_image_cases(), **_quantity_cases()}
