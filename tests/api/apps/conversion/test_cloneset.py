"""CloneSet between its versions: the rules one by one, and round trips over random objects."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.admission.conversion import Converters
from kruise.api.apps import shared
from kruise.api.apps.conversion.cloneset import EXCLUDE_PREPARING_DELETE_LABEL, PRE_DOWNLOAD_ANNOTATIONS, convert
from kruise.api.versions import KEPT
from kruise.machinery.codec import Raw
from tests.support.examples import EXAMPLES
from tests.support.schemas import TEMPLATE, accepted, schema_of

PARALLELISM, TIMEOUT, MIN_READY = PRE_DOWNLOAD_ANNOTATIONS.values()


def alpha(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return _made("v1alpha1", spec, metadata)


def beta(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return _made("v1beta1", spec, metadata)


def _made(version: str, spec: Any, metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": "web", **metadata},
        "spec": {} if spec is None else spec,
    }


def to_beta(spec: Any = None, **metadata: Any) -> Any:
    return convert(alpha(spec, **metadata), "v1beta1")["spec"]


def to_alpha(spec: Any = None, **metadata: Any) -> Any:
    return convert(beta(spec, **metadata), "v1alpha1")["spec"]


# The rules


@pytest.mark.parametrize("policy", ["ReCreate", "InPlaceIfPossible", "InPlaceOnly"])
def test_policies_go_both_ways(policy: str) -> None:
    """CS-20, CS-23."""
    nested = {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": policy, "paused": True}}
    assert to_beta({"updateStrategy": {"type": policy, "paused": True}})["updateStrategy"] == nested
    assert to_alpha({"updateStrategy": nested})["updateStrategy"] == {"type": policy, "paused": True}


@pytest.mark.parametrize("strategy", [None, {}, {"type": ""}, {"type": "Strange"}, {"type": 7}, {"type": None}])
def test_any_other_type_is_recreate(strategy: Any) -> None:
    """CS-20."""
    wanted = {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}}
    assert to_beta({"updateStrategy": strategy})["updateStrategy"] == wanted
    assert to_beta({})["updateStrategy"] == wanted


@pytest.mark.parametrize(
    "strategy",
    [
        None,
        {},
        {"type": "RollingUpdate"},
        {"type": "RollingUpdate", "rollingUpdate": None},
        {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": ""}},
        {"rollingUpdate": {"podUpdatePolicy": "Strange"}},
    ],
)
def test_any_other_policy_is_recreate(strategy: Any) -> None:
    """CS-23."""
    assert to_alpha({"updateStrategy": strategy})["updateStrategy"] == {"type": "ReCreate"}


def test_on_delete_has_no_rolling_update() -> None:
    """CS-20: the flat fields are lost. CS-23: the other way they are shown."""
    flat = {"type": "OnDelete", "partition": 2, "inPlaceUpdateStrategy": {"gracePeriodSeconds": 3}}
    assert to_beta({"updateStrategy": flat}, annotations={PARALLELISM: "5"})["updateStrategy"] == {"type": "OnDelete"}
    nested = {"type": "OnDelete", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "partition": 2}}
    assert to_alpha({"updateStrategy": nested})["updateStrategy"] == {"type": "OnDelete", "partition": 2}
    assert to_alpha({"updateStrategy": {"type": "OnDelete"}})["updateStrategy"] == {"type": "OnDelete"}


def test_flat_fields_move() -> None:
    """CS-20, CS-23: every field of the strategy, whatever form its value has."""
    moved: dict[str, Any] = {
        "partition": "99.5%",
        "maxUnavailable": 0,
        "maxSurge": "20%",
        "paused": False,
        "priorityStrategy": {"orderPriority": [{"orderedKey": "k"}]},
        "scatterStrategy": [{"key": "a", "value": "b"}],
        "inPlaceUpdateStrategy": {"gracePeriodSeconds": 9},
    }
    after = to_beta({"updateStrategy": {"type": "InPlaceOnly", **moved}})["updateStrategy"]
    assert after == {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", **moved}}
    assert to_alpha({"updateStrategy": after})["updateStrategy"] == {"type": "InPlaceOnly", **moved}


@pytest.mark.parametrize(
    ("scale", "enabled"),
    [
        (None, True),
        ({}, True),
        ({"disablePVCReuse": None}, True),
        ({"disablePVCReuse": False}, True),
        ({"disablePVCReuse": True}, False),
    ],
)
def test_reuse_of_claims_is_on_unless_switched_off(scale: Any, enabled: bool) -> None:
    """CS-20: stored with the field, also where v1alpha1 says nothing."""
    assert to_beta({"scaleStrategy": scale})["scaleStrategy"] == {"enablePVCReuse": enabled}


@pytest.mark.parametrize(
    ("scale", "shown"),
    [
        (None, {"disablePVCReuse": True}),
        ({}, {"disablePVCReuse": True}),
        ({"enablePVCReuse": False}, {"disablePVCReuse": True}),
        ({"enablePVCReuse": True}, {}),
    ],
)
def test_reuse_of_claims_as_v1alpha1_shows_it(scale: Any, shown: Any) -> None:
    """What is off in v1beta1 for want of the field stays off; what is on is v1alpha1's default and not shown."""
    assert to_alpha({"scaleStrategy": scale})["scaleStrategy"] == shown


