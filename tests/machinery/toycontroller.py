"""A toy controller on an API core in process: what tests of the loop stand on."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

from kruise.api.meta import Key, controller_of
from kruise.api.native.events import ObjectReference
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.apply import Applier
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Struct
from kruise.machinery.controller import Controller
from kruise.machinery.journal import Journal
from kruise.machinery.metrics import Metrics
from kruise.machinery.names import random_suffix
from kruise.machinery.plan import (
    Conclusion,
    EventNote,
    EventType,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    create,
    delete,
    single,
    status_patch,
)
from kruise.machinery.spec import ControllerSpec, Source, Stores, View
from kruise.machinery.watched import Watched
from tests.support.background import in_background
from tests.support.faults import Rule
from tests.support.inprocess import TOYS, InProcess, Toy, pod_body


class ToySnapshot(Struct):
    toy: Toy
    pods: tuple[Pod, ...]
    now: datetime
    seed: int


def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> set[Key]:
    owners = [(pod, controller_of(pod)) for pod in (old, new) if pod is not None]
    return {Key(pod.metadata.namespace, owner.name) for pod, owner in owners if owner is not None}


def by_owner(pod: Pod) -> tuple[str, ...]:
    owner = controller_of(pod)
    return (owner.uid,) if owner is not None else ()


def snapshot(view: View, key: Key) -> ToySnapshot | None:
    toy = view.store(TOYS).get(key.namespace, key.name)
    if toy is None or toy.metadata.deletion_timestamp is not None:
        return None
    pods = view.store(PODS)
    owned = tuple(pod for pod in pods.by_index("owner", toy.metadata.uid) if not pods.is_terminating(pod))
    return ToySnapshot(toy=toy, pods=owned, now=view.now, seed=view.seed)


def decide(seen: ToySnapshot) -> Plan:
    toy, missing = seen.toy, seen.toy.spec.replicas - len(seen.pods)
    rng = random.Random(seen.seed)
    phases: list[Phase] = []
    if missing > 0:
        names = [f"{toy.metadata.name}-{random_suffix(rng)}" for _ in range(missing)]
        bodies = [pod_body(name, owner_uid=toy.metadata.uid) for name in names]
        for body in bodies:
            body["metadata"]["ownerReferences"][0]["name"] = toy.metadata.name
        creates = [create(PODS, body, reason="scale up", owner_uid=toy.metadata.uid) for body in bodies]
        phases.append(single("create", *creates, slow_start=True))
    surplus = seen.pods[toy.spec.replicas :]
    deletes = [
        delete(Target(PODS, pod.metadata.namespace, pod.metadata.name), uid=pod.metadata.uid, reason="scale down")
        for pod in surplus
    ]
    if deletes:
        phases.append(single("delete", *deletes))
    return Plan(phases=tuple(phases))


def conclude(seen: ToySnapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    toy = seen.toy
    made = sum(1 for outcome in outcomes.of(Result.DONE) if outcome.action.verb is Verb.CREATE)
    events = tuple(
        EventNote(reason="FailedCreate", message=outcome.error, type=EventType.WARNING) for outcome in outcomes.failed
    )
    if made:
        events = (EventNote(reason="SuccessfulCreate", message=f"{made} pods"), *events)
    count = min(len(seen.pods), toy.spec.replicas) + made
    status = None
    if toy.status.replicas != count:
        target = Target(TOYS, toy.metadata.namespace, toy.metadata.name)
        status = status_patch(target, {"replicas": count}, uid=toy.metadata.uid, reason="replicas")
    return Conclusion(status=status, events=events)


SPEC = ControllerSpec(
    name="toy",
    subject=TOYS,
    sources=(Source(Watched(PODS, indexes={"owner": by_owner}), pod_keys),),
    snapshot=snapshot,
    decide=decide,
    conclude=conclude,
    snapshot_type=ToySnapshot,
)


class Notes:
    def __init__(self) -> None:
        self.taken: list[tuple[ObjectReference, str, str, str]] = []

    def record(self, regarding: ObjectReference, kind: str, reason: str, message: str) -> None:
        self.taken.append((regarding, kind, reason, message))


class Scene(InProcess):
    def __init__(self, *rules: Rule, spec: ControllerSpec[Any] = SPEC, seed: int = 0, **options: Any) -> None:
        super().__init__(rules, seed=seed)
        self.metrics = Metrics()
        self.journal = Journal()
        self.notes = Notes()
        self.applier = Applier(self.client, self.cache, clock=self.clock, metrics=self.metrics)
        self.controller = Controller(
            spec,
            cache=self.cache,
            applier=self.applier,
            recorder=self.notes,
            clock=self.clock,
            journal=self.journal,
            metrics=self.metrics,
            seed=seed,
            **options,
        )

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None, None]:
        async with self.running(), in_background(self.controller.run()):
            yield

    async def add_toy(self, name: str = "toy", replicas: int = 3) -> Toy:
        metadata = {"name": name, "namespace": "default"}
        body = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": metadata, "spec": {"replicas": replicas}}
        return await self.direct.create(TOYS, body, "default")

    async def scale(self, replicas: int, name: str = "toy") -> None:
        await self.direct.patch(TOYS, name, {"spec": {"replicas": replicas}}, "default")

    def passes(self, result: str) -> float | None:
        labels = {"controller": "toy", "result": result}
        return self.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels)

    def requeues(self, cause: str) -> float | None:
        return self.metrics.registry.get_sample_value("kruise_requeues_total", {"controller": "toy", "cause": cause})


def changed(**parts: Any) -> ControllerSpec[Any]:
    return dataclasses.replace(SPEC, **parts)


def idle(_seen: Any) -> Plan:
    return Plan()


def nothing(_seen: Any, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
    return Conclusion()
