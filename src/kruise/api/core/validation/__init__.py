"""What the API server would refuse about pods and pod templates, in its own words.

Objects are expected with their defaults (`kruise.api.core.defaults`), because that is how the API server checks them.
A value of the wrong type is the only error that is reported then, since nothing else can be said about such an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kruise.api.core import formats, schema, values
from kruise.api.core.field_errors import FieldError, Path, TemplateTypeError, forbidden, not_supported
from kruise.api.core.validation import claims, common, containers, metadata, subresources
from kruise.api.core.validation.common import Errors, Rules, Struct
from kruise.api.core.validation.spec import pod_spec
from kruise.api.core.validation.updates import pod_update

__all__ = [
    "validate_claim_spec",
    "validate_ephemeral_containers",
    "validate_ephemeral_containers_update",
    "validate_pod",
    "validate_pod_annotations",
    "validate_pod_resize",
    "validate_pod_status_update",
    "validate_pod_template",
    "validate_pod_update",
]

RESTART_POLICIES = ("Always", "OnFailure", "Never")


def validate_pod_template(
    template: Any,
    path: str = "template",
    *,
    restart_policies: tuple[str, ...] = RESTART_POLICIES,
    claim_volumes: Iterable[str] = (),
    allow_privileged: bool = True,
) -> tuple[FieldError, ...]:
    """Check a template at `path` of a workload.

    `restart_policies` are those that the workload can work with. `claim_volumes` are the names of claim templates: each
    counts as one more volume, so that containers may mount it and no volume may have its name (CS-42).
    """
    where = Path(path)
    try:
        value = values.normalise(template, schema.POD_TEMPLATE_SPEC, path=path, form=values.SERVER_FORM)
    except TemplateTypeError as error:
        return (error.error,)
    extra = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claim_volumes]
    if extra:
        value["spec"]["volumes"] = [*(value["spec"].get("volumes") or ()), *extra]
    return tuple(_template(where, value, restart_policies, Rules(allow_privileged=allow_privileged)))


def _template(path: Path, template: Struct, restart_policies: tuple[str, ...], rules: Rules) -> Errors:
    meta, spec = template["metadata"], template["spec"]
    annotations = meta.get("annotations")
    yield from common.label_set(path.child("labels"), meta.get("labels"))
    yield from common.annotation_set(path.child("annotations"), annotations)
    yield from metadata.pod_annotations(path.child("annotations"), annotations, spec)
    yield from pod_spec(path.child("spec"), spec, rules)
    yield from metadata.profiles_match(path.child("spec"), annotations, spec)
    if spec.get("ephemeralContainers"):
        where = path.child("spec", "ephemeralContainers")
        yield forbidden(where, "ephemeral containers not allowed in pod template")
    policy = spec.get("restartPolicy", "")
    if policy in RESTART_POLICIES and policy not in restart_policies:
        yield not_supported(path.child("spec", "restartPolicy"), policy, restart_policies)


def validate_pod(pod: Any, *, allow_privileged: bool = True) -> tuple[FieldError, ...]:
    """Check a pod that is about to be created. It needs its name and namespace by now."""
    try:
        value = values.normalise(pod, schema.POD, form=values.SERVER_FORM)
    except TemplateTypeError as error:
        return (error.error,)
    return tuple(_new_pod(value, Rules(is_pod=True, allow_privileged=allow_privileged)))


def _new_pod(pod: Struct, rules: Rules) -> Errors:
    path, spec = Path("spec"), pod["spec"]
    yield from _pod(pod, rules)
    if spec.get("ephemeralContainers"):
        yield forbidden(path.child("ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden(path.child("nodeName"), "cannot be set until all schedulingGates have been cleared")
    yield from metadata.profiles_match(path, pod["metadata"].get("annotations"), spec)


def _pod(pod: Struct, rules: Rules) -> Errors:
    """What holds for pods at any time."""
    meta, spec, path = pod["metadata"], pod["spec"], Path("spec")
    meta_path = Path("metadata")
    yield from metadata.object_meta(meta_path, meta, name=formats.dns_subdomain)
    yield from metadata.pod_annotations(meta_path.child("annotations"), meta.get("annotations"), spec)
    yield from pod_spec(path, spec, rules, pod_name=meta.get("name", ""))
    if not spec.get("serviceAccountName"):
        yield from _tokens_without_account(path.child("volumes"), spec)
    for kind in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(kind) or ()):
            yield from containers.image_whitespace(path.child(kind).at(position), container)


def _tokens_without_account(path: Path, spec: Struct) -> Errors:
    for position, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                where = path.at(position).child("projected", "sources").at(number).child("serviceAccountToken")
                yield forbidden(where, "must not be specified when serviceAccountName is not set")


def validate_pod_update(new: Any, old: Any, *, allow_privileged: bool = True) -> tuple[FieldError, ...]:
    """Check what an ordinary update would change in a pod; the subresources have rules of their own."""

    def changes(after: Struct, before: Struct) -> Errors:
        yield from _pod(after, Rules(is_pod=True, allow_privileged=allow_privileged))
        yield from pod_update(after, before)

    return _validate_change(new, old, changes)


def validate_pod_annotations(new: Any, old: Any) -> tuple[FieldError, ...]:
    """Check an update that leaves the spec of a pod as it is: its annotations are all that pods have rules of their own
    about. The rest of the metadata is what every object has."""
    path = Path("metadata").child("annotations")
    annotations, known = new["metadata"].get("annotations"), old["metadata"].get("annotations")
    return (
        *common.annotation_set(path, annotations),
        *metadata.pod_annotation_updates(path, annotations, known),
        *metadata.pod_annotations(path, annotations, new["spec"]),
    )


def validate_pod_resize(new: Any, old: Any, *, allow_privileged: bool = True) -> tuple[FieldError, ...]:
    """Check an update through `pods/resize`; `new` is what `subresources.resized_pod` made of it."""

    def changes(after: Struct, before: Struct) -> Errors:
        never = tuple(subresources.not_resizable(after, before))
        if never:
            yield from never
            return
        yield from _pod(after, Rules(is_pod=True, allow_privileged=allow_privileged))
        yield from subresources.resize(after, before)

    return _validate_change(new, old, changes)


def validate_ephemeral_containers_update(
    new: Any, old: Any, *, allow_privileged: bool = True
) -> tuple[FieldError, ...]:
    """Check an update through `pods/ephemeralcontainers`; `new` as `subresources` made it."""

    def changes(after: Struct, before: Struct) -> Errors:
        yield from _pod(after, Rules(is_pod=True, allow_privileged=allow_privileged))
        yield from subresources.ephemeral_containers(after, before)

    return _validate_change(new, old, changes)


def validate_ephemeral_containers(
    given: Any, path: str = "ephemeralContainers", *, allow_privileged: bool = True
) -> tuple[FieldError, ...]:
    """Check ephemeral containers that will be added to pods which nobody knows yet: what they name in their pod, a
    volume or another container, is left to the API server."""
    where = Path(path)
    try:
        value = [
            values.normalise(one, "core.EphemeralContainer", path=where.at(position), form=values.SERVER_FORM)
            for position, one in enumerate(given or ())
        ]
    except TemplateTypeError as error:
        return (error.error,)
    return tuple(containers.ephemeral_alone(where, value, Rules(allow_privileged=allow_privileged)))


def validate_pod_status_update(new: Any, old: Any) -> tuple[FieldError, ...]:
    """Check an update through `pods/status`; `new` as `subresources.pod_with_status` made it."""

    def changes(after: Struct, before: Struct) -> Errors:
        path = Path("metadata").child("annotations")
        annotations, known = after["metadata"].get("annotations"), before["metadata"].get("annotations")
        yield from metadata.pod_annotation_updates(path, annotations, known)
        yield from metadata.pod_annotations(path, annotations, after["spec"])
        yield from subresources.status(after, before)

    return _validate_change(new, old, changes)


def _validate_change(new: Any, old: Any, changes: Callable[[Struct, Struct], Errors]) -> tuple[FieldError, ...]:
    try:
        before = values.normalise(old, schema.POD, form=values.SERVER_FORM)
        after = values.normalise(new, schema.POD, form=values.SERVER_FORM)
    except TemplateTypeError as error:
        return (error.error,)
    meta = metadata.object_meta_update(Path("metadata"), after["metadata"], before["metadata"])
    # Metadata and images are looked at from two sides; each complaint is made once.
    return tuple({str(error): error for error in (*meta, *changes(after, before))}.values())


def validate_claim_spec(spec: Any, path: str = "spec") -> tuple[FieldError, ...]:
    """Check the spec of a persistent volume claim."""
    try:
        value = values.normalise(spec, "core.PersistentVolumeClaimSpec", path=path)
    except TemplateTypeError as error:
        return (error.error,)
    return tuple(claims.claim_spec(Path(path), value))
