"""Admission of advanced StatefulSets beyond what was recorded: growth of claims, gates, warnings, parts left alone."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest

from kruise.admission.decisions import Allow, Invalid
from kruise.api.native.storage import STORAGE_CLASSES, StorageClass
from kruise.api.resource import Resource
from kruise.api.versions import KEPT
from kruise.machinery import codec
from kruise.machinery.patches import merge
from kruise.workloads.statefulset.admission import ADMISSION
from tests.support import admission
from tests.support.admission import Json, causes_of, messages_of, stored

INVALID, REQUIRED, FORBIDDEN = "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"
CLAIMS = "spec.volumeClaimTemplates"
server = functools.partial(admission.Server, admission=ADMISSION)


def statefulset(spec: Json | None = None, *, version: str = "v1beta1", **metadata: Any) -> Json:
    """A small sound StatefulSet, with parts of its spec replaced by a JSON merge patch."""
    base = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
        },
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "StatefulSet",
        "metadata": {"name": "web", **metadata},
        "spec": merge.apply(base, dict(spec or {})),
    }


def kept_server(spec: Json, **options: Any) -> Json:
    """A StatefulSet as the API server keeps it."""
    return stored(server(**options).defaults(statefulset(spec)))


# Defaults


@pytest.mark.parametrize("is_on", [True, False])
def test_what_becomes_of_claims_is_said_where_the_gate_is_on(is_on: bool) -> None:
    """ST-23."""
    spec = server(gates={"StatefulSetAutoDeletePVC": is_on}).defaults(statefulset())["spec"]
    assert ("persistentVolumeClaimRetentionPolicy" in spec) == is_on


def test_a_write_about_something_else_adds_no_default() -> None:
    """ST-27: an object that came through v1alpha1 lacks what only v1beta1 has, and stays as it is."""
    old = stored(ADMISSION.convert(server().defaults(statefulset(version="v1alpha1"), version="v1alpha1"), "v1beta1"))
    assert "persistentVolumeClaimRetentionPolicy" not in old["spec"]
    new = server().defaults(merge.apply(old, {"metadata": {"labels": {"a": "b"}}}), old)
    assert new["spec"] == old["spec"]
    asked = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}
    new = server().defaults(merge.apply(old, {"spec": asked}), old)
    assert new["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Delete"}


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_defaults_are_there_once(version: str) -> None:
    """ST-27: what has its defaults gets no others."""
    once = server().defaults(statefulset(version=version), version=version)
    assert server().defaults(once, stored(once), version=version) == once
    assert server().defaults(once, version=version) == once


# What did not change is not judged again


@pytest.mark.parametrize(
    "spec",
    [
        {"reserveOrdinals": ["5"]},
        {"ordinals": {"start": -1}},
        {"revisionHistoryLimit": -1},
        {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}},
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 5}}},
        {"template": {"spec": {"containers": [{"name": "main"}]}}},
        {"volumeClaimTemplates": [{"metadata": {"name": "Da_ta"}}]},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_what_was_once_accepted_does_not_stand_in_the_way(spec: Json) -> None:
    old = kept_server(spec)
    assert isinstance(server().update(old, {"spec": {"replicas": 5}}), Allow)
    answer = server().update(old, {"spec": {"serviceName": "other"}})
    assert causes_of(answer) == {("spec", FORBIDDEN)}


# Growth of claims

CLASSES = (
    {"metadata": {"name": "grows"}, "allowVolumeExpansion": True},
    {"metadata": {"name": "stiff"}, "allowVolumeExpansion": False},
    {"metadata": {"name": "silent"}},
)
GATES = {"StatefulSetAutoResizePVCGate": True}


class Classes:
    """As much of a store as admission asks for."""

    def __init__(self, classes: Sequence[Json]) -> None:
        self._classes = tuple(codec.convert(one, StorageClass) for one in classes)

    def list(self) -> tuple[StorageClass, ...]:
        return self._classes


def growing(classes: Sequence[Json] = CLASSES) -> admission.Server:
    def stores(resource: Resource[Any]) -> Any:
        assert resource == STORAGE_CLASSES
        return Classes(classes)

    return server(gates=GATES, stores=stores)


def claim(
    size: str = "1Gi", name: str = "data", storage_class: str | None = "grows", mode: str = "ReadWriteOnce"
) -> Json:
    spec: Json = {"accessModes": [mode], "resources": {"requests": {"storage": size}}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {"metadata": {"name": name}, "spec": spec}


def changed(
    *claims: Json, by: Sequence[Json] = CLASSES, before: Json | None = None, kind: str = "OnPodRollingUpdate"
) -> Any:
    spec = {"volumeClaimTemplates": [before or claim()], "volumeClaimUpdateStrategy": {"type": kind}}
    return growing(by).update(kept_server(spec, gates=GATES), {"spec": {"volumeClaimTemplates": list(claims)}})


@pytest.mark.parametrize("size", ["2Gi", "512Mi", "1Gi", "1073741824"])
def test_claims_may_grow_where_the_class_lets_them(size: str) -> None:
    """ST-33: in either direction; a claim that is larger than its template stays as it is (ST-97)."""
    assert isinstance(changed(claim(size)), Allow)


def test_claims_of_a_stiff_class_do_not_grow() -> None:
    """ST-33: explicitly false refuses, silence passes; a size that is spelt in another way is the same."""
    stiff = claim(storage_class="stiff")
    answer = changed(claim("2Gi", storage_class="stiff"), before=stiff)
    assert causes_of(answer) == {(f"{CLAIMS}[0].spec.resources", FORBIDDEN)}
    assert "storage class stiff does not allow volumes to grow" in messages_of(answer)
    assert isinstance(changed(claim("1024Mi", storage_class="stiff"), before=stiff), Allow)
    silent = claim(storage_class="silent")
    assert isinstance(changed(claim("2Gi", storage_class="silent"), before=silent), Allow)


def test_a_class_that_does_not_exist() -> None:
    """ST-33."""
    answer = changed(claim("2Gi", storage_class="gone"), before=claim(storage_class="gone"))
    assert causes_of(answer) == {(f"{CLAIMS}[0].spec.storageClassName", "FieldValueNotFound")}


@pytest.mark.parametrize(
    ("defaults", "is_allowed"),
    [
        ([], True),
        ([("old", False, "2026-01-01T00:00:00Z")], False),
        ([("old", False, "2026-01-01T00:00:00Z"), ("new", True, "2026-01-02T00:00:00Z")], True),
        ([("new", False, "2026-01-02T00:00:00Z"), ("old", True, "2026-01-01T00:00:00Z")], False),
    ],
    ids=["none", "stiff", "the newest grows", "the newest is stiff"],
)
def test_without_a_name_the_default_class_counts(defaults: Sequence[tuple[str, bool, str]], is_allowed: bool) -> None:
    """ST-33."""
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        {"metadata": {"name": name, "creationTimestamp": made, "annotations": mark}, "allowVolumeExpansion": grows}
        for name, grows, made in defaults
    ]
    answer = changed(claim("2Gi", storage_class=None), before=claim(storage_class=None), by=classes)
    assert isinstance(answer, Allow) == is_allowed


@pytest.mark.parametrize(
    ("claims", "cause"),
    [
        ([claim(), claim(name="more")], (CLAIMS, FORBIDDEN)),
        ([claim(name="other")], (CLAIMS, FORBIDDEN)),
        ([], (CLAIMS, FORBIDDEN)),
        ([claim(storage_class="silent")], (f"{CLAIMS}[0].spec.storageClassName", FORBIDDEN)),
        ([claim(mode="ReadWriteMany")], (f"{CLAIMS}[0].spec.accessModes", FORBIDDEN)),
    ],
    ids=["another one", "another name", "none", "another class", "another mode"],
)
def test_while_claims_grow_nothing_else_of_them_changes(claims: Sequence[Json], cause: tuple[str, str]) -> None:
    """ST-33; with OnDelete all of it is free (ST-91)."""
    answer = changed(*claims)
    assert causes_of(answer) == {cause}
    assert "OnDelete" in messages_of(answer)
    assert claims or "from data to none" in messages_of(answer)
    assert isinstance(changed(*claims, kind="OnDelete"), Allow)


def test_storage_classes_are_watched_only_with_the_gate() -> None:
    class Settings:
        allow_privileged = True
        gates = GATES

    needs = [handler.needs for handler in ADMISSION.webhooks(Settings())]  # type: ignore[arg-type]
    assert needs == [(), (STORAGE_CLASSES,)]
    Settings.gates = {}
    assert [handler.needs for handler in ADMISSION.webhooks(Settings())] == [(), ()]  # type: ignore[arg-type]


# Warnings


@pytest.mark.parametrize(
    ("spec", "gates", "text"),
    [
        ({"ordinals": {"start": 3}}, {}, "feature gate StatefulSetStartOrdinal"),
        ({"ordinals": {"start": 3}}, {"StatefulSetStartOrdinal": True}, ""),
        ({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}, {}, ""),
        (
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"}},
            {"StatefulSetAutoDeletePVC": False},
            "feature gate StatefulSetAutoDeletePVC",
        ),
        ({"volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"}}, GATES, ""),
        ({"replicas": 2**31 - 1}, {}, "spec.replicas: 2147483647 counts as 150000"),
        (
            {"lifecycle": {"preDelete": {"exec": {"command": ["x"]}}}},
            {},
            "spec.lifecycle.preDelete: exec has no effect",
        ),
        ({"lifecycle": {"preDelete": {"labelsHandler": {"a": "b"}}}}, {}, ""),
        (
            {"updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 1}}}},
            {},
            "a StatefulSet takes image pre-download settings from annotations only",
        ),
    ],
)
def test_warnings(spec: Json, gates: dict[str, bool], text: str) -> None:
    """What has no effect is accepted and said (ST-10, ST-110, ST-144)."""
    answer = server(gates=gates).send(statefulset(spec))
    assert isinstance(answer, Allow), answer
    assert len(answer.warnings) == (1 if text else 0)
    assert text in "".join(answer.warnings)


# What v1alpha1 has no fields for


def test_what_is_kept_for_v1alpha1_is_judged_too() -> None:
    """Written into the annotation by hand, it must make sense as part of the object."""
    old = stored(server().defaults(statefulset(version="v1alpha1"), version="v1alpha1"))
    where = f"metadata.annotations[{KEPT}]"
    for text, cause in (
        ("nonsense", (where, INVALID)),
        ('{"spec":{"reserveOrdinals":7}}', (where, INVALID)),
        ('{"spec":{"reserveOrdinals":["5"]}}', ("spec.reserveOrdinals[0]", INVALID)),
        ('{"spec":{"serviceName":"other"}}', ("spec", FORBIDDEN)),
    ):
        answer = server().update(old, {"metadata": {"annotations": {KEPT: text}}}, version="v1alpha1")
        assert isinstance(answer, Invalid), text
        assert causes_of(answer) == {cause}
    sound = {"metadata": {"annotations": {KEPT: '{"spec":{"reserveOrdinals":[5]}}'}}}
    assert isinstance(server().update(old, sound, version="v1alpha1"), Allow)


def test_the_annotation_is_no_part_of_the_newer_version() -> None:
    answer = server().send(statefulset(annotations={KEPT: '{"spec":{"reserveOrdinals":[5]}}'}))
    assert causes_of(answer) == {(f"metadata.annotations[{KEPT}]", FORBIDDEN)}
    assert "write these fields into the object itself" in messages_of(answer)


def test_an_update_that_leaves_the_annotation_out_takes_nothing_away() -> None:
    """`kubectl replace` with a manifest in v1alpha1. An empty annotation does."""
    old = ADMISSION.convert(kept_server({"reserveOrdinals": [1]}), "v1alpha1")
    said = server().changed(statefulset(version="v1alpha1"), old, version="v1alpha1")
    assert ADMISSION.convert(dict(said.object), "v1beta1")["spec"]["reserveOrdinals"] == [1]
    (warning,) = said.warnings
    assert KEPT in warning
    dropped = server().changed(statefulset(version="v1alpha1", annotations={KEPT: ""}), old, version="v1alpha1")
    assert "reserveOrdinals" not in ADMISSION.convert(dict(dropped.object), "v1beta1")["spec"]
    assert not dropped.warnings


def test_one_that_is_there_may_stay() -> None:
    """Everything that reads and writes v1alpha1 sends it back."""
    old = ADMISSION.convert(kept_server({"reserveOrdinals": [1]}), "v1alpha1")
    answer = server().update(old, {"spec": {"replicas": 7}}, version="v1alpha1")
    assert answer == Allow()
