"""What people may do with our kinds: parts of Kubernetes' own roles `view`, `edit` and `admin` (MGR section 12).
Without them, whoever has such a role in a namespace could do everything there but use our kinds. Pure.

Objects without a namespace are not for those who edit one: what is injected into pods, and what is found on nodes, is a
matter of whoever runs the cluster. Copies of Secrets and ConfigMaps are one of admins, as people know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_OF_ADMINS = "resourcedistributions"

Manifest = dict[str, Any]


def manifests(definitions: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    kinds = [definition["spec"] for definition in definitions]
    own = [spec for spec in kinds if spec["scope"] == "Namespaced"]
    scaled = [spec for spec in own if any("scale" in version.get("subresources", {}) for version in spec["versions"])]
    of_admins = [spec for spec in kinds if spec["names"]["plural"] == _OF_ADMINS]
    return [
        _role("view", [*_rules(kinds, _READ), *_rules(scaled, ("get",), "/scale")]),
        _role("edit", [*_rules(own, _WRITE), *_rules(scaled, ("patch", "update"), "/scale")]),
        _role("admin", _rules(of_admins, _WRITE)),
    ]


def _role(into: str, rules: list[Manifest]) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"aggregate-kruise-{into}",
            "labels": {f"rbac.authorization.k8s.io/aggregate-to-{into}": "true"},
        },
        "rules": rules,
    }


def _rules(kinds: Sequence[Mapping[str, Any]], verbs: Sequence[str], subresource: str = "") -> list[Manifest]:
    groups: dict[str, list[str]] = {}
    for spec in kinds:
        groups.setdefault(spec["group"], []).append(f"{spec['names']['plural']}{subresource}")
    return [{"apiGroups": [group], "resources": names, "verbs": list(verbs)} for group, names in groups.items()]
