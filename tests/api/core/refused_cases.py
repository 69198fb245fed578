"""Templates that Kubernetes refuses, one complaint or a few at a time."""

from __future__ import annotations

from typing import Any

from tests.api.core.accepted_cases import Template, container, template, with_container, with_volume

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LONG = "a" * 64
HTTP = {"httpGet": {"port": 80}}


def _metadata() -> dict[str, Template]:
    label_maps: dict[str, dict[str, str]] = {
        "key with space": {"a b": "1"},
        "key too long": {LONG: "1"},
        "two slashes": {"a/b/c": "1"},
        "empty prefix": {"/a": "1"},
        "empty name": {"a/": "1"},
        "bad prefix": {"A_b/c": "1"},
        "empty key": {"": "1"},
        "value with space": {"a": "b c"},
        "value too long": {"a": LONG},
        "value with dash at the end": {"a": "b-"},
        "unicode value": {"a": "ü"},
    }
    annotation_maps: dict[str, dict[str, str]] = {
        "key with space": {"a b": "1"},
        "too big": {"a": "x" * (256 * 1024)},
        "deletion cost text": {"controller.kubernetes.io/pod-deletion-cost": "many"},
        "deletion cost plus": {"controller.kubernetes.io/pod-deletion-cost": "+1"},
        "deletion cost zero": {"controller.kubernetes.io/pod-deletion-cost": "01"},
        "deletion cost big": {"controller.kubernetes.io/pod-deletion-cost": "2147483648"},
        "seccomp": {"seccomp.security.alpha.kubernetes.io/pod": "x"},
        "seccomp of a container": {"container.seccomp.security.alpha.kubernetes.io/main": "localhost/../x"},
        "apparmor unknown container": {"container.apparmor.security.beta.kubernetes.io/other": "unconfined"},
        "tolerations": {"scheduler.alpha.kubernetes.io/tolerations": '[{"key":"a b"}]'},
        "tolerations not JSON": {"scheduler.alpha.kubernetes.io/tolerations": "x"},
        "apparmor profile": {"container.apparmor.security.beta.kubernetes.io/main": "x"},
    }
    seccomp = {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}
    return {
        **{f"label: {name}": template(meta={"labels": given}) for name, given in label_maps.items()},
        **{f"annotation: {name}": template(meta={"annotations": given}) for name, given in annotation_maps.items()},
        "seccomp annotation and field": template(
            meta={"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}, **seccomp
        ),
        "seccomp annotation and field of a container": template(
            container(**seccomp),
            meta={"annotations": {"container.seccomp.security.alpha.kubernetes.io/main": "localhost/x"}},
        ),
        "apparmor annotation and field": template(
            container(securityContext={"appArmorProfile": {"type": "Localhost", "localhostProfile": "a"}}),
            meta={"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "localhost/b"}},
        ),
    }


def _containers() -> dict[str, Template]:
    return {
        "no containers": {"metadata": {}, "spec": {}},
        "empty containers": {"spec": {"containers": []}},
        "no spec": {},
        "no name": {"spec": {"containers": [{"image": "a"}]}},
        "no image": {"spec": {"containers": [{"name": "a"}]}},
        "name with capital": template(container("Main_1")),
        "name with dot": template(container("a.b")),
        "name too long": template(container(LONG)),
        "duplicate names": template(container("a"), container("a")),
        "init name duplicate": template(container("a"), initContainers=[container("a")]),
        "init names duplicate": template(initContainers=[container("a"), container("a")]),
        "image with spaces": with_container(image=" a"),
        "pull policy": with_container(imagePullPolicy="Sometimes"),
        "message policy": with_container(terminationMessagePolicy="None"),
        "init lifecycle and probes": template(
            initContainers=[
                container("i", lifecycle={}, livenessProbe=HTTP, readinessProbe=HTTP, startupProbe={"exec": {}})
            ]
        ),
        "sidecar probe": template(
            initContainers=[
                container("i", restartPolicy="Always", livenessProbe={}, lifecycle={"preStop": {}, "postStart": {}})
            ]
        ),
        "ephemeral containers": template(ephemeralContainers=[{"name": "e", "image": "i"}]),
        "bad ephemeral containers": template(
            ephemeralContainers=[
                {"name": "main", "image": " i", "ports": [{"containerPort": 1}], "targetContainerName": "x"},
                {"image": "", "livenessProbe": HTTP, "resources": {"limits": {"cpu": "1"}}},
            ]
        ),
        "resize policy": with_container(
            resizePolicy=[
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "cpu", "restartPolicy": "x"},
                {"resourceName": "gpu", "restartPolicy": ""},
                {"resourceName": "", "restartPolicy": "RestartContainer"},
            ]
        ),
        "resize policy of pods that never restart": template(
            container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
            restartPolicy="Never",
        ),
    }


def _ports() -> dict[str, Template]:
    ports: dict[str, list[dict[str, Any]]] = {
        "zero": [{"containerPort": 0}],
        "missing": [{}],
        "too high": [{"containerPort": 70000}],
        "negative": [{"containerPort": -1, "hostPort": -1}],
        "duplicate names": [{"containerPort": 1, "name": "p"}, {"containerPort": 2, "name": "p"}],
        "name too long": [{"containerPort": 1, "name": "abcdefghijklmnop"}],
        "name of digits": [{"containerPort": 1, "name": "80"}],
        "name with capital": [{"containerPort": 1, "name": "A"}],
        "name with hyphens": [{"containerPort": 1, "name": "-a--b"}],
        "protocol": [{"containerPort": 1, "protocol": "HTTP"}],
        "host port twice": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}],
    }
    return {
        **{f"port: {name}": with_container(ports=given) for name, given in ports.items()},
        "host port of two containers": template(
            container("a", ports=[{"containerPort": 1, "hostPort": 5, "hostIP": "1.1.1.1"}]),
            container("b", ports=[{"containerPort": 1, "hostPort": 5, "hostIP": "1.1.1.1"}]),
        ),
        "host network mismatch": template(container(ports=[{"containerPort": 80, "hostPort": 81}]), hostNetwork=True),
        "init host ports": template(
            initContainers=[
                container("a"),
                container("b", ports=[{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]),
            ]
        ),
    }


def _environment() -> dict[str, Template]:
    def value_from(**source: Any) -> dict[str, Any]:
        return {"name": "A", "valueFrom": source}

    variables: dict[str, dict[str, Any]] = {
        "no name": {"value": "a"},
        "equals sign": {"name": "a=b"},
        "unicode": {"name": "ü"},
        "no source": value_from(),
        "value and source": {"value": "x", **value_from(fieldRef={"fieldPath": "metadata.name"})},
        "two sources": value_from(fieldRef={"fieldPath": "metadata.name"}, secretKeyRef={"name": "a", "key": "b"}),
        "no field path": value_from(fieldRef={}),
        "unknown field path": value_from(fieldRef={"fieldPath": "metadata.foo"}),
        "field path for volumes": value_from(fieldRef={"fieldPath": "metadata.labels"}),
        "field path phase": value_from(fieldRef={"fieldPath": "status.phase"}),
        "field version": value_from(fieldRef={"fieldPath": "metadata.name", "apiVersion": "v2"}),
        "subscript": value_from(fieldRef={"fieldPath": "spec['a']"}),
        "bad subscript": value_from(fieldRef={"fieldPath": "metadata.labels['a b']"}),
        "bad annotation subscript": value_from(fieldRef={"fieldPath": "metadata.annotations['A b']"}),
        "no resource": value_from(resourceFieldRef={}),
        "unknown resource": value_from(resourceFieldRef={"resource": "limits.gpu"}),
        "cpu divisor": value_from(resourceFieldRef={"resource": "limits.cpu", "divisor": "2"}),
        "memory divisor": value_from(resourceFieldRef={"resource": "requests.memory", "divisor": "3Mi"}),
        "storage divisor": value_from(resourceFieldRef={"resource": "limits.ephemeral-storage", "divisor": "1m"}),
        "huge page divisor": value_from(resourceFieldRef={"resource": "limits.hugepages-2Mi", "divisor": "1m"}),
        "config map without key": value_from(configMapKeyRef={"name": "a"}),
        "config map without name": value_from(configMapKeyRef={"key": "a"}),
        "config map key": value_from(configMapKeyRef={"name": "a", "key": "a b"}),
        "secret dots": value_from(secretKeyRef={"name": "A", "key": ".."}),
        "secret key dots": value_from(secretKeyRef={"name": "a", "key": "..a"}),
        "secret key long": value_from(secretKeyRef={"name": "a", "key": "a" * 254}),
        "file": value_from(fileKeyRef={"volumeName": "a", "path": "p", "key": "k"}),
    }
    return {
        **{f"env: {name}": with_container(env=[given]) for name, given in variables.items()},
        "envFrom without source": with_container(envFrom=[{}]),
        "envFrom two sources": with_container(envFrom=[{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]),
        "envFrom names": with_container(
            envFrom=[{"configMapRef": {}}, {"secretRef": {"name": "A"}}, {"prefix": "=", "secretRef": {"name": "a-"}}]
        ),
    }


def _resources() -> dict[str, Template]:
    requirements: dict[str, dict[str, Any]] = {
        "request above limit": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
        "negative": {"limits": {"cpu": "-1"}, "requests": {"memory": "-1Gi"}},
        "unknown name": {"limits": {"gpu": "1"}},
        "name of a quota": {"limits": {"pods": "1"}},
        "counted": {"limits": {"services": "1.5"}},
        "bad name": {"requests": {"a b": "1"}},
        "extended request only": {"requests": {"example.com/gpu": "1"}},
        "extended unequal": {"limits": {"example.com/gpu": "2"}, "requests": {"example.com/gpu": "1"}},
        "extended fraction": {"limits": {"example.com/gpu": "500m"}},
        "extended with requests prefix": {"limits": {"requests.example.com/gpu": "1"}},
        "native with slash": {"limits": {"kubernetes.io/gpu": "1"}, "requests": {"kubernetes.io/gpu": "2"}},
        "huge pages alone": {"limits": {"hugepages-2Mi": "4Mi"}},
        "huge pages fraction": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
        "huge pages size": {"limits": {"hugepages-x": "3Mi", "cpu": "1"}},
        "huge pages request only": {"requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}},
        "claims unknown": {"claims": [{"name": "a"}, {"name": ""}]},
    }
    claims = [{"name": "a", "resourceClaimName": "a"}, {"name": "b", "resourceClaimName": "b"}]
    return {
        **{f"resources: {name}": with_container(resources=given) for name, given in requirements.items()},
        "resource claims of a container": template(
            container(
                resources={
                    "claims": [
                        {"name": "a"},
                        {"name": "a"},
                        {"name": "b", "request": "r"},
                        {"name": "b", "request": "r"},
                        {"name": "b"},
                        {"name": "c", "request": "R"},
                    ]
                }
            ),
            resourceClaims=claims,
        ),
        "resource claims": template(
            resourceClaims=[
                {"name": "a"},
                {"name": "a", "resourceClaimName": "x"},
                {"name": "", "resourceClaimName": "A"},
                {"name": "B", "resourceClaimName": "a", "resourceClaimTemplateName": "A"},
            ]
        ),
        "overhead": template(overhead={"gpu": "1", "cpu": "-1"}),
        "pod level requests too small": template(
            container("a", resources={"requests": {"cpu": "2"}}),
            container("b", resources={"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}),
            resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        ),
        "pod level names": template(resources={"limits": {"example.com/gpu": "1", "ephemeral-storage": "1Gi"}}),
        "pod level claims": template(resources={"claims": [{"name": "a"}]}, resourceClaims=claims),
        "pod level huge pages": template(
            container(resources={"limits": {"hugepages-2Mi": "8Mi", "cpu": "1"}}),
            resources={"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}},
        ),
    }


def _probes() -> dict[str, Template]:
    probes: dict[str, dict[str, Any]] = {
        "no handler": {},
        "two handlers": {**HTTP, "exec": {"command": ["a"]}, "tcpSocket": {"port": 1}, "grpc": {"port": 1}},
        "no command": {"exec": {}},
        "port": {"httpGet": {"port": 0}},
        "no port": {"tcpSocket": {}},
        "port name": {"tcpSocket": {"port": "A_"}},
        "empty port name": {"tcpSocket": {"port": ""}},
        "grpc port": {"grpc": {"port": 70000}},
        "scheme": {"httpGet": {"port": 1, "scheme": "ftp"}},
        "header": {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}},
        "negative numbers": {
            **HTTP,
            "initialDelaySeconds": -1,
            "timeoutSeconds": -1,
            "periodSeconds": -1,
            "successThreshold": -1,
            "failureThreshold": -1,
        },
        "success threshold": {**HTTP, "successThreshold": 2},
        "grace period": {**HTTP, "terminationGracePeriodSeconds": 0},
    }
    return {
        **{f"liveness probe: {name}": with_container(livenessProbe=given) for name, given in probes.items()},
        **{
            f"readiness probe: {name}": with_container(readinessProbe=given, startupProbe=given)
            for name, given in probes.items()
        },
        "lifecycle without handler": with_container(lifecycle={"preStop": {}, "postStart": {"exec": {}}}),
        "lifecycle two handlers": with_container(
            lifecycle={"preStop": {"sleep": {"seconds": 1}, **HTTP, "tcpSocket": {"port": 1}}}
        ),
        "sleep too long": with_container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        "sleep negative": with_container(lifecycle={"preStop": {"sleep": {"seconds": -1}}}),
    }


def _volumes() -> dict[str, Template]:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    def claim_template(**changes: Any) -> dict[str, Any]:
        return {"ephemeral": {"volumeClaimTemplate": {"spec": {**claim, **changes}}}}

    sources: dict[str, dict[str, Any]] = {
        "two": {"emptyDir": {}, "hostPath": {"path": "/a"}, "cephfs": {"monitors": []}, "downwardAPI": {}},
        "size limit": {"emptyDir": {"sizeLimit": "-1"}},
        "host path empty": {"hostPath": {"path": ""}},
        "host path up": {"hostPath": {"path": "/a/../b", "type": "Foo"}},
        "secret": {
            "secret": {"defaultMode": 512, "items": [{"key": "", "path": ""}, {"key": "a", "path": "../b", "mode": -1}]}
        },
        "config map": {
            "configMap": {"defaultMode": -1, "items": [{"key": "a", "path": "/b"}, {"key": "c", "path": "..d"}]}
        },
        "claim": {"persistentVolumeClaim": {}},
        "downward": {
            "downwardAPI": {
                "defaultMode": 9999,
                "items": [
                    {"path": ""},
                    {"path": "a", "fieldRef": {"fieldPath": "status.podIP"}},
                    {"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}, "mode": 1000},
                    {
                        "path": "/c",
                        "fieldRef": {"fieldPath": "metadata.name"},
                        "resourceFieldRef": {"resource": "limits.cpu", "containerName": "main"},
                    },
                ],
            }
        },
        "projected": {
            "projected": {
                "defaultMode": 1000,
                "sources": [
                    {"serviceAccountToken": {"path": "", "expirationSeconds": 1}},
                    {"serviceAccountToken": {"path": "/a", "expirationSeconds": 4294967297}},
                    {
                        "secret": {"items": [{"key": "k", "path": "p"}]},
                        "configMap": {"items": [{"key": "", "path": "p"}]},
                    },
                    {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                    {"downwardAPI": {"items": [{"path": "q"}]}},
                ],
            }
        },
        "ephemeral empty": {"ephemeral": {}},
        "ephemeral without modes": {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        "ephemeral metadata": {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"name": "a", "labels": {"a b": ""}, "annotations": {"c d": ""}, "finalizers": ["x"]},
                    "spec": claim,
                }
            }
        },
        "ephemeral modes": claim_template(accessModes=["ReadWriteOncePod", "ReadWriteMany", "Foo"], volumeMode="Raw"),
        "ephemeral storage": claim_template(resources={"requests": {"storage": "0"}}, storageClassName="A B"),
        "ephemeral data source": claim_template(
            dataSource={"kind": "Foo", "name": ""}, dataSourceRef={"kind": "", "name": "a", "apiGroup": "A"}
        ),
        "ephemeral data sources": claim_template(
            dataSource={"kind": "PersistentVolumeClaim", "name": "a"},
            dataSourceRef={"kind": "PersistentVolumeClaim", "name": "b"},
        ),
        "ephemeral selector": claim_template(selector={"matchExpressions": [{"key": "a b", "operator": "Is"}]}),
        "nfs": {"nfs": {"server": "", "path": ""}},
        "nfs relative": {"nfs": {"server": "a", "path": "b"}},
        "csi": {"csi": {"driver": "", "nodePublishSecretRef": {}}},
        "csi names": {"csi": {"driver": "A_b", "nodePublishSecretRef": {"name": "A"}}},
        "csi long": {"csi": {"driver": LONG}},
        "iscsi": {"iscsi": {"targetPortal": "", "iqn": "", "lun": 256, "chapAuthSession": True}},
        "iscsi names": {
            "iscsi": {
                "targetPortal": "a" * 70,
                "iqn": "iqn.x",
                "lun": -1,
                "initiatorName": "foo",
                "chapAuthDiscovery": True,
            }
        },
        "iscsi eui": {"iscsi": {"targetPortal": "a", "iqn": "eui.x", "lun": 1, "initiatorName": "naa.x"}},
        "rbd": {"rbd": {"monitors": [], "image": ""}},
        "cephfs": {"cephfs": {"monitors": []}},
        "azureDisk": {"azureDisk": {"diskName": "", "diskURI": "", "cachingMode": "x", "kind": "y"}},
        "azureDisk managed": {"azureDisk": {"diskName": "a", "diskURI": "b", "kind": "Managed"}},
        "azureFile": {"azureFile": {"secretName": "", "shareName": ""}},
        "scaleIO": {"scaleIO": {"gateway": "", "system": "", "volumeName": ""}},
        "gce": {"gcePersistentDisk": {"pdName": "", "partition": 300}},
        "aws": {"awsElasticBlockStore": {"volumeID": "", "partition": -1}},
        "fc": {"fc": {}},
        "fc both": {"fc": {"targetWWNs": ["a"], "wwids": ["b"], "lun": 300}},
        "fc without lun": {"fc": {"targetWWNs": ["a"]}},
        "flex": {"flexVolume": {"driver": "", "options": {"kubernetes.io/a": "1", "x.k8s.io/b": "2", "c": "3"}}},
        "flocker": {"flocker": {}},
        "flocker both": {"flocker": {"datasetName": "a/b", "datasetUUID": "c"}},
        "glusterfs": {"glusterfs": {"endpoints": "", "path": ""}},
        "cinder": {"cinder": {"volumeID": "", "secretRef": {}}},
        "quobyte": {"quobyte": {"registry": "", "volume": ""}},
        "quobyte registry": {"quobyte": {"registry": "a,b:1,[::1]:2,::1:2", "volume": "v"}},
        "quobyte tenant": {"quobyte": {"registry": "a:1", "volume": "v", "tenant": "a" * 65}},
        "vsphere": {"vsphereVolume": {"volumePath": ""}},
        "portworx": {"portworxVolume": {"volumeID": ""}},
        "photon": {"photonPersistentDisk": {"pdID": ""}},
        "storageos": {"storageos": {"volumeNamespace": "A", "secretRef": {}}},
        "storageos name": {"storageos": {"volumeName": "A"}},
        "gitRepo": {"gitRepo": {"repository": "", "directory": "/a/../b"}},
    }
    return {
        **{f"volume: {name}": with_volume(**source) for name, source in sources.items()},
        "volume names": template(volumes=[{"name": "a"}, {"name": "a"}, {"name": "B"}, {"name": ""}, {"name": LONG}]),
        "claim of an ephemeral volume": template(
            volumes=[{"name": "e", **claim_template()}, {"name": "c", "persistentVolumeClaim": {"claimName": "p-e"}}]
        ),
    }


def _mounts() -> dict[str, Template]:
    def mounts(*given: dict[str, Any], **fields: Any) -> Template:
        volumes = [{"name": "v"}, {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
        return template(container(volumeMounts=list(given), **fields), volumes=volumes)

    mount = {"name": "v", "mountPath": "/a"}
    return {
        "mount without volume": mounts({"name": "x", "mountPath": "/x"}),
        "mount empty": mounts({"name": "", "mountPath": ""}),
        "mount paths equal": mounts(mount, mount),
        "mount sub paths": mounts({**mount, "subPath": "/b", "subPathExpr": "../c"}),
        "mount propagation": mounts({**mount, "mountPropagation": "Both"}),
        "mount bidirectional": mounts({**mount, "mountPropagation": "Bidirectional"}),
        "mount recursive": mounts({**mount, "recursiveReadOnly": "Enabled", "mountPropagation": "HostToContainer"}),
        "mount recursive word": mounts({**mount, "recursiveReadOnly": "Yes"}),
        "device": mounts(
            mount,
            {"name": "c", "mountPath": "/c"},
            volumeDevices=[
                {"name": "v", "devicePath": "/a"},
                {"name": "c", "devicePath": "/../b"},
                {"name": "c", "devicePath": ""},
                {"name": "x", "devicePath": ""},
                {"name": "", "devicePath": "/d"},
            ],
        ),
    }


def _security() -> dict[str, Template]:
    contexts: dict[str, dict[str, Any]] = {
        "ids": {"runAsUser": -1, "runAsGroup": 2**31},
        "proc mount": {"procMount": "Open"},
        "proc mount empty": {"procMount": ""},
        "proc mount unmasked": {"procMount": "Unmasked"},
        "escalation": {
            "allowPrivilegeEscalation": False,
            "privileged": True,
            "capabilities": {"add": ["CAP_SYS_ADMIN", "SYS_ADMIN"]},
        },
        "seccomp type": {"seccompProfile": {"type": ""}},
        "seccomp unknown": {"seccompProfile": {"type": "x", "localhostProfile": "a"}},
        "seccomp local": {"seccompProfile": {"type": "Localhost"}},
        "seccomp path": {"seccompProfile": {"type": "Localhost", "localhostProfile": "/a/.."}},
        "apparmor": {"appArmorProfile": {"type": ""}},
        "apparmor unknown": {"appArmorProfile": {"type": "x"}},
        "apparmor local": {"appArmorProfile": {"type": "Localhost"}},
        "apparmor padded": {"appArmorProfile": {"type": "Localhost", "localhostProfile": " "}},
        "apparmor empty": {"appArmorProfile": {"type": "Localhost", "localhostProfile": ""}},
        "apparmor long": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a" * 4096}},
        "apparmor not local": {"appArmorProfile": {"type": "Unconfined", "localhostProfile": "a"}},
        "windows names": {
            "windowsOptions": {"gmsaCredentialSpecName": "A", "gmsaCredentialSpec": "", "runAsUserName": ""}
        },
        "windows user": {"windowsOptions": {"runAsUserName": "a\\b\\c"}},
        "windows control": {"windowsOptions": {"runAsUserName": "a\u0007"}},
        "windows domain": {"windowsOptions": {"runAsUserName": ".a b\\.."}},
        "windows characters": {"windowsOptions": {"runAsUserName": "a@b"}},
        "windows long": {"windowsOptions": {"runAsUserName": "a" * 105}},
        "windows no user": {"windowsOptions": {"runAsUserName": "A\\"}},
        "windows host process": {"windowsOptions": {"hostProcess": True}},
    }
    pods: dict[str, dict[str, Any]] = {
        "ids": {"runAsUser": -1, "runAsGroup": 2**31, "fsGroup": -1, "supplementalGroups": [1, -1]},
        "sysctls": {
            "sysctls": [
                {"name": "", "value": ""},
                {"name": "A", "value": ""},
                {"name": "a.b", "value": "1"},
                {"name": "a.b", "value": "2"},
            ]
        },
        "policies": {"fsGroupChangePolicy": "x", "supplementalGroupsPolicy": "y", "seLinuxChangePolicy": "z"},
        "profiles": {"seccompProfile": {"type": "x"}, "appArmorProfile": {"type": "x"}},
        "windows host process": {"windowsOptions": {"hostProcess": True}},
    }
    host_sysctls = [
        {"name": "net.a", "value": ""},
        {"name": "kernel.shmmax", "value": ""},
        {"name": "net/b.c", "value": ""},
    ]
    return {
        **{f"container security: {name}": with_container(securityContext=given) for name, given in contexts.items()},
        **{f"pod security: {name}": template(securityContext=given) for name, given in pods.items()},
        "sysctls of the host": template(securityContext={"sysctls": host_sysctls}, hostNetwork=True, hostIPC=True),
        "shared processes": template(hostPID=True, shareProcessNamespace=True),
        "host process differs": template(
            container("a", securityContext={"windowsOptions": {"hostProcess": True}}),
            container("b"),
            securityContext={"windowsOptions": {"hostProcess": False}},
            hostNetwork=True,
        ),
        "own users": template(
            container(volumeDevices=[{"name": "c", "devicePath": "/c"}]),
            volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}],
            hostUsers=False,
            hostNetwork=True,
            hostPID=True,
            hostIPC=True,
        ),
        "os unknown": template(os={"name": "beos"}),
        "os empty": template(os={}),
        "linux with windows options": template(
            container(securityContext={"windowsOptions": {}}),
            securityContext={"windowsOptions": {}},
            os={"name": "linux"},
        ),
        "windows with linux options": template(
            container(
                securityContext={
                    "runAsUser": 1,
                    "privileged": False,
                    "capabilities": {},
                    "seLinuxOptions": {},
                    "procMount": "Default",
                    "allowPrivilegeEscalation": False,
                }
            ),
            securityContext={
                "fsGroup": 1,
                "runAsUser": 1,
                "sysctls": [{"name": "a", "value": ""}],
                "seLinuxOptions": {},
            },
            os={"name": "windows"},
            hostPID=True,
            hostUsers=True,
            shareProcessNamespace=False,
            resources={"limits": {"cpu": "1"}},
        ),
    }


def _scheduling() -> dict[str, Template]:
    expressions = [
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["b"]},
        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
        {"key": "a b", "operator": "Is"},
        {"key": "a", "operator": "In", "values": ["b c"]},
    ]
    fields = [
        {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
        {"key": "metadata.uid", "operator": "Exists"},
        {"key": "metadata.name", "operator": "In", "values": ["A"]},
    ]
    selector = {"matchLabels": {"a b": "c d"}, "matchExpressions": [*expressions[:2], expressions[3], expressions[4]]}
    terms = [
        {"topologyKey": ""},
        {"topologyKey": "a b", "labelSelector": selector, "namespaceSelector": selector, "namespaces": ["A", "b"]},
        {"topologyKey": "z", "matchLabelKeys": ["a"], "mismatchLabelKeys": ["b"]},
        {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a b", "c"], "mismatchLabelKeys": ["c"]},
    ]
    return {
        "node affinity": template(
            affinity={
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions, "matchFields": fields}]},
                    PREFERRED: [
                        {"weight": 0, "preference": {"matchExpressions": expressions}},
                        {"weight": 101, "preference": {"matchFields": fields}},
                    ],
                }
            }
        ),
        "node affinity empty": template(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
        "pod affinity": template(affinity={"podAffinity": {REQUIRED: terms}}),
        "pod anti affinity": template(
            affinity={
                "podAntiAffinity": {
                    REQUIRED: terms[:2],
                    PREFERRED: [{"weight": 0, "podAffinityTerm": term} for term in terms],
                }
            }
        ),
        "tolerations": template(
            tolerations=[
                {},
                {"key": "a b", "operator": "Equal"},
                {"key": "a", "operator": "Foo"},
                {"key": "a", "operator": "Exists", "value": "b"},
                {"key": "a", "value": "b c"},
                {"key": "a", "effect": "Foo"},
                {"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"},
                {"operator": "Equal", "value": "x"},
            ]
        ),
        "spread": template(
            topologySpreadConstraints=[
                {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "", "minDomains": 0},
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1},
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "x"},
                {
                    "maxSkew": 1,
                    "topologyKey": "y",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "nodeAffinityPolicy": "",
                    "labelSelector": selector,
                    "matchLabelKeys": ["a b"],
                },
                {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]},
            ]
        ),
        "spread keys in selector": template(
            topologySpreadConstraints=[
                {
                    "maxSkew": 1,
                    "topologyKey": "y",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {
                        "matchLabels": {"app": "x"},
                        "matchExpressions": [{"key": "app", "operator": "Exists"}],
                    },
                    "matchLabelKeys": ["app"],
                }
            ]
        ),
        "gates": template(
            readinessGates=[{"conditionType": ""}, {"conditionType": "a b"}],
            schedulingGates=[{"name": "a"}, {"name": "a"}, {"name": ""}],
        ),
        "gated on a node": template(schedulingGates=[{"name": "a"}], nodeName="n"),
        "node selector": template(nodeSelector={"a b": "c d"}),
        "preemption": template(preemptionPolicy="Always"),
        "preemption empty": template(preemptionPolicy=""),
    }


