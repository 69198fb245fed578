"""What lies between two revisions, and whether a running pod can get there in place (IPU section 5).

The answer depends on the revisions alone, so it is worked out once for all pods that go the same way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from kruise.api.core.field_errors import TemplateTypeError
from kruise.api.core.pod_resources import amounts, qos_class
from kruise.api.core.values import normalise_template
from kruise.api.native.apps import ControllerRevision
from kruise.inplace import keys
from kruise.inplace.hashes import metadata_reference
from kruise.inplace.state import RefMetadata, Resources, UpdateSpec
from kruise.machinery.codec import DecodeError
from kruise.machinery.patches.json_patch import pointer
from kruise.machinery.patches.values import same
from kruise.machinery.revisions import template_of

_MAPS = ("labels", "annotations")
_NO_TEMPLATE: Mapping[str, Any] = {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InPlaceOptions:
    """What may be done in place, by feature gates and by the kind of update."""

    env_from_metadata: bool = True
    vertical_scaling: bool = False
    compare_claim_templates: bool = False

    @classmethod
    def of(cls, gates: Mapping[str, bool], *, ignore_claim_templates: bool = False) -> Self:
        """`ignore_claim_templates`: pods are never recreated for the sake of their claims (CloneSet InPlaceOnly)."""
        return cls(
            env_from_metadata=gates.get("InPlaceUpdateEnvFromMetadata", False),
            vertical_scaling=gates.get("InPlaceWorkloadVerticalScaling", False),
            compare_claim_templates=gates.get("RecreatePodWhenChangeVCTInCloneSetGate", False)
            and not ignore_claim_templates,
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a pod cannot get from one revision to the other in place, for people."""

    message: str
    path: str = ""
    """Of the first difference in the way, in the template: `/spec/containers/0/env`."""
    operation: str = ""
    """`add`, `remove` or `replace`."""


class Operation(NamedTuple):
    """One difference, as in RFC 6902."""

    kind: str
    path: tuple[str | int, ...]
    value: Any


def compare(
    old: ControllerRevision | None,
    new: ControllerRevision | None,
    options: InPlaceOptions,
    *,
    revision: str | None = None,
) -> UpdateSpec | Refusal:
    """What an update from the old to the new revision changes in a pod, or why it cannot be done in place."""
    if old is None:
        return Refusal(message="the revision of the pod does not exist any more, so nobody can tell what to change")
    if new is None:
        return Refusal(message="the revision to update to does not exist")
    if options.compare_claim_templates and _claims_differ(old, new):
        return Refusal(message="the volume claim templates have changed, and claims come with a new pod only")
    before, after = _template(old), _template(new)
    if isinstance(before, Refusal):
        return before
    if isinstance(after, Refusal):
        return after
    changes = _Changes(before, after, options)
    for operation in operations(before, after):
        if refusal := changes.take(operation):
            return refusal
    if refusal := changes.change_of_qos():
        return refusal
    return UpdateSpec(
        revision=revision or new.metadata.name,
        container_images=changes.images,
        container_ref_metadata=changes.references(),
        container_resources=changes.resources(),
        meta_data_patch=changes.metadata_patch(),
        update_env_from_metadata=bool(changes.drawn),
    )


def _claims_differ(old: ControllerRevision, new: ControllerRevision) -> bool:
    """IPU-31. A revision from before the hash was written says nothing about its claims."""
    before = old.metadata.annotations.get(keys.CLAIM_TEMPLATES_HASH)
    after = new.metadata.annotations.get(keys.CLAIM_TEMPLATES_HASH)
    return before is not None and after is not None and before != after


def _template(revision: ControllerRevision) -> Mapping[str, Any] | Refusal:
    name = revision.metadata.name
    try:
        template = template_of(revision)
        if template is not None:
            return normalise_template(template)
        detail = "it holds no pod template"
    except (DecodeError, TemplateTypeError) as error:
        detail = str(error)
    return Refusal(message=f"revision {name} cannot be read ({detail}): what it would change is unknown")


