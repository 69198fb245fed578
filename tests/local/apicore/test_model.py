"""A random user against a simple model: versions grow, replays agree with lists, nothing stored ever changes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kruise.local.apicore import POD_KIND, Call, StatusError
from kruise.local.apicore.deletion import DeleteOptions
from kruise.local.apicore.storage import CompactedError, MemoryStorage
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import ManualClock, run_virtual
from kruise.machinery.codec import canonical
from tests.local.harness import PODS, Api, finish, pod

NAMES = st.sampled_from(["a", "b", "c"])
FINALIZERS = st.lists(st.sampled_from(["k/one", "k/two"]), unique=True)
RESOURCE = "pods"


class ApiMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.api = Api(clock=self.clock)
        self.core = self.api.core
        storage = self.core.storage
        assert isinstance(storage, MemoryStorage)
        self.storage = storage
        self.model: dict[str, dict[str, Any]] = {}
        self.seen: list[tuple[dict[str, Any], bytes]] = []
        self.last_version = 0
        self.compacted = 0
        self.uids: set[str] = set()

    def call(self, name: str, **more: Any) -> Call:
        return Call(kind=POD_KIND, version="v1", namespace="default", name=name, **more)

    def patch(self, name: str, body: Any, **more: Any) -> dict[str, Any] | None:
        """The patched object, None where there is none."""
        try:
            call = self.call(name, **more)
            answer, _ = finish(self.core.patch(call, PatchType.MERGE, json.dumps(body).encode()))
        except StatusError as error:
            assert error.code == 404
            assert name not in self.model
            return None
        return answer

    @rule(name=NAMES, finalizers=FINALIZERS, scheduled=st.booleans(), label=st.sampled_from("xy"))
    def create(self, name: str, finalizers: list[str], scheduled: bool, label: str) -> None:
        body = pod(name, node="n1" if scheduled else "", finalizers=finalizers, labels={"l": label})
        try:
            made = finish(self.core.create(self.call(""), body))
        except StatusError as error:
            assert error.reason == "AlreadyExists"
            assert error.message.startswith("object is being deleted") == self.model[name]["deleting"]
            return
        assert name not in self.model
        assert made["metadata"]["uid"] not in self.uids
        self.uids.add(made["metadata"]["uid"])
        self.model[name] = {
            "label": label,
            "finalizers": finalizers,
            "deleting": False,
            "grace": 0,
            "scheduled": scheduled,
            "generation": 1,
        }

    @rule(name=NAMES, label=st.sampled_from("xy"))
    def relabel(self, name: str, label: str) -> None:
        before = self.storage.version
        made = self.patch(name, {"metadata": {"labels": {"l": label}}})
        if made is not None:
            changed = self.model[name]["label"] != label
            assert self.storage.version == before + changed, "only a change makes a version"
            self.model[name]["label"] = label

    @rule(name=NAMES, hostname=st.sampled_from(["h1", "h2"]))
    def change_spec(self, name: str, hostname: str) -> None:
        made = self.patch(name, {"spec": {"hostname": hostname}, "status": {"phase": "Odd"}})
        if made is not None:
            model = self.model[name]
            model["generation"] += model.get("hostname") != hostname
            model["hostname"] = hostname
            assert made["status"]["phase"] != "Odd"

    @rule(name=NAMES, phase=st.sampled_from(["Running", "Failed"]))
    def change_status(self, name: str, phase: str) -> None:
        made = self.patch(name, {"status": {"phase": phase}, "spec": {"hostname": "odd"}}, subresource="status")
        if made is not None:
            self.model[name]["phase"] = phase
            assert made["spec"].get("hostname") != "odd"

    @rule(name=NAMES, finalizers=FINALIZERS)
    def change_finalizers(self, name: str, finalizers: list[str]) -> None:
        model = self.model.get(name)
        try:
            made = self.patch(name, {"metadata": {"finalizers": finalizers}})
        except AssertionError:
            assert model is not None
            assert model["deleting"]
            assert set(finalizers) - set(model["finalizers"]), "only new finalizers are refused"
            return
        if made is not None and model is not None:
            assert not model["deleting"] or not set(finalizers) - set(model["finalizers"])
            model["finalizers"] = finalizers
            self.settle(name)

    @rule(name=NAMES, grace=st.sampled_from([None, 0, 5, 60]))
    def delete(self, name: str, grace: int | None) -> None:
        try:
            finish(self.core.delete(self.call(name), DeleteOptions(grace_period_seconds=grace)))
        except StatusError as error:
            assert error.code == 404
            assert name not in self.model
            return
        model = self.model[name]
        if model["deleting"]:
            if model["grace"] and grace is not None and grace < model["grace"]:
                left = self.deadline(name)
                model["grace"] = grace if grace == 0 or left + grace - model["grace"] >= 0 else 1
        else:
            ended = not model["scheduled"] or model.get("phase") == "Failed"
            model.update(deleting=True, grace=0 if ended else 30 if grace is None else grace)
            model["generation"] += 1
        model["due"] = self.clock.monotonic() + model["grace"] if "due" not in model else model["due"]
        if model["grace"]:
            stored = self.storage.get(RESOURCE, ("default", name))
            assert stored is not None
            model["grace"] = stored["metadata"]["deletionGracePeriodSeconds"]
        self.settle(name)

    def deadline(self, name: str) -> float:
        return float(self.model[name]["due"] - self.clock.monotonic())

    def settle(self, name: str) -> None:
        """An object that is deleted goes when nothing keeps it any more."""
        model = self.model[name]
        if model["deleting"] and not model["grace"] and not model["finalizers"]:
            del self.model[name]

    @rule(seconds=st.integers(1, 40))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.storage.version > self.compacted)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        self.compacted = data.draw(st.integers(self.compacted, self.storage.version))
        self.storage.compact(self.compacted)

    @rule(back=st.integers(0, 20), selector=st.sampled_from(["", "l=x"]))
    def replay(self, back: int, selector: str) -> None:
        """The state at a version plus the watch from it is the state now; what is compacted answers 410."""
        start = max(1, self.storage.version - back)
        query = (("labelSelector", selector),) if selector else ()

        async def run() -> list[Any]:
            return await self.api.events_since(PODS, str(start), *query)

        if self.storage.version == 0:
            return
        events = run_virtual(run())
        try:
            past = dict(self.storage.scan(RESOURCE, "", "", start))
        except CompactedError:
            assert [(kind, obj["code"]) for kind, obj in events] == [("ERROR", 410)]
            assert start < self.compacted
            return
        state = {key[1]: obj for key, obj in past.items() if self.selected(obj, selector)}
        version = start
        for kind, obj in events:
            name = obj["metadata"]["name"]
            assert int(obj["metadata"]["resourceVersion"]) > version, "events come in the order of their versions"
            version = int(obj["metadata"]["resourceVersion"])
            assert (kind == "ADDED") == (name not in state)
            if kind == "DELETED":
                del state[name]
            else:
                state[name] = obj
        now = {key[1]: obj for key, obj in self.storage.scan(RESOURCE, "", "", self.storage.version)}
        assert state == {name: obj for name, obj in now.items() if self.selected(obj, selector)}

    @staticmethod
    def selected(obj: dict[str, Any], selector: str) -> bool:
        return not selector or obj["metadata"]["labels"]["l"] == "x"

    @invariant()
    def the_list_is_the_model(self) -> None:
        found = {key[1]: obj for key, obj in self.storage.scan(RESOURCE, "", "", self.storage.version)}
        assert set(found) == set(self.model)
        for name, model in self.model.items():
            metadata = found[name]["metadata"]
            assert metadata["labels"]["l"] == model["label"]
            assert metadata.get("finalizers", []) == model["finalizers"]
            assert metadata["generation"] == model["generation"]
            assert ("deletionTimestamp" in metadata) == model["deleting"]
            if model["deleting"]:
                assert metadata["deletionGracePeriodSeconds"] == model["grace"]

    @invariant()
    def versions_grow_and_nothing_stored_changes(self) -> None:
        assert self.storage.version >= self.last_version
        for event in self.storage.since(RESOURCE, max(self.last_version, self.compacted)):
            self.seen.append((event.object, canonical(event.object)))
        self.last_version = self.storage.version
        for obj, before in self.seen:
            assert canonical(obj) == before


TestApiMachine = ApiMachine.TestCase
TestApiMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
