"""Object metadata, on creation and on update, and the annotations that mean something to pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core import formats, schema, values
from kruise.api.core.creation import APP_ARMOR_PREFIX
from kruise.api.core.field_errors import Path, TemplateTypeError, forbidden, invalid, required
from kruise.api.core.validation import common, scheduling
from kruise.api.core.validation.common import Check, Errors, Struct
from kruise.api.native.deletion_cost import DELETION_COST, parsed_cost
from kruise.machinery import codec

IMMUTABLE = "field is immutable"
MIRROR = "kubernetes.io/config.mirror"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def object_meta(path: Path, meta: Struct, *, name: Check, namespaced: bool = True) -> Errors:
    """The metadata of a new object. Names are generated before this, so a name is always needed."""
    prefix = meta.get("generateName", "")
    if prefix:
        yield from common.complaints(path.child("generateName"), prefix, name(formats.name_prefix(prefix)))
    if not meta.get("name"):
        yield required(path.child("name"), "name or generateName is required")
    else:
        yield from common.complaints(path.child("name"), meta["name"], name(meta["name"]))
    namespace = meta.get("namespace", "")
    if namespaced and not namespace:
        yield required(path.child("namespace"))
    elif namespaced:
        yield from common.complaints(path.child("namespace"), namespace, formats.dns_label(namespace))
    elif namespace:
        yield forbidden(path.child("namespace"), "not allowed on this type")
    yield from common.non_negative(path.child("generation"), meta.get("generation", 0))
    yield from _common_meta(path, meta)
    yield from _finalizers(path.child("finalizers"), meta.get("finalizers") or ())
    yield from _kube_finalizers(path.child("finalizers"), meta.get("finalizers") or ())


def object_meta_update(path: Path, new: Struct, old: Struct) -> Errors:
    """What may not change between two versions of an object."""
    if old.get("deletionTimestamp"):
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            shown = ", ".join(f'"{name}"' for name in extra)
            yield forbidden(
                path.child("finalizers"),
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}",
            )
    if not new.get("resourceVersion"):
        yield invalid(path.child("resourceVersion"), "", "must be specified for an update")
    if new.get("generation", 0) < old.get("generation", 0):
        yield invalid(path.child("generation"), new.get("generation", 0), "must not be decremented")
    for name in ("name", "namespace", "uid"):
        if new.get(name, "") != old.get(name, ""):
            yield invalid(path.child(name), new.get(name, ""), IMMUTABLE)
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(name) != old.get(name):
            yield invalid(path.child(name), new.get(name), IMMUTABLE)
    yield from _common_meta(path, new)
    yield from _kube_finalizers(path.child("finalizers"), new.get("finalizers") or ())


def _common_meta(path: Path, meta: Struct) -> Errors:
    yield from common.label_set(path.child("labels"), meta.get("labels"))
    yield from common.annotation_set(path.child("annotations"), meta.get("annotations"))
    yield from owner_references(path.child("ownerReferences"), meta.get("ownerReferences") or ())


def owner_references(path: Path, references: Sequence[Struct]) -> Errors:
    first_controller = ""
    for reference in references:
        version = reference["apiVersion"].rpartition("/")[2]
        if not version:
            yield invalid(path.child("apiVersion"), reference["apiVersion"], "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not reference[name]:
                yield invalid(path.child(name), "", "must not be empty")
        if (reference["apiVersion"], reference["kind"]) == ("v1", "Event"):
            yield invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner")
        if reference.get("controller"):
            current = f"{reference['kind']}/{reference['name']}"
            if first_controller:
                yield invalid(
                    path,
                    list(references),
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{first_controller} and {current}",
                )
            else:
                first_controller = current


def _finalizers(path: Path, finalizers: Sequence[str]) -> Errors:
    for finalizer in finalizers:
        yield from common.label_name(path, finalizer)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield invalid(path, list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set")


def _kube_finalizers(path: Path, finalizers: Sequence[str]) -> Errors:
    for position, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            complaint = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(path.at(position), finalizer, complaint)


def pod_annotations(path: Path, annotations: Mapping[str, str] | None, spec: Struct) -> Errors:
    """Annotations that the API server reads in pods and templates."""
    annotations = annotations or {}
    if MIRROR in annotations and not spec.get("nodeName"):
        complaint = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(path.key(MIRROR), annotations[MIRROR], complaint)
    if annotations.get(TOLERATIONS):
        yield from _tolerations(path, annotations[TOLERATIONS])
    cost = annotations.get(DELETION_COST)
    if cost is not None and parsed_cost(cost) is None:
        yield invalid(path.key(DELETION_COST), cost, "must be a 32bit integer")
    for key, profile in annotations.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER_PREFIX):
            shown = profile.removeprefix("localhost/")
            yield from common.complaints(path.child(key), shown, _seccomp_profile(profile))
    known = {container["name"] for _, container in common.containers_of(spec, Path())}
    for key, profile in annotations.items():
        if key.startswith(APP_ARMOR_PREFIX):
            name = key.removeprefix(APP_ARMOR_PREFIX)
            if name not in known:
                yield invalid(path.key(key), name, "container not found")
            if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
                yield invalid(path.key(key), profile, f'invalid AppArmor profile name: "{profile}"')


def _tolerations(path: Path, text: str) -> Errors:
    """Tolerations as JSON in an annotation, from before they were a field."""
    try:
        listed = values.normalise({"tolerations": codec.decode(text, list)}, schema.POD_SPEC)
    except (codec.DecodeError, TemplateTypeError) as error:
        yield invalid(path, TOLERATIONS, str(error))
        return
    yield from scheduling.tolerations(path.child(TOLERATIONS), listed.get("tolerations") or ())


def _seccomp_profile(profile: str) -> list[str]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith("localhost/"):
        return formats.descending_path(profile.removeprefix("localhost/"))
    return ["must be a valid seccomp profile"]


def pod_annotation_updates(path: Path, new: Mapping[str, str] | None, old: Mapping[str, str] | None) -> Errors:
    new, old = new or {}, old or {}
    for key, value in old.items():
        if new.get(key) != value:
            if key.startswith(APP_ARMOR_PREFIX):
                yield forbidden(path.key(key), "may not remove or update AppArmor annotations")
            if key == MIRROR:
                yield forbidden(path.key(key), "may not remove or update mirror pod annotation")
    for key in new.keys() - old.keys():
        if key.startswith(APP_ARMOR_PREFIX):
            yield forbidden(path.key(key), "may not add AppArmor annotations")
        if key == MIRROR:
            yield forbidden(path.key(key), "may not add mirror pod annotation")


def profiles_match(path: Path, annotations: Mapping[str, str] | None, spec: Struct) -> Errors:
    """Seccomp and AppArmor settings in annotations and in fields must agree."""
    annotations = annotations or {}
    security = spec.get("securityContext") or {}
    pod_seccomp = security.get("seccompProfile")
    if pod_seccomp is not None and SECCOMP_POD in annotations:
        where = path.child("securityContext", "seccompProfile")
        yield from _agree(where, "seccomp", annotations[SECCOMP_POD], pod_seccomp)
    is_windows = (spec.get("os") or {}).get("name") == "windows"
    for where, container in common.containers_of(spec, path):
        own = container.get("securityContext") or {}
        key = SECCOMP_CONTAINER_PREFIX + container["name"]
        if own.get("seccompProfile") is not None and key in annotations:
            at = where.child("securityContext", "seccompProfile")
            yield from _agree(at, "seccomp", annotations[key], own["seccompProfile"])
    if is_windows:
        return
    for where, container in common.containers_of(spec, path):
        own = container.get("securityContext") or {}
        profile: Any = own.get("appArmorProfile") or security.get("appArmorProfile")
        key = APP_ARMOR_PREFIX + container["name"]
        if profile is not None and key in annotations:
            at = where.child("securityContext", "appArmorProfile")
            yield from _agree(at, "apparmor", annotations[key], profile)


_PROFILE_WORDS = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}


def _agree(path: Path, what: str, annotation: str, profile: Struct) -> Errors:
    kind = profile["type"]
    if kind == "Localhost":
        if not annotation.startswith("localhost/"):
            yield forbidden(path.child("type"), f"{what} type in annotation and field must match")
        elif annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
            yield forbidden(path.child("localhostProfile"), f"{what} profile in annotation and field must match")
    elif kind in _PROFILE_WORDS:
        words = _PROFILE_WORDS[kind] if what == "seccomp" else _PROFILE_WORDS[kind][:1]
        if annotation not in words:
            yield forbidden(path.child("type"), f"{what} type in annotation and field must match")
