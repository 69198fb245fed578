"""Conversion that loses nothing: every kind with two versions, over random objects and changes of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.conversion import cloneset, daemonset, statefulset
from kruise.api.versions import KEPT, NEWER, OLDER, KeptError, TwoVersions, annotation_of, put, read_kept
from tests.support.examples import EXAMPLES
from tests.support.schemas import TEMPLATE, accepted, schema_of, unknown

KINDS = {one.convert.kind: one.convert for one in (cloneset, statefulset, daemonset)}
LABEL = cloneset.EXCLUDE_PREPARING_DELETE_LABEL
ANNOTATIONS = (*cloneset.PRE_DOWNLOAD_ANNOTATIONS.values(), daemonset.PROGRESSIVE)

METADATA = st.fixed_dictionaries(
    {"name": st.just("web")},
    optional={
        "labels": st.dictionaries(st.sampled_from(["a", LABEL]), st.sampled_from(["true", "false"]), min_size=1),
        "annotations": st.dictionaries(
            st.sampled_from(["a", *ANNOTATIONS]), st.sampled_from(["3", "20%", "x", "true", "false"]), min_size=1
        ),
    },
)


def objects(kind: str, version: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just(f"apps.kruise.io/{version}"),
            "kind": st.just(kind),
            "metadata": METADATA,
            "spec": accepted(schema_of(kind, version)),
        },
        optional={"status": accepted(schema_of(kind, version, "status"))},
    )


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Everything that a document says; lists are said as a whole."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from leaves(part, (*path, name))
    else:
        yield path, value


def at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def changed_by(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A document with some parts of another one."""
    result = dict(base)
    for name, value in patch.items():
        inner = isinstance(value, dict) and isinstance(result.get(name), dict) and name != "template"
        result[name] = changed_by(result[name], value) if inner else value
    return result


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40 * EXAMPLES, deadline=None)
@given(data=st.data())
def test_a_way_through_v1alpha1_loses_nothing(kind: str, data: st.DataObject) -> None:
    """ST-6 and its like, DS-107: read and written back through v1alpha1, as apply, edit, patch and scale do, an object
    says all that it said. What v1alpha1 shows is its own: nothing that the API server would cut away."""
    convert, before = KINDS[kind], data.draw(objects(kind, NEWER))
    untouched = copy.deepcopy(before)
    shown = convert(before, OLDER)
    assert before == untouched
    assert unknown(shown["spec"], schema_of(kind, OLDER)) == []
    assert unknown(shown.get("status", {}), schema_of(kind, OLDER, "status")) == []
    after = convert(json.loads(json.dumps(shown)), NEWER)
    for path, value in leaves(before["spec"]):
        found = at(after["spec"], path)
        # An empty part may come back with defaults in it.
        assert found == value or (value == {} and isinstance(found, dict)), path
    assert after.get("status") == before.get("status")
    assert annotation_of(after) is None
    for part in ("labels", "annotations"):
        was, now = before["metadata"].get(part, {}), after["metadata"].get(part, {})
        assert {key: now.get(key) for key in was if key not in ANNOTATIONS} == {
            key: value for key, value in was.items() if key not in ANNOTATIONS
        }


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40 * EXAMPLES, deadline=None)
@given(data=st.data())
def test_what_is_changed_in_v1alpha1_counts(kind: str, data: st.DataObject) -> None:
    """Somebody reads v1alpha1, changes some of it and writes it: what was changed is what was written, over what was
    kept; what v1alpha1 cannot say, and nobody spoke of, stays."""
    convert = KINDS[kind]
    before = data.draw(objects(kind, NEWER))
    shown = convert(before, OLDER)
    other = data.draw(objects(kind, OLDER))
    names = data.draw(st.sets(st.sampled_from(sorted(other["spec"]))))
    edited = {**shown, "spec": changed_by(shown["spec"], {name: other["spec"][name] for name in names})}
    written = convert(edited, NEWER)["spec"]
    told, tells = convert.up(shown)["spec"], convert.up(edited)["spec"]
    for path, value in leaves(tells):
        if at(told, path) != value and value != {}:
            assert at(written, path) == value, path
    for path, value in leaves(before["spec"]):
        is_spoken_of = any(at(told, path[:n]) != at(tells, path[:n]) for n in range(1, len(path) + 1))
        if not is_spoken_of and at(told, path) is None:
            assert at(written, path) == value, path


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30 * EXAMPLES, deadline=None)
@given(data=st.data())
def test_a_second_round_trip_changes_nothing(kind: str, data: st.DataObject) -> None:
    """What one pass through both versions leaves is stable: reading and writing by turns ends at once."""
    convert = KINDS[kind]
    before = data.draw(objects(kind, NEWER) | objects(kind, OLDER))
    once = convert(convert(convert(before, NEWER), OLDER), NEWER)
    assert convert(convert(once, OLDER), NEWER) == once