def operations(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Operation]:
    """The RFC 6902 difference: objects key by key, lists by position (IPU-32).

    A container put before another is therefore a change of both, which is what a pod would make of it.
    """
    if same(before, after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                yield Operation("remove", (*path, name), None)
            elif name not in before:
                yield Operation("add", (*path, name), after[name])
            else:
                yield from operations(before[name], after[name], (*path, name))
    elif isinstance(before, list) and isinstance(after, list):
        for place, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from operations(one, other, (*path, place))
        # From the end, so that each place is right when its turn comes.
        for place in reversed(range(len(after), len(before))):
            yield Operation("remove", (*path, place), None)
        for place in range(len(before), len(after)):
            yield Operation("add", (*path, place), after[place])
    else:
        yield Operation("replace", path, after)


class _Changes:
    """Collects what an update changes, operation by operation."""

    def __init__(self, before: Mapping[str, Any], after: Mapping[str, Any], options: InPlaceOptions) -> None:
        self._before = before
        self._after = after
        self._options = options
        self._readers = _readers(after) if options.env_from_metadata else {}
        self._scaled: list[tuple[int, str, str, str]] = []
        self.images: dict[str, str] = {}
        self.drawn: dict[tuple[str, str], str] = {}
        """Values that containers draw into their environment, by `labels` or `annotations` and key."""

    def take(self, operation: Operation) -> Refusal | None:
        """Note a difference down; a refusal where it cannot be made in place (IPU-32)."""
        kind, path, value = operation
        match path:
            case ("metadata", _, *_):
                self._take_metadata(operation)
                return None
            case ("spec", "containers", int(place), "image") if kind == "replace":
                self.images[_containers(self._before)[place]["name"]] = value
                return None
            case ("spec", "containers", int(place), "resources", *rest):
                return self._take_resource(operation, place, rest)
            case _:
                return _refused(operation, self._before, _WHY_NOT)

    def _take_metadata(self, operation: Operation) -> None:
        """IPU-34. Neither a removal nor the arrival of a whole map makes containers restart."""
        match operation:
            case ("add" | "replace", ("metadata", "labels" | "annotations" as part, str(key)), str(value)):
                if (part, key) in self._readers:
                    self.drawn[part, key] = value

    def _take_resource(self, operation: Operation, place: int, rest: Sequence[str | int]) -> Refusal | None:
        """IPU-33. Quantities were read when the template was."""
        if not self._options.vertical_scaling:
            return _refused(operation, self._before, _WHY_NOT_SCALED)
        match rest:
            case ("limits" | "requests" as part, "cpu" | "memory" as name) if operation.kind == "replace":
                self._scaled.append((place, part, name, operation.value))
                return None
            case _:
                return _refused(operation, self._before, _WHY_NOT_THIS_RESOURCE)

    def change_of_qos(self) -> Refusal | None:
        """A pod keeps its class for life, so resources cannot change it (IPU-33)."""
        if not self._scaled:
            return None
        before, after = qos_class(_with_requests(self._before)), qos_class(_with_requests(self._after))
        if before == after:
            return None
        return Refusal(
            message=f"the new resources would change the quality of service class from {before} to {after}, "
            "which a pod keeps for life",
            path="/spec/containers",
            operation="replace",
        )

    def references(self) -> dict[str, RefMetadata]:
        """What each container draws from the metadata that changed."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        for (part, key), value in self.drawn.items():
            for container in self._readers[part, key]:
                found.setdefault(container, {name: {} for name in _MAPS})[part][key] = value
        return {
            name: RefMetadata(labels=maps["labels"], annotations=maps["annotations"]) for name, maps in found.items()
        }

    def resources(self) -> dict[str, Resources]:
        """Only the entries that change. A pod's request follows its limit where the template names no request."""
        found: dict[str, dict[str, dict[str, str | int | float]]] = {}
        for place, part, name, amount in self._scaled:
            container = _containers(self._after)[place]
            entries = found.setdefault(container["name"], {"limits": {}, "requests": {}})
            entries[part][name] = amount
            if part == "limits" and name not in amounts(container, "requests"):
                entries["requests"][name] = amount
        return {name: Resources(limits=parts["limits"], requests=parts["requests"]) for name, parts in found.items()}

    def metadata_patch(self) -> dict[str, Any]:
        """The rest of the metadata, as a strategic merge patch of a pod (IPU-35).

        By key even where a whole map came or went: what the template never mentioned is not the template's to remove.
        """
        before, after = self._before.get("metadata") or {}, self._after.get("metadata") or {}
        patch: dict[str, Any] = {}
        for part in _MAPS:
            was, will_be = before.get(part) or {}, after.get(part) or {}
            changes = {
                key: will_be.get(key)
                for key in sorted(was.keys() | will_be.keys())
                if was.get(key) != will_be.get(key) and (part, key) not in self.drawn
            }
            if changes:
                patch[part] = changes
        was_final, will_be_final = before.get("finalizers") or [], after.get("finalizers") or []
        if added := [name for name in will_be_final if name not in was_final]:
            patch["finalizers"] = added
        if removed := [name for name in was_final if name not in will_be_final]:
            patch["$deleteFromPrimitiveList/finalizers"] = removed
        return {"metadata": patch} if patch else {}


_WHY_NOT = (
    "only images of containers, labels, annotations and, with the gate InPlaceWorkloadVerticalScaling, amounts of cpu "
    "and memory can change in a running pod"
)
_WHY_NOT_SCALED = "resources can change in a running pod only with the gate InPlaceWorkloadVerticalScaling"
_WHY_NOT_THIS_RESOURCE = "in a running pod only amounts of cpu and memory that are set already can change"


def _refused(operation: Operation, template: Mapping[str, Any], why: str) -> Refusal:
    verbs = {"add": "was added", "remove": "was removed", "replace": "has changed"}
    return Refusal(
        message=f"{_place(operation.path, template)} {verbs[operation.kind]}: {why}",
        path=pointer(*operation.path),
        operation=operation.kind,
    )


def _place(path: Sequence[str | int], template: Mapping[str, Any]) -> str:
    """A path for people: `spec.containers[main].env[0].value`, with names for places where there are some."""
    text = ""
    node: Any = template
    for token in path:
        if isinstance(token, int):
            node = node[token] if isinstance(node, list) and token < len(node) else None
            name = node.get("name") if isinstance(node, Mapping) else None
            text += f"[{name if name else token}]"
        else:
            node = node.get(token) if isinstance(node, Mapping) else None
            text += f".{token}" if text else token
    return text


def _containers(template: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (template.get("spec") or _NO_TEMPLATE).get("containers") or ()


def _readers(template: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """The containers that draw a label or annotation into their environment."""
    readers: dict[tuple[str, str], list[str]] = {}
    for container in _containers(template):
        for variable in container.get("env") or ():
            source = variable.get("valueFrom") or {}
            field_path = (source.get("fieldRef") or {}).get("fieldPath")
            if variable.get("value") or not field_path or variable["name"] in keys.SIDECAR_SET_ENVS:
                continue
            reference = metadata_reference(field_path)
            if reference is not None:
                names = readers.setdefault(reference, [])
                if container["name"] not in names:
                    names.append(container["name"])
    return readers


def _with_requests(template: Mapping[str, Any]) -> dict[str, Any]:
    """The spec as a pod gets it: the API server takes a limit for the request where there is none."""
    spec = template.get("spec") or _NO_TEMPLATE
    return {
        **spec,
        **{
            part: [_requesting(container) for container in spec.get(part) or ()]
            for part in ("containers", "initContainers")
        },
    }


def _requesting(container: Mapping[str, Any]) -> dict[str, Any]:
    limits = amounts(container, "limits")
    return {**container, "resources": {"limits": limits, "requests": {**limits, **amounts(container, "requests")}}}
