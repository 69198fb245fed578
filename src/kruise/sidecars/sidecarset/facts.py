"""What is true of a pod with regard to a SidecarSet whose sidecars it has (SCS-63, SCS-83 to 87, SCS-95, SCS-96)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kruise.api.core.images import reference_of, repository_and_digest
from kruise.api.native.container_reasons import NO_IMAGE, NO_START
from kruise.api.native.pod import Container, ContainerStatus, Pod, is_ready
from kruise.inplace.barriers import waits_for_turn
from kruise.inplace.hashes import containers_meta_of, plain_hash
from kruise.inplace.state import BrokenAnnotation
from kruise.machinery.remembered import once_per_object
from kruise.machinery.wording import full_name
from kruise.sidecars.sidecarset import keys, records
from kruise.sidecars.sidecarset.content import Content, Json, is_hot, name_of, names_in_pods, twins_of
from kruise.sidecars.sidecarset.records import RecordError, UpdateState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The annotations of a pod, read once."""

    hashes: Mapping[str, Any]
    without_image: Mapping[str, Any]
    states: Mapping[str, Any]
    working: Mapping[str, str]
    states_error: str = ""
    """Why the states cannot be read."""
    error: str = ""
    """Why one of them cannot be read."""


@once_per_object
def noted(pod: Pod) -> Noted:
    annotations, errors = pod.metadata.annotations, dict[str, str]()

    def read(key: str, reader: Any, *more: Any) -> Any:
        try:
            return reader(annotations, *more)
        except RecordError as error:
            errors[key] = str(error)
            return {}

    return Noted(
        hashes=read(keys.HASH, records.raw_records, keys.HASH),
        without_image=read(keys.HASH_WITHOUT_IMAGE, records.raw_records, keys.HASH_WITHOUT_IMAGE),
        states=read(keys.UPDATE_STATE, records.update_states),
        working=read(keys.WORKING, records.working_twins),
        states_error=errors.get(keys.UPDATE_STATE, ""),
        error=next(iter(errors.values()), ""),
    )


@once_per_object
def injected_sets(pod: Pod) -> tuple[str, ...]:
    return records.injected(pod.metadata.annotations)


