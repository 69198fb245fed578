"""A whole pod spec, in the order in which the API server checks it."""

from __future__ import annotations

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, invalid, required
from kruise.api.core.validation import (
    common,
    containers,
    environment,
    network,
    operating_system,
    resources,
    scheduling,
    security,
    volumes,
)
from kruise.api.core.validation.common import Errors, Rules, Struct
from kruise.api.core.validation.containers import Surroundings

_NAMED_OBJECTS = ("serviceAccountName", "nodeName")


def pod_spec(path: Path, spec: Struct, rules: Rules, *, pod_name: str = "") -> Errors:
    grace_period = spec.get("terminationGracePeriodSeconds")
    if grace_period is None:
        yield required(path.child("terminationGracePeriodSeconds"))
    sound_volumes, volume_errors = volumes.volumes(path.child("volumes"), spec.get("volumes") or (), rules, pod_name)
    yield from volume_errors
    claims = spec.get("resourceClaims") or ()
    yield from resources.pod_claims(path.child("resourceClaims"), claims)
    around = Surroundings(
        volumes=sound_volumes,
        claims=common.names(claims) - {""},
        restart_policy=spec.get("restartPolicy", ""),
        grace_period=grace_period,
        os_name=(spec.get("os") or {}).get("name"),
        host_users=spec.get("hostUsers") is not False,
        rules=rules,
    )
    yield from _containers(path, spec, around)
    yield from resources.pod_requirements(path.child("resources"), spec, around.claims)
    yield from network.host_network(path, spec, rules)
    yield from common.choice(path.child("restartPolicy"), around.restart_policy, ("Always", "OnFailure", "Never"))
    yield from network.dns_policy(path.child("dnsPolicy"), spec.get("dnsPolicy", ""))
    yield from common.label_set(path.child("nodeSelector"), spec.get("nodeSelector"))
    yield from security.pod_context(path.child("securityContext"), spec)
    yield from _scheduling(path, spec)
    yield from operating_system.host_process(path, spec, rules)
    yield from network.host_users(path, spec)
    yield from network.hostname_override(path, spec)
    yield from _names_and_numbers(path, spec)
    yield from operating_system.operating_system(path, spec)
    yield from environment.file_reference_volumes(path, spec)


def _containers(path: Path, spec: Struct, around: Surroundings) -> Errors:
    regular, init = spec.get("containers") or (), spec.get("initContainers") or ()
    regular_names, init_names = common.names(regular), common.names(init)
    yield from containers.regular(path.child("containers"), regular, around)
    yield from containers.init(path.child("initContainers"), init, regular_names, around)
    ephemeral = spec.get("ephemeralContainers") or ()
    yield from containers.ephemeral(path.child("ephemeralContainers"), ephemeral, regular_names | init_names, around)


def _scheduling(path: Path, spec: Struct) -> Errors:
    yield from scheduling.affinity(path.child("affinity"), spec.get("affinity"))
    yield from network.dns_config(path.child("dnsConfig"), spec.get("dnsConfig"), spec.get("dnsPolicy", ""))
    yield from scheduling.readiness_gates(path.child("readinessGates"), spec.get("readinessGates") or ())
    yield from scheduling.scheduling_gates(path.child("schedulingGates"), spec.get("schedulingGates") or ())
    constraints = spec.get("topologySpreadConstraints") or ()
    yield from scheduling.spread_constraints(path.child("topologySpreadConstraints"), constraints)


def _names_and_numbers(path: Path, spec: Struct) -> Errors:
    for field in _NAMED_OBJECTS:
        name = spec.get(field, "")
        if name:
            yield from common.complaints(path.child(field), name, formats.dns_subdomain(name))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= formats.MAX_INT32:
        yield invalid(path.child("activeDeadlineSeconds"), deadline, formats.range_words(1, formats.MAX_INT32))
    yield from network.host_names(path, spec)
    yield from scheduling.tolerations(path.child("tolerations"), spec.get("tolerations") or ())
    yield from network.host_aliases(path.child("hostAliases"), spec.get("hostAliases") or ())
    if spec.get("priorityClassName"):
        name = spec["priorityClassName"]
        yield from common.complaints(path.child("priorityClassName"), name, formats.dns_subdomain(name))
    runtime_class = spec.get("runtimeClassName")
    if runtime_class is not None:
        found = formats.dns_subdomain(runtime_class)
        yield from common.complaints(path.child("runtimeClassName"), runtime_class, found)
    if spec.get("preemptionPolicy") is not None:
        where = path.child("preemptionPolicy")
        yield from common.choice(where, spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"))
    if spec.get("overhead"):
        yield from resources.overhead(path.child("overhead"), spec["overhead"])
