"""What a scenario stands on: a world, the pace of its time, and the words in which a workload is talked about.

`Stage` speaks of CloneSets. The stage of another kind is derived from it: resource, manifest, when it is complete.

    @scenario("CS-70", "CS-102")
    async def half_the_pods_move(stage: Stage) -> None:
        await stage.create(replicas=4, rolling={"partition": 2})
        ...

A scenario has a namespace of its own. It names the gates it needs; where it names none it must hold under any.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.inplace import keys
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ConflictError, InvalidError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches import merge
from tests.scenarios.podlog import PodLog
from tests.support.world import Json, World

ALPHA = "v1alpha1"
BETA = "v1beta1"
INSTANCE_ID = "apps.kruise.io/cloneset-instance-id"
OK_GATE = "example.com/ok"
"""A readiness gate that only the scenario itself can open."""
ANY_GATES: Mapping[str, bool] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pace:
    """How long things take. Virtual time costs nothing, so there the seconds are those of real life."""

    seconds: int = 10
    """A stretch that a spec names: minReadySeconds, a grace period, a deadline."""
    calm: float = 60.0
    """How long nothing must happen before we believe that nothing will."""
    within: float = 300.0
    """How long we wait for what must happen."""
    every: float = 0.5
    slack: float = 3.0
    """How much later than its time something may happen."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
    play: Callable[[Any], Awaitable[None]]
    rules: tuple[str, ...]
    gates: Mapping[str, bool]
    flags: Mapping[str, Any]
    is_smoke: bool
    stage: type[Stage]
    """The stage of its kind."""

    @property
    def name(self) -> str:
        return self.play.__name__

    def suits(self, gates: Mapping[str, bool]) -> bool:
        """Whether these gates are among those under which it must hold."""
        return all(gates[gate] == value for gate, value in self.gates.items())


SCENARIOS: dict[str, Scenario] = {}
"""Those of CloneSets; another kind has a list of its own."""


