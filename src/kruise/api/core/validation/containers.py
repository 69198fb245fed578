"""The containers of a pod: regular, init (sidecars among them) and ephemeral."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

from kruise.api.core import formats, pod_resources
from kruise.api.core.field_errors import (
    FORBIDDEN,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from kruise.api.core.validation import common, environment, mounts, network, probes, resources, security
from kruise.api.core.validation.common import Errors, Rules, Struct

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_ONLY_FOR_SIDECARS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_NO_EPHEMERAL_WORDS = "cannot be set for an Ephemeral Container"


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What containers are checked against: the rest of the pod spec."""

    volumes: Mapping[str, Struct]
    claims: Collection[str]
    restart_policy: str
    grace_period: int | None
    os_name: str | None
    host_users: bool
    rules: Rules


def regular(path: Path, given: Sequence[Struct], around: Surroundings) -> Errors:
    if not given:
        yield required(path)
        return
    seen: set[str] = set()
    for position, container in enumerate(given):
        where, name = path.at(position), container["name"]
        yield from _common(where, container, around)
        if name in seen:
            yield duplicate(where.child("name"), name)
        seen.add(name)
        yield from probes.lifecycle(
            where.child("lifecycle"), container.get("lifecycle"), around.grace_period, around.os_name
        )
        yield from probes.container_probes(where, container, around.grace_period)
        if container.get("restartPolicy") is not None:
            yield forbidden(where.child("restartPolicy"), "may not be set for non-init containers")
    yield from network.host_port_conflicts(path, given)


def init(path: Path, given: Sequence[Struct], regular_names: Collection[str], around: Surroundings) -> Errors:
    seen = set(regular_names)
    for position, container in enumerate(given):
        where, name = path.at(position), container["name"]
        yield from _common(where, container, around)
        policy = container.get("restartPolicy")
        if policy is not None and policy != "Always":
            yield not_supported(where.child("restartPolicy"), policy, ("Always",))
        if name in seen:
            yield duplicate(where.child("name"), name)
        elif name:
            seen.add(name)
        yield from network.host_port_conflicts(path, (container,))
        if pod_resources.is_sidecar(container):
            yield from probes.lifecycle(
                where.child("lifecycle"), container.get("lifecycle"), around.grace_period, around.os_name
            )
            yield from probes.container_probes(where, container, around.grace_period)
            continue
        for field in _ONLY_FOR_SIDECARS:
            if container.get(field) is not None:
                yield forbidden(where.child(field), "may not be set for init containers without restartPolicy=Always")


def ephemeral(path: Path, given: Sequence[Struct], other_names: Collection[str], around: Surroundings) -> Errors:
    seen = set(other_names)
    for position, container in enumerate(given):
        where, name = path.at(position), container["name"]
        yield from _common(where, container, around)
        yield from image_whitespace(where, container)
        if name in seen:
            yield duplicate(where.child("name"), name)
        seen.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in other_names:
            yield not_found(where.child("targetContainerName"), target)
        for field in _NOT_EPHEMERAL:
            if container.get(field) is not None and (field != "resources" or container["resources"]):
                yield forbidden(where.child(field), _NO_EPHEMERAL_WORDS)
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    yield forbidden(where.child("volumeMounts").at(number).child(field), _NO_EPHEMERAL_WORDS)


def ephemeral_alone(path: Path, given: Sequence[Struct], rules: Rules) -> Errors:
    """Ephemeral containers without a pod around them. What may not be set at all is not looked into, but for the form
    of ports."""
    around = Surroundings(
        volumes=_Anything(),
        claims=(),
        restart_policy="",
        grace_period=None,
        os_name=None,
        host_users=True,
        rules=rules,
    )
    plain = [{name: value for name, value in one.items() if name != "targetContainerName"} for one in given]
    for error in ephemeral(path, plain, (), around):
        inside = error.path.removeprefix(path).partition("].")[2].partition(".")[0].partition("[")[0]
        is_banned = error.type == FORBIDDEN and error.path.endswith(f".{inside}")
        if inside == "ports" or inside not in _NOT_EPHEMERAL or is_banned:
            yield error


class _Anything(Mapping[str, Struct]):
    """Volumes of a pod that is not known: whichever is named is there, and can be mounted in any way."""

    def __getitem__(self, name: str) -> Struct:
        return {"name": name, "persistentVolumeClaim": {"claimName": name}}

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return True


def _common(path: Path, container: Struct, around: Surroundings) -> Errors:
    yield from common.required_and(path.child("name"), container["name"], formats.dns_label)
    if not container.get("image"):
        yield required(path.child("image"))
    message_policy = container.get("terminationMessagePolicy", "")
    yield from common.choice(path.child("terminationMessagePolicy"), message_policy, _MESSAGE_POLICIES)
    yield from network.ports(path.child("ports"), container.get("ports") or ())
    yield from environment.variables(path.child("env"), container.get("env") or ())
    yield from environment.sources(path.child("envFrom"), container.get("envFrom") or ())
    yield from mounts.volume_mounts(path.child("volumeMounts"), container, around.volumes)
    yield from mounts.volume_devices(path.child("volumeDevices"), container, around.volumes)
    yield from common.choice(path.child("imagePullPolicy"), container.get("imagePullPolicy", ""), _PULL_POLICIES)
    requirements = container.get("resources") or {}
    yield from resources.container_requirements(path.child("resources"), requirements, around.claims)
    policies = container.get("resizePolicy") or ()
    yield from resources.resize_policies(path.child("resizePolicy"), policies, around.restart_policy)
    yield from security.container_context(
        path.child("securityContext"),
        container.get("securityContext"),
        host_users=around.host_users,
        rules=around.rules,
    )


def image_whitespace(path: Path, container: Struct) -> Errors:
    """Only pods are checked for this: templates may hold a placeholder that someone replaces."""
    image = container.get("image", "")
    if image.strip() != image:
        yield invalid(path.child("image"), image, "must not have leading or trailing whitespace")
