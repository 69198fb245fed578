"""What the API server refuses about roles and role bindings."""

from __future__ import annotations

from typing import Final

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct
from kruise.local.apicore import names
from kruise.local.kinds.default_values import RBAC_GROUP

_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def role(new: Struct, old: Struct | None) -> Errors:
    yield from _rules(new, namespaced=True)


def cluster_role(new: Struct, old: Struct | None) -> Errors:
    yield from _rules(new, namespaced=False)
    aggregation = new.get("aggregationRule")
    if aggregation is None:
        return
    path = Path("aggregationRule").child("clusterRoleSelectors")
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for position, selector in enumerate(selectors):
        yield from common.label_selector(path.at(position), selector)


def _rules(obj: Struct, *, namespaced: bool) -> Errors:
    for position, rule in enumerate(obj.get("rules") or ()):
        path = Path("rules").at(position)
        urls = rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(path.child("verbs"), "verbs must contain at least one value")
        if urls:
            where = path.child("nonResourceURLs")
            if namespaced:
                yield invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                yield invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs")
            continue
        if not rule.get("apiGroups"):
            yield required(path.child("apiGroups"), "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(path.child("resources"), "resource rules must supply at least one resource")


def role_binding(new: Struct, old: Struct | None) -> Errors:
    yield from _binding(new, old, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(new: Struct, old: Struct | None) -> Errors:
    yield from _binding(new, old, ("ClusterRole",), namespaced=False)


def _binding(new: Struct, old: Struct | None, kinds: tuple[str, ...], *, namespaced: bool) -> Errors:
    reference, path = new["roleRef"], Path("roleRef")
    if reference["apiGroup"] != RBAC_GROUP:
        yield not_supported(path.child("apiGroup"), reference["apiGroup"], (RBAC_GROUP,))
    if reference["kind"] not in kinds:
        yield not_supported(path.child("kind"), reference["kind"], kinds)
    yield from common.required_and(path.child("name"), reference["name"], names.path_segment)
    for position, subject in enumerate(new.get("subjects") or ()):
        yield from _subject(Path("subjects").at(position), subject, namespaced)
    if old is not None and old["roleRef"] != reference:
        shown = {"APIGroup": reference["apiGroup"], "Kind": reference["kind"], "Name": reference["name"]}
        yield invalid(path, shown, "cannot change roleRef")


def _subject(path: Path, subject: Struct, namespaced: bool) -> Errors:
    name, kind, group = subject["name"], subject["kind"], subject.get("apiGroup", "")
    if not name:
        yield required(path.child("name"))
    if kind == "ServiceAccount":
        if name:
            yield from common.complaints(path.child("name"), name, formats.dns_subdomain(name))
        if group:
            yield not_supported(path.child("apiGroup"), group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield required(path.child("namespace"))
    elif kind in _SUBJECTS:
        if group != RBAC_GROUP:
            yield not_supported(path.child("apiGroup"), group, (RBAC_GROUP,))
    else:
        yield not_supported(path.child("kind"), kind, _SUBJECTS)