def recorded_hash(entries: Mapping[str, Any], name: str) -> str:
    entry = entries.get(name)
    return str(entry.get("hash", "")) if isinstance(entry, dict) else ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """The two containers of a hot-upgraded sidecar in a pod."""

    name: str
    working: str
    other: str
    empty_image: str

    @classmethod
    def of(cls, container: Json, working: Mapping[str, str]) -> Twins:
        name = name_of(container)
        first, second = twins_of(name)
        is_first = working.get(name) == first
        strategy = container.get("upgradeStrategy") or {}
        return cls(
            name=name,
            working=first if is_first else second,
            other=second if is_first else first,
            empty_image=str(strategy.get("hotUpgradeEmptyImage") or ""),
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SidecarFacts:
    """A pod that is managed by a SidecarSet."""

    pod: Pod
    is_updated: bool
    is_upgradable: bool
    is_selected: bool
    """The update strategy lets it be updated."""
    is_consistent: bool
    is_ready: bool
    is_settled: bool
    twins: tuple[Twins, ...] = ()
    failure: str = ""
    """Why a sidecar of an updated pod does not start, in a few words."""
    spelling: str = ""
    """How its node calls an image whose digest is right, and whose name is not the one that the pod asks for."""

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def full_name(self) -> str:
        """A SidecarSet looks after pods of many namespaces."""
        return full_name(self.pod.metadata.namespace, self.name)

    @property
    def serves(self) -> bool:
        """Consistent and ready: as the status counts it (SCS-86)."""
        return self.is_consistent and self.is_ready

    @property
    def awaits_reset(self) -> bool:
        return any(image_of(self.pod, twins.other) != twins.empty_image for twins in self.twins)


def image_of(pod: Pod, container: str) -> str:
    return next((item.image for item in pod.spec.containers if item.name == container), "")


def is_managed(pod: Pod, content: Content) -> bool:
    """Whether the pod has every container of the SidecarSet (SCS-63c)."""
    names = _container_names(pod)
    for container in content.containers:
        name = name_of(container)
        if is_hot(container):
            if name not in noted(pod).working or not names.issuperset(twins_of(name)):
                return False
        elif name not in names:
            return False
    return True


@once_per_object
def _container_names(pod: Pod) -> frozenset[str]:
    return frozenset(item.name for item in (*pod.spec.containers, *pod.spec.init_containers))


def facts_of(pod: Pod, content: Content, *, is_selected: bool) -> SidecarFacts:
    told = noted(pod)
    twins = tuple(Twins.of(one, told.working) for one in content.containers if is_hot(one))
    names = contributed(content)
    state = state_in(told, content.owner)
    consistent = is_consistent(pod, names, state)
    updated = recorded_hash(told.hashes, content.owner) == content.hash
    ready = pod.status.phase == "Running" and is_ready(pod) and pod.metadata.deletion_timestamp is None
    idle = all(image_of(pod, one.other) == one.empty_image for one in twins)
    return SidecarFacts(
        pod=pod,
        is_updated=updated,
        is_upgradable=recorded_hash(told.without_image, content.owner) == content.hash_without_image,
        is_selected=is_selected,
        is_consistent=consistent,
        is_ready=ready and idle,
        is_settled=consistent
        or not any(
            status.ready and status.name in names and not is_consistent(pod, {status.name}, state)
            for status in pod.status.container_statuses
        ),
        twins=twins,
        failure=_failure(pod, names, state) if not ready or not consistent else "",
        spelling=_spelling(pod, names) if not consistent else "",
    )


def contributed(content: Content) -> frozenset[str]:
    """The containers that a SidecarSet contributes, as pods call them."""
    return frozenset(name for one in content.containers for name in names_in_pods(one, "containers"))


def state_in(told: Noted, name: str) -> UpdateState | str | None:
    """What is noted of the last update by a SidecarSet. A text: it cannot be read."""
    entry = told.states.get(name)
    if told.states_error:
        return told.states_error
    if entry is None:
        return None
    try:
        return records.state_of(entry)
    except RecordError as error:
        return str(error)


def is_consistent(pod: Pod, names: Collection[str], state: UpdateState | str | None) -> bool:
    """Whether these containers run the images that the pod asks for (SCS-84).

    A container that was changed before it ever ran counts when it runs the image that it was changed to: the node may
    have begun with the old one.
    """
    own = [item for item in pod.spec.containers if item.name in names]
    if not own:
        return True
    statuses = {status.name: status for status in pod.status.container_statuses}
    if len(statuses) != len(pod.spec.containers):
        return False
    if _are_digests(own):
        return all(_has_digest(statuses.get(item.name), item.image) for item in own)
    if state is None:
        return True
    if isinstance(state, str):
        return False
    last = state.last_container_statuses
    return all(
        item.name not in last or _has_arrived(pod, statuses.get(item.name), item.image, last[item.name].image_id)
        for item in own
    )


def _are_digests(containers: Iterable[Container]) -> bool:
    """Whether they are compared by what nodes say that they run; where one is named by its tag, none is."""
    return all("@" in item.image for item in containers)


def _has_digest(status: ContainerStatus | None, image: str) -> bool:
    return status is not None and _repository_and_digest(_ran(status)) == _repository_and_digest(image)


def _ran(status: ContainerStatus) -> str:
    return status.image_id.rpartition("://")[2]


def _repository_and_digest(image: str) -> tuple[str, str]:
    """To the letter, without the tag that may stand between them."""
    name, _, digest = image.partition("@")
    place = name.rfind(":")
    return (name[:place] if place > name.rfind("/") else name), digest


def spelled_out(image: str) -> str:
    """How nodes call an image that is named by its digest, such as `docker.io/library/x@sha256:…` for `x@sha256:…`;
    empty: just so, or it is named by a tag."""
    whole = repository_and_digest(image)
    return f"{whole[0]}@{whole[1]}" if whole is not None and whole != _repository_and_digest(image) else ""


def _spelling(pod: Pod, names: Collection[str]) -> str:
    """An image that is named by its digest and runs, but is called otherwise, never counts as the one that was asked
    for (SCS-84)."""
    own = [item for item in pod.spec.containers if item.name in names]
    if not _are_digests(own):
        return ""
    images = {item.name: _repository_and_digest(item.image) for item in own}
    for status in pod.status.container_statuses:
        asked, ran = images.get(status.name), _repository_and_digest(_ran(status))
        if asked is not None and asked != ran and asked[1] == ran[1]:
            return f"{ran[0]}@{ran[1]}"
    return ""


def _has_arrived(pod: Pod, status: ContainerStatus | None, image: str, before: str) -> bool:
    if status is None:
        return False
    if _runs_as_told(pod, status, image):
        return True
    wanted = reference_of(image)
    same_name = wanted is not None and reference_of(status.image) == wanted
    if before:
        return status.image_id != before or same_name
    return bool(status.image_id) and (same_name or status.image.startswith("sha256:"))


def _runs_as_told(pod: Pod, status: ContainerStatus, image: str) -> bool:
    """By what the node daemon says of the container that runs: two names of one image are told apart so."""
    try:
        meta = containers_meta_of(pod)
    except BrokenAnnotation:
        return False
    for item in meta.containers if meta is not None else ():
        if item.name == status.name:
            return bool(
                item.container_id
                and item.container_id == status.container_id
                and item.hashes.plain_hash == plain_hash(status.name, image)
            )
    return False


def _failure(pod: Pod, names: Iterable[str], state: UpdateState | str | None) -> str:
    """Between two tries to get a new image, a kubelet calls the end of the old container a crash: that is none. Nor is
    it one that a container waits until those before it are ready."""
    for status in pod.status.container_statuses:
        waiting = status.state.waiting
        if status.name not in names or waiting is None or waits_for_turn(pod, status):
            continue
        if waiting.reason in NO_IMAGE:
            image = image_of(pod, status.name)
            if not waiting.message or image in waiting.message:
                return f"{waiting.reason} of container {status.name}, image {image}"
        elif waiting.reason in NO_START and is_consistent(pod, {status.name}, state):
            return f"{waiting.reason} of container {status.name}"
    return ""
