"""Copies of pull secrets: what is kept of a decision about them shows none."""

from __future__ import annotations

import asyncio
import base64
from types import SimpleNamespace
from typing import Any

import pytest

from kruise.api.apps.images import EXCHANGE_NAMESPACE, MODE, REFERENCES, SOURCE_KEY, ImagePullJob
from kruise.api.meta import Key
from kruise.api.native.config import SECRETS, Secret
from kruise.api.native.nodes import NAMESPACES
from kruise.machinery import codec
from kruise.operations.images.pulljob import controller
from kruise.operations.images.pulljob.secrets import Snapshot, conceal, decide
from tests.operations.images.objects import NOW, job
from tests.support.world import Json, LocalWorld, run_local

SECRET = "hunter2-very-secret"


def secret(name: str, value: str) -> Secret:
    quoted = {"kubectl.kubernetes.io/last-applied-configuration": value}
    return codec.convert(
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name, "annotations": quoted},
            "type": "Opaque",
            "data": {"k": base64.b64encode(value.encode()).decode()},
        },
        Secret,
    )


def test_what_is_kept_decides_the_same_and_shows_no_secret() -> None:
    for copy in (secret("copy", SECRET), secret("copy", "old")):
        snapshot = Snapshot(
            namespace="ns", name="s", source=secret("s", SECRET), copies=(copy,), jobs=("ns/j",), exchange="x"
        )
        kept = conceal(snapshot)
        assert [(one.verb, one.target) for one in decide(kept).actions()] == [
            (one.verb, one.target) for one in decide(snapshot).actions()
        ]
        shown = codec.encode(kept) + repr(decide(kept)).encode()
        assert SECRET.encode() not in shown
        assert base64.b64encode(SECRET.encode()) not in shown


def test_no_annotation_with_an_applied_object_is_copied_or_kept() -> None:
    """IPJ-37: all others are copied."""
    notes = {
        "team": "a",
        "kapp.k14s.io/original": '{"data": {"k": "x"}}',
        "objectset.rio.cattle.io/applied": "H4sIAAAAAAAA",
        "kubectl.kubernetes.io/last-applied-configuration": "x",
    }
    source = secret("s", SECRET)
    source = codec.evolve(source, metadata=codec.evolve(source.metadata, annotations=notes))
    snapshot = Snapshot(namespace="ns", name="s", source=source, copies=(), jobs=("ns/j",), exchange="x")
    marks = {SOURCE_KEY: "ns/s", REFERENCES: "ns/j", MODE: "batch"}
    [action] = decide(snapshot).actions()
    assert action.body["metadata"]["annotations"] == {"team": "a", **marks}
    [kept] = decide(conceal(snapshot)).actions()
    assert kept.body["metadata"]["annotations"] == marks


class View:
    """As much of a view as the secrets of a job are read from."""

    def __init__(self, wanted: ImagePullJob, copy: Secret) -> None:
        self._job, self._copy = wanted, copy
        self.now, self.seed = NOW, 1

    def store(self, resource: Any) -> Any:
        is_secret = resource is SECRETS
        return SimpleNamespace(
            get=lambda *key: None if is_secret else self._job,
            by_index=lambda *index: (self._copy,) if is_secret else (),
            is_terminating=lambda copy: False,
        )


@pytest.mark.parametrize(("namespace", "is_copy"), [("x", True), ("mallory", False)])
def test_a_secret_elsewhere_is_no_copy(monkeypatch: pytest.MonkeyPatch, namespace: str, is_copy: bool) -> None:
    """IPJ-36: who writes secrets in some namespace must not lead nodes to them, nor keep a job from its end."""
    monkeypatch.setattr(controller, "selected_nodes", lambda view, wanted: ((), 0))
    settings: Any = SimpleNamespace(daemon_namespace="x", flag=lambda flag: 300)
    copy = secret("copy", SECRET)
    notes = {SOURCE_KEY: "demo/s", REFERENCES: "demo/j"}
    copy = codec.evolve(copy, metadata=codec.evolve(copy.metadata, namespace=namespace, annotations=notes))
    view: Any = View(job(pullSecrets=["s"]), copy)
    seen = controller._Snapshots(settings)(view, Key("demo", "j"))
    assert seen is not None
    assert seen.has_copies is is_copy
    assert [one.namespace for one in seen.secrets] == (["x"] if is_copy else [])
    assert seen.missing_secrets == (() if is_copy else ("s",))


def test_secrets_go_to_nodes_as_soon_as_their_namespace_is_there() -> None:
    """IPJ-35: somebody has deleted it, or it was never made."""

    async def scenario(world: LocalWorld) -> None:
        await world.delete(NAMESPACES, EXCHANGE_NAMESPACE)
        body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque", "data": {}}
        await world.create(body)
        await world.create(
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "ImagePullJob",
                "metadata": {"name": "j"},
                "spec": {"image": "nginx:1", "pullSecrets": ["s"], "completionPolicy": {"type": "Never"}},
            }
        )

        async def is_held() -> None:
            entries = world.journal.entries(controller="imagepulljob-controller", limit=1)
            held = [one for entry in entries for one in entry["plan"].get("held", ())]
            assert "does not exist: s cannot be brought there" in str(held), entries

        await world.until(is_held, within=60)
        await asyncio.sleep(300)  # what was tried again and again comes late by now
        again = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": EXCHANGE_NAMESPACE}}
        await world.client.create(NAMESPACES, again)

        async def has_copy() -> None:
            assert len((await world.client.list(SECRETS, EXCHANGE_NAMESPACE)).items) == 1

        await world.until(has_copy, within=5)

    run_local(scenario, feature_gates="ImagePullJobGate=true", nodes=1)
