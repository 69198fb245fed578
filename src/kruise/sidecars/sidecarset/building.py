"""The sidecars of a pod that is made (SCS-45 to SCS-60). Pure: a function of the pod, the contents and the moment.

Sidecars are worked out against the pod as it was submitted, and only then put into it. Done twice, it comes to the
same: a sidecar that is there already is replaced, never added again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from kruise.api.apps.sidecarset import AFTER_APP, BEFORE_APP, ENABLED, MERGE_PATCH_JSON, OVERWRITE
from kruise.machinery import codec
from kruise.machinery.patches import merge
from kruise.sidecars.sidecarset import keys, records
from kruise.sidecars.sidecarset.content import (
    EXTRA_FIELDS,
    FIELD_PATH,
    Content,
    Json,
    has_twins,
    is_injected,
    name_of,
    names_in_pods,
    twins_of,
)
from kruise.sidecars.sidecarset.records import RecordError
from kruise.sidecars.sidecarset.resources import ResourcesError, policy_of, resources_of

_EXPANSION = re.compile(r"\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")


class InjectionError(ValueError):
    """A pod cannot get its sidecars; the text names the SidecarSet and what to change."""


def injected(pod: Json, contents: Sequence[Content], now: datetime, *, sorts_by_name: bool = False) -> Json:
    """The pod with the sidecars of these contents. Raises InjectionError."""
    _refuse_clashes(pod, contents)
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = _texts(metadata.get("annotations"))
    for content in contents:
        patch_annotations(annotations, content)
    pod = {**pod, "metadata": {**metadata, "annotations": annotations}}
    others = frozenset(name for content in contents for name in content.names)
    added = _Added(annotations)
    for content in contents:
        added.add(content, pod, others)
    if sorts_by_name:
        added.containers.sort(key=lambda sidecar: name_of(sidecar[0]))
    added.init_containers.sort(key=lambda sidecar: name_of(sidecar[0]))
    _record(annotations, contents, now)
    result = dict(spec)
    if added.init_containers:
        result["initContainers"] = _merged(spec.get("initContainers") or [], added.init_containers)
    if added.containers:
        result["containers"] = _merged(spec.get("containers") or [], added.containers)
    _append(result, "volumes", added.volumes)
    secrets = dict.fromkeys(name for content in contents for name in content.pull_secrets)
    _append(result, "imagePullSecrets", {name: {"name": name} for name in secrets})
    return {**pod, "spec": result}


def _texts(value: Any) -> dict[str, str]:
    return dict(value) if isinstance(value, dict) else {}


# Names


def _injected_names(content: Content, kind: str) -> Iterator[str]:
    for container in content.containers if kind == "containers" else content.init_containers:
        yield from names_in_pods(container, kind)


def _refuse_clashes(pod: Json, contents: Sequence[Content]) -> None:
    """Two containers of one name would be one container: whoever came last would replace the other in silence."""
    spec = pod.get("spec") or {}
    own = {
        name_of(container): kind
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
        if not is_injected(container)
    }
    taken: dict[str, str] = {}
    for content in contents:
        for kind in ("initContainers", "containers"):
            for name in _injected_names(content, kind):
                if name in own:
                    raise InjectionError(
                        f"SidecarSet {content.owner} has a sidecar {name}, and the pod has a container {name} of its "
                        f"own (spec.{own[name]}): give one of them another name, or let the selector of SidecarSet "
                        f"{content.owner} leave this pod out"
                    )
                if name in taken and taken[name] == content.owner:
                    raise InjectionError(
                        f"SidecarSet {content.owner} has two sidecars that pods would call {name}: give one of them "
                        "another name"
                    )
                if (other := taken.setdefault(name, content.owner)) != content.owner:
                    raise InjectionError(
                        f"SidecarSets {other} and {content.owner} both have a sidecar {name} for this pod: give one "
                        "of them another name, or let their selectors select different pods"
                    )


# Metadata


def patch_annotations(annotations: dict[str, str], content: Content) -> None:
    """SCS-45. Raises InjectionError."""
    for patch in content.patches:
        for key, value in patch.annotations.items():
            known = annotations.get(key)
            if patch.patch_policy == OVERWRITE:
                annotations[key] = value
            elif patch.patch_policy == MERGE_PATCH_JSON:
                annotations[key] = _merged_json(known, value, key, content.owner) if known else value
            elif known is None:
                annotations[key] = value


def _merged_json(known: str, value: str, key: str, owner: str) -> str:
    try:
        old, new = (codec.decode(text.encode(), object) for text in (known, value))
    except codec.DecodeError as error:
        raise InjectionError(
            f"SidecarSet {owner} merges JSON into the annotation {key}, and one of the two texts is no JSON: {error}"
        ) from error
    if known == value:
        return known  # it was put there word for word, and asking twice changes nothing
    return codec.canonical(merge.apply(old, new)).decode()


def _record(annotations: dict[str, str], contents: Sequence[Content], now: datetime) -> None:
    for key, without_image in ((keys.HASH, False), (keys.HASH_WITHOUT_IMAGE, True)):
        try:
            entries = records.raw_records(annotations, key)
        except RecordError as error:
            raise InjectionError(str(error)) from error
        entries |= {content.owner: records.entry(content, now, without_image=without_image) for content in contents}
        annotations[key] = records.text_of(entries)
    names = (*records.injected(annotations), *(content.owner for content in contents))
    annotations[keys.INJECTED_LIST] = records.injected_text(names)


# Containers

Sidecar = tuple[Json, str]
"""A container, and where it goes."""


class _Added:
    """What is to be put into a pod."""

    def __init__(self, annotations: dict[str, str]) -> None:
        self.annotations = annotations
        self.containers: list[Sidecar] = []
        self.init_containers: list[Sidecar] = []
        self.volumes: dict[str, Json] = {}

    def add(self, content: Content, pod: Json, others: frozenset[str]) -> None:
        for container in content.init_containers:
            self._add(container, content, pod, others, "initContainers")
        for container in content.containers:
            self._add(container, content, pod, others, "containers")

    def _add(self, container: Json, content: Content, pod: Json, others: frozenset[str], kind: str) -> None:
        target = self.containers if kind == "containers" else self.init_containers
        default = BEFORE_APP if kind == "containers" else AFTER_APP
        try:
            built = _built(container, pod, others)
        except (ResourcesError, codec.DecodeError) as error:
            raise InjectionError(f"SidecarSet {content.owner}, sidecar {name_of(container)}: {error}") from error
        own = (*(container.get("volumeMounts") or ()), *(container.get("volumeDevices") or ()))
        for mount in own:
            if (volume := content.volumes.get(str(mount.get("name", "")))) is not None:
                self.volumes.setdefault(str(volume["name"]), volume)
        policy = container.get("podInjectPolicy") or default
        for one in self._twins(built, container) if has_twins(container, kind) else (built,):
            target.append((one, policy))

    def _twins(self, built: Json, container: Json) -> tuple[Json, Json]:
        """SCS-56 to SCS-58."""
        name = name_of(container)
        first, second = twins_of(name)
        strategy = container["upgradeStrategy"]
        for twin, version, other in ((first, "1", "0"), (second, "0", "1")):
            self.annotations[keys.VERSION_PREFIX + twin] = version
            self.annotations[keys.VERSION_ALT_PREFIX + twin] = other
        try:
            working = records.working_twins(self.annotations)
        except RecordError as error:
            raise InjectionError(str(error)) from error
        self.annotations[keys.WORKING] = records.text_of(working | {name: first})
        idle = {**built, "image": strategy.get("hotUpgradeEmptyImage") or ""}
        return _twin(built, first), _twin(idle, second)


def _twin(built: Json, name: str) -> Json:
    return {
        **built,
        "name": name,
        "env": [
            *built["env"],
            _from_annotation(keys.VERSION_ENV, keys.VERSION_PREFIX + name),
            _from_annotation(keys.VERSION_ALT_ENV, keys.VERSION_ALT_PREFIX + name),
        ],
    }


def _from_annotation(name: str, key: str) -> Json:
    field = {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{key}']"}
    return {"name": name, "valueFrom": {"fieldRef": field}}


def _built(container: Json, pod: Json, others: frozenset[str]) -> Json:
    built = {name: value for name, value in container.items() if name not in EXTRA_FIELDS}
    if (policy := policy_of(container)) is not None:
        built["resources"] = resources_of(policy, pod, others)
    app = [item for item in (pod.get("spec") or {}).get("containers") or () if not is_injected(item)]
    own_mounts, own_devices = container.get("volumeMounts") or [], container.get("volumeDevices") or []
    shared: list[tuple[Json, Json]] = []
    if _is_enabled(container, "shareVolumePolicy"):
        used = {item.get("mountPath") for item in own_mounts} | {item.get("devicePath") for item in own_devices}
        shared = list(_unused(app, "volumeMounts", "mountPath", used))
    mounts = [*own_mounts, *(mount for mount, _ in shared)]
    devices = list(own_devices)
    if _is_enabled(container, "shareVolumeDevicePolicy"):
        used = {item.get("devicePath") for item in own_devices} | {item.get("mountPath") for item in mounts}
        devices += [device for device, _ in _unused(app, "volumeDevices", "devicePath", used)]
    if mounts:
        built["volumeMounts"] = mounts
    if devices:
        built["volumeDevices"] = devices
    own = container.get("env") or ()
    known, added = {variable.get("name") for variable in own}, dict[str, Json]()
    marker: Json = {"name": keys.IS_INJECTED, "value": "true"}
    for variable in (marker, *_transferred(container, pod, app), *_expanded(shared)):
        if (name := variable.get("name")) not in known:
            added.setdefault(str(name), variable)
    built["env"] = [*own, *added.values()]  # own ones as they are: where one stands twice, a kubelet takes the last
    return built


def _is_enabled(container: Json, policy: str) -> bool:
    found = container.get(policy)
    return isinstance(found, dict) and found.get("type") == ENABLED


def _unused(app: Iterable[Json], kind: str, path: str, used: set[Any]) -> Iterator[tuple[Json, Json]]:
    """What containers of the pod have at paths that nothing is at yet, each with its container."""
    for container in app:
        for item in container.get(kind) or ():
            if item.get(path) not in used:
                used.add(item.get(path))
                yield item, container


def _variable(container: Json, name: str) -> Json | None:
    return next((item for item in container.get("env") or () if item.get("name") == name), None)


def _transferred(container: Json, pod: Json, app: Iterable[Json]) -> Iterator[Json]:
    """SCS-51."""
    sources = {name_of(item): item for item in app}
    for item in container.get("transferEnv") or ():
        source = sources.get(_source(item, pod) or "")
        if source is None:
            continue
        names = {item.get("envName"), *(item.get("envNames") or ())} - {None, ""}
        for name in sorted(names):
            if (found := _variable(source, name)) is not None:
                yield found


def _source(item: Json, pod: Json) -> str | None:
    """The name of the container that variables come from."""
    given = item.get("sourceContainerNameFrom")
    reference = given.get("fieldRef") if isinstance(given, dict) else None
    if not isinstance(reference, dict):
        return item.get("sourceContainerName")
    found = FIELD_PATH.fullmatch(str(reference.get("fieldPath", "")))
    if found is None:
        return None
    holder = (pod.get("metadata") or {}).get(found["kind"]) or {}
    return str(holder.get(found["key"], ""))


def _expanded(shared: Iterable[tuple[Json, Json]]) -> Iterator[Json]:
    """SCS-48."""
    for mount, container in shared:
        for name in _EXPANSION.findall(str(mount.get("subPathExpr") or "")):
            if (found := _variable(container, name)) is not None:
                yield found


# Merging


def _merged(present: Sequence[Json], sidecars: Sequence[Sidecar]) -> list[Json]:
    """SCS-59."""
    known = {name_of(item) for item in present}
    replaced = {name_of(item): item for item, _ in sidecars if name_of(item) in known}
    new = [(item, policy) for item, policy in sidecars if name_of(item) not in known]
    return [
        *(item for item, policy in new if policy == BEFORE_APP),
        *(replaced.get(name_of(item), item) for item in present),
        *(item for item, policy in new if policy != BEFORE_APP),
    ]


def _append(spec: Json, kind: str, added: dict[str, Json]) -> None:
    present = spec.get(kind) or []
    known = {item.get("name") for item in present}
    new = [item for name, item in added.items() if name not in known]
    if new:
        spec[kind] = [*present, *new]
