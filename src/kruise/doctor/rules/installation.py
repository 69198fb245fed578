"""Whether all that was installed is there, and is what this version needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.api.native.config import CONFIGURATION
from kruise.doctor.findings import (
    BINDING_DIFFERS,
    LACKS_RIGHTS,
    MISSING,
    NOT_ESTABLISHED,
    NOT_EXEMPT,
    OLD_DEFINITION,
    OTHER_VERSION,
    REMOVAL_BEGAN,
    SOMEWHERE_ELSE,
    STORED_VERSIONS,
    TWO_VERSIONS,
    UNREADABLE_CONFIGURATION,
    Apply,
    Finding,
    Json,
    Patch,
    Rewrite,
)
from kruise.doctor.snapshot import Snapshot
from kruise.machinery.codec import DecodeError, decode
from kruise.machinery.documents import value_at
from kruise.machinery.wording import listed
from kruise.manager.installation.documents import Named, image_of, named
from kruise.manager.installation.granting import Right, is_granted, rights_of

_OPTIONAL = frozenset({"Secret", "PodDisruptionBudget", "NetworkPolicy"})
"""The manager makes its Secret by itself; the others somebody may not want."""
_AGAIN = "kruise install (or helm upgrade) brings it back"


def rules(seen: Snapshot) -> Iterator[Finding]:
    if not seen.is_here:
        yield from _elsewhere(seen)
        return
    for wanted in seen.wanted:
        where = named(wanted)
        live = seen.live.get(where)
        if live is None:
            if where.kind not in _OPTIONAL:
                gone = "it belongs to the installation and is gone"
                yield MISSING.found(str(where), gone, _AGAIN, fix=_again(seen, wanted))
        elif where.kind == "Namespace":
            yield from _namespace(where, wanted, live, seen)
        elif where.kind in ("Role", "ClusterRole"):
            yield from _role(where, wanted, live, seen)
        elif where.kind in ("RoleBinding", "ClusterRoleBinding"):
            yield from _binding(where, wanted, live, seen)
        elif where.kind == "CustomResourceDefinition":
            yield from _definition(where, wanted, live)
    yield from _versions(seen)
    yield from _configuration(seen)


def _elsewhere(seen: Snapshot) -> Iterator[Finding]:
    if seen.is_installed:
        yield SOMEWHERE_ELSE.found(
            "the cluster",
            f"nothing is in namespace {seen.namespace}; what belongs to no namespace is for one in {seen.elsewhere}",
            f"kruise doctor --system-namespace {seen.elsewhere}",
        )


def _again(seen: Snapshot, wanted: Json, added: Sequence[str] = ()) -> Apply | None:
    """Nothing is brought back that somebody is removing, nor put in the place of what another version needs, or of what
    somebody has added."""
    return None if seen.is_being_removed or seen.is_other_version or added else Apply(wanted)


def _bringing(added: Sequence[str]) -> str:
    return f"{_AGAIN}, without what somebody has added: {listed(added)}" if added else _AGAIN


def _namespace(where: Named, wanted: Json, live: Json, seen: Snapshot) -> Iterator[Finding]:
    if seen.is_being_removed and where.name == seen.namespace:
        yield REMOVAL_BEGAN.found(
            str(where),
            "somebody began to remove PyKruise and did not get to the end: managers make nothing again that is lost",
            "go on with kruise uninstall, or call it off with kruise install",
        )
    label = "control-plane"
    if not value_at(live, ("metadata", "labels", label)):
        value = wanted["metadata"]["labels"][label]
        yield NOT_EXEMPT.found(
            str(where),
            f"it lacks the label {label}: its pods pass the pod webhook, which nobody answers until one of them runs",
            f"kubectl label namespace {where.name} {label}={value}",
            # Applied as a whole, it would call a removal off.
            fix=Patch(where.kind, where.name, _labelled(live, label, value)),
        )


def _labelled(live: Json, label: str, value: str) -> Json:
    version = value_at(live, ("metadata", "resourceVersion"))
    return {"metadata": {"resourceVersion": version, "labels": {label: value}}}


# Rights


def _role(where: Named, wanted: Json, live: Json, seen: Snapshot) -> Iterator[Finding]:
    granted, needed = live.get("rules") or (), wanted.get("rules") or ()
    lacking = [right for rule in needed for right in rights_of(rule) if not is_granted(right, granted)]
    if lacking:
        added = _words([right for rule in granted for right in rights_of(rule) if not is_granted(right, needed)])
        yield LACKS_RIGHTS.found(
            str(where),
            f"it does not grant what the gates need: {listed(_words(lacking))}",
            _bringing(added),
            fix=_again(seen, wanted, added),
        )


def _words(rights: Sequence[Right]) -> list[str]:
    """`get, list secrets`."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for group, resource, verb, _ in rights:
        verbs.setdefault((group, resource), []).append(verb)
    return [
        f"{', '.join(sorted(set(some)))} {resource}{f'.{group}' if group not in ('', '*') else ''}"
        for (group, resource), some in verbs.items()
    ]


