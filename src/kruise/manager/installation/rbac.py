"""What the manager and the node daemon may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.manager.installation.templating import IsSet, Value, When, gate

Manifest = dict[str, Any]

_FULL = ("create", "delete", "get", "list", "patch", "update", "watch")
_READ = ("get", "list", "watch")
_STATUS = ("get", "patch", "update")
_RBAC = "rbac.authorization.k8s.io"

MANAGER = "kruise-manager"
DAEMON = "kruise-daemon"
JOURNAL = "kruise-journal"
"""An account that nobody runs as: commands of admins ask the manager with short-lived tokens of it. It has no rights:
nobody can limit what a token is made for, so whoever may have one for the journal may have one for the API server."""

# Kinds of ours on which the manager lacks some verbs: it never creates or deletes what only users own.
_NARROWED = {
    "resourcedistributions": _READ,
    "workloadspreads": ("get", "list", "patch", "update", "watch"),
    "ephemeraljobs": ("delete", "get", "list", "patch", "update", "watch"),
}
_KINDS = (
    "advancedcronjobs",
    "broadcastjobs",
    "clonesets",
    "containerrecreaterequests",
    "daemonsets",
    "ephemeraljobs",
    "imagelistpulljobs",
    "imagepulljobs",
    "nodeimages",
    "nodepodprobes",
    "persistentpodstates",
    "podprobemarkers",
    "resourcedistributions",
    "sidecarsets",
    "statefulsets",
    "uniteddeployments",
    "workloadspreads",
)
_GROUP = "apps.kruise.io"
_POLICY_GROUP = "policy.kruise.io"


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Manifest:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _foreign_rules(definitions: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """For kinds that other packages bring: all of their own groups."""
    found: list[Manifest] = []
    for definition in definitions:
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        if group not in (_GROUP, _POLICY_GROUP):
            found.append(_rule(group, [plural], _FULL))
            found.append(_rule(group, [f"{plural}/status"], _STATUS))
            found.append(_rule(group, [f"{plural}/finalizers"], ["update"]))
    return found


def _manager_rules(definitions: Sequence[Mapping[str, Any]]) -> list[Any]:
    plain = [kind for kind in _KINDS if kind not in _NARROWED]
    return [
        _rule("", ["pods", "persistentvolumeclaims", "configmaps", "events"], _FULL),
        _rule("", ["namespaces", "nodes", "persistentvolumes", "services"], _READ),
        _rule("", ["pods/status", "pods/ephemeralcontainers", "pods/resize"], _STATUS),
        _rule("", ["pods/eviction", "pods/binding"], ["create"]),
        When(
            # Copies of Secrets in other namespaces; copies of pull secrets for the daemons.
            gate("ResourceDistributionGate", "ImagePullJobGate"),
            _rule("", ["secrets"], ["create", "delete", "get", "list", "update", "patch", "watch"]),
        ),
        _rule("storage.k8s.io", ["storageclasses"], _READ),
        When(
            # Whether anything is in what is to be deleted, whatever kind it is of.
            gate("ResourcesDeletionProtection"),
            {"apiGroups": Value("installation.roleListGroups"), "resources": ["*"], "verbs": ["list"]},
        ),
        _rule("*", ["*/scale"], _READ),
        _rule(
            "admissionregistration.k8s.io",
            # A manager that comes back to an installation that has lost one makes it again.
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            ["create", "get", "list", "patch", "update", "watch"],
        ),
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get", "list", "patch", "update", "watch"]),
        _rule("apps", ["controllerrevisions", "deployments", "statefulsets"], _FULL),
        _rule("apps", ["deployments/status", "statefulsets/status"], _STATUS),
        _rule("apps", ["daemonsets", "replicasets"], _READ),
        _rule("batch", ["jobs"], _FULL),
        _rule("batch", ["jobs/status"], _STATUS),
        _rule(_GROUP, plain, _FULL),
        *(_rule(_GROUP, [kind], verbs) for kind, verbs in _NARROWED.items()),
        _rule(_GROUP, [f"{kind}/status" for kind in _KINDS], _STATUS),
        _rule(_GROUP, [f"{kind}/finalizers" for kind in _KINDS], ["update"]),
        _rule(_POLICY_GROUP, ["podunavailablebudgets"], _FULL),
        _rule(_POLICY_GROUP, ["podunavailablebudgets/status"], _STATUS),
        _rule(_POLICY_GROUP, ["podunavailablebudgets/finalizers"], ["update"]),
        # Who asks for the journal, and what they may see.
        _rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        _rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
        *_foreign_rules(definitions),
    ]


def _journal_reader_rules() -> list[Manifest]:
    """For people: to find the manager, to reach it through the API server, and to have a token of the account."""
    return [
        _rule("coordination.k8s.io", ["leases"], ["get"]),
        _rule("", ["pods/proxy"], ["get"]),
        {**_rule("", ["serviceaccounts/token"], ["create"]), "resourceNames": [JOURNAL]},
    ]


def _daemon_rules() -> list[Manifest]:
    return [
        _rule(_GROUP, ["nodeimages"], ["get", "list", "patch", "update", "watch"]),
        _rule(_GROUP, ["containerrecreaterequests", "nodepodprobes"], _READ),
        _rule(
            _GROUP,
            ["nodeimages/status", "containerrecreaterequests/status", "nodepodprobes/status"],
            _STATUS,
        ),
        _rule("", ["pods"], _READ),
        _rule("", ["pods/status"], _STATUS),
        _rule("", ["events"], ["create", "patch", "update"]),
    ]


def _account(name: str, namespace: Any, annotations: Any = None) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _role(kind: str, name: str, rules: list[Any], namespace: Any = "") -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _binding(kind: str, role: str, account: str, account_namespace: Any, namespace: Any = "") -> Manifest:
    name = role.removesuffix("-role") + "-rolebinding"
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": name, "namespace": namespace} if namespace else {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": account_namespace}],
    }


def hook_manifests(account: str, namespace: Any, definitions: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """For whoever only looks whether there are objects of ours."""
    role = f"{account}-role"
    plurals: dict[str, list[str]] = {}
    for definition in definitions:
        plurals.setdefault(definition["spec"]["group"], []).append(definition["spec"]["names"]["plural"])
    rules = [_rule(group, names, ["list"]) for group, names in plurals.items()]
    rules.append(_rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get"]))
    return [
        _account(account, namespace),
        _role("ClusterRole", role, rules),
        _binding("ClusterRole", role, account, namespace),
    ]


def manifests(
    namespace: Any, daemon_namespace: str, definitions: Sequence[Mapping[str, Any]] = (), secret: str = ""
) -> list[Manifest]:
    """Accounts, roles and bindings, as templates: what only some gates need is there only with these."""
    leases = [
        _rule("coordination.k8s.io", ["leases"], ["create", "get", "list", "patch", "update", "watch"]),
        _rule("", ["configmaps"], ["create", "get", "list", "patch", "update", "watch"]),
        _rule("", ["events"], ["create", "patch"]),
    ]
    # A watch of one object by name is a list of it, too. Whoever deleted it wants it made again.
    certificates = [
        _rule("", ["secrets"], ["create"]),
        {**_rule("", ["secrets"], ["get", "list", "patch", "update", "watch"]), "resourceNames": [secret]},
    ]
    annotations = When(IsSet("serviceAccount.annotations"), Value("serviceAccount.annotations"))
    return [
        _account(MANAGER, namespace, annotations),
        _account(DAEMON, namespace, annotations),
        _role("ClusterRole", "kruise-manager-role", _manager_rules(definitions)),
        _binding("ClusterRole", "kruise-manager-role", MANAGER, namespace),
        _role("Role", "kruise-leader-election-role", leases, namespace),
        _binding("Role", "kruise-leader-election-role", MANAGER, namespace, namespace),
        _role("Role", "kruise-webhook-role", certificates, namespace),
        _binding("Role", "kruise-webhook-role", MANAGER, namespace, namespace),
        _role("ClusterRole", "kruise-daemon-role", _daemon_rules()),
        _binding("ClusterRole", "kruise-daemon-role", DAEMON, namespace),
        _role("Role", "kruise-daemon-secret-role", [_rule("", ["secrets"], _READ)], daemon_namespace),
        _binding("Role", "kruise-daemon-secret-role", DAEMON, namespace, daemon_namespace),
        _account(JOURNAL, namespace),
        _role("Role", "kruise-journal-reader", _journal_reader_rules(), namespace),
    ]
