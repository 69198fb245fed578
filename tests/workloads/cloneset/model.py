"""A small pure model of what surrounds the decisions about a CloneSet: a server, kubelets, a garbage collector.

Plans are carried out on plain documents, write by write, with the guards that the real writes carry. There is no
clock and no loop: time passes when a test says so, and things happen in the order that a test says.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.api.resource import Resource
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.guards import guarded_body
from kruise.machinery.patches import json_patch, merge, strategic
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.patches.schema import FieldRule, Fields
from kruise.machinery.plan import Action, OnError, Outcome, Phase, Plan, Result
from kruise.machinery.times import format_time
from kruise.workloads.cloneset.conclude import conclude
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.situation import Snapshot
from tests.machinery.patches.pod_schema import METADATA, POD
from tests.support.outcomes import grouped

Json = dict[str, Any]
T = TypeVar("T")
START = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
UID = "5a1b0b67-0000-4000-8000-000000000001"
BROKEN = "nginx:broken"
"""A container of this image never becomes ready."""

_TYPES: Mapping[str, type[Any]] = {
    "pods": Pod,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "controllerrevisions": ControllerRevision,
    "clonesets": CloneSet,
}
_MERGED = {"pods": POD, "persistentvolumeclaims": Fields({"metadata": FieldRule(child=METADATA)})}
_PARTS = {"": ("metadata", "spec", "revision", "data"), "status": ("metadata", "status"), "resize": ("spec",)}


@dataclasses.dataclass(slots=True)
class Stored:
    """An object as the server keeps it, and its decoded form."""

    document: Json
    decoded: Any


class DeathError(Exception):
    """The manager dies in the middle of a pass, as it was to."""


OnWrite = Callable[[Action], None]


class Model:
    def __init__(self, cloneset: Json, *, gates: Mapping[str, bool] | None = None) -> None:
        self.now = START
        self.gates = dict(gates or {})
        self.writes = 0
        self._version = 0
        self._seed = 0
        self._stores: dict[str, dict[str, Stored]] = {plural: {} for plural in _TYPES}
        self._put("clonesets", cloneset | {"metadata": {**cloneset["metadata"], "uid": UID, "generation": 1}})

    # Reading

    @property
    def cloneset(self) -> CloneSet:
        found: CloneSet = self._stores["clonesets"]["web"].decoded
        return found

    @property
    def pods(self) -> list[Pod]:
        return [stored.decoded for stored in self._stores["pods"].values()]

    @property
    def claims(self) -> list[PersistentVolumeClaim]:
        return [stored.decoded for stored in self._stores["persistentvolumeclaims"].values()]

    @property
    def revisions(self) -> list[ControllerRevision]:
        return [stored.decoded for stored in self._stores["controllerrevisions"].values()]

    def snapshot(self) -> Snapshot:
        self._seed += 1
        return Snapshot(
            cloneset=self.cloneset,
            now=self.now,
            pods=tuple(pod for pod in self.pods if _is_owned(pod)),
            claims=tuple(
                claim for claim in self.claims if _is_owned(claim) and claim.metadata.deletion_timestamp is None
            ),
            revisions=tuple(self.revisions),
            gates=self.gates,
            seed=self._seed,
        )

    # The server

    def _put(self, plural: str, document: Json) -> Stored:
        self._version += 1
        metadata = {**document["metadata"], "resourceVersion": str(self._version)}
        document = {**document, "metadata": metadata}
        stored = Stored(document, codec.convert(document, _TYPES[plural]))
        self._stores[plural][metadata["name"]] = stored
        return stored

    def change(self, resource: Resource[Any], name: str, edit: Callable[[Json], None]) -> None:
        """Somebody else writes."""
        document = copy.deepcopy(self._stores[resource.plural][name].document)
        edit(document)
        if document != self._stores[resource.plural][name].document:
            self._put(resource.plural, document)

    def edit_spec(self, edit: Callable[[Json], None]) -> None:
        def apply(document: Json) -> None:
            before = copy.deepcopy(document["spec"])
            edit(document["spec"])
            if document["spec"] != before:
                document["metadata"]["generation"] += 1

        self.change(CLONE_SETS, "web", apply)

    def write(self, action: Action) -> Outcome:
        """One write of the manager."""
        self.writes += 1
        match action.verb:
            case Verb.CREATE:
                return self._create(action)
            case Verb.PATCH:
                return self._patch(action)
            case Verb.DELETE:
                return self._delete(action)
        raise AssertionError(f"nobody writes like this: {action}")

    def _create(self, action: Action) -> Outcome:
        plural, name = action.target.resource.plural, action.target.name
        found = self._stores[plural].get(name)
        if found is not None:
            owners = found.document["metadata"].get("ownerReferences", [])
            ours = any(owner["uid"] == action.owner_uid for owner in owners if owner.get("controller"))
            return Outcome(action=action, result=Result.DONE if ours else Result.FAILED, error="already exists")
        document: Json = codec.decode(codec.encode(action.body), dict)
        metadata = document["metadata"]
        metadata["uid"] = f"uid-{name}-{self._version}"
        metadata["creationTimestamp"] = format_time(self.now)
        if plural == "pods":
            # What the pod webhook does (IPU-80).
            document["spec"]["readinessGates"].append({"conditionType": keys.KRUISE_POD_READY})
            document["status"] = {"phase": "Pending"}
        return Outcome(action=action, result=Result.DONE, object=self._put(plural, document).decoded)

    def _patch(self, action: Action) -> Outcome:
        plural, name = action.target.resource.plural, action.target.name
        found = self._stores[plural].get(name)
        if found is None:
            return Outcome(action=action, result=Result.GONE)
        body: Any = codec.decode(guarded_body(action), object)
        document = copy.deepcopy(found.document)
        try:
            match action.patch_type:
                case PatchType.JSON:
                    changed = json_patch.apply(document, body)
                case PatchType.STRATEGIC:
                    changed = strategic.apply(document, body, _MERGED[plural])
                case _:
                    changed = merge.apply(document, body)
        except PatchError:
            return Outcome(action=action, result=Result.MOVED)
        for guard in ("uid", "resourceVersion"):
            if changed["metadata"].get(guard) != found.document["metadata"][guard]:
                return Outcome(action=action, result=Result.MOVED)
        # As a server does it: each door lets only its own parts through.
        document = {**document, **{part: changed[part] for part in _PARTS[action.subresource] if part in changed}}
        if plural == "clonesets" and document["spec"] != found.document["spec"]:
            document["metadata"]["generation"] += 1
        if plural == "pods":
            _check_conditions(document)
        stored = self._put(plural, document) if document != found.document else found
        return Outcome(action=action, result=Result.DONE, object=stored.decoded)

    def _delete(self, action: Action) -> Outcome:
        plural, name = action.target.resource.plural, action.target.name
        found = self._stores[plural].get(name)
        if found is None or found.document["metadata"]["uid"] != action.uid:
            return Outcome(action=action, result=Result.DONE)
        if action.resource_version and found.document["metadata"]["resourceVersion"] != action.resource_version:
            return Outcome(action=action, result=Result.MOVED)
        self.delete(action.target.resource, name)
        return Outcome(action=action, result=Result.DONE)

    def delete(self, resource: Resource[Any], name: str) -> None:
        """Pods end when their kubelet says so, claims when no pod has them."""
        if resource in (PODS, PERSISTENT_VOLUME_CLAIMS):
            self.change(
                resource,
                name,
                lambda document: document["metadata"].setdefault("deletionTimestamp", format_time(self.now)),
            )
            self._collect()
        else:
            del self._stores[resource.plural][name]

    def _collect(self) -> None:
        """Claims whose owner is gone, or that were deleted and that nobody mounts any more."""
        uids = {UID} | {pod.metadata.uid for pod in self.pods}
        mounted = {name for pod in self.pods for name in mounted_claims(pod)}
        for claim in self.claims:
            metadata = claim.metadata
            owners = {reference.uid for reference in metadata.owner_references}
            is_over = metadata.deletion_timestamp is not None or not owners & uids
            if is_over and metadata.name not in mounted:
                del self._stores["persistentvolumeclaims"][metadata.name]

    # The manager

    def reconcile(
        self,
        *,
        die_at: int | None = None,
        seen: Callable[[Snapshot, Plan], None] | None = None,
        between: Callable[[], None] | None = None,
        on_write: OnWrite | None = None,
    ) -> Plan:
        """One pass. `die_at`: the write, counted from 0, that is not done any more; `between`: what happens after the
        decision and before the first write."""
        snapshot = self.snapshot()
        plan = decide(snapshot)
        if seen is not None:
            seen(snapshot, plan)
        if between is not None:
            between()
        counted = iter(range(1_000_000))

        def carry_out(action: Action) -> Outcome:
            if next(counted) == die_at:
                raise DeathError
            outcome = self.write(action)
            if on_write is not None and outcome.result is Result.DONE:
                on_write(action)
            return outcome

        with contextlib.suppress(DeathError):
            outcomes = grouped(plan, _carried_out(plan, carry_out))
            conclusion = conclude(snapshot, plan, outcomes)
            if conclusion.status is not None:
                carry_out(conclusion.status)
        return plan

    # Kubelets and schedulers

    def kubelet(self, name: str) -> bool:
        """The next thing that happens to a pod by itself; whether there was any."""
        stored = self._stores["pods"].get(name)
        if stored is None:
            return False
        document = stored.document
        if "deletionTimestamp" in document["metadata"]:
            if document["metadata"].get("finalizers"):
                return False
            del self._stores["pods"][name]
            self._collect()
            return True
        if document["status"]["phase"] in ("Failed", "Succeeded"):
            return False
        self.change(PODS, name, lambda document: _kubelet_step(document, self.now))
        return self._stores["pods"][name] is not stored

    def crash(self, name: str) -> None:
        """A container stops being ready; the kubelet brings it back."""

        def apply(document: Json) -> None:
            for status in document["status"].get("containerStatuses", []):
                status["ready"] = False
                status["restartCount"] += 1
            _set_readiness(document, self.now)

        self.change(PODS, name, apply)

    def fail(self, name: str) -> None:
        """Evicted: over for good, but still there."""
        self.change(PODS, name, lambda document: document["status"].update(phase="Failed"))

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def _carried_out(plan: Plan, write: Callable[[Action], Outcome]) -> Iterator[Outcome]:
    """What the applier does, one write after the other."""
    changed: set[str] = set()
    go_on = True
    for phase in plan.phases:
        skipped = not go_on or not changed.isdisjoint(phase.unless_done)
        outcomes = list(_phase(phase, write, skipped))
        if any(outcome.result is Result.DONE for outcome in outcomes):
            changed.add(phase.name)
        failed = any(outcome.result is not Result.DONE for outcome in outcomes)
        if not skipped and failed and phase.on_error is OnError.STOP_PLAN:
            go_on = False
        yield from outcomes


def _phase(phase: Phase, write: Callable[[Action], Outcome], skipped: bool) -> Iterator[Outcome]:
    closed = skipped
    for chain in phase.chains:
        broken = closed
        for action in chain:
            outcome = Outcome(action=action, result=Result.SKIPPED) if broken else write(action)
            broken = broken or outcome.result is not Result.DONE
            if outcome.result is Result.FAILED and phase.on_error is not OnError.CONTINUE:
                closed = True
            yield outcome


def _is_owned(obj: Any) -> bool:
    return any(reference.uid == UID and reference.controller for reference in obj.metadata.owner_references)


def mounted_claims(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def _check_conditions(document: Json) -> None:
    kinds = [item["type"] for item in document["status"].get("conditions", [])]
    assert len(kinds) == len(set(kinds)), f"two conditions of one type: {kinds}"


def _kubelet_step(document: Json, now: datetime) -> None:
    spec, status = document["spec"], document["status"]
    if "nodeName" not in spec:
        spec["nodeName"] = f"node-{sum(document['metadata']['name'].encode()) % 3}"
        return
    statuses = {item["name"]: item for item in status.get("containerStatuses", [])}
    for container in spec["containers"]:
        known = statuses.get(container["name"])
        if known is None or known["image"] != container["image"]:
            statuses[container["name"]] = {
                "name": container["name"],
                "image": container["image"],
                "imageID": f"id of {container['image']}",
                "ready": False,
                "restartCount": 0 if known is None else known["restartCount"] + 1,
            }
            break
        if not known["ready"] and container["image"] != BROKEN:
            known["ready"] = True
            break
    status["phase"] = "Running"
    status["containerStatuses"] = list(statuses.values())
    _set_readiness(document, now)


def _set_readiness(document: Json, now: datetime) -> None:
    status = document["status"]
    conditions = {item["type"]: item for item in status.setdefault("conditions", [])}
    gates = [gate["conditionType"] for gate in document["spec"].get("readinessGates", [])]
    containers = bool(status.get("containerStatuses")) and all(item["ready"] for item in status["containerStatuses"])
    ready = containers and all(conditions.get(gate, {}).get("status") == "True" for gate in gates)
    for kind, holds in (("ContainersReady", containers), ("Ready", ready)):
        found = conditions.get(kind)
        if found is None or found["status"] != str(holds):
            conditions[kind] = {"type": kind, "status": str(holds), "lastTransitionTime": format_time(now)}
    status["conditions"] = list(conditions.values())