def _binding(where: Named, wanted: Json, live: Json, seen: Snapshot) -> Iterator[Finding]:
    if live.get("roleRef") != wanted["roleRef"]:
        # It cannot be changed, and deleting is nothing to do unasked.
        yield BINDING_DIFFERS.found(
            str(where),
            f"it binds {value_at(live, ('roleRef', 'name'), 'nothing')} and not {wanted['roleRef']['name']}",
            f"kubectl delete {where.kind.lower()} {where.name}{_flag(where)}; {_AGAIN}",
        )
        return
    bound = [_subject(subject) for subject in live.get("subjects") or ()]
    needed = [_subject(subject) for subject in wanted["subjects"]]
    if lacking := [one for one in needed if one not in bound]:
        added = [one for one in bound if one not in needed]
        yield BINDING_DIFFERS.found(
            str(where),
            f"it does not bind the account {listed(lacking)}",
            _bringing(added),
            fix=_again(seen, wanted, added),
        )


def _subject(subject: Json) -> str:
    return f"{subject.get('namespace', '')}/{subject.get('name', '')}"


def _flag(where: Named) -> str:
    return f" -n {where.namespace}" if where.namespace else ""


# Definitions


def _definition(where: Named, wanted: Json, live: Json) -> Iterator[Finding]:
    conditions: Mapping[str, Json] = {c["type"]: c for c in value_at(live, ("status", "conditions"), ())}
    if conditions.get("Established", {}).get("status") != "True":
        refused = [c for c in conditions.values() if c.get("status") == "False" and c.get("message")]
        said = listed([f"{c['type']}: {c['message']}" for c in refused]) or "the API server does not say why"
        yield NOT_ESTABLISHED.found(
            str(where), f"the kind is not served: {said}", "another definition may have its names: see what it says"
        )
    wanted_versions = {version["name"]: version for version in wanted["spec"]["versions"]}
    live_versions = {version["name"]: version for version in value_at(live, ("spec", "versions"), ())}
    lacking = [f"version {name}" for name in wanted_versions if name not in live_versions]
    for name, version in wanted_versions.items():
        if name in live_versions:
            lacking += [f"{path} of {name}" for path in _unknown_fields(_schema(version), _schema(live_versions[name]))]
    if lacking:
        yield OLD_DEFINITION.found(
            str(where),
            f"it does not know {listed(lacking)}: the API server drops what the manager writes there",
            "kruise install brings the definitions of this version (with Helm: crds.managed)",
        )
    stored = value_at(live, ("status", "storedVersions"), ())
    storage = next((name for name, version in live_versions.items() if version.get("storage")), "")
    if older := sorted(set(stored) - {storage}):
        yield STORED_VERSIONS.found(
            str(where),
            f"objects may still be stored in {listed(older)}, which a later definition may not have any more",
            "kruise install writes them again in the stored version",
            fix=Rewrite(where.name),
        )


def _schema(version: Json) -> Json:
    found: Json = value_at(version, ("schema", "openAPIV3Schema"), {})
    return found


def _unknown_fields(wanted: Json, live: Json, path: str = "") -> Iterator[str]:
    """The highest places that the live schema does not have; a place that takes anything has all below it."""
    if live.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, below in (wanted.get("properties") or {}).items():
        known = (live.get("properties") or {}).get(name)
        here = f"{path}.{name}" if path else name
        if known is None:
            yield here
        else:
            yield from _unknown_fields(below, known, here)
    for inner in ("items", "additionalProperties"):
        if isinstance(wanted.get(inner), Mapping) and isinstance(live.get(inner), Mapping):
            yield from _unknown_fields(wanted[inner], live[inner], path)


# Versions and values


def _versions(seen: Snapshot) -> Iterator[Finding]:
    if seen.deployment is None:
        return
    image = image_of(seen.deployment)
    if seen.daemon_set is not None and (other := image_of(seen.daemon_set)) != image:
        yield TWO_VERSIONS.found(
            "manager and daemon", f"the manager runs {image}, the daemon {other}", "kruise install --image IMAGE"
        )
    if seen.is_other_version:
        yield OTHER_VERSION.found(
            "this command",
            f"it is {seen.version}, and the manager runs {image}: what it misses may be of another version, "
            "so --fix brings nothing of the installation",
            f"use the kruise of that version, or upgrade: kruise install --image ...:{seen.version}",
        )


def _configuration(seen: Snapshot) -> Iterator[Finding]:
    where = Named("ConfigMap", seen.namespace, CONFIGURATION)
    data: Mapping[str, Any] = (seen.live.get(where) or {}).get("data") or {}
    for key, text in data.items():
        try:
            decode(str(text), object)
        except DecodeError as error:
            yield UNREADABLE_CONFIGURATION.found(
                str(where),
                f"the value of {key} is no JSON ({error}), and counts as empty",
                f"kubectl edit {where.kind.lower()} {where.name}{_flag(where)}",
            )