def scenario(
    *rules: str,
    gates: Mapping[str, bool] = ANY_GATES,
    smoke: bool = False,
    into: dict[str, Scenario] = SCENARIOS,
    stage: type[Stage] | None = None,
    **flags: Any,
) -> Callable[[Callable[[Any], Awaitable[None]]], Callable[[Any], Awaitable[None]]]:
    """Put a behaviour on the list of its kind. `flags` are options of the manager, by their names in `Options`."""

    def enlist(play: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        assert play.__name__ not in into, f"there are two scenarios {play.__name__}"
        assert inspect.getdoc(play), f"{play.__name__} does not say what it shows"
        assert rules, f"{play.__name__} names no rule"
        into[play.__name__] = Scenario(
            play=play, rules=rules, gates=gates, flags=flags, is_smoke=smoke, stage=stage or Stage
        )
        return play

    return enlist


class Stage:
    """One scenario's place in a world."""

    resource: Resource[Any] = CLONE_SETS
    """The kind that it speaks of."""

    def __init__(
        self, world: World, *, gates: Mapping[str, bool], pace: Pace | None = None, claim_class: str = ""
    ) -> None:
        self.world = world
        self.gates = gates
        self.pace = pace or Pace()
        self._claim_class = claim_class

    @property
    def client(self) -> Client:
        return self.world.client

    @property
    def namespace(self) -> str:
        return self.world.namespace

    # Manifests

    def manifest(
        self,
        name: str = "web",
        *,
        version: str = BETA,
        replicas: int | None = 3,
        image: str = "nginx:1.25",
        policy: str = "InPlaceIfPossible",
        rolling: Mapping[str, Any] | None = None,
        strategy: Mapping[str, Any] | None = None,
        scale: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        containers: Sequence[Mapping[str, Any]] | None = None,
        pod: Mapping[str, Any] | None = None,
        claims: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Json:
        """A CloneSet of one container `main`.

        `rolling` are the settings of the rollout wherever the version keeps them, `strategy` is a whole updateStrategy;
        `labels`, `annotations` and `pod` belong to the template; `claims` are names of claim templates of 1Gi.
        """
        if strategy is None and version == ALPHA:
            strategy = {"type": policy, **(rolling or {})}
        elif strategy is None:
            strategy = {"rollingUpdate": {"podUpdatePolicy": policy, **(rolling or {})}}
        template_spec: Json = {"containers": list(containers or [{"name": "main", "image": image}]), **(pod or {})}
        if claims:
            mounts = [{"name": claim, "mountPath": f"/{claim}"} for claim in claims]
            template_spec["containers"] = [{**item, "volumeMounts": mounts} for item in template_spec["containers"]]
        template_metadata: Json = {"labels": {"app": name, **(labels or {})}}
        if annotations:
            template_metadata["annotations"] = dict(annotations)
        made: Json = {
            "apiVersion": f"{CLONE_SETS.group}/{version}",
            "kind": "CloneSet",
            "metadata": {"name": name, **(metadata or {})},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": template_metadata, "spec": template_spec},
                "updateStrategy": dict(strategy),
                **spec,
            },
        }
        if replicas is not None:
            made["spec"]["replicas"] = replicas
        if scale is not None:
            made["spec"]["scaleStrategy"] = dict(scale)
        if claims:
            made["spec"]["volumeClaimTemplates"] = [self.claim_template(claim) for claim in claims]
        return made

    def claim_template(self, name: str, size: str = "1Gi") -> Json:
        spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        if self._claim_class:
            spec["storageClassName"] = self._claim_class
        return {"metadata": {"name": name}, "spec": spec}

    async def create(self, name: str = "web", **options: Any) -> Json:
        return await self.world.create(self.manifest(name, **options))

    async def start(self, name: str = "web", **options: Any) -> list[Json]:
        """Create it and wait until it is complete; gives its pods."""
        await self.create(name, **options)
        return await self.complete(name)

    # Changes

    async def change(self, body: Mapping[str, Any], name: str = "web", *, version: str = BETA) -> None:
        """A JSON merge patch on the spec."""
        await self.world.patch(dataclasses.replace(self.resource, version=version), name, {"spec": body})

    async def scale(self, replicas: int, name: str = "web") -> None:
        await self.change({"replicas": replicas}, name)

    async def roll(self, rolling: Mapping[str, Any], name: str = "web") -> None:
        """Change settings of the rollout."""
        await self.change({"updateStrategy": {"rollingUpdate": rolling}}, name)

    async def edit_template(
        self, body: Mapping[str, Any], name: str = "web", *, with_spec: Mapping[str, Any] | None = None
    ) -> None:
        """A merge patch on the template, with lists of containers merged by name."""
        template = (await self.subject(name))["spec"]["template"]
        wanted = copy.deepcopy(dict(body))
        changes = wanted.get("spec", {}).pop("containers", None)
        merged = merge.apply(template, wanted)
        for change in changes or ():
            known = [item for item in merged["spec"]["containers"] if item["name"] == change["name"]]
            if known:
                place = merged["spec"]["containers"].index(known[0])
                merged["spec"]["containers"][place] = merge.apply(known[0], change)
            else:
                merged["spec"]["containers"].append(change)
        await self.world.patch(
            self.resource,
            name,
            [
                {"op": "replace", "path": "/spec/template", "value": merged},
                *({"op": "add", "path": f"/spec/{key}", "value": value} for key, value in (with_spec or {}).items()),
            ],
            patch_type=PatchType.JSON,
        )

    async def set_image(self, image: str, name: str = "web", *, container: str = "main", **with_spec: Any) -> None:
        containers = [{"name": container, "image": image}]
        await self.edit_template({"spec": {"containers": containers}}, name, with_spec=with_spec)

    async def set_labels(self, pod: str, labels: Mapping[str, str | None]) -> None:
        await self.world.patch(PODS, pod, {"metadata": {"labels": dict(labels)}})

    async def annotate(self, pod: str, annotations: Mapping[str, str | None]) -> None:
        await self.world.patch(PODS, pod, {"metadata": {"annotations": dict(annotations)}})

    async def set_finalizers(self, pod: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Change finalizers as a controller does: read, change, write with the version that was read, else again."""
        gone = set(remove)
        while True:
            found = await self.world.get(PODS, pod)
            kept = [item for item in found["metadata"].get("finalizers", []) if item not in gone]
            wanted = kept + [item for item in add if item not in kept]
            metadata = {"finalizers": wanted, "resourceVersion": found["metadata"]["resourceVersion"]}
            try:
                return await self.world.patch(PODS, pod, {"metadata": metadata})
            except ConflictError:
                await asyncio.sleep(self.pace.every)

    async def open_gate(self, pod: str, *, status: str = "True") -> None:
        """Say that the pod's readiness gate `example.com/ok` is open, or shut."""
        body = {"status": {"conditions": [{"type": OK_GATE, "status": status}]}}
        await self.world.patch(PODS, pod, body, subresource="status", patch_type=PatchType.STRATEGIC)

    async def delete_pod(self, name: str) -> None:
        await self.world.delete(PODS, name)

    async def is_refused(self, wanted: Awaitable[Any], *words: str) -> str:
        """The write is refused as invalid, in a message with these words."""
        with pytest.raises(InvalidError) as refusal:
            await wanted
        message = refusal.value.message
        for word in words:
            assert word in message, message
        return message

    # Looking

    async def subject(self, name: str = "web") -> Json:
        return await self.world.get(self.resource, name)

    async def pods(self, name: str = "web") -> list[Json]:
        """Pods of the workload that are not on their way out, by name; by owner, so released ones are left out."""
        found = []
        for pod in await self.world.pods():
            owners = pod["metadata"].get("ownerReferences", [])
            if any(owner["kind"] == self.resource.kind and owner["name"] == name for owner in owners):
                found.append(pod)
        return found

    async def pod(self, name: str) -> Json:
        return await self.world.get(PODS, name)

    async def claims(self, name: str = "web") -> list[Json]:
        """Its claims that are not on their way out, by name."""
        found = await self.world.list(PERSISTENT_VOLUME_CLAIMS, f"app={name}")
        return [claim for claim in found if "deletionTimestamp" not in claim["metadata"]]

    async def revisions(self, name: str = "web") -> list[Json]:
        """Its revisions, oldest first."""
        found = await self.world.list(CONTROLLER_REVISIONS, f"app={name}")
        return sorted(found, key=lambda revision: int(revision["revision"]))

    async def status(self, name: str = "web") -> Json:
        status: Json = (await self.subject(name)).get("status", {})
        return status

    async def condition(self, kind: str, name: str = "web") -> Json:
        """A condition of the workload; an AssertionError where it is not there."""
        found: list[Json] = [item for item in (await self.status(name)).get("conditions", []) if item["type"] == kind]
        assert found, f"{name} has no condition {kind}"
        return found[0]

    async def progressing(self, name: str = "web") -> str:
        """The reason of condition Progressing; empty where there is none."""
        conditions = (await self.status(name)).get("conditions", [])
        return next((item["reason"] for item in conditions if item["type"] == "Progressing"), "")

    async def at_update_revision(self, name: str = "web") -> list[Json]:
        revision = (await self.status(name))["updateRevision"]
        return [pod for pod in await self.pods(name) if hash_of(pod) == hash_in(revision)]

    async def nodes(self) -> list[str]:
        return sorted(node.metadata.name for node in (await self.client.list(NODES)).items)

    async def label(self, node: str, value: str | None) -> Mapping[str, str]:
        """Give the node a label of this scenario's own, or take it; gives a node selector for that value."""
        key = f"example.com/{self.namespace}"
        await self.client.patch(NODES, node, {"metadata": {"labels": {key: value}}})
        return {key: str(value)}

    # Waiting

    async def until(self, check: Callable[[], Awaitable[Any]], *, within: float | None = None) -> Any:
        return await self.world.until(check, within=within or self.pace.within, every=self.pace.every)

    async def stays(self, check: Callable[[], Awaitable[Any]], *, seconds: float | None = None) -> None:
        """What is so now is so for a while."""
        ends = self.world.clock.monotonic() + (self.pace.calm if seconds is None else seconds)
        while True:
            await check()
            if self.world.clock.monotonic() >= ends:
                return
            await asyncio.sleep(self.pace.calm / 25)

    async def seen(self, name: str = "web") -> Json:
        """The workload, once its controller has taken note of the present spec."""

        async def noticed() -> Json:
            subject = await self.subject(name)
            assert subject.get("status", {}).get("observedGeneration") == subject["metadata"]["generation"]
            return subject

        found: Json = await self.until(noticed)
        return found

    async def reaches(self, name: str = "web", *, within: float | None = None, **counters: int) -> Json:
        """Wait until the status shows these figures; those that are not shown count as 0."""

        async def there() -> Json:
            subject = await self.subject(name)
            status: Json = subject.get("status", {})
            assert status.get("observedGeneration") == subject["metadata"]["generation"], "not noticed yet"
            shown = {key: status.get(key, 0) for key in counters}
            assert shown == counters, f"{name}: {status}"
            return status

        found: Json = await self.until(there, within=within)
        return found

    async def complete(self, name: str = "web", *, within: float | None = None) -> list[Json]:
        """Wait until as many pods as wanted are there, available and at the update revision, and no others; gives
        them."""

        async def is_complete() -> list[Json]:
            cloneset = await self.subject(name)
            status, wanted = cloneset.get("status", {}), cloneset["spec"]["replicas"]
            assert status.get("observedGeneration") == cloneset["metadata"]["generation"], f"not noticed: {status}"
            for counter in ("replicas", "updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas"):
                assert status.get(counter, 0) == wanted, f"{name}: {counter} of {wanted}: {status}"
            assert status.get("currentRevision") == status["updateRevision"], status
            found = await self.pods(name)
            assert len(found) == wanted
            return found

        found: list[Json] = await self.until(is_complete, within=within)
        return found

    async def in_state(self, pod: str, state: str) -> Json:
        """Wait until the pod is in this lifecycle state; gives it."""

        async def is_there() -> Json:
            found = await self.pod(pod)
            assert state_of(found) == state, f"{pod} is {state_of(found)}, not {state}"
            return found

        found: Json = await self.until(is_there)
        return found

    async def is_gone(self, resource: Resource[Any], name: str) -> None:
        async def nowhere() -> None:
            assert name not in {item["metadata"]["name"] for item in await self.world.list(resource)}, (
                f"{name} is there"
            )

        await self.until(nowhere)

    async def has_event(self, reason: str, message: str = "", *, name: str = "web", type: str = "Normal") -> Json:
        async def is_told() -> Json:
            found = await self.world.events(name, reason)
            fitting = [event for event in found if message in event["message"] and event["type"] == type]
            assert fitting, f"no event {reason} {message!r}: {[event['message'] for event in found]}"
            return fitting[0]

        found: Json = await self.until(is_told)
        return found

    @contextlib.asynccontextmanager
    async def watching(self, labels: str = "app=web") -> AsyncIterator[PodLog]:
        """Every version of the pods from here on."""
        listed = await self.client.list(PODS, self.namespace, labels=labels)
        log, version = PodLog(self.world.clock, listed.items), listed.resource_version
        task = asyncio.create_task(self._follow(log, version, labels), name=f"pod log of {self.namespace}")
        try:
            yield log
            # The last events may still be on their way.
            await asyncio.sleep(self.pace.every)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _follow(self, log: PodLog, version: str, labels: str) -> None:
        async with self.client.watch(
            PODS, self.namespace, resource_version=version, labels=labels, bookmarks=False
        ) as events:
            async for event in events:
                log.note(event.type, event.object)


def clonesets(version: str) -> Resource[Any]:
    return dataclasses.replace(CLONE_SETS, version=version)


# A pod as the API shows it


def names(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    return [item["metadata"]["name"] for item in objects]


def uids(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in objects}


def state_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get(keys.STATE_LABEL, ""))


def hash_in(revision: str) -> str:
    """The last segment of a revision's name (IPU-13)."""
    return revision.rpartition("-")[2]


def hash_of(pod: Mapping[str, Any]) -> str:
    return hash_in(str(pod["metadata"]["labels"][keys.REVISION_LABEL]))


def images_of(pod: Mapping[str, Any]) -> dict[str, str]:
    return {item["name"]: item["image"] for item in pod["spec"]["containers"]}


def restarts_of(pod: Mapping[str, Any]) -> dict[str, int]:
    return {item["name"]: item["restartCount"] for item in pod["status"]["containerStatuses"]}


def has_condition(pod: Mapping[str, Any], kind: str, status: str = "True") -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(item["type"] == kind and item["status"] == status for item in conditions)