def _network_and_names() -> dict[str, Template]:
    return {
        "dns policy": template(dnsPolicy="Cluster"),
        "dns none": template(dnsPolicy="None"),
        "dns none without servers": template(dnsPolicy="None", dnsConfig={"searches": ["a"]}),
        "dns config": template(
            dnsConfig={
                "nameservers": ["1.1.1.1", "x", "1.1.1.256", "::g"],
                "searches": ["A", *("a" for _ in range(32))],
                "options": [{"value": "a"}],
            }
        ),
        "dns searches": template(dnsConfig={"searches": ["a" * 250 for _ in range(9)]}),
        "host aliases": template(hostAliases=[{"ip": "x", "hostnames": ["A"]}, {"ip": ""}]),
        "host names": template(hostname="A.b", subdomain="c_d"),
        "restart policy": template(restartPolicy="Sometimes"),
        "deadline": template(activeDeadlineSeconds=0),
        "deadline too far": template(activeDeadlineSeconds=2**31),
        "names": template(serviceAccountName="A", nodeName="B", priorityClassName="C D", runtimeClassName=""),
        "grace period and sleep": template(
            container(lifecycle={"preStop": {"sleep": {"seconds": 1}}}), terminationGracePeriodSeconds=0
        ),
        "several at once": template(
            container("A", "", ports=[{"containerPort": 0}], env=[{"name": ""}]),
            container("A", "x", volumeMounts=[{"name": "n", "mountPath": ""}]),
            restartPolicy="x",
            dnsPolicy="y",
        ),
    }


