"""The accounts, roles and bindings of an installation: what `grants` says, as manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kruise.manager.installation import grants
from kruise.manager.installation.grants import Grant
from kruise.manager.installation.templating import IsSet, Not, Value, When, gate

Manifest = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"

MANAGER = "kruise-manager"
DAEMON = "kruise-daemon"
JOURNAL = "kruise-journal"
"""An account that nobody runs as: commands of admins ask the manager with short-lived tokens of it. It has no rights:
nobody can limit what a token is made for, so whoever may have one for the journal may have one for the API server."""


def _rule(group: Any, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Manifest:
    rule = {
        "apiGroups": [group] if isinstance(group, str) else group,
        "resources": list(resources),
        "verbs": list(verbs),
    }
    return {**rule, "resourceNames": list(names)} if names else rule


def _granted(granted: Iterable[Grant]) -> list[Any]:
    """Rules, as templates: those that only some gates need are there only with these."""
    found: list[Any] = []
    for grant in granted:
        group = grant.group if grant.groups is None else grant.groups
        rule: Any = _rule(group, grant.resources, grant.verbs, grant.names)
        if grant.unless:
            rule = When(Not(gate(*grant.unless)), rule)
        found.append(When(gate(*grant.gates), rule) if grant.gates else rule)
    return found


def _foreign_rules(definitions: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """For kinds that other packages bring: all of their own groups."""
    every = (*grants.READ, *grants.CREATE, *grants.DELETE, *grants.CHANGE)
    found: list[Manifest] = []
    for definition in definitions:
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        if group not in (grants.OURS, grants.POLICY):
            found.append(_rule(group, [plural], every))
            found.append(_rule(group, [f"{plural}/status"], grants.STATUS))
            found.append(_rule(group, [f"{plural}/finalizers"], grants.FINALIZERS))
    return found


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


def is_of_daemons(manifest: Manifest) -> bool:
    """A role or a binding of theirs: nothing that runs needs it where there are none."""
    return manifest["kind"] != "ServiceAccount" and str(manifest["metadata"]["name"]).startswith(f"{DAEMON}-")


def manifests(
    namespace: Any, daemon_namespace: str, definitions: Sequence[Mapping[str, Any]] = (), secret: str = ""
) -> list[Manifest]:
    """Accounts, roles and bindings, as templates: what only some gates need is there only with these."""
    annotations = When(IsSet("serviceAccount.annotations"), Value("serviceAccount.annotations"))
    return [
        _account(MANAGER, namespace, annotations),
        _account(DAEMON, namespace, annotations),
        _role("ClusterRole", "kruise-manager-role", [*_granted(grants.MANAGER), *_foreign_rules(definitions)]),
        _binding("ClusterRole", "kruise-manager-role", MANAGER, namespace),
        _role("Role", "kruise-leader-election-role", _granted(grants.LEADER), namespace),
        _binding("Role", "kruise-leader-election-role", MANAGER, namespace, namespace),
        _role("Role", "kruise-webhook-role", _granted(grants.webhook(secret)), namespace),
        _binding("Role", "kruise-webhook-role", MANAGER, namespace, namespace),
        _role("ClusterRole", "kruise-daemon-role", _granted(grants.DAEMON)),
        _binding("ClusterRole", "kruise-daemon-role", DAEMON, namespace),
        _role("Role", "kruise-daemon-secret-role", _granted(grants.DAEMON_SECRETS), daemon_namespace),
        _binding("Role", "kruise-daemon-secret-role", DAEMON, namespace, daemon_namespace),
        _account(JOURNAL, namespace),
        _role("Role", "kruise-journal-reader", _granted(grants.journal_reader(JOURNAL)), namespace),
    ]