_NAMES = (
    *("updateStrategy", "rollingUpdate", "type", "podUpdatePolicy", "inPlaceUpdateStrategy", "rollingUpdateType"),
    *("scaleStrategy", "enablePVCReuse", "disablePVCReuse", "partitionedScaling", "lifecycle", "reserveOrdinals"),
    *("labels", "annotations", "daemonSetHash", "updateRevision", "spec", "seemed", KEPT, LABEL),
    *cloneset.PRE_DOWNLOAD_ANNOTATIONS,
    *ANNOTATIONS,
)
_WHOLE = st.integers(-(2**53), 2**53)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | _WHOLE | st.text(max_size=3) | st.sampled_from(['{"spec":{}}', '{"spec":1}', "{}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(st.data())
def test_no_object_is_unreadable(kind: str, data: st.DataObject) -> None:
    """Whatever it is made of: the API server could not even show it."""
    source, target = data.draw(st.sampled_from([(OLDER, NEWER), (NEWER, OLDER)]))
    parts = {name: data.draw(_ANYTHING) for name in ("spec", "metadata", "status")}
    before = {"apiVersion": f"apps.kruise.io/{source}", "kind": kind, **parts}
    untouched = copy.deepcopy(before)
    assert KINDS[kind](before, target)["apiVersion"] == f"apps.kruise.io/{target}"
    assert before == untouched


# By example


def web(version: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    api_version = f"apps.kruise.io/{version}"
    return {"apiVersion": api_version, "kind": "StatefulSet", "metadata": {"name": "web", **metadata}, "spec": spec}


def test_what_is_kept_can_be_read() -> None:
    """A v1alpha1 author sees which settings there are beside his own."""
    shown = statefulset.convert(web(NEWER, {"replicas": 2, "reserveOrdinals": [1, "3-5"]}), OLDER)
    assert shown["spec"] == {"replicas": 2}
    assert shown["metadata"]["annotations"] == {KEPT: '{"spec":{"reserveOrdinals":[1,"3-5"]}}'}


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"status":{}}', '{"spec":[]}', 7])
def test_an_annotation_without_sense_holds_nothing(text: Any) -> None:
    """Admission says what is wrong with it; here nobody could hear it."""
    written = statefulset.convert(web(OLDER, {"replicas": 2}, annotations={KEPT: text}), NEWER)
    assert written == web(NEWER, {"replicas": 2})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no JSON", "must be JSON"),
        ("[1]", "must be JSON"),
        ('{"status":{},"spec":{}}', "holds fields of spec alone, not status"),
        ('{"spec":[]}', "must hold an object spec"),
    ],
)
def test_what_is_wrong_with_an_annotation(text: str, complaint: str) -> None:
    with pytest.raises(KeptError, match=complaint):
        read_kept(text)


def test_an_annotation_on_the_newer_version_means_nothing() -> None:
    """It would come back as a change of the object."""
    shown = statefulset.convert(web(NEWER, {"replicas": 2}, annotations={KEPT: '{"spec":{"replicas":9}}'}), OLDER)
    assert shown == web(OLDER, {"replicas": 2})


def _to_newer(obj: dict[str, Any]) -> dict[str, Any]:
    mode = obj["spec"].get("mode")
    return {**obj, "spec": put(obj["spec"], mode=None, isFast=None if mode is None else mode == "fast")}


def _to_older(obj: dict[str, Any]) -> dict[str, Any]:
    fast = obj["spec"].get("isFast")
    shown = None if fast is None else "fast" if fast is True else "slow"
    return {**obj, "spec": put(obj["spec"], isFast=None, mode=shown, pace=None)}


THINGS = TwoVersions(group="example.com", kind="Thing", up=_to_newer, down=_to_older)


def thing(version: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"example.com/{version}", "kind": "Thing", "metadata": {}, "spec": spec}


@pytest.mark.parametrize(
    ("mode", "is_fast"),
    [("slow", "nearly"), ("fast", True), (None, None)],
    ids=["left alone", "changed", "taken away"],
)
def test_a_value_that_the_older_version_tells_otherwise(mode: str | None, is_fast: Any) -> None:
    """Kept as long as the older version says what it said; then somebody has changed it, and that counts."""
    shown = THINGS(thing(NEWER, isFast="nearly", pace={"steps": 2}), OLDER)
    assert shown["spec"] == {"mode": "slow"}
    written = THINGS({**shown, "spec": {} if mode is None else {"mode": mode}}, NEWER)
    assert written["spec"].get("isFast") == is_fast
    assert written["spec"]["pace"] == {"steps": 2}


def test_partitioned_scaling_and_its_annotation() -> None:
    """DS-107: a v1beta1 write that turns it off beside the annotation stays off through v1alpha1; who changes the
    annotation there decides."""
    spec = {"selector": {}, "template": TEMPLATE, "scaleStrategy": {"partitionedScaling": False}}
    before = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "DaemonSet",
        "metadata": {"name": "web", "annotations": {daemonset.PROGRESSIVE: "true"}},
        "spec": spec,
    }
    shown = daemonset.convert(before, OLDER)
    assert shown["metadata"]["annotations"][daemonset.PROGRESSIVE] == "true"
    assert daemonset.convert(shown, NEWER) == before
    del shown["metadata"]["annotations"][daemonset.PROGRESSIVE]
    assert "scaleStrategy" not in daemonset.convert(shown, NEWER)["spec"]

    on = {**before, "metadata": {"name": "web"}, "spec": {**spec, "scaleStrategy": {"partitionedScaling": True}}}
    shown = daemonset.convert(on, OLDER)
    assert shown["metadata"] == {"name": "web", "annotations": {daemonset.PROGRESSIVE: "true"}}
    off = {**shown, "metadata": {"name": "web"}}
    assert "scaleStrategy" not in daemonset.convert(off, NEWER)["spec"]


def test_surging_and_the_hash() -> None:
    """DS-5."""
    rolling = {"rollingUpdateType": "Surging", "maxSurge": 1}
    alpha = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "DaemonSet",
        "spec": {"updateStrategy": {"rollingUpdate": rolling}},
        "status": {"daemonSetHash": "abc", "numberReady": 1},
    }
    beta = daemonset.convert(alpha, NEWER)
    assert beta["spec"] == {"updateStrategy": {"rollingUpdate": {"rollingUpdateType": "Standard", "maxSurge": 1}}}
    assert beta["status"] == {"updateRevision": "abc", "numberReady": 1}
    assert daemonset.convert(beta, OLDER)["status"] == alpha["status"]
