"""A random user against a simple model: versions grow, replays agree with lists, nothing stored ever changes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kruise.local.apicore import Call, StatusError
from kruise.local.apicore.deletion import DeleteOptions
from kruise.local.apicore.storage import CompactedError, MemoryStorage
from kruise.local.kinds import POD_KIND
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import VIRTUAL_EPOCH, ManualClock, run_virtual
from kruise.machinery.codec import canonical
from tests.local.harness import PODS, Api, finish, pod
from tests.support.examples import EXAMPLES

NAMES = st.sampled_from(["a", "b", "c"])
FINALIZERS = st.lists(st.sampled_from(["k/one", "k/two"]), unique=True)
RESOURCE = "pods"


def attempt(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The answer, or the error that is raised instead of one."""
    try:
        return finish(coroutine)
    except StatusError as error:
        return error


# The rules that all kinds share, on a kind with graceful deletion: what pods refuse beyond that is not the matter here.
LENIENT = dataclasses.replace(POD_KIND, validate=lambda new, old: ())


class ApiMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.api = Api(clock=self.clock, kinds=(LENIENT,))
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
        return Call(kind=LENIENT, version="v1", namespace="default", name=name, **more)

    def patch(self, name: str, body: Any, **more: Any) -> Any:
        call = self.call(name, **more)
        return attempt(self.core.patch(call, PatchType.MERGE, json.dumps(body).encode()))

    @rule(name=NAMES, finalizers=FINALIZERS, scheduled=st.booleans(), label=st.sampled_from("xy"))
    def create(self, name: str, finalizers: list[str], scheduled: bool, label: str) -> None:
        body = pod(name, node="n1" if scheduled else "", finalizers=finalizers, labels={"l": label})
        made = attempt(self.core.create(self.call(""), body))
        if name in self.model:
            assert made.reason == "AlreadyExists"
            assert made.message.startswith("object is being deleted") == self.model[name]["deleting"]
            return
        assert made["metadata"]["uid"] not in self.uids
        self.uids.add(made["metadata"]["uid"])
        self.model[name] = {
            "label": label,
            "finalizers": finalizers,
            "deleting": False,
            "grace": 0,
            "due": 0.0,
            "ended": not scheduled,
            "generation": 1,
            "hostname": None,
        }

    @rule(name=NAMES, label=st.sampled_from("xy"))
    def relabel(self, name: str, label: str) -> None:
        before = self.storage.version
        made = self.patch(name, {"metadata": {"labels": {"l": label}}})
        if name not in self.model:
            assert made.code == 404
            return
        changed = self.model[name]["label"] != label
        assert self.storage.version == before + changed, "only a change makes a version"
        self.model[name]["label"] = label

    @rule(name=NAMES, hostname=st.sampled_from(["h1", "h2"]))
    def change_spec(self, name: str, hostname: str) -> None:
        made = self.patch(name, {"spec": {"hostname": hostname}, "status": {"phase": "Odd"}})
        if name not in self.model:
            assert made.code == 404
            return
        model = self.model[name]
        model["generation"] += model["hostname"] != hostname
        model["hostname"] = hostname
        assert made[0]["status"]["phase"] != "Odd"

    @rule(name=NAMES, phase=st.sampled_from(["Running", "Failed"]))
    def change_status(self, name: str, phase: str) -> None:
        made = self.patch(name, {"status": {"phase": phase}, "spec": {"hostname": "odd"}}, subresource="status")
        if name not in self.model:
            assert made.code == 404
            return
        model = self.model[name]
        model["ended"] = phase == "Failed" or "nodeName" not in made[0]["spec"]
        assert made[0]["spec"].get("hostname") == model["hostname"]

    @rule(name=NAMES, finalizers=FINALIZERS)
    def change_finalizers(self, name: str, finalizers: list[str]) -> None:
        made = self.patch(name, {"metadata": {"finalizers": finalizers}})
        model = self.model.get(name)
        if model is None:
            assert made.code == 404
        elif model["deleting"] and set(finalizers) - set(model["finalizers"]):
            assert made.code == 422, "nobody may hold back what is being deleted"
        else:
            assert made[0]["metadata"].get("finalizers", []) == finalizers
            model["finalizers"] = finalizers
            self.settle(name)

    @rule(name=NAMES, asked=st.sampled_from([None, 0, 5, 60]))
    def delete(self, name: str, asked: int | None) -> None:
        answer = attempt(self.core.delete(self.call(name), DeleteOptions(grace_period_seconds=asked)))
        model = self.model.get(name)
        if model is None:
            assert answer.code == 404
            return
        assert answer["metadata"]["name"] == name
        now = self.clock.monotonic()
        if not model["deleting"]:
            grace = 0 if model["ended"] else 30 if asked is None else asked
            model.update(deleting=True, grace=grace, due=now + grace, generation=model["generation"] + 1)
        elif asked is not None and asked < model["grace"]:
            due = model["due"] - model["grace"] + asked
            model.update(grace=asked if due >= now else min(asked, 1), due=max(due, now))
        self.settle(name)

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
                due = VIRTUAL_EPOCH + timedelta(seconds=model["due"])
                assert metadata["deletionTimestamp"] == due.strftime("%Y-%m-%dT%H:%M:%SZ")

    @invariant()
    def versions_grow_and_nothing_stored_changes(self) -> None:
        assert self.storage.version >= self.last_version
        for event in self.storage.since(RESOURCE, max(self.last_version, self.compacted)):
            self.seen.append((event.object, canonical(event.object)))
        self.last_version = self.storage.version
        for obj, before in self.seen:
            assert canonical(obj) == before


TestApiMachine = ApiMachine.TestCase
TestApiMachine.settings = settings(max_examples=40 * EXAMPLES, stateful_step_count=40, deadline=None)
