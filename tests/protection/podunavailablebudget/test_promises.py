"""Promises of a budget's status: with the manager killed at every write, and whatever pods and clients do."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import DELETE, POD_UNAVAILABLE_BUDGETS, UPDATE, PodUnavailableBudget
from kruise.machinery import codec
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.booking import Taken, book
from kruise.protection.podunavailablebudget.controller import controllers
from tests.protection.podunavailablebudget.objects import pod_document
from tests.support.examples import story_settings
from tests.support.killed import Killed
from tests.support.modelled import Modelled

OPTIONS = Options(gates=gates.resolve({keys.UPDATE_GATE: True}))
NAMES = ("web-a", "web-b", "web-c", "web-d")


class Guarded:
    """Four pods that should be four, and a budget that lets one be unavailable."""

    def __init__(self) -> None:
        spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1, "protectTotalReplicas": 4}
        document = {"metadata": {"name": "pub", "namespace": "demo"}, "spec": spec}
        (controller,) = controllers(OPTIONS)
        self.model: Modelled[PodUnavailableBudget] = Modelled(controller, document, gates=OPTIONS.gates)
        self.model.world.add(PODS, [self.fresh(name) for name in NAMES])

    def fresh(self, name: str, *, is_ready: bool = True, uid: str = "") -> Pod:
        found = codec.convert(pod_document(name, is_ready=is_ready, uid=uid or f"uid-of-{name}"), Pod)
        annotations = {key: value for key, value in found.metadata.annotations.items() if key != keys.RELATED}
        return codec.evolve(found, metadata=codec.evolve(found.metadata, annotations=annotations, resource_version=""))

    @property
    def budget(self) -> PodUnavailableBudget:
        return self.model.subject

    def pod(self, name: str) -> Pod | None:
        return self.model.world.store(PODS).get("demo", name)

    def turn(self, name: str, *, is_ready: bool) -> None:
        if (one := self.pod(name)) is not None:
            turned = self.fresh(name, is_ready=is_ready)
            self.model.world.put(PODS, codec.evolve(one, status=turned.status))

    def replace(self, name: str) -> None:
        """Somebody else made a pod of that name."""
        uid = f"another-{name}-{self.model.world.version}"
        self.model.world.put(PODS, self.fresh(name, uid=uid))

    def ask(self, name: str, operation: str) -> None:
        """As a webhook does: what is let through is written."""
        one, budget = self.pod(name), self.budget
        if one is None:
            return
        said = book(budget, one, operation, gates=OPTIONS.gates, now=self.model.now)
        if isinstance(said, Taken):
            assert said.status.unavailable_allowed >= 0
            self.model.world.put(POD_UNAVAILABLE_BUDGETS, codec.evolve(budget, status=said.status))

    def check(self) -> None:
        """PUB-53, PUB-130: the numbers are those of the pods, and nothing is left of what was let through."""
        status = self.budget.status
        pods = [one for name in NAMES if (one := self.pod(name)) is not None]
        available = sum(one.status.conditions[0].status == "True" for one in pods)
        assert (status.current_available, status.desired_available, status.total_replicas) == (available, 3, 4)
        assert status.unavailable_allowed == max(0, available - 3)
        assert not {**status.disrupted_pods, **status.unavailable_pods, **status.identities}
        assert {keys.budget_named_by(one.metadata.annotations) for one in pods} <= {"pub"}


def _course(one: Guarded, dies_at: int | None) -> Killed:
    killed = Killed(one.model, dies_at)
    killed.run(2)
    one.ask(NAMES[0], DELETE)
    killed.run(2)
    one.turn(NAMES[1], is_ready=False)
    one.replace(NAMES[2])
    killed.run(30)
    return killed


def test_killed_at_every_write() -> None:  # PUB-51, PUB-52, PUB-53
    whole = Guarded()
    writes = _course(whole, None).writes
    whole.check()
    assert writes >= len(NAMES) + 3
    for place in range(writes):
        one = Guarded()
        assert _course(one, place).died
        one.check()


def test_at_rest_nothing_is_written() -> None:
    one = Guarded()
    killed = Killed(one.model, None)
    killed.run(10)  # until the kubelets have come to rest, too
    before = killed.writes
    killed.run(60)
    assert killed.writes == before


STEPS = st.one_of(
    st.tuples(st.sampled_from(["up", "down", "replace", "delete", "update"]), st.sampled_from(NAMES)),
    st.tuples(st.just("death"), st.integers(0, 3)),
    st.tuples(st.just("pass"), st.none()),
    st.tuples(st.just("time"), st.sampled_from([1, 9, 25])),
)


@story_settings(40)
@given(st.lists(STEPS, max_size=15))
def test_whatever_happens_the_status_comes_right(steps: list[tuple[str, Any]]) -> None:  # PUB-52, PUB-130
    one = Guarded()
    for what, which in steps:
        match what:
            case "up" | "down":
                one.turn(which, is_ready=what == "up")
            case "replace":
                one.replace(which)
            case "delete" | "update":
                one.ask(which, DELETE if what == "delete" else UPDATE)
            case "time":
                one.model.pass_time(which)
            case _:
                Killed(one.model, which).run(1)
        assert one.budget.status.unavailable_allowed >= 0
    Killed(one.model, None).run(30)
    one.check()
