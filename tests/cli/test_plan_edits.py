"""The changes that a plan is about: three-way merges of manifests, and `--set`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.definitions.cloneset import DEFINITION as CLONE_SET_DEFINITION
from kruise.cli.plan_edits import LAST_APPLIED, Assignment, applied, parse_assignment, path_text, with_assignment
from kruise.cli.plan_fields import Fields
from kruise.verbs.errors import UsageError, VerbError

Json = dict[str, Any]


# Manifests


def live(spec: Json, last: Json | None = None) -> Json:
    annotations = {} if last is None else {LAST_APPLIED: json.dumps({"spec": last})}
    return {
        "metadata": {"name": "web", "uid": "1", "annotations": annotations},
        "spec": spec,
        "status": {"replicas": 1},
    }


def test_fields_of_others_stay_and_dropped_ones_go() -> None:
    found = applied(
        live(
            {"replicas": 5, "paused": True, "old": 1, "deep": {"mine": 1, "other": 2}}, {"old": 1, "deep": {"gone": 1}}
        ),
        {"spec": {"paused": False, "deep": {"mine": 3}}, "metadata": {"name": "web"}},
        namespace="default",
    )
    assert found["spec"] == {"replicas": 5, "paused": False, "deep": {"mine": 3, "other": 2}}
    assert found["metadata"]["uid"] == "1"
    assert found["status"] == {"replicas": 1}, "an apply does not touch it"


def test_annotations_of_others_stay_where_the_manifest_has_none() -> None:
    """kubectl notes `"annotations": {}` as applied, since it writes one itself."""
    last = json.dumps({"metadata": {"annotations": {"mine": "1"}, "labels": {"a": "b"}}})
    current = live({})
    current["metadata"] |= {"annotations": {LAST_APPLIED: last, "mine": "1", "other": "2"}, "labels": {"a": "b"}}
    found = applied(current, {"metadata": {"name": "web"}}, namespace="default")
    assert found["metadata"]["annotations"] == {LAST_APPLIED: last, "other": "2"}
    assert "labels" not in found["metadata"]


def test_lists_are_replaced_and_null_removes() -> None:
    found = applied(live({"list": [1, 2], "x": 1}), {"spec": {"list": [3], "x": None}}, namespace="default")
    assert found["spec"] == {"list": [3]}


@pytest.mark.parametrize("annotation", ["", "{broken", "[]", "null"])
def test_without_a_readable_last_apply_nothing_is_dropped(annotation: str) -> None:
    current = live({"x": 1})
    current["metadata"]["annotations"] = {LAST_APPLIED: annotation}
    assert applied(current, {"spec": {"y": 2}}, namespace="default")["spec"] == {"x": 1, "y": 2}


def test_a_new_object_is_the_manifest_without_what_servers_write() -> None:
    manifest = {"metadata": {"name": "web", "uid": "x", "creationTimestamp": None}, "spec": {"a": 1}, "status": {}}
    assert applied(None, manifest, namespace="demo") == {
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"a": 1},
    }


def test_an_object_of_a_kind_in_no_namespace_loses_the_one_of_its_manifest() -> None:
    manifest = {"metadata": {"name": "sidecars", "namespace": "demo"}, "spec": {"a": 1}}
    current = {"metadata": {"name": "sidecars"}, "spec": {"a": 1}}
    assert applied(None, manifest, namespace="")["metadata"] == {"name": "sidecars"}
    assert applied(current, manifest, namespace="")["metadata"]["name"] == "sidecars"
    assert "namespace" not in applied(current, manifest, namespace="")["metadata"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
SPECS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(current=SPECS, wanted=SPECS)
def test_applying_twice_changes_nothing_more(current: Json, wanted: Json) -> None:
    once = applied(live(current, wanted), {"spec": wanted}, namespace="default")
    assert applied(once, {"spec": wanted}, namespace="default") == once


@given(last=SPECS, wanted=SPECS)
def test_what_was_applied_alone_becomes_the_manifest(last: Json, wanted: Json) -> None:
    """Nobody else has set a field, so nothing but the manifest is left."""
    last, wanted = without_nulls(last), without_nulls(wanted)
    assert applied(live(last, last), {"spec": wanted}, namespace="default")["spec"] == wanted


# --set

FIELDS = Fields(CLONE_SET_DEFINITION, "v1beta1")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("spec.replicas=3", ("spec", "replicas"), 3),
        (
            "spec.updateStrategy.rollingUpdate.partition=50%",
            ("spec", "updateStrategy", "rollingUpdate", "partition"),
            "50%",
        ),
        ('metadata.annotations["a.b/c"]=1', ("metadata", "annotations", "a.b/c"), "1"),
        ("metadata.annotations['a.b/c']=x=y", ("metadata", "annotations", "a.b/c"), "x=y"),
        (r"metadata.labels.a\.b=true", ("metadata", "labels", "a.b"), "true"),
        (
            "spec.template.spec.containers[1].image=1.27",
            ("spec", "template", "spec", "containers", 1, "image"),
            "1.27",
        ),
        ('spec.scaleStrategy.podsToDelete=["a"]', ("spec", "scaleStrategy", "podsToDelete"), ["a"]),
        ("spec.scaleStrategy.podsToDelete[0]=5", ("spec", "scaleStrategy", "podsToDelete", 0), "5"),
        ("spec.lifecycle=null", ("spec", "lifecycle"), None),
        ("spec.selector.matchLabels.x=3", ("spec", "selector", "matchLabels", "x"), "3"),
        ('spec.minReadySeconds="3"', ("spec", "minReadySeconds"), "3"),
        ("metadata.labels.x=", ("metadata", "labels", "x"), ""),
    ],
)
def test_assignments(text: str, path: tuple[str | int, ...], value: Any) -> None:
    """JSON where it can be read so, text where the field takes text."""
    found = FIELDS.read(parse_assignment(text))
    assert (found.path, found.value) == (path, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spec.replicas", '"spec.replicas" is no PATH=VALUE'),
        ("=3", '"=3" names no field'),
        ("spec..x=1", "holds an empty name"),
        ("spec[x=1", "write [0] for an entry of a list"),
        ("spec.a[0]b=1", 'a dot is missing before "b=1"'),
        ("spec.replicas={x", "the value of spec.replicas is no valid JSON: {x"),
        ("status.replicas=3", "status.replicas cannot be planned"),
        ("metadata.name=x", "metadata.name cannot be planned"),
        ("spec.replica=3", "there is no field spec.replica; did you mean replicas?"),
        (
            "spec.template.spec.containers[1].imag=x",
            "no field spec.template.spec.containers[1].imag; did you mean image?",
        ),
        (
            'spec.updateStrategy={"rollngUpdate":{}}',
            "no field spec.updateStrategy.rollngUpdate; did you mean rollingUpdate",
        ),
        ("spec.qqq=1", "there is no field spec.qqq; known there: lifecycle, minReadySeconds,"),
        ("spec.template.spec.nodeSelectr.x=y", "no field spec.template.spec.nodeSelectr; did you mean nodeSelector?"),
    ],
)
def test_wrong_assignments(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        FIELDS.read(parse_assignment(text))
    assert said in str(refused.value)
    assert str(refused.value).startswith("--set: ")


DOCUMENT: Json = {"spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "a"}, {"image": "x"}]}}}}


def set_value(text: str) -> Json:
    return with_assignment(DOCUMENT, parse_assignment(text))


def test_setting_leaves_the_original_alone_and_makes_objects_on_the_way() -> None:
    found = set_value("spec.updateStrategy.rollingUpdate.paused=true")
    assert found["spec"]["updateStrategy"] == {"rollingUpdate": {"paused": True}}
    assert "updateStrategy" not in DOCUMENT["spec"]
    assert set_value("spec.replicas=null")["spec"].get("replicas") is None
    assert set_value("spec.absent=null") == DOCUMENT
    assert set_value("spec.template.spec.containers[0]=null")["spec"]["template"]["spec"]["containers"] == [
        {"image": "x"}
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "spec.template.spec.containers[2].image=x",
            "spec.template.spec.containers has no entry [2]; its entries are [0] (a), [1]",
        ),
        (
            "spec.template.spec.containers.a=x",
            "spec.template.spec.containers is a list: choose one of its entries, [0] (a), [1]",
        ),
        ("spec.template[0]=x", "spec.template is no list, so it has no entry [0]"),
        ("spec.replicas.x=1", "spec.replicas is 1, so it has no field x"),
        ("spec.fresh[0]=1", "spec.fresh has no entry [0]; its entries are none"),
    ],
)
def test_places_that_are_not_there(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        set_value(text)
    assert str(refused.value) == f"--set: {said}"


NAMES = st.text("abc./-", min_size=1, max_size=4)


@given(
    path=st.lists(NAMES | st.integers(0, 9), max_size=4), value=st.integers() | st.booleans() | st.lists(st.integers())
)
def test_every_path_can_be_written_down(path: list[str | int], value: Any) -> None:
    whole = ("spec", *path)
    found = parse_assignment(f"{path_text(whole)}={json.dumps(value)}")
    assert found == Assignment(path=whole, text=json.dumps(value), value=value)


def test_unknown_fields_and_versions() -> None:
    with pytest.raises(VerbError, match=r'unknown field "spec\.x", unknown field "metadata\.y"'):
        FIELDS.check({"spec": {"x": 1}, "metadata": {"y": 1}})
    FIELDS.check({"apiVersion": "x", "kind": "y", "spec": {"template": {"anything": 1}}})
    with pytest.raises(UsageError, match="its versions are v1alpha1, v1beta1"):
        Fields(CLONE_SET_DEFINITION, "v1")