def test_the_label_becomes_the_field_and_stays() -> None:
    """CS-21: not converted back; without the label the field is kept aside."""
    labels = {EXCLUDE_PREPARING_DELETE_LABEL: "true", "other": "x"}
    after = convert(alpha({}, labels=labels), "v1beta1")
    assert after["spec"]["scaleStrategy"]["excludePreparingDelete"] is True
    assert after["metadata"]["labels"] == labels
    for value in ("false", "True", "1", ""):
        told = to_beta({}, labels={EXCLUDE_PREPARING_DELETE_LABEL: value})["scaleStrategy"]
        assert told["excludePreparingDelete"] is False

    back = convert(beta({"scaleStrategy": {"excludePreparingDelete": True}}), "v1alpha1")
    assert "excludePreparingDelete" not in back["spec"]["scaleStrategy"]
    assert "labels" not in back["metadata"]
    assert convert(back, "v1beta1")["spec"]["scaleStrategy"]["excludePreparingDelete"] is True
    # Who sets the label in v1alpha1 decides.
    back["metadata"]["labels"] = {EXCLUDE_PREPARING_DELETE_LABEL: "false"}
    assert convert(back, "v1beta1")["spec"]["scaleStrategy"]["excludePreparingDelete"] is False


def test_annotations_become_fields() -> None:
    """CS-22: the strategy is made where it is needed, and the annotations stay."""
    told = {PARALLELISM: "5", TIMEOUT: "600", MIN_READY: "2", "a": "b"}
    after = convert(alpha({"updateStrategy": {"type": "InPlaceIfPossible"}}, annotations=told), "v1beta1")
    assert after["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"] == {
        "imagePreDownloadParallelism": 5,
        "imagePreDownloadTimeoutSeconds": 600,
        "imagePreDownloadMinUpdatedReadyPods": 2,
    }
    assert after["metadata"]["annotations"] == told