def _wrong_types() -> dict[str, Template]:
    return {
        "type: containers": {"spec": {"containers": "a"}},
        "type: container": {"spec": {"containers": ["a"]}},
        "type: name": {"spec": {"containers": [{"name": 1}]}},
        "type: labels": template(meta={"labels": ["a"]}),
        "type: label": template(meta={"labels": {"a": 1}}),
        "type: bool": template(hostNetwork="yes"),
        "type: int": template(terminationGracePeriodSeconds="30"),
        "type: pointer bool": with_container(securityContext={"privileged": 1}),
        "type: port": with_container(ports=[{"containerPort": "http"}]),
        "type: port fraction": with_container(ports=[{"containerPort": 80.5}]),
        "type: port too big": with_container(ports=[{"containerPort": 2**31}]),
        "type: quantity": with_container(resources={"limits": {"cpu": "abc"}}),
        "type: empty quantity": with_container(resources={"limits": {"cpu": ""}}),
        "type: quantity bool": with_container(resources={"limits": {"cpu": True}}),
        "type: port of a probe": with_container(livenessProbe={"httpGet": {"port": 80.5}}),
        "type: spec": {"spec": []},
        "type: args": with_container(args=[1]),
        "type: volumes": template(volumes={"name": "a"}),
    }


def refused_cases() -> dict[str, Template]:
    groups = (
        _metadata, _containers, _ports, _environment, _resources, _probes, _volumes, _mounts, _security, _scheduling,
        _network_and_names, _wrong_types,
    )  # fmt: skip
    return {name: case for group in groups for name, case in group().items()}
