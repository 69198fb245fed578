"""An object in the fast model of a cluster, with its controller, and nodes that do nothing by themselves.

For promises that hold whatever anybody does, in any order: a test changes objects, takes steps of kubelets, lets time
pass, and has the manager make passes, late ones and ones that its death cuts off among them. A kind gives its
`ControllerSpec` and a document; `tests/workloads/cloneset/modelled.py` shows how.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from kruise.api.meta import Key, Object
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Container, Pod
from kruise.api.resource import Resource
from kruise.inplace.resizing import DEFERRED, INFEASIBLE, RefusedResize
from kruise.machinery import codec
from kruise.machinery.plan import Plan
from kruise.machinery.spec import ControllerSpec
from kruise.model.loop import Decided, Loop, Wrote
from kruise.model.world import Json, World
from tests.support.kubelets_by_hand import Kubelets

T = TypeVar("T", bound=Object)
START = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
UID = "5a1b0b67-0000-4000-8000-000000000001"
BROKEN = "nginx:broken"
"""A container of this image never becomes ready."""
UNGRANTED = {"500": INFEASIBLE, "50": DEFERRED}
"""What no container is resized to, by the CPUs that it asks for, and what the node says then."""
_NODES = tuple(
    codec.convert({"metadata": {"name": f"node-{place}", "uid": f"uid-node-{place}"}}, Node) for place in range(3)
)


def _works(container: Container) -> bool:
    return container.image != BROKEN


def _grants(container: Container) -> RefusedResize | None:
    asked = str(container.resources.requests.get("cpu", ""))
    return RefusedResize(UNGRANTED[asked], "says the node") if asked in UNGRANTED else None


def runs_what_it_should(pod: Pod) -> bool:
    """Otherwise its containers are about to restart, whatever its conditions say."""
    wanted = {container.name: container.image for container in pod.spec.containers}
    return all(status.image == wanted.get(status.name) for status in pod.status.container_statuses)


class Modelled(Generic[T]):
    def __init__(
        self,
        spec: ControllerSpec[Any],
        document: Json,
        *,
        gates: Mapping[str, bool] | None = None,
        mutate: Callable[[Resource[Any], Json], None] | None = None,
        served: Collection[Resource[Any]] = (),
    ) -> None:
        """`mutate`: what admission does to objects that the controller creates. `served`: kinds that the cluster has
        of those that the controller can do without."""
        self.gates = dict(gates or {})
        self.resource: Resource[T] = spec.subject
        self.world = World(START)
        self.loop = Loop(self.world, [spec], gates=self.gates, served=served)
        self.kubelets = Kubelets(self.world, works=_works, grants=_grants)
        self.world.add(NODES, _NODES)
        metadata = {**document["metadata"], "uid": UID, "generation": 1}
        subject = codec.decode(codec.encode({**document, "metadata": metadata}), self.resource.type)
        self.key = Key(subject.metadata.namespace, subject.metadata.name)
        self.world.add(self.resource, [subject])
        if mutate is not None:
            self.world.admit = lambda action: _mutated(action.target.resource, action.body, mutate)

    # What is there

    @property
    def now(self) -> datetime:
        return self.world.now

    @property
    def subject(self) -> T:
        found = self.world.store(self.resource).get(*self.key)
        assert found is not None
        return found

    @property
    def pods(self) -> tuple[Pod, ...]:
        return self.world.store(PODS).list()

    def pod(self, name: str) -> Pod | None:
        return self.world.store(PODS).get(self.key.namespace, name)

    @property
    def writes(self) -> int:
        """Writes that the manager tried."""
        return self.loop.writes

    # What the manager does

    def snapshot(self) -> Any:
        return self.loop.snapshot(self.loop.controllers[0], self.key)

    def reconcile(
        self,
        *,
        decided: Decided | None = None,
        wrote: Wrote | None = None,
        die_at: int | None = None,
    ) -> Plan:
        """One pass, see `Loop.run`."""
        done = self.loop.run(self.loop.controllers[0], self.key, decided=decided, wrote=wrote, die_at=die_at)
        assert done is not None
        return done.plan

    # What others do

    def change(self, resource: Resource[Any], name: str, edit: Callable[[Json], None]) -> None:
        assert self.world.edit(resource, Key(self.key.namespace, name), edit) is not None, f"no {resource} {name}"

    def edit_spec(self, edit: Callable[[Json], None]) -> None:
        self.change(self.resource, self.key.name, lambda document: edit(document["spec"]))

    def delete_pod(self, name: str) -> None:
        if (pod := self.pod(name)) is not None:
            self.world.delete(PODS, pod)

    def kubelet(self, name: str) -> bool:
        """The next thing that happens to a pod by itself; whether there was any."""
        pod = self.pod(name)
        return pod is not None and self.kubelets.step(pod)

    def pass_time(self, seconds: float) -> None:
        self.world.now += timedelta(seconds=seconds)


def _mutated(resource: Resource[Any], body: Any, mutate: Callable[[Resource[Any], Json], None]) -> Json:
    document: Json = codec.decode(codec.encode(body), dict)
    mutate(resource, document)
    return document


class ModelledWorkload(Modelled[T]):
    """A workload with a template and revisions of it."""

    @property
    def revisions(self) -> tuple[ControllerRevision, ...]:
        return self.world.store(CONTROLLER_REVISIONS).list()

    def told(self, plan: Plan) -> list[str]:
        """What a plan does to pods, in the words of the kind's tests."""
        return []

    def settle(self, rounds: int = 60, *, seconds: float = 1) -> list[str]:
        """Let everybody do their part for some rounds, so many seconds each; what was done to pods, in order."""
        done: list[str] = []
        for _ in range(rounds):
            done += self.told(self.reconcile())
            for pod in self.pods:
                self.kubelet(pod.metadata.name)
            self.pass_time(seconds)
        return done

    def edit_template(self, edit: Callable[[Json], None]) -> None:
        """The template is changed as a whole: others may hold the one from before."""

        def apply(spec: Json) -> None:
            template: Json = codec.decode(codec.encode(spec["template"]), dict)
            edit(template)
            spec["template"] = template

        self.edit_spec(apply)

    def set_image(self, image: str) -> None:
        self.edit_template(lambda template: template["spec"]["containers"][0].update(image=image))

    def set_cpus(self, amount: str) -> None:
        resources = {"requests": {"cpu": amount}}
        self.edit_template(lambda template: template["spec"]["containers"][0].update(resources=resources))

    def set_environment(self, name: str, value: str) -> None:
        env = [{"name": name, "value": value}]
        self.edit_template(lambda template: template["spec"]["containers"][0].update(env=env))
