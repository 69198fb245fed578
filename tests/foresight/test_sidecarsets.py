"""Plans of SidecarSets: which pods of whom get a new sidecar, in which order, and which cannot."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.meta import Key
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NAMESPACES, NODES, Namespace
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.foresight.forecast import Forecast, How
from kruise.foresight.foreseeing import foresee
from kruise.foresight.playing import Bounds
from kruise.foresight.staging import stage
from kruise.kinds import features
from kruise.machinery import codec
from tests.foresight.scenes import NOW, node, options
from tests.support.sidecarsets import SIDE, made, pod, read, running, sidecar_set

Json = dict[str, Any]
KEY = Key("", "logs")
TWO = (("one", "web-1"), ("two", "web-1"))


@dataclasses.dataclass(frozen=True)
class Scene:
    """A SidecarSet that has come to rest, with pods in two namespaces."""

    document: Json
    objects: Mapping[Resource[Any], Sequence[Any]]

    def foresee(self, changed: Json) -> Forecast:
        return foresee(SIDECAR_SETS, KEY, changed, self.objects, features=features(), settings=options(), now=NOW)


def scene(manifest: Json, *pods: Json) -> Scene:
    around = [
        codec.convert({"metadata": {"name": name, "resourceVersion": "1"}}, Namespace)
        for name in sorted({one["metadata"]["namespace"] for one in pods})
    ]
    objects: dict[Resource[Any], Sequence[Any]] = {
        NODES: (node(1),),
        NAMESPACES: around,
        PODS: [read(one) for one in pods],
        CONTROLLER_REVISIONS: (),
        SIDECAR_SETS: (),
    }
    played = stage(
        SIDECAR_SETS,
        KEY,
        manifest,
        objects,
        features=features(),
        settings=options(),
        now=NOW,
        seed=0,
        answer_hooks=True,
        server_version=None,
        bounds=Bounds(),
    )
    played.playing.play()
    return Scene(manifest, {resource: played.world.store(resource).list() for resource in objects})


def pods(manifest: Json, *places: tuple[str, str], labels: Json | None = None, **state: Any) -> list[Json]:
    found = []
    for namespace, name in places:
        whole = made(manifest, name, labels)
        found.append(
            running({**whole, "metadata": {**whole["metadata"], "namespace": namespace}}, node="node-1", **state)
        )
    return found


OLD = sidecar_set()
NEW = sidecar_set(containers=[{**SIDE, "image": "nginx:1.26"}])


def test_pods_of_one_name_in_two_namespaces_are_two() -> None:
    """SCS-94: one after the other, and each is named with its namespace."""
    found = scene(OLD, *pods(OLD, *TWO)).foresee(NEW)
    moves = [move for wave in found.waves for move in wave.moves]
    assert [(move.pod, move.how) for move in moves] == [("one/web-1", How.IN_PLACE), ("two/web-1", How.IN_PLACE)]
    assert (found.is_complete, found.fewest_available, found.staying) == (True, 1, ())


def test_a_change_that_no_pod_needs_is_over_at_once() -> None:
    """SCS-14, SCS-83: a new revision, and no rollout."""
    found = scene(OLD, *pods(OLD, *TWO)).foresee(sidecar_set(volumes=[{"name": "v", "emptyDir": {}}]))
    assert (found.waves, found.staying, found.stops) == ((), (), ())
    assert found.is_complete
    assert found.by_revision == {found.to_revision: 2}


def test_who_cannot_be_updated_is_told_with_the_remedy() -> None:
    """SCS-95."""
    changed = sidecar_set(containers=[{**SIDE, "image": "nginx:1.26", "env": [{"name": "A", "value": "b"}]}])
    found = scene(OLD, *pods(OLD, *TWO)).foresee(changed)
    assert [(one.pod, one.meaning.code) for one in found.staying] == [
        ("one/web-1", "not-upgradable"),
        ("two/web-1", "not-upgradable"),
    ]
    assert all("kruise rollout undo sidecarset/logs" in one.remedy for one in found.staying)
    assert not found.is_complete


def test_selector_and_partition_hold_pods() -> None:
    """SCS-90, SCS-93."""
    before = scene(OLD, *pods(OLD, ("one", "a"), ("one", "b")), *pods(OLD, ("two", "c"), labels={"canary": "yes"}))
    canary = sidecar_set(
        containers=[{**SIDE, "image": "nginx:1.26"}],
        updateStrategy={"selector": {"matchLabels": {"canary": "yes"}}},
    )
    found = before.foresee(canary)
    assert [move.pod for wave in found.waves for move in wave.moves] == ["two/c"]
    assert {one.pod: one.meaning.code for one in found.staying} == {"one/a": "not-selected", "one/b": "not-selected"}
    kept = sidecar_set(containers=[{**SIDE, "image": "nginx:1.26"}], updateStrategy={"partition": 2})
    found = before.foresee(kept)
    assert sum(len(wave.moves) for wave in found.waves) == 1
    assert {one.meaning.code for one in found.staying} == {"partition"}


def test_pods_that_run_without_the_sidecar_stay_so() -> None:
    """SCS-44: that nothing happens to them is said."""
    bare = pod("bare")
    bare["metadata"]["namespace"] = "one"
    bare = running(bare, node="node-1")
    found = scene(OLD, *pods(OLD, ("one", "a")), bare).foresee(NEW)
    assert [move.pod for wave in found.waves for move in wave.moves] == ["one/a"]
    assert any("1 pod runs without its sidecars" in one.message for one in found.warnings)


@pytest.mark.parametrize(
    ("namespace", "is_paused", "canary", "told"),
    [
        ("one", False, False, ["those that are made anew get the sidecars"]),
        ("one", True, False, ["nor do new ones get any while spec.injectionStrategy.paused is true"]),
        ("kube-system", False, False, ["1 pod in kube-system that it selects never gets its sidecars"]),
        ("one", False, True, []),
    ],
)
def test_who_gets_no_sidecar_and_whether_that_stays_so(
    namespace: str, is_paused: bool, canary: bool, told: list[str]
) -> None:
    """SCS-37, SCS-44, PW-43: nobody is told to restart pods for sidecars that they would not get, or that they have
    of a canary."""
    bare = made(sidecar_set("canary"), "bare") if canary else pod("bare")
    bare["metadata"]["namespace"] = namespace
    old = sidecar_set(injectionStrategy={"paused": is_paused})
    new = sidecar_set(injectionStrategy={"paused": is_paused}, containers=NEW["spec"]["containers"])
    found = scene(old, *pods(old, ("one", "a")), running(bare, node="node-1")).foresee(new)
    messages = [one.message for one in found.warnings if "its sidecars" in one.message]
    assert [text for text, message in zip(told, messages, strict=True) if text in message] == told


def test_what_admission_computes_is_no_change() -> None:
    """SCS-14: the hashes follow from the containers, and nobody has written them."""
    found = scene(OLD, *pods(OLD, *TWO)).foresee(NEW)
    assert [change.path for change in found.changes] == ["spec.containers[side].image"]