def _in_place(annotations: Any, strategy: Any = None) -> Any:
    spec = {"updateStrategy": {"inPlaceUpdateStrategy": strategy}}
    return to_beta(spec, annotations=annotations)["updateStrategy"]["rollingUpdate"].get("inPlaceUpdateStrategy")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        (PARALLELISM, "10%", None),
        (PARALLELISM, "+3", 3),
        (PARALLELISM, "007", 7),
        (PARALLELISM, "2147483648", None),
        (PARALLELISM, "many", None),
        (PARALLELISM, "-1", None),
        (TIMEOUT, "0", 0),
        (TIMEOUT, "10%", None),
        (TIMEOUT, "1.5", None),
        (TIMEOUT, "", None),
        (MIN_READY, "20%", None),
        (MIN_READY, " 2", None),
        (MIN_READY, "٣", None),
        (MIN_READY, 3, None),
    ],
)
def test_how_annotations_are_read(key: str, text: Any, value: Any) -> None:
    """CS-22, IPU-155: what v1beta1 would refuse in the field (CS-49) stays in the annotation alone."""
    name = next(name for name, annotation in PRE_DOWNLOAD_ANNOTATIONS.items() if annotation == key)
    assert _in_place({key: text}) == (None if value is None else {name: value})


def test_fields_of_v1alpha1_do_not_count() -> None:
    """CS-22: the annotations do."""
    fields = {"gracePeriodSeconds": 4, "imagePreDownloadParallelism": 9, "imagePreDownloadTimeoutSeconds": 9}
    assert _in_place({PARALLELISM: "5"}, fields) == {"gracePeriodSeconds": 4, "imagePreDownloadParallelism": 5}
    assert _in_place({}, fields) == {"gracePeriodSeconds": 4}
    assert _in_place({}, {}) == {}


def test_fields_become_annotations() -> None:
    """CS-22: over what stood there; the spec keeps the grace period alone."""
    strategy = {
        "gracePeriodSeconds": 4,
        "imagePreDownloadParallelism": "10%",
        "imagePreDownloadTimeoutSeconds": 0,
        "imagePreDownloadMinUpdatedReadyPods": None,
    }
    rolling = {"podUpdatePolicy": "InPlaceOnly", "inPlaceUpdateStrategy": strategy}
    before = beta({"updateStrategy": {"rollingUpdate": rolling}}, annotations={PARALLELISM: "5", MIN_READY: "20%"})
    after = convert(before, "v1alpha1")
    # A percentage is no valid parallelism in v1beta1 (CS-49), and not read from the annotation.
    kept = json.dumps(
        {
            "spec": {
                "updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": {"imagePreDownloadParallelism": "10%"}}}
            }
        },
        separators=(",", ":"),
    )
    assert after["metadata"]["annotations"] == {PARALLELISM: "10%", TIMEOUT: "0", MIN_READY: "20%", KEPT: kept}
    flat = after["spec"]["updateStrategy"]
    assert flat == {"type": "InPlaceOnly", "inPlaceUpdateStrategy": {"gracePeriodSeconds": 4}}


@pytest.mark.parametrize(
    ("strategy", "shown"),
    [
        ({}, {}),
        ({"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 0}),
        ({"gracePeriodSeconds": 0, "imagePreDownloadTimeoutSeconds": 0}, {"gracePeriodSeconds": 0}),
        ({"gracePeriodSeconds": 1}, {"gracePeriodSeconds": 1}),
        ({"imagePreDownloadParallelism": 2}, {}),
    ],
)
def test_an_empty_in_place_strategy_stays(strategy: Any, shown: Any) -> None:
    """Not CS-22: dropped, it would be added again by every write through v1alpha1, and raise the generation."""
    flat = to_alpha({"updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": strategy}}})["updateStrategy"]
    assert flat["inPlaceUpdateStrategy"] == shown


@pytest.mark.parametrize(("source", "target"), [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")])
def test_all_else_is_copied(source: str, target: str) -> None:
    """CS-23: status, conditions and metadata, templates untouched, fields nobody knows too."""
    before = {
        "apiVersion": f"apps.kruise.io/{source}",
        "kind": "CloneSet",
        "metadata": {"name": "web", "uid": "1", "generation": 3, "managedFields": [{"manager": "m"}]},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "x"}},
            "template": TEMPLATE,
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "strange": [None]}],
            "lifecycle": {"preDelete": {"labelsHandler": {"a": "b"}}},
            "minReadySeconds": 5,
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": 600,
            "unknown": {"a": 1},
        },
        "status": {"replicas": 1, "conditions": [{"type": "Progressing", "status": "True"}], "odd": 1},
    }
    untouched = copy.deepcopy(before)
    after = convert(before, target)
    assert before == untouched
    assert after["apiVersion"] == f"apps.kruise.io/{target}"
    assert after["metadata"] == before["metadata"]
    assert after["status"] == before["status"]
    spec: Any = before["spec"]
    assert {name: after["spec"][name] for name in spec} == spec


