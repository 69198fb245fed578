"""What the server has to offer: the documents from which clients learn groups, versions, kinds and verbs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import (
    ActionSubresource,
    KindDescription,
    ObjectSubresource,
    Registry,
    StreamSubresource,
    Subresource,
    ViewSubresource,
)
from kruise.local.apicore.serving import VERSION
from kruise.local.server.access import REVIEWS, ReviewKind

# In the order in which clients should look for a kind of unclear group.
_GROUP_ORDER: Final = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
NATIVE_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
# Kinds that lack a verb.
_WITHOUT: Final[Mapping[str, frozenset[str]]] = {"namespaces": frozenset({"deletecollection"})}
_PART_VERBS: Final = ("get", "patch", "update")
_PART_VERBS_OF: Final[Mapping[str, tuple[str, ...]]] = {"namespaces/finalize": ("update",)}
# Group, version and kind of what a subresource takes or gives, where that is not the object itself.
_PART_KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "binding": ("", "v1", "Binding"),
}
NOT_SUPPORTED: Final[Mapping[str, str]] = {
    "attach": "PodAttachOptions",
    "exec": "PodExecOptions",
    "portforward": "PodPortForwardOptions",
}
"""Subresources of pods that clients know to be there, with the kind of their options; answered with a clear no."""
_KUBE_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_document() -> Json:
    return {**VERSION, "emulationMajor": "1", "emulationMinor": "34", "minCompatibilityMajor": "1"} | {
        "minCompatibilityMinor": "33"
    }


def verbs_of(kind: KindDescription) -> tuple[str, ...]:
    if kind.custom:
        return CUSTOM_VERBS
    without = _WITHOUT.get(kind.group_resource, frozenset())
    return tuple(verb for verb in NATIVE_VERBS if verb not in without)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as Kubernetes prefers them: stable before beta before alpha, newer before older."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), version)


class Discovery:
    """The documents for the kinds of a registry, as they are at the moment of asking."""

    def __init__(self, registry: Registry, address: str) -> None:
        self._registry = registry
        self._address = address

    def groups(self) -> dict[str, list[str]]:
        """Named groups in order, each with its versions, best first."""
        found: dict[str, set[str]] = {}
        for kind in self._registry:
            found.setdefault(kind.group, set()).update(kind.versions)
        for review in REVIEWS:
            found.setdefault(review.group, set()).add(review.version)
        found.pop("", None)
        native = [group for group in _GROUP_ORDER if group in found]
        others = sorted(group for group in found if group not in _GROUP_ORDER)
        return {group: sorted(found[group], key=version_priority) for group in (*native, *others)}

    def versions(self) -> Json:
        """`/api`"""
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def group_list(self) -> Json:
        """`/apis`"""
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(name, versions) for name, versions in self.groups().items()],
        }

    def group(self, name: str) -> Json | None:
        """`/apis/<group>`"""
        versions = self.groups().get(name)
        return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}

    def resources(self, group: str, version: str) -> Json | None:
        """`/api/v1` and `/apis/<group>/<version>`"""
        entries = [entry for kind in self._kinds(group, version) for entry in _entries(kind, version)]
        entries.extend(_review_entry(review) for review in _reviews(group, version))
        if not entries:
            return None
        entries.sort(key=lambda entry: str(entry["name"]))
        about: Json = {"kind": "APIResourceList"}
        if group:
            about["apiVersion"] = "v1"
        return {**about, "groupVersion": f"{group}/{version}" if group else version, "resources": entries}

    def aggregated(self, *, core: bool) -> Json:
        """`/api` or `/apis` in one document."""
        groups = {"": ["v1"]} if core else self.groups()
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [self._aggregated_group(name, versions) for name, versions in groups.items()],
        }

    def _aggregated_group(self, group: str, versions: list[str]) -> Json:
        shown = []
        for version in versions:
            kinds = [_aggregated_kind(kind, version) for kind in self._kinds(group, version)]
            kinds.extend(_aggregated_review(review) for review in _reviews(group, version))
            kinds.sort(key=lambda entry: str(entry["resource"]))
            shown.append({"version": version, "resources": kinds, "freshness": "Current"})
        return {"metadata": {"name": group} if group else {}, "versions": shown}

    def paths(self) -> Json:
        """`/`"""
        paths = ["/api", "/api/v1", "/apis", "/apis/"]
        for group, versions in self.groups().items():
            paths.append(f"/apis/{group}")
            paths.extend(f"/apis/{group}/{version}" for version in versions)
        paths.extend(("/healthz", "/healthz/ping", "/livez", "/livez/ping", "/readyz", "/readyz/ping"))
        paths.extend(("/openapi/v2", "/openapi/v3", "/version"))
        return {"paths": sorted(paths)}

    def _kinds(self, group: str, version: str) -> Iterable[KindDescription]:
        return (kind for kind in self._registry if kind.group == group and version in kind.versions)


def etag(document: bytes) -> str:
    return f'"{hashlib.sha512(document).hexdigest().upper()}"'


def health(name: str, *, verbose: bool) -> bytes:
    return f"[+]ping ok\n{name} check passed\n".encode() if verbose else b"ok"


def _group(name: str, versions: list[str]) -> Json:
    shown = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": shown, "preferredVersion": shown[0]}


def parts_of(kind: KindDescription) -> dict[str, Subresource | None]:
    """All subresources by name, in order; None for those that the server answers by itself, or does not support."""
    parts: dict[str, Subresource | None] = dict(kind.subresources)
    if kind.has_status and "status" not in parts:
        parts["status"] = ObjectSubresource(prepare=lambda new, old: new)
    if kind.group_resource == "serviceaccounts":
        parts["token"] = None
    if kind.group_resource == "pods":
        parts.setdefault("log", StreamSubresource())
        parts.update(dict.fromkeys(NOT_SUPPORTED))
    return dict(sorted(parts.items()))


def _part(kind: KindDescription, name: str, part: Subresource | None) -> tuple[tuple[str, str, str], tuple[str, ...]]:
    """What a subresource answers with (group, version, kind), and its verbs."""
    if name == "token" and part is None:
        return _PART_KINDS[name], ("create",)
    if part is None:
        return ("", "", NOT_SUPPORTED[name]), ("create", "get")
    if isinstance(part, StreamSubresource):
        return ("", "", kind.kind), ("get",)
    group, version, shown = _PART_KINDS.get(name, ("", "", kind.kind))
    if isinstance(part, ActionSubresource):
        return (group, version if group else "", shown), ("create",)
    if isinstance(part, ViewSubresource):
        return (group, version, shown), _PART_VERBS
    return ("", "", kind.kind), _PART_VERBS_OF.get(f"{kind.plural}/{name}", _PART_VERBS)


def _entries(kind: KindDescription, version: str) -> list[Json]:
    entry: Json = {
        "name": kind.plural,
        "singularName": _singular(kind),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(verbs_of(kind)),
    }
    _add_names(entry, kind)
    entries = [entry]
    for name, part in parts_of(kind).items():
        (group, part_version, shown), verbs = _part(kind, name, part)
        more: Json = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
        if group:
            more |= {"group": group, "version": part_version}
        entries.append({**more, "kind": shown, "verbs": list(verbs)})
    return entries


def _aggregated_kind(kind: KindDescription, version: str) -> Json:
    custom = kind.custom
    entry: Json = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.group if custom else "", version if custom else "", kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": _singular(kind),
        "verbs": list(verbs_of(kind)),
    }
    _add_names(entry, kind)
    parts = []
    for name, part in parts_of(kind).items():
        (group, part_version, shown), verbs = _part(kind, name, part)
        if custom and not group:
            group, part_version = kind.group, version
        parts.append(
            {"subresource": name, "responseKind": _response_kind(group, part_version, shown), "verbs": list(verbs)}
        )
    if parts:
        entry["subresources"] = parts
    return entry


def _add_names(entry: Json, kind: KindDescription) -> None:
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)


def _response_kind(group: str, version: str, kind: str) -> Json:
    return {"group": group, "version": version, "kind": kind}


def _singular(kind: KindDescription) -> str:
    return kind.singular or kind.kind.lower()


def _reviews(group: str, version: str) -> list[ReviewKind]:
    return [review for review in REVIEWS if (review.group, review.version) == (group, version)]


def _review_entry(review: ReviewKind) -> Json:
    return {
        "name": review.plural,
        "singularName": review.kind.lower(),
        "namespaced": review.namespaced,
        "kind": review.kind,
        "verbs": ["create"],
    }


def _aggregated_review(review: ReviewKind) -> Json:
    return {
        "resource": review.plural,
        "responseKind": _response_kind("", "", review.kind),
        "scope": "Namespaced" if review.namespaced else "Cluster",
        "singularResource": review.kind.lower(),
        "verbs": ["create"],
    }
