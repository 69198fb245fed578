"""What a Troupe needs, decided from a snapshot."""

from datetime import datetime

from kruise.api.meta import PartialObject
from kruise.api.native.pod import PODS, Pod, condition
from kruise.api.resource import Resource
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct, field
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, ChainOutcomes, Conclusion, EventNote, Outcomes, Plan, Target, single
from kruise.machinery.times import format_time

SEEN = "toy.pykruise.dev/Seen"


class Spec(Struct):
    replicas: int = 1
    image: str = ""


class Troupe(PartialObject):
    spec: Spec = Spec()
    status: dict[str, int] = field(default_factory=dict)


TROUPES = Resource("toy.pykruise.dev", "v1", "troupes", "Troupe", True, Troupe)


class Snapshot(Struct):
    troupe: Troupe
    pods: tuple[Pod, ...]
    now: datetime


def decide(snapshot: Snapshot) -> Plan:
    troupe, spec, there = snapshot.troupe, snapshot.troupe.spec, {pod.metadata.name for pod in snapshot.pods}
    wanted = [f"{troupe.metadata.name}-{number}" for number in range(spec.replicas)]
    kept = [pod for pod in snapshot.pods if pod.metadata.name in wanted]
    mark_of = {"type": SEEN, "status": "True", "lastTransitionTime": format_time(snapshot.now)}
    seen = {"status": {"conditions": [mark_of]}}
    image = {"spec": {"containers": [{"name": "main", "image": spec.image}]}}
    create_missing = single("create", *(_pod(troupe, name) for name in wanted if name not in there), slow_start=True)
    mark = single("mark", *(_change(pod, seen, "status") for pod in kept if condition(pod, SEEN) is None))
    update = single("update", *(_change(pod, image) for pod in kept if pod.spec.containers[0].image != spec.image))
    surplus = [p for p in snapshot.pods if p.metadata.name not in wanted and p.metadata.deletion_timestamp is None]
    deletes = (plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason="surplus") for pod in surplus)
    return Plan(phases=(create_missing, mark, update, single("remove", *deletes)))


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    troupe, pods, target = snapshot.troupe, snapshot.pods, Target.of(TROUPES, snapshot.troupe)
    updated = sum(pod.spec.containers[0].image == troupe.spec.image for pod in pods)
    status = {"observedGeneration": troupe.metadata.generation, "pods": len(pods), "updated": updated}
    write = plans.status_patch(target, status, uid=troupe.metadata.uid, reason="status")
    return Conclusion(status=write if status != troupe.status else None)


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> list[EventNote]:
    names = [done.object.metadata.name for done in chain if done.object and done.action.owner_uid]
    return [EventNote(reason="SuccessfulCreate", message=f"created pod {name}") for name in names]


def _pod(troupe: Troupe, name: str) -> Action:
    owner, labels = Owner.of(TROUPES, troupe).reference(), {"troupe": troupe.metadata.name}
    metadata = {"name": name, "namespace": troupe.metadata.namespace, "labels": labels, "ownerReferences": [owner]}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": troupe.spec.image}]}}
    return plans.create(PODS, body, reason="missing", owner_uid=troupe.metadata.uid)


def _change(pod: Pod, body: dict[str, object], part: str = "") -> Action:
    target, kind = Target.of(PODS, pod), PatchType.STRATEGIC
    return plans.patch(target, body, uid=pod.metadata.uid, reason="differs", patch_type=kind, subresource=part)