def test_the_same_version_is_left_alone() -> None:
    before = alpha({"updateStrategy": None})
    assert convert(before, "v1alpha1") is before


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(ValueError, match="CloneSet has no version v1: it is served in v1alpha1 and v1beta1"):
        convert(alpha(), "v1")


def test_the_keys_are_those_of_the_engine() -> None:
    assert list(PRE_DOWNLOAD_ANNOTATIONS.values()) == [
        shared.PREDOWNLOAD_PARALLELISM,
        shared.PREDOWNLOAD_TIMEOUT,
        shared.PREDOWNLOAD_MIN_READY,
    ]


# Random objects

_METADATA = st.fixed_dictionaries(
    {"name": st.just("web")},
    optional={
        "labels": st.dictionaries(
            st.sampled_from(["a", EXCLUDE_PREPARING_DELETE_LABEL]), st.sampled_from(["true", "false"]), max_size=2
        ),
        "annotations": st.dictionaries(
            st.sampled_from(["a", PARALLELISM, TIMEOUT, MIN_READY]), st.sampled_from(["3", "20%", "x"]), max_size=4
        ),
    },
)


def _objects(version: str) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda spec, metadata: _made(version, spec, metadata), accepted(schema_of("CloneSet", version)), _METADATA
    )


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(_objects("v1alpha1"))
def test_v1alpha1_comes_back_as_it_was(before: dict[str, Any]) -> None:
    """Through the stored version and back, but for what the rules lose: nothing else changes (CS-20 to CS-23)."""
    after = convert(convert(before, "v1beta1"), "v1alpha1")
    spec = copy.deepcopy(before["spec"])
    spec.setdefault("scaleStrategy", {})
    if not spec["scaleStrategy"].get("disablePVCReuse"):
        spec["scaleStrategy"].pop("disablePVCReuse", None)
    update = spec.setdefault("updateStrategy", {})
    if update.get("type") == "OnDelete":
        spec["updateStrategy"] = update = {"type": "OnDelete"}
    elif update.get("type") not in ("InPlaceIfPossible", "InPlaceOnly"):
        update["type"] = "ReCreate"
    annotations = before["metadata"].get("annotations", {})
    is_told = "3" in [annotations.get(key) for key in PRE_DOWNLOAD_ANNOTATIONS.values()]
    strategy = update.pop("inPlaceUpdateStrategy", None)
    grace = (strategy or {}).get("gracePeriodSeconds")
    if update["type"] != "OnDelete" and (strategy is not None or is_told):
        update["inPlaceUpdateStrategy"] = {} if grace is None else {"gracePeriodSeconds": grace}
    assert after["spec"] == spec
    assert after["metadata"] == before["metadata"]


def test_it_serves_as_a_converter() -> None:
    """As the webhook calls it: bytes in, bytes out, labels and annotations written."""
    converters = Converters()
    converters.register("apps.kruise.io", "CloneSet", convert)
    rolling = {"podUpdatePolicy": "InPlaceOnly", "inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 2}}
    stored = Raw(json.dumps(beta({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})).encode())
    shown = json.loads(bytes(converters.convert(stored, "apps.kruise.io/v1alpha1")))
    assert shown["metadata"] == {"name": "web", "annotations": {PARALLELISM: "2"}}
    assert shown["spec"]["updateStrategy"] == {"type": "InPlaceOnly", "inPlaceUpdateStrategy": {}}
