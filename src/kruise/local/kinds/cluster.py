"""What the API server refuses about Namespaces, Nodes, Leases, Events, EndpointSlices, budgets and priority classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kruise.api.core import formats, quantities
from kruise.api.core.field_errors import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct
from kruise.local.apicore.errors import Json
from kruise.local.kinds import checks
from kruise.local.kinds.checks import METADATA, SPEC, STATUS

FINALIZER: Final = "kubernetes"

# Namespaces


def new_namespace(obj: Json) -> Json:
    """A namespace knows its own name as a label, and is kept until its content is gone."""
    labels = {**(obj["metadata"].get("labels") or {}), "kubernetes.io/metadata.name": obj["metadata"]["name"]}
    finalizers = list((obj.get("spec") or {}).get("finalizers") or ())
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    about = {**obj["metadata"], "labels": labels}
    return {**obj, "metadata": about, "spec": {"finalizers": finalizers}, "status": {"phase": "Active"}}


def changed_namespace(new: Json, old: Json) -> Json:
    """Only `finalize` changes what keeps a namespace."""
    return {**new, "spec": old["spec"], "status": old["status"]}


def finalized_namespace(new: Json, old: Json) -> Json:
    return {**new, "status": old["status"]}


def namespace_is_held(obj: Json) -> bool:
    return bool((obj.get("spec") or {}).get("finalizers"))


def marked_namespace(obj: Json) -> Json:
    about = {name: value for name, value in obj["metadata"].items() if name != "deletionGracePeriodSeconds"}
    return {**obj, "metadata": about, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}


def namespace(new: Struct, old: Struct | None) -> Errors:
    yield from _finalizers(new, old)


def namespace_finalizers(new: Struct, old: Struct | None) -> Errors:
    yield from _finalizers(new, None)


def _finalizers(new: Struct, old: Struct | None) -> Errors:
    if old is not None:
        return
    for finalizer in (new.get("spec") or {}).get("finalizers") or ():
        found = formats.qualified_name(finalizer)
        yield from common.complaints(SPEC.child("finalizers"), finalizer, found)
        if not found and "/" not in finalizer and finalizer not in (FINALIZER, "orphan", "foregroundDeletion"):
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(SPEC.child("finalizers"), finalizer, text)


def namespace_status(new: Struct, old: Struct | None) -> Errors:
    phase = (new.get("status") or {}).get("phase", "")
    if "deletionTimestamp" not in new["metadata"]:
        if phase != "Active":
            yield invalid(STATUS.child("Phase"), phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        yield invalid(STATUS.child("Phase"), phase, text)


# Nodes


_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ONCE: Final = 'node updates may not change podCIDR except from "" to valid'


def node(new: Struct, old: Struct | None) -> Errors:
    spec, status = new["spec"], new["status"]
    yield from _taints(METADATA.child("taints"), spec.get("taints") or ())
    for field in ("capacity", "allocatable"):
        for name, value in (status.get(field) or {}).items():
            if quantities.sign(value) < 0:
                yield invalid(STATUS.child(field, name), value, common.NEGATIVE)
    if old is None:
        return
    seen: list[Any] = []
    for position, address in enumerate(status.get("addresses") or ()):
        if address in seen:
            yield duplicate(STATUS.child("addresses").at(position), address)
        seen.append(address)
    before = old["spec"]
    if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
        yield forbidden(SPEC.child("podCIDRs"), _ONCE)
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        text = 'node updates may not change providerID except from "" to valid'
        yield forbidden(SPEC.child("providerID"), text)


def _taints(path: Path, taints: Sequence[Struct]) -> Errors:
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        where, key, effect = path.at(position), taint["key"], taint["effect"]
        yield from common.label_name(where.child("key"), key)
        wrong = formats.label_value(taint.get("value", ""))
        if wrong:
            yield invalid(where.child("value"), taint["value"], ";".join(wrong))
        yield from common.choice(where.child("effect"), effect, _TAINT_EFFECTS)
        if (effect, key) in seen:
            found = duplicate(where, checks.shown(taint, "core.Taint"))
            yield FieldError(found.type, found.path, found.value, "taints must be unique by key and effect pair")
        seen.add((effect, key))


def new_node(obj: Json) -> Json:
    """One pod network and the list of them say the same."""
    return _pod_networks(obj)


def changed_node(new: Json, old: Json) -> Json:
    return _pod_networks(new)


def _pod_networks(obj: Json) -> Json:
    spec = obj["spec"]
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        return {**obj, "spec": {**spec, "podCIDRs": [spec["podCIDR"]]}}
    if spec.get("podCIDRs") and not spec.get("podCIDR"):
        return {**obj, "spec": {**spec, "podCIDR": spec["podCIDRs"][0]}}
    return obj


# Leases, events, budgets, priorities, slices


def lease(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    seconds, changes = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid(SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0")
    if changes is not None and changes < 0:
        yield invalid(SPEC.child("leaseTransitions"), changes, common.NEGATIVE)
    if spec.get("preferredHolder") and not spec.get("strategy"):
        yield forbidden(SPEC.child("preferredHolder"), "may only be specified if `strategy` is defined")


_EVENT_LIMITS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def event(new: Struct, old: Struct | None) -> Errors:
    about, involved = new["metadata"].get("namespace", ""), new["involvedObject"].get("namespace", "")
    where = Path("involvedObject").child("namespace")
    if new.get("eventTime") is None:
        if involved != about and (involved or about != "default"):
            yield invalid(where, involved, "does not match event.namespace")
        return
    if not involved and about not in ("default", "kube-system"):
        yield invalid(where, involved, "does not match event.namespace")
    component = new["reportingComponent"]
    if not component:
        yield required("reportingComponent")
    yield from common.complaints("reportingComponent", component, formats.qualified_name(component))
    for name, limit in _EVENT_LIMITS.items():
        text = new.get(name, "")
        if not text and name != "message":
            yield required(name)
        if formats.byte_length(text) > limit:
            yield invalid(name, "", f"can have at most {limit} characters")


def budget(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    available, unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
    if available is not None and unavailable is not None:
        shown = {**checks.shown(spec, "policy.PodDisruptionBudgetSpec"), "Selector": spec.get("selector")}
        yield invalid(SPEC, shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", available), ("maxUnavailable", unavailable)):
        if value is not None:
            yield from checks.int_or_percent(SPEC.child(name), value)
            yield from checks.at_most_all(SPEC.child(name), value)
    yield from common.label_selector(SPEC.child("selector"), spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    supported = ("AlwaysAllow", "IfHealthyBudget")
    yield from checks.one_of(SPEC.child("unhealthyPodEvictionPolicy"), policy, supported)


def budget_status(new: Struct, old: Struct | None) -> Errors:
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    yield from checks.non_negative_fields(STATUS, new["status"], names)


SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
HIGHEST_USER_PRIORITY: Final = 1_000_000_000


def new_priority_class(obj: Json) -> Json:
    """The first generation is the only one."""
    return {**obj, "metadata": {**obj["metadata"], "generation": 1}}


def priority_class(new: Struct, old: Struct | None) -> Errors:
    if old is not None:
        if new["value"] != old["value"]:
            yield forbidden("value", "may not be changed in an update.")
        yield from checks.immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))
        return
    name, value = new["metadata"].get("name", ""), new["value"]
    if name.startswith("system-"):
        problem = _why_not_a_system_class(name, value, bool(new.get("globalDefault")))
        if problem:
            prefix = "priority class names with 'system-' prefix are reserved for system use only. error: "
            yield forbidden(METADATA.child("name"), prefix + problem)
    elif value > HIGHEST_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
    policy = new.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        yield not_supported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _why_not_a_system_class(name: str, value: int, is_default: bool) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def endpoint_slice(new: Struct, old: Struct | None) -> Errors:
    kind = new["addressType"]
    yield from common.choice("addressType", kind, _ADDRESS_TYPES)
    names: set[str] = set()
    for position, port in enumerate(new.get("ports") or ()):
        where, name = Path("ports").at(position), port["name"]
        if name:
            yield from checks.dns_label(where.child("name"), name)
        if name in names:
            yield duplicate(where.child("name"), name)
        names.add(name)
        yield from checks.one_of(where.child("protocol"), port["protocol"], _PROTOCOLS)
    for position, endpoint in enumerate(new.get("endpoints") or ()):
        yield from _endpoint(Path("endpoints").at(position), endpoint, kind)
    if old is not None:
        yield from checks.immutable("addressType", kind, old["addressType"])


def _endpoint(path: Path, endpoint: Struct, kind: str) -> Errors:
    addresses = endpoint["addresses"] or ()
    if not addresses:
        yield required(path.child("addresses"), "must contain at least 1 address")
    for position, address in enumerate(addresses):
        where = path.child("addresses").at(position)
        if kind in ("IPv4", "IPv6"):
            wrong = formats.ip_address(address)
            yield from common.complaints(where, address, wrong)
            if not wrong and (":" in address) != (kind == "IPv6"):
                yield invalid(path.child("addresses"), address, f"must be an {kind} address")
            yield from checks.endpoint_address(where, address)
    if endpoint.get("nodeName") is not None:
        found = formats.dns_subdomain(endpoint["nodeName"])
        yield from common.complaints(path.child("nodeName"), endpoint["nodeName"], found)
    if endpoint.get("hostname") is not None:
        yield from checks.dns_label(path.child("hostname"), endpoint["hostname"])
