"""Whatever SidecarSet somebody sends, admission has an answer: no API server has looked at its fields before defaults
are filled in, and containers and volumes are open to anything."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Invalid, NeedsReads
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.machinery import codec
from kruise.machinery.store import Store
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.admission import ADMISSION
from kruise.sidecars.sidecarset.matching import WATCHED_REVISIONS, WATCHED_SETS
from tests.support.admission import request
from tests.support.examples import story_settings
from tests.support.sidecarsets import NOW, SIDE, sidecar_set, stored

Json = dict[str, Any]
Place = tuple[str | int, ...]
EVERYTHING = sidecar_set(
    metadata={"labels": {"a": "b"}, "annotations": {keys.CANARY: "true", keys.BASE: "base"}},
    namespaceSelector={
        "matchLabels": {"x": "y"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
    },
    containers=[
        {
            "name": "side",
            "image": "i:1",
            "podInjectPolicy": "BeforeAppContainer",
            "shareVolumePolicy": {"type": "enabled"},
            "shareVolumeDevicePolicy": {"type": "enabled"},
            "transferEnv": [
                {"sourceContainerName": "main", "envNames": ["A"], "envName": "B"},
                {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['from']"}}, "envName": "C"},
            ],
            "resourcesPolicy": {
                "targetContainersMode": "sum",
                "targetContainersNameRegex": "^m",
                "resourcesExpr": {"limits": {"cpu": "cpu*2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            },
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "volumeDevices": [{"name": "claim", "devicePath": "/d"}],
            "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "lifecycle": {"postStart": {"httpGet": {"port": 80}}},
        },
        {
            "name": "hot",
            "image": "i:1",
            "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e:1"},
            "resources": {"limits": {"cpu": "1"}},
        },
    ],
    initContainers=[{"name": "init", "image": "i:1", "restartPolicy": "Always"}],
    volumes=[
        {"name": "v", "hostPath": {"path": "/"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "w", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ],
    imagePullSecrets=[{"name": "s"}],
    patchPodMetadata=[{"annotations": {"k": "1"}, "patchPolicy": "Overwrite"}],
    revisionHistoryLimit=3,
    customVersion="v",
    injectionStrategy={"paused": False},
    updateStrategy={
        "type": "NotUpdate",
        "paused": True,
        "selector": {"matchLabels": {"q": "r"}},
        "partition": "10%",
        "maxUnavailable": 1,
        "priorityStrategy": {"weightPriority": [{"weight": 1, "matchSelector": {"matchLabels": {"a": "b"}}}]},
        "scatterStrategy": [{"key": "a", "value": "*"}],
    },
)
OTHERS = (
    sidecar_set("base"),
    sidecar_set("other", containers=[{**SIDE, "name": "z"}], volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
)


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    if place:
        yield place
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _places(item, (*place, key))


def _changed(place: Place, value: Any) -> Json:
    whole = copy.deepcopy(EVERYTHING)
    holder: Any = whole["spec"]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return whole


PLACES = tuple(_places(EVERYTHING["spec"]))
ODD: tuple[Any, ...] = (
    None,
    [],
    {},
    "",
    "x",
    5,
    -1,
    1.5,
    True,
    [None],
    ["x"],
    [[]],
    {"a": 1},
    {"a": None},
    [{}],
    10**30,
)


def answer(body: Json, old: Json | None) -> Any:
    """Of both handlers, as an API server asks them."""
    sets, revisions = Store(WATCHED_SETS), Store(WATCHED_REVISIONS)
    sets.replace([stored(one) for one in OTHERS], 7)
    revisions.replace([], 7)
    stores: dict[Any, Any] = {SIDECAR_SETS: sets, CONTROLLER_REVISIONS: revisions}
    gates = {"SidecarSetPatchPodMetadataDefaultsAllowed": True}
    view = HandlerView(now=NOW, seed=1, stores=stores.__getitem__, gates=gates)
    version = body["apiVersion"].rpartition("/")[2]
    found = ADMISSION.default(_request(body, old, version), view)
    if not isinstance(found, Change):
        return found
    asked = _request(dict(found.object), old, version)
    judged = ADMISSION.judge(asked, view)
    if isinstance(judged, NeedsReads):
        judged = ADMISSION.judge(asked, dataclasses.replace(view, reads=dict.fromkeys(judged.targets)))
    return judged


def _request(body: Json, old: Json | None, version: str) -> Any:
    return codec.evolve(request(body, old, version=version, kind="SidecarSet"), namespace="")


def test_the_example_is_sound() -> None:
    assert isinstance(answer(EVERYTHING, None), Allow)


@story_settings(150)
@given(
    place=st.sampled_from(PLACES),
    value=st.sampled_from(ODD),
    version=st.sampled_from(["v1alpha1", "v1beta1"]),
    is_update=st.booleans(),
)
def test_every_sidecar_set_is_answered(place: Place, value: Any, version: str, is_update: bool) -> None:
    """SCS-9, SCS-11, SCS-27: never an exception; a refusal says which field."""
    body = {**_changed(place, value), "apiVersion": f"apps.kruise.io/{version}"}
    found = answer(body, {**EVERYTHING, "apiVersion": body["apiVersion"]} if is_update else None)
    assert isinstance(found, Allow | Deny | Invalid), found
    if not isinstance(found, Allow):
        assert all(cause.field for cause in found.causes), found
        assert found.causes
