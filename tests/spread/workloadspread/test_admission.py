"""Admission of WorkloadSpreads: what the original answered, and what it did not say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.api.apps.conversion.workloadspread import convert
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, WorkloadSpreadSpec
from kruise.api.native.config import CONFIG_MAPS, WhitelistError
from kruise.machinery import codec
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.patches import merge
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.spread.workloadspread.controller import FEATURE
from kruise.spread.workloadspread.validation import problems
from kruise.spread.workloadspread.whitelist import KEY, find, is_known, parsed
from tests.spread.workloadspread.stories import create, resource_of, spread, subset, workload
from tests.support.world import LocalWorld, run_local

RECORDED = yaml.safe_load((Path(__file__).parent / "data" / "validation.yaml").read_text())
Json = dict[str, Any]
_GO = re.compile(r"v1alpha1\.\w+\{.*?\}(?=: )|intstr\.IntOrString\{.*?\}")
DIFFERENT = {
    "v1beta1 field name requiredNodeSelector": "v1alpha1 drops a field that only v1beta1 has",
}
CLONE_SET = ("apps.kruise.io/v1alpha1", "CloneSet")


async def sent(world: LocalWorld, manifest: Json) -> tuple[int, str, list[str]]:
    """The code, the message and the warnings of the answer."""
    request = Request(
        Verb.CREATE,
        resource_of(manifest),
        world.namespace,
        body=json.dumps(manifest).encode(),
        query=(("dryRun", "All"), ("fieldValidation", "Warn")),
    )
    try:
        answer = await world.client.send(request)
    except ApiError as error:
        return error.code, error.message, []
    warnings = re.findall(r'299 - "((?:[^"\\]|\\.)*)"', answer.headers.get("warning", ""))
    return answer.status, "", warnings


def described(message: str) -> str:
    """The field and the words of a complaint, without the values that Go prints."""
    text = message.partition("denied the request: ")[2] or message
    return _GO.sub("...", text)


def test_what_the_original_answered() -> None:  # WS-9 to WS-16
    async def play(world: LocalWorld) -> None:
        live = {**RECORDED["bases"]["ws-live"], "apiVersion": "apps.kruise.io/v1alpha1"}
        live.pop("version")
        await create(world, workload(0, CLONE_SET) | {"metadata": {"name": "cs"}}, live)
        wrong: list[Any] = []
        for case in RECORDED["cases"]:
            base = {key: value for key, value in RECORDED["bases"][case["sent"]["base"]].items() if key != "version"}
            patch = json.loads(json.dumps(case["sent"]["patch"]).replace("$CS", "cs"))
            if case["op"] == "update":
                code = await updated(world, patch)
            else:
                manifest = merge.apply({**base, "apiVersion": "apps.kruise.io/v1alpha1"}, patch)
                manifest["metadata"] = {"name": "new", **{k: v for k, v in manifest["metadata"].items() if v != "ws"}}
                code, message, _ = await sent(world, manifest)
                field = described(case.get("message", "")).partition(":")[0]
                if (
                    code == 400
                    and field.removeprefix("[").replace("preferredSchedulingTerms", "preferredNodeSelector")
                    not in message
                ):
                    wrong.append((case["case"], field, message))
            if code != case["code"] and case["case"] not in DIFFERENT:
                wrong.append((case["case"], case["code"], code))
        assert wrong == []

    async def updated(world: LocalWorld, patch: Json) -> int:
        resource = resource_of({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread"})
        try:
            await world.client.patch(resource, "ws-live", patch, world.namespace, dry_run=True)
        except ApiError as error:
            return error.code
        return 200

    run_local(play)


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, 201, ""),
        ({"spec": {"containers": [{"name": "main", "imagePullPolcy": "Never"}]}}, 201, ""),
        (
            {"spec": {"containers": [{"name": "other"}]}},
            400,
            "spec.subsets[0].patch.spec.containers[0].image: Required",
        ),
        ({"spec": {"containers": "x"}}, 400, "spec.subsets[0].patch"),
        ("foo", 400, "it must be an object with metadata or spec"),
    ],
)
def test_patches_are_judged_with_the_template_of_the_target(patch: Any, code: int, words: str) -> None:  # WS-15
    async def play(world: LocalWorld) -> None:
        await create(world, workload(0))
        answer = await sent(world, spread(subset("a", patch=patch)))
        assert answer[0] == code
        assert words in answer[1]

    run_local(play)


def test_unknown_fields_of_a_patch_and_settings_without_effect_get_a_warning() -> None:
    async def play(world: LocalWorld) -> None:
        patch = {"spec": {"containers": [{"name": "main", "imagePullPolcy": "Never", "$patch": "merge"}]}}
        _, _, warnings = await sent(world, spread(subset("a", patch=patch), scheduleStrategy={"type": "Adaptive"}))
        assert len(warnings) == 2
        assert 'unknown field \\"spec.subsets[0].patch.spec.containers[0].imagePullPolcy\\"' in warnings[0]
        assert "rescheduleCriticalSeconds: without it" in warnings[1]

    run_local(play)


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("foo", "spec.subsets[0].patch: failed to merge patch: it must be an object with metadata or spec"),
        ({"spec": {"containers": [{"name": "main", "image": 5}]}}, "spec.subsets[0].patch.spec.containers[0].image"),
        ({"metadata": {"labels": {"a": None}}}, ""),
        ({"spec": {"containers": [{"name": "main", "$patch": "delete"}]}}, ""),
    ],
)
def test_patches_that_fit_no_pod_are_warned_of_before_the_target_is_there(patch: Any, words: str) -> None:  # WS-15
    async def play(world: LocalWorld) -> None:
        code, _, warnings = await sent(world, spread(subset("a", patch=patch)))
        assert code == 201
        assert len(warnings) == bool(words)
        if words:
            assert warnings[0].startswith(words)
            assert warnings[0].endswith("pods that are to go into subset a will be refused")

    run_local(play)


def test_nothing_works_with_the_gate_off() -> None:  # WS-1
    async def play(world: LocalWorld) -> None:
        code, message, _ = await sent(world, spread(subset("a")))
        assert (code, "feature-gate WorkloadSpread is not enabled" in message) == (403, True)

    run_local(play, feature_gates="WorkloadSpread=false")

    off = Options(gates=gates.resolve({"PodWebhook": False}))
    assert not FEATURE.controllers(off)
    assert not FEATURE.pod_mutations(off)
    assert not FEATURE.pod_validations(off)


def test_custom_targets_need_an_entry_in_the_whitelist() -> None:  # WS-9, WS-54, WS-55
    async def play(world: LocalWorld) -> None:
        manifest = spread(subset("a"), target=("kubeflow.org/v1", "TFJob"))
        code, message, _ = await sent(world, manifest)
        assert code == 400
        assert "GroupKind is not permitted" in message
        listed = {"workloads": [{"group": "kubeflow.org", "Version": "v1", "KIND": "TFJob"}]}
        config = {"metadata": {"name": "kruise-configuration"}, "data": {KEY: json.dumps(listed)}}
        await world.client.create(CONFIG_MAPS, config, "kruise-system")
        assert (await sent(world, manifest))[0] == 201

    run_local(play)


def test_the_whitelist_is_read_in_any_case() -> None:  # WS-54
    part = {"Group": "x.io", "kind": "Part"}
    entry = {"Group": "y.io", "version": "v1", "Kind": "Whole", "subResources": [part], "ReplicasPath": "spec.size"}
    kinds = parsed({KEY: json.dumps({"Workloads": [entry, "odd"]})})
    found = find(kinds, "y.io", "Whole", "v1")
    assert found is not None
    assert found.replicas_path == "spec.size"
    assert find(kinds, "y.io", "Whole", "v2") is None
    assert is_known(kinds, "x.io", "Part")
    assert not is_known(kinds, "x.io", "Whole")
    assert parsed(None) == parsed({}) == parsed({KEY: " "}) == ()
    with pytest.raises(WhitelistError, match="kruise-configuration"):
        parsed({KEY: "{"})


def test_conversion_renames_and_completes_conditions() -> None:  # WS-2, WS-3
    condition = {"type": "Schedulable", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    element = {"name": "a", "replicas": 1, "missingReplicas": 0, "conditions": [condition]}
    older = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "ws"},
        "spec": {
            "subsets": [
                {
                    "name": "a",
                    "requiredNodeSelectorTerm": {"matchExpressions": []},
                    "preferredNodeSelectorTerms": [{"weight": 1}],
                },
                {"name": "b"},
                "odd",
            ]
        },
        "status": {"subsetStatuses": [element], "versionedSubsetStatuses": {"v": [element], "w": None}},
    }
    newer = convert(older, "v1beta1")
    assert newer["spec"]["subsets"][0] == {
        "name": "a",
        "requiredNodeSelector": {"matchExpressions": []},
        "preferredNodeSelector": [{"weight": 1}],
    }
    told = newer["status"]["subsetStatuses"][0]["conditions"][0]
    assert (told["reason"], told["message"]) == ("Unknown", "")
    told["observedGeneration"] = 3
    back = convert(newer, "v1alpha1")
    assert back["spec"] == older["spec"]
    assert "observedGeneration" not in back["status"]["subsetStatuses"][0]["conditions"][0]
    assert "kruise.io/v1beta1-fields" not in json.dumps(back)


def test_both_versions_are_served() -> None:  # WS-2, WS-4
    async def play(world: LocalWorld) -> None:
        older = spread({"name": "a", "requiredNodeSelectorTerm": {"matchExpressions": []}})
        older["apiVersion"] = "apps.kruise.io/v1alpha1"
        await create(world, older)
        newer = await world.get(WORKLOAD_SPREADS, "ws")
        assert newer["spec"]["subsets"][0]["requiredNodeSelector"] == {"matchExpressions": []}
        again = await world.get(resource_of(older), "ws")
        assert again["spec"] == older["spec"]

    run_local(play)


@pytest.mark.parametrize("size", ["30%", 3])
def test_kinds_of_the_whitelist_may_have_percentages(size: int | str) -> None:  # WS-57
    document = spread(subset("a", size=size), subset("b"), target=("x.io/v1", "Thing"))
    spec = codec.convert(document["spec"], WorkloadSpreadSpec)
    assert not problems(spec, document, None, is_whitelisted=True, taken_by="")
    assert problems(spec, document, None, is_whitelisted=False, taken_by="")
