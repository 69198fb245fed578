"""What new pods get (SCS section 7)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.admission.chain import StepContext
from kruise.admission.coming import Expected
from kruise.admission.decisions import Change, Failure, HandlerView, NeedsReads
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.machinery import codec
from kruise.machinery.plan import Target
from kruise.machinery.store import Store
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.building import InjectionError
from kruise.sidecars.sidecarset.content import Content
from kruise.sidecars.sidecarset.injecting import Injection
from kruise.sidecars.sidecarset.matching import WATCHED_NAMESPACES, WATCHED_REVISIONS, WATCHED_SETS
from tests.admission.helpers import request_of
from tests.support.examples import story_settings
from tests.support.sidecarsets import NOW, SIDE, container, content, names, pod, sidecar_set, stored, with_sidecars


def test_places_and_order() -> None:
    """SCS-55, SCS-59, SCS-36: before, behind, and by name where the gate asks for it; init containers by name."""
    one = content(
        "one",
        containers=[
            {"name": "z", "image": "i:1"},
            {"name": "behind", "image": "i:1", "podInjectPolicy": "AfterAppContainer"},
        ],
        initContainers=[{"name": "i2", "image": "i:1"}, {"name": "i1", "image": "i:1"}],
    )
    other = content("other", containers=[{"name": "a", "image": "i:1"}])
    whole = with_sidecars(pod(initContainers=[{"name": "own", "image": "i:1"}]), one, other)
    assert names(whole["spec"]["containers"]) == ["z", "a", "main", "behind"]
    assert names(whole["spec"]["initContainers"]) == ["own", "i1", "i2"]
    by_name = with_sidecars(pod(), one, other, sorts_by_name=True)
    assert names(by_name["spec"]["containers"]) == ["a", "z", "main", "behind"]


def test_annotations() -> None:
    """SCS-60: the content is told, sets of a copied manifest are kept, and the old form is understood."""
    whole = with_sidecars(
        pod(annotations={keys.HASH: '{"old":"abc"}', keys.INJECTED_LIST: "old"}),
        content("logs", initContainers=[{"name": "i", "image": "i:1"}]),
    )
    annotations = whole["metadata"]["annotations"]
    entries = json.loads(annotations[keys.HASH])
    assert entries["old"] == {"hash": "abc", "sidecarSetName": "old"}
    assert entries["logs"] == {
        "updateTimestamp": "2030-01-01T00:00:00Z",
        "hash": content("logs").hash,
        "sidecarSetName": "logs",
        "sidecarList": ["side"],
    }
    assert annotations[keys.INJECTED_LIST] == "logs,old"
    assert "controllerRevision" not in json.loads(annotations[keys.HASH_WITHOUT_IMAGE])["logs"]


def test_an_annotation_that_nobody_can_read_is_refused() -> None:
    """SCS-60, SCS-61."""
    with pytest.raises(InjectionError, match=keys.HASH):
        with_sidecars(pod(annotations={keys.HASH: "{"}), content())


def test_volumes_secrets_and_shared_mounts() -> None:
    """SCS-47, SCS-48, SCS-49, SCS-52, SCS-53."""
    side = {
        "name": "side",
        "image": "i:1",
        "volumeMounts": [{"name": "used", "mountPath": "/used"}, {"name": "nobody", "mountPath": "/n"}],
        "volumeDevices": [{"name": "raw", "devicePath": "/dev/own"}],
        "shareVolumePolicy": {"type": "enabled"},
        "shareVolumeDevicePolicy": {"type": "enabled"},
    }
    given_volumes: list[Any] = [{"name": name, "emptyDir": {}} for name in ("used", "unused", "raw")]
    main = {
        "name": "main",
        "image": "i:1",
        "env": [{"name": "POD", "value": "p"}],
        "volumeMounts": [
            {"name": "data", "mountPath": "/data", "subPathExpr": "$(POD)/$(NONE)"},
            {"name": "data", "mountPath": "/used"},
            {"name": "data", "mountPath": "/dev/own"},
        ],
        "volumeDevices": [{"name": "disk", "devicePath": "/dev/disk"}, {"name": "disk", "devicePath": "/data"}],
    }
    made = content("logs", containers=[side], volumes=given_volumes, imagePullSecrets=[{"name": "a"}, {"name": "b"}])
    whole = with_sidecars(
        pod(containers=[main], volumes=[{"name": "data", "emptyDir": {}}], imagePullSecrets=[{"name": "b"}]), made
    )
    built = container(whole, "side")
    assert [mount["mountPath"] for mount in built["volumeMounts"]] == ["/used", "/n", "/data"]
    assert [device["devicePath"] for device in built["volumeDevices"]] == ["/dev/own", "/dev/disk"]
    assert names(whole["spec"]["volumes"]) == ["data", "used", "raw"]
    assert names(whole["spec"]["imagePullSecrets"]) == ["b", "a"]
    assert names(built["env"]) == [keys.IS_INJECTED, "POD"]
    assert container(whole, "main") == main


def test_transferred_variables() -> None:
    """SCS-50, SCS-51: in sorted order, whole, own values first, and what is missing is left out."""
    transfer: list[Any] = [
        {"sourceContainerName": "main", "envName": "C", "envNames": ["A", "B", "MISSING"]},
        {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['source']"}}, "envName": "D"},
        {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.annotations['none']"}}, "envName": "E"},
        {"sourceContainerName": "nobody", "envName": "F"},
        {"sourceContainerNameFrom": {}, "sourceContainerName": "main", "envName": "G"},
    ]
    side = {"name": "side", "image": "i:1", "env": [{"name": "B", "value": "own"}], "transferEnv": transfer}
    source = {"fieldRef": {"fieldPath": "status.podIP"}}
    env = [{"name": name, "value": name} for name in "ABEG"] + [{"name": "C", "valueFrom": source}]
    other = {"name": "other", "image": "i:1", "env": [{"name": "D", "value": "d"}]}
    submitted = pod(labels={"source": "other"}, containers=[{"name": "main", "image": "i:1", "env": env}, other])
    built = container(with_sidecars(submitted, content("logs", containers=[side])), "side")
    assert names(built["env"]) == ["B", keys.IS_INJECTED, "A", "C", "D", "G"]
    assert built["env"][0]["value"] == "own"
    assert built["env"][3]["valueFrom"] == source


@pytest.mark.parametrize(
    ("policy", "known", "value", "after"),
    [
        ("Retain", None, "new", "new"),
        ("Retain", "", "new", ""),
        ("Retain", "old", "new", "old"),
        ("Overwrite", "old", "new", "new"),
        ("MergePatchJson", None, '{"b": 2}', '{"b": 2}'),
        ("MergePatchJson", "", '{"b": 2}', '{"b": 2}'),
        ("MergePatchJson", '{"a":1}', '{"b":2}', '{"a":1,"b":2}'),
    ],
)
def test_patched_annotations(policy: str, known: str | None, value: str, after: str) -> None:
    """SCS-45, SCS-46."""
    made = content("logs", patchPodMetadata=[{"annotations": {"k": value}, "patchPolicy": policy}])
    whole = with_sidecars(pod(annotations={"k": known} if known is not None else {}), made)
    assert whole["metadata"]["annotations"]["k"] == after


def test_json_that_is_none_is_refused() -> None:
    """SCS-45."""
    made = content("logs", patchPodMetadata=[{"annotations": {"k": "{}"}, "patchPolicy": "MergePatchJson"}])
    with pytest.raises(InjectionError, match="SidecarSet logs merges JSON into the annotation k"):
        with_sidecars(pod(annotations={"k": "no json"}), made)


def hot(name: str = "side", image: str = "i:1") -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"},
    }


def test_twins_of_a_hot_upgrade() -> None:
    """SCS-56, SCS-57, SCS-58."""
    whole = with_sidecars(pod(), content("logs", containers=[hot()], initContainers=[hot("first")]))
    assert names(whole["spec"]["containers"]) == ["side-1", "side-2", "main"]
    assert names(whole["spec"]["initContainers"]) == ["first"], "a plain init container has no twin"
    assert [container(whole, name)["image"] for name in ("side-1", "side-2")] == ["i:1", "empty:1"]
    annotations = whole["metadata"]["annotations"]
    assert json.loads(annotations[keys.WORKING]) == {"side": "side-1"}
    versions = {key.partition("/")[2]: annotations[key] for key in annotations if key.startswith("version.")}
    others = {key.partition("/")[2]: annotations[key] for key in annotations if key.startswith("versionalt.")}
    assert (versions, others) == ({"side-1": "1", "side-2": "0"}, {"side-1": "0", "side-2": "1"})
    variable = container(whole, "side-2")["env"][-2]
    assert variable["name"] == keys.VERSION_ENV
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == (
        "metadata.annotations['version.sidecarset.kruise.io/side-2']"
    )


def test_names_that_clash_are_refused_with_both_names() -> None:
    with pytest.raises(InjectionError, match=r"SidecarSet logs has a sidecar main, and the pod has a container main"):
        with_sidecars(pod(), content("logs", containers=[{"name": "main", "image": "i:1"}]))
    with pytest.raises(InjectionError, match=r"SidecarSets logs and other both have a sidecar side"):
        with_sidecars(pod(), content("logs"), content("other"))
    twice = content("logs", containers=[hot(), {"name": "side-1", "image": "i:1"}])
    with pytest.raises(InjectionError, match=r"SidecarSet logs has two sidecars that pods would call side-1"):
        with_sidecars(pod(), twice)
    with pytest.raises(InjectionError, match=r"a sidecar side-2"):
        with_sidecars(pod(containers=[{"name": "side-2", "image": "i:1"}]), content("logs", containers=[hot()]))


def policy(mode: str = "sum", *, regex: str = ".*", **expressions: Any) -> dict[str, Any]:
    return {
        "name": "side",
        "image": "i:1",
        "resourcesPolicy": {
            "targetContainersMode": mode,
            "targetContainersNameRegex": regex,
            "resourcesExpr": expressions,
        },
    }


def sized(name: str, limits: dict[str, str] | None = None, requests: dict[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "image": "i:1", "resources": {"limits": limits or {}, "requests": requests or {}}}


@pytest.mark.parametrize(("mode", "cpu"), [("sum", "300m"), ("max", "200m")])
def test_resources_follow_those_of_others(mode: str, cpu: str) -> None:
    """SCS-54: an unlimited target makes the sidecar unlimited, whatever its expression; a missing request counts 0."""
    side = policy(
        mode,
        limits={"cpu": "max(cpu*50%, 50m)", "memory": "200Mi"},
        requests={"cpu": "cpu + 10m", "memory": "max(memory*20% + 100Mi, 200Mi)"},
    )
    submitted = pod(
        containers=[
            sized("main", {"cpu": "200m", "memory": "1Gi"}, {"memory": "1000Mi"}),
            sized("second", {"cpu": "400m"}),
        ]
    )
    built = container(with_sidecars(submitted, content("logs", containers=[side])), "side")
    assert built["resources"] == {"limits": {"cpu": cpu}, "requests": {"cpu": "10m", "memory": "300Mi"}}


def test_targets_of_resources_are_chosen_by_name() -> None:
    """SCS-54: native sidecars of the pod count, other sidecars and plain init containers do not."""
    side = policy(regex="^(big|native|plain|other)$", limits={"cpu": "cpu"})
    native = {**sized("native", {"cpu": "1"}), "restartPolicy": "Always"}
    submitted = pod(
        containers=[sized("big", {"cpu": "2"}), sized("small", {"cpu": "4"})],
        initContainers=[native, sized("plain", {"cpu": "8"})],
    )
    other = content("other", containers=[{"name": "other", "image": "i:1"}])
    built = container(with_sidecars(submitted, content("logs", containers=[side]), other), "side")
    assert built["resources"] == {"limits": {"cpu": "3"}}
    with pytest.raises(InjectionError, match=r"SidecarSet logs, sidecar side: no container of the pod has a name"):
        with_sidecars(pod(), content("logs", containers=[policy(regex="^nobody$", limits={"cpu": "cpu"})]))
    limited = pod(containers=[sized("main", {"cpu": "1"})])
    with pytest.raises(InjectionError, match="two quantities cannot be multiplied"):
        with_sidecars(limited, content("logs", containers=[policy(limits={"cpu": "cpu*cpu"})]))


CONTENTS: list[Content] = [
    content("one", containers=[{"name": "a", "image": "i:1", "shareVolumePolicy": {"type": "enabled"}}]),
    content("two", containers=[hot("b")], initContainers=[{"name": "c", "image": "i:1"}]),
    content("three", containers=[{"name": "d", "image": "i:1", "podInjectPolicy": "AfterAppContainer"}]),
    content(
        "four",
        containers=[
            {
                **hot("e"),
                "env": [{"name": "OWN", "value": "1"}, {"name": "OWN", "value": "2"}],
                "transferEnv": [{"sourceContainerName": name, "envName": "OWN2"} for name in ("main", "e-1", "d")],
                "resourcesPolicy": {
                    "targetContainersMode": "sum",
                    "targetContainersNameRegex": ".*",
                    "resourcesExpr": {"limits": {"cpu": "cpu"}, "requests": {"memory": "memory + 1Mi"}},
                },
            }
        ],
        patchPodMetadata=[{"annotations": {"k": '{"b": 2}'}, "patchPolicy": "MergePatchJson"}],
    ),
]


@story_settings(30)
@given(
    chosen=st.lists(st.sampled_from(CONTENTS), unique_by=lambda one: one.owner),
    mounts=st.lists(st.sampled_from(["/a", "/b"]), unique=True),
)
def test_injection_is_a_function_of_pod_and_sets(chosen: list[Content], mounts: list[str]) -> None:
    """Done twice it comes to the same, and what the pod had stays as it was."""
    main = {
        **sized("main", {"cpu": "200m"}),
        "env": [{"name": "OWN2", "value": "x"}],
        "volumeMounts": [{"name": "v", "mountPath": path} for path in mounts],
    }
    submitted = pod(containers=[main])
    before = json.dumps(submitted)
    once = with_sidecars(submitted, *chosen)
    assert json.dumps(submitted) == before
    assert with_sidecars(once, *chosen) == once
    assert container(once, "main") == main


def test_sidecars_that_are_there_already_count_for_nobody() -> None:
    """SCS-51, SCS-54: a pod that was submitted with sidecars in it (a copied manifest, a second call) gets the same."""
    four = CONTENTS[-1]
    main = {**sized("main", {"cpu": "200m"}), "env": []}
    once = with_sidecars(pod(containers=[main]), four)
    assert container(once, "e-1")["resources"]["limits"] == {"cpu": "200m"}
    assert with_sidecars(once, four) == once


def test_a_set_that_the_watch_does_not_show_yet_is_read() -> None:
    """SCS-66: it was let pass a moment ago, and whoever wrote it makes pods now."""
    sets, namespaces, revisions = Store(WATCHED_SETS), Store(WATCHED_NAMESPACES), Store(WATCHED_REVISIONS)
    for store in (sets, namespaces, revisions):
        store.replace([], 3)
    stores: dict[Any, Any] = {SIDECAR_SETS: sets, NAMESPACES: namespaces, CONTROLLER_REVISIONS: revisions}
    target, body, step = Target(SIDECAR_SETS, "", "logs"), pod(), Injection("kruise-system")

    def coming(**spec: Any) -> HandlerView:
        late = (Expected(target=target, body=sidecar_set(**spec), until=NOW),)
        return HandlerView(now=NOW, seed=1, stores=stores.__getitem__, coming=lambda kind: late)

    def asked(view: HandlerView) -> Any:
        return step(body, StepContext(request_of(body, kind="Pod", resource="pods"), view, "d"))

    needed = NeedsReads(targets=(target,), may_fail=True)
    others = {"selector": {"matchLabels": {"app": "other"}}}
    assert asked(coming(**others)) is None, "a pod that no set concerns costs no read"
    assert asked(coming()) == needed
    found = stored(sidecar_set())
    sets.written(found)  # as whoever reads it does
    answer = asked(dataclasses.replace(coming(), reads={target: found}))
    assert isinstance(answer, Change)
    assert names(answer.object["spec"]["containers"]) == ["side", "main"]
    assert asked(coming(**others)) == needed, "the one that is known selects the pod, and may not do so any more"
    sets.replace([], 9)
    assert asked(dataclasses.replace(coming(), reads={target: Failure(403, "Forbidden", "no")})) is None


def test_own_variables_stay_as_they_are() -> None:
    """SCS-50: a kubelet takes the last of two."""
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    built = container(with_sidecars(pod(), content("logs", containers=[{**SIDE, "env": env}])), "side")
    assert built["env"] == [*env, {"name": keys.IS_INJECTED, "value": "true"}]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ({"metadata": {"name": "fresh", "labels": {"team": "a"}}}, True),
        ({"metadata": {"name": "fresh"}}, False),
        (None, False),
        (Failure(403, "Forbidden", "no"), False),
    ],
)
def test_a_namespace_that_the_store_does_not_know_yet_is_read(read: Any, expected: bool) -> None:
    """SCS-34: its first pods come at once."""
    sets, namespaces = Store(WATCHED_SETS), Store(WATCHED_NAMESPACES)
    sets.replace([stored(sidecar_set(namespaceSelector={"matchLabels": {"team": "a"}}))], 7)
    namespaces.replace([], 7)
    stores: dict[Any, Any] = {SIDECAR_SETS: sets, NAMESPACES: namespaces, CONTROLLER_REVISIONS: None}
    view = HandlerView(now=NOW, seed=1, stores=stores.__getitem__)
    target = Target(NAMESPACES, "", "fresh")

    def asked(view: HandlerView, body: Any) -> Any:
        return Injection("kruise-system")(
            body, StepContext(request_of(body, kind="Pod", resource="pods"), view, "fresh")
        )

    assert asked(view, pod()) == NeedsReads(targets=(target,), may_fail=True)
    assert asked(view, pod(labels={"app": "other"})) is None
    found = codec.convert(read, Namespace) if isinstance(read, dict) else read
    answer = asked(dataclasses.replace(view, reads={target: found}), pod())
    assert isinstance(answer, Change) is expected
