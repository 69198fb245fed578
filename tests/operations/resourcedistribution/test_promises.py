"""Promises of a ResourceDistribution: with the manager killed at every write, and whatever happens in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.meta import ObjectMeta
from kruise.api.native.config import CONFIG_MAPS, ConfigMap
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.machinery import codec
from kruise.machinery.plan import Outcome
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.operations.resourcedistribution import content
from kruise.operations.resourcedistribution.controller import controllers
from tests.support.examples import story_settings
from tests.support.killed import Killed
from tests.support.modelled import UID, Modelled

NAMES = tuple(f"team-{number}" for number in range(5))
FOREIGN = "team-4"
"""It has an object of the same name that is somebody else's."""
OPTIONS = Options(gates=gates.resolve({"ResourceDistributionGate": True}))
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": {"k": "v"}}


class Distributed:
    def __init__(self) -> None:
        targets = {"namespaceSelector": {"matchLabels": {"team": "1"}}}
        document = {"metadata": {"name": "rd"}, "spec": {"resource": CONFIG, "targets": targets}}
        (spec,) = controllers(OPTIONS)
        self.model: Modelled[Any] = Modelled(spec, document, gates=OPTIONS.gates)
        self.model.world.add(NAMESPACES, [self._namespace(name, is_target=True) for name in NAMES])
        mine = ConfigMap(metadata=ObjectMeta(name="cfg", namespace=FOREIGN, uid="mine"), data={"mine": "1"})
        self.model.world.add(CONFIG_MAPS, [mine])
        self.writes: list[Outcome] = []

    def _namespace(self, name: str, *, is_target: bool) -> Namespace:
        labels = {"team": "1"} if is_target else {}
        return Namespace(metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=labels, resource_version="1"))

    def mark(self, name: str, *, is_target: bool) -> None:
        self.model.world.put(NAMESPACES, self._namespace(name, is_target=is_target))

    def edit(self, name: str) -> None:
        if (copy := self.copy(name)) is not None:
            self.model.world.put(CONFIG_MAPS, codec.evolve(copy, data={"by": "hand"}))

    def drop(self, name: str) -> None:
        if (copy := self.copy(name)) is not None:
            self.model.world.delete(CONFIG_MAPS, copy)

    def distribute(self, value: str) -> None:
        resource = codec.Raw(codec.encode({**CONFIG, "data": {"k": value}}))
        subject = self.model.subject
        metadata = codec.evolve(subject.metadata, generation=subject.metadata.generation + 1)
        spec = codec.evolve(subject.spec, resource=resource)
        self.model.world.put(self.model.resource, codec.evolve(subject, metadata=metadata, spec=spec))

    def copy(self, name: str) -> ConfigMap | None:
        return self.model.world.store(CONFIG_MAPS).get(name, "cfg")

    def check(self, value: str) -> None:
        """Every target has the content, nobody else has any, and what is not ours is as it was."""
        for name in NAMES:
            copy, namespace = self.copy(name), self.model.world.store(NAMESPACES).get("", name)
            assert namespace is not None
            if name == FOREIGN:
                assert copy is not None
                assert (copy.metadata.uid, copy.data) == ("mine", {"mine": "1"})
            elif not namespace.metadata.labels:
                assert copy is None
            else:
                assert copy is not None
                assert copy.data == {"k": value}
                assert [owner.uid for owner in copy.metadata.owner_references] == [UID]
        status = self.model.subject.status
        assert (status.desired - status.succeeded) == status.failed
        assert status.observed_generation == self.model.subject.metadata.generation


def _course(one: Distributed, dies_at: int | None) -> Killed:
    killed = Killed(one.model, dies_at)
    killed.run(4)
    one.edit(NAMES[0])
    one.drop(NAMES[1])
    one.mark(NAMES[2], is_target=False)
    one.distribute("v2")
    killed.run(4)
    return killed


def test_killed_at_every_write() -> None:  # RD-33, RD-34, RD-73
    whole = Distributed()
    writes = _course(whole, None).writes
    whole.check("v2")
    assert writes >= 8
    for place in range(writes):
        one = Distributed()
        assert _course(one, place).died
        one.check("v2")


def test_at_rest_nothing_is_written() -> None:
    one = Distributed()
    killed = Killed(one.model, None)
    killed.run(5)
    before = killed.writes
    killed.run(20)
    assert killed.writes == before


def test_a_change_of_one_copy_is_a_look_at_one(monkeypatch: pytest.MonkeyPatch) -> None:  # RD-74
    """What is remembered of a copy is that of the object in the store, and of no other."""
    looked: list[str] = []
    read = content.content_of_copy

    def counting(copy: ConfigMap) -> dict[str, Any]:
        looked.append(copy.metadata.namespace)
        return read(copy)

    monkeypatch.setattr(content, "content_of_copy", counting)
    one = Distributed()
    killed = Killed(one.model, None)
    killed.run(5)
    assert set(looked) == set(NAMES)
    looked.clear()
    one.edit(NAMES[0])
    killed.run(5)
    one.check("v")
    assert set(looked) == {NAMES[0]}
    looked.clear()
    one.distribute("v2")
    killed.run(5)
    one.check("v2")
    assert set(looked) == set(NAMES)


STEPS = st.one_of(
    st.tuples(st.sampled_from(["edit", "drop"]), st.sampled_from(NAMES[:4])),
    st.tuples(st.sampled_from(["on", "off"]), st.sampled_from(NAMES[:4])),
    st.tuples(st.just("value"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("pass"), st.none()),
    st.tuples(st.just("death"), st.integers(0, 3)),
)


@story_settings(40)
@given(st.lists(STEPS, max_size=12))
def test_whatever_happens_it_comes_to_the_same_end(steps: list[tuple[str, Any]]) -> None:  # RD-39, RD-61
    one, value = Distributed(), "v"
    for what, which in steps:
        match what:
            case "edit":
                one.edit(which)
            case "drop":
                one.drop(which)
            case "on" | "off":
                one.mark(which, is_target=what == "on")
            case "value":
                value = which
                one.distribute(value)
            case _:
                Killed(one.model, which).run(1)
    Killed(one.model, None).run(4)
    one.check(value)


@pytest.mark.parametrize("name", [FOREIGN])
def test_an_obstacle_that_goes_makes_room(name: str) -> None:  # RD-51
    one = Distributed()
    Killed(one.model, None).run(2)
    one.drop(name)
    Killed(one.model, None).run(2)
    copy = one.copy(name)
    assert copy is not None
    assert copy.data == {"k": "v"}
