"""OpenKruise 1.9 as it is installed, as recordings of it and its bundle show what is there, or an older release, which
has one version of each definition but for StatefulSets. Nothing of it works: images are names on simulated nodes, and
`STAND_IN` on real ones.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.installed import DEFINITIONS

Json = dict[str, Any]

NAMESPACE = "kruise-system"
LATEST, OLDEST = "1.9", "1.5"
"""Releases that can be taken over."""
IMAGES = {LATEST: "openkruise/kruise-manager:v1.9.0", OLDEST: "openkruise/kruise-manager:v1.5.4"}
STAND_IN = dict.fromkeys(
    ("/manager", "/kruise-daemon"),
    "#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 3600 & wait $!; done\n",
)
"""Its programs in an image for real nodes: they run, and do nothing."""
ONE_VERSION = {
    "clonesets",
    "containerrecreaterequests",
    "persistentpodstates",
    "podunavailablebudgets",
    "resourcedistributions",
    "uniteddeployments",
    "workloadspreads",
}
"""Kinds that release 1.9.0 serves in v1alpha1 only (observed/crd-differences.yaml)."""
CONVERTED = {"statefulsets", "daemonsets", "sidecarsets"}
"""Those with conversion strategy Webhook (observed/conversion.yaml)."""
BOTH = ["v1alpha1", "v1beta1"]


# What is installed


def is_only_alpha(plural: str, release: str = LATEST) -> bool:
    """Whether the release serves a kind in v1alpha1 alone, or has no other version to speak it in."""
    return plural in ONE_VERSION if release == LATEST else plural != "statefulsets"


def definitions(release: str = LATEST) -> list[Json]:
    """Ours, without the versions that the release lacks, and converted as there."""
    found = []
    for definition in DEFINITIONS.values():
        made = copy.deepcopy(definition)
        made["metadata"] = {
            "name": definition["metadata"]["name"],
            "annotations": {"controller-gen.kubebuilder.io/version": "v0.16.5"},
        }
        spec, plural = made["spec"], made["spec"]["names"]["plural"]
        if is_only_alpha(plural, release):
            spec["versions"] = [{**one, "storage": True} for one in spec["versions"] if one["name"] == "v1alpha1"]
        if plural not in CONVERTED or len(spec["versions"]) == 1:
            spec["conversion"] = {"strategy": "None"}
        found.append(made)
    return found


_Entry = tuple[str, str, str, Sequence[str], Sequence[str], str]
"""Name, path, group, versions, operations, resource (observed/webhooks.yaml)."""
_WRITES = ["CREATE", "UPDATE"]
MUTATING: Sequence[_Entry] = (
    ("mpod.kb.io", "/mutate-pod", "", ["v1"], ["CREATE"], "pods"),
    (
        "madvancedcronjob.kb.io",
        "/mutate-apps-kruise-io-advancedcronjob",
        "apps.kruise.io",
        BOTH,
        _WRITES,
        "advancedcronjobs",
    ),
    ("mbroadcastjob.kb.io", "/mutate-apps-kruise-io-broadcastjob", "apps.kruise.io", BOTH, _WRITES, "broadcastjobs"),
    (
        "mcloneset.kb.io",
        "/mutate-apps-kruise-io-v1alpha1-cloneset",
        "apps.kruise.io",
        ["v1alpha1"],
        _WRITES,
        "clonesets",
    ),
    ("mdaemonset.kb.io", "/mutate-apps-kruise-io-daemonset", "apps.kruise.io", BOTH, _WRITES, "daemonsets"),
    ("msidecarset.kb.io", "/mutate-apps-kruise-io-sidecarset", "apps.kruise.io", BOTH, _WRITES, "sidecarsets"),
    ("mstatefulset.kb.io", "/mutate-apps-kruise-io-statefulset", "apps.kruise.io", BOTH, _WRITES, "statefulsets"),
    (
        "muniteddeployment.kb.io",
        "/mutate-apps-kruise-io-v1alpha1-uniteddeployment",
        "apps.kruise.io",
        ["v1alpha1"],
        _WRITES,
        "uniteddeployments",
    ),
)
VALIDATING: Sequence[_Entry] = (
    ("vpod.kb.io", "/validate-pod", "", ["v1"], ["UPDATE", "DELETE"], "pods"),
    (
        "vcloneset.kb.io",
        "/validate-apps-kruise-io-v1alpha1-cloneset",
        "apps.kruise.io",
        ["v1alpha1"],
        [*_WRITES, "DELETE"],
        "clonesets",
    ),
    ("vstatefulset.kb.io", "/validate-apps-kruise-io-statefulset", "apps.kruise.io", BOTH, _WRITES, "statefulsets"),
)
_OUTSIDE = {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]}


def _entries(rows: Sequence[_Entry], bundle: bytes) -> list[Json]:
    found = []
    for name, path, group, versions, operations, plural in rows:
        rule = {"apiGroups": [group], "apiVersions": versions, "operations": operations, "resources": [plural]}
        service = {"namespace": NAMESPACE, "name": "kruise-webhook-service", "path": path, "port": 443}
        client = {"service": service, "caBundle": base64.b64encode(bundle).decode()}
        entry: Json = {"name": name, "clientConfig": client, "rules": [{**rule, "scope": "*"}]}
        entry |= {"failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 10}
        entry["admissionReviewVersions"] = ["v1", "v1beta1"]
        if plural == "pods":
            entry["namespaceSelector"] = _OUTSIDE
        found.append(entry)
    return found


def certificates(now: datetime) -> dict[str, bytes]:
    """MGR-32, MGR-34: RSA keys, ten years."""
    name = "kruise-webhook-service.kruise-system.svc"
    ca_key, key = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook-cert-ca")])

    def signed(subject: x509.Name, public: rsa.RSAPublicKey, *extensions: x509.ExtensionType) -> bytes:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(authority).public_key(public)
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=30))
        builder = builder.not_valid_after(now + timedelta(days=3600))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def private(one: rsa.RSAPrivateKey) -> bytes:
        return one.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )

    ca_cert = signed(authority, ca_key.public_key(), x509.BasicConstraints(ca=True, path_length=None))
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.DNSName(name)])
    cert = signed(subject, key.public_key(), names, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]))
    pairs = {"ca-key.pem": private(ca_key), "ca-cert.pem": ca_cert}
    return {**pairs, "key.pem": private(key), "cert.pem": cert, "tls.key": private(key), "tls.crt": cert}


def installation(secret: Mapping[str, bytes], release: str = LATEST, sockets: str = "/run/k3s") -> list[Json]:
    """MGR section 11, the kustomize bundle, with two replicas; without webhook configurations. `sockets`: where nodes
    have their runtimes'."""
    label = {"control-plane": "controller-manager"}
    account = {"kind": "ServiceAccount", "name": "kruise-manager", "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kruise-manager-role"}
    manager = {
        "name": "manager",
        "image": IMAGES[release],
        "command": ["/manager"],
        "args": [
            "--enable-leader-election",
            "--metrics-addr=:8080",
            "--v=4",
            "--feature-gates=ImagePullJobGate=true,ResourceDistributionGate=true",
            "--rest-config-burst=100",
        ],
        "ports": [{"name": "webhook-server", "containerPort": 9876, "protocol": "TCP"}],
    }
    daemon = {
        "name": "daemon",
        "image": IMAGES[release],
        "command": ["/kruise-daemon"],
        "args": ["--v=4", "--addr=:10221", "--feature-gates=ImagePullJobGate=true,ResourceDistributionGate=true"],
        "volumeMounts": [{"name": "runtime-socket", "mountPath": "/hostvarrun", "readOnly": True}],
    }
    socket = {"name": "runtime-socket", "hostPath": {"path": sockets}}
    daemon_pod = {
        "hostNetwork": True,
        "containers": [daemon],
        "nodeSelector": {"disk": "ssd"},
        "volumes": [socket],
        "tolerations": [{"operator": "Exists"}],
    }

    def made(kind: str, name: str, version: str = "v1", namespace: str = "", **fields: Any) -> Json:
        metadata: Json = {"name": name, "namespace": namespace} if namespace else {"name": name}
        metadata |= {"labels": fields.pop("labels")} if "labels" in fields else {}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}

    rbac = "rbac.authorization.k8s.io/v1"
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    return [
        made("Namespace", NAMESPACE, labels=label),
        made("Namespace", "kruise-daemon-config", labels=label),
        made("ServiceAccount", "kruise-manager", namespace=NAMESPACE),
        made("ServiceAccount", "kruise-daemon", namespace=NAMESPACE),
        made("ClusterRole", "kruise-manager-role", rbac, rules=everything),
        made("ClusterRoleBinding", "kruise-manager-rolebinding", rbac, roleRef=role, subjects=[account]),
        made("ClusterRole", "kruise-certs-role", rbac, rules=everything),
        made(
            "ClusterRoleBinding",
            "kruise-certs-rolebinding",
            rbac,
            roleRef={**role, "name": "kruise-certs-role"},
            subjects=[account],
        ),
        made(
            "ClusterRoleBinding",
            "kruise-daemon-rolebinding",
            rbac,
            roleRef=role,  # not ours: a binding's role cannot be changed
            subjects=[{**account, "name": "kruise-daemon"}],
        ),
        made(
            "Service",
            "kruise-webhook-service",
            namespace=NAMESPACE,
            spec={"ports": [{"port": 443, "targetPort": 9876}], "selector": label},
        ),
        made(
            "Secret",
            "kruise-webhook-certs",
            namespace=NAMESPACE,
            data={key: base64.b64encode(value).decode() for key, value in secret.items()},
        ),
        made(
            "Deployment",
            "kruise-controller-manager",
            "apps/v1",
            NAMESPACE,
            labels=label,
            spec={
                "replicas": 2,
                "selector": {"matchLabels": label},
                "template": {"metadata": {"labels": label}, "spec": {"containers": [manager]}},
            },
        ),
        made(
            "DaemonSet",
            "kruise-daemon",
            "apps/v1",
            NAMESPACE,
            spec={
                "selector": {"matchLabels": {"control-plane": "daemon"}},
                "template": {"metadata": {"labels": {"control-plane": "daemon"}}, "spec": daemon_pod},
            },
        ),
    ]


def configurations(bundle: bytes) -> list[Json]:
    found = []
    for kind, name, rows in (
        ("MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration", MUTATING),
        ("ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration", VALIDATING),
    ):
        entries = _entries(rows, bundle)
        template = [{**one, "clientConfig": {"service": one["clientConfig"]["service"]}} for one in entries]
        metadata = {"name": name, "annotations": {"template": json.dumps(template)}}
        version = "admissionregistration.k8s.io/v1"
        found.append({"apiVersion": version, "kind": kind, "metadata": metadata, "webhooks": entries})
    return found
