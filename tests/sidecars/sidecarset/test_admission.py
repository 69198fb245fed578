"""Admission of SidecarSets: recorded answers asked again, and what the recordings do not reach."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.admission.decisions import Change, HandlerView
from kruise.admission.inventory import PROTECTION_LABEL
from kruise.api.apps.conversion.sidecarset import convert
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.meta import LabelSelector
from kruise.api.native.config import CONFIG_MAPS
from kruise.machinery import codec
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.patches import merge
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.admission import ADMISSION
from kruise.sidecars.sidecarset.defaults import defaulted
from kruise.sidecars.sidecarset.overlap import may_overlap
from tests.support.admission import NOW, request
from tests.support.recorded_admission import changes, missing
from tests.support.sidecarsets import SIDE, pod, sidecar_set, until_counts
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
DATA = Path(__file__).parent / "data"
GROUP = "apps.kruise.io"

REFUSED = {
    "canary of itself": "canaries are checked (SCS-20)",
    "canary with unknown base": "canaries are checked (SCS-20)",
    "canary with NotUpdate": "its base does not exist (SCS-20)",
}
"""Recorded as accepted."""
ACCEPTED = {"startupProbe not defaulted": "the API server fills it in when a pod is made"}
"""Recorded as refused."""


def load(name: str) -> Any:
    return yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))


def head(version: str) -> Json:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "SidecarSet"}


def test_recorded_verdicts() -> None:
    """SCS-19 to SCS-31: the same verdict for every recorded manifest and update; refusals name a field (422)."""
    recorded = load("validation")
    bases = {
        name: {**head(base["version"]), "metadata": base["metadata"], "spec": base["spec"]}
        for name, base in recorded["bases"].items()
    }
    wrong: list[str] = []

    async def scenario(world: LocalWorld) -> None:
        for base in bases.values():
            await world.create(base)
        for case in recorded["cases"]:
            base, patch = bases[case["sent"]["base"]], case["sent"]["patch"]
            resource = dataclasses.replace(SIDECAR_SETS, version=case["version"])
            body: Json = patch
            sent_as = Request(Verb.PATCH, resource, "", base["metadata"]["name"], content_type=str(PatchType.MERGE))
            if case["op"] == "create":
                unused = {**base, "metadata": {"name": f"{base['metadata']['name']}-n"}}
                selector = unused["spec"]["selector"]
                if "selector" not in patch.get("spec", {}):
                    # The base is stored as well, and would stand in the way.
                    unused["spec"] = {**unused["spec"], "selector": {"matchLabels": {"app": "nobody-else"}}}
                    assert selector
                body = merge.apply(unused, patch)
                sent_as = Request(Verb.CREATE, resource, "")
            sent = json.dumps(body).encode()
            asked = dataclasses.replace(sent_as, body=sent, query=(("dryRun", "All"),))
            try:
                await world.client.send(asked)
                answer = ""
            except ClientError as error:
                answer = str(error)
                if "spec" not in answer and "metadata" not in answer:
                    wrong.append(f"{case['case']}: names no field: {answer}")
            accepted = (case["accepted"] and case["case"] not in REFUSED) or case["case"] in ACCEPTED
            if accepted is bool(answer):
                wrong.append(f"{case['version']} {case['op']} {case['case']}: {answer or 'accepted'}")

    run_local(scenario)
    assert wrong == []
    assert len(recorded["cases"]) == 100


def test_twins_may_not_be_called_like_another_sidecar() -> None:
    """SCS-27, SCS-56."""
    twins = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}
    plain = {"name": "side-1", "image": "i:1"}

    async def scenario(world: LocalWorld) -> None:
        for spec in ({"containers": [twins, plain]}, {"containers": [twins], "initContainers": [plain]}):
            with pytest.raises(ClientError, match=r"spec.containers\[0\].name.*there is another sidecar side-1"):
                await world.create(sidecar_set(**spec))

    run_local(scenario)


def test_what_pods_could_not_have_twice_is_refused() -> None:
    """SCS-56: else no pod that it selects could be made."""
    hot = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}
    long, blank = "x" * 62, {**hot, "hotUpgradeEmptyImage": " empty:1"}

    async def scenario(world: LocalWorld) -> None:
        with pytest.raises(ClientError, match=r"spec.containers\[0\].name: .*must be no more than 61 characters"):
            await world.create(sidecar_set(containers=[{**SIDE, "name": long, "upgradeStrategy": hot}]))
        with pytest.raises(ClientError, match=r"hotUpgradeEmptyImage: .*must not have leading or trailing whitespace"):
            await world.create(sidecar_set(containers=[{**SIDE, "upgradeStrategy": blank}]))
        await world.create(sidecar_set(containers=[{**SIDE, "name": long[1:], "upgradeStrategy": hot}]))
        await world.create(pod())

    run_local(scenario)


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"containers": [{"name": "side-1", "image": "i:1"}]}, r"spec.containers\[0\].name"),
        (
            {"containers": [{"name": "b", "image": "i:1"}], "initContainers": [{"name": "side-2", "image": "i:1"}]},
            r"spec.initContainers\[0\].name",
        ),
        (
            {"containers": [{"name": "b", "image": "i:1"}], "initContainers": [{"name": "plain", "image": "i:1"}]},
            r"spec.initContainers\[0\].name",
        ),
    ],
)
def test_two_sets_whose_pods_could_not_be_made_are_refused(spec: Json, place: str) -> None:
    """SCS-31, SCS-61: names are compared as pods have them, and both sets are named."""
    hot = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set("first", containers=[hot, {"name": "plain", "image": "i:1"}]))
        with pytest.raises(ClientError, match=rf"{place}: .*pods would call it .* of sidecarset first"):
            await world.create(sidecar_set("second", **spec))
        await world.create(sidecar_set("second", selector={"matchLabels": {"app": "other"}}, **spec))

    run_local(scenario)


@pytest.mark.parametrize(
    ("labels", "strategy", "told"),
    [
        ({}, {"partition": "100%", "maxUnavailable": "10%"}, ""),
        ({}, {"partition": "120%"}, "partition: 120% keeps every pod at its present content, as 100% does"),
        ({}, {"maxUnavailable": 0}, "maxUnavailable: 0 lets no pod that serves be updated: use 1 or more"),
        ({}, {"maxUnavailable": "0%"}, "maxUnavailable: 0% lets no pod that serves be updated: use 1 or more"),
        ({PROTECTION_LABEL: "Always"}, {}, "protects from nothing here: deletions of SidecarSets are not refused"),
    ],
)
def test_what_does_nothing_is_warned_of(labels: Json, strategy: Json, told: str) -> None:
    body = sidecar_set(updateStrategy=strategy)
    body["metadata"]["labels"] = labels
    answer = ADMISSION.default(request(body, version="v1beta1", kind="SidecarSet"), HandlerView(now=NOW, seed=1))
    assert isinstance(answer, Change)
    assert [text.endswith(told) for text in answer.warnings] == ([True] if told else [])


@pytest.mark.parametrize(
    ("version", "spec", "is_told"),
    [
        ("v1alpha1", {"namespace": "kube-system"}, True),
        ("v1alpha1", {"namespace": "default"}, False),
        (
            "v1alpha1",
            {"namespace": "default", "namespaceSelector": {"matchLabels": {keys.NAMESPACE_NAME: "kube-system"}}},
            False,
        ),
        ("v1beta1", {"namespaceSelector": {"matchLabels": {keys.NAMESPACE_NAME: "kube-system"}}}, True),
        ("v1beta1", {"namespaceSelector": {"matchLabels": {keys.NAMESPACE_NAME: "default"}}}, False),
    ],
)
def test_a_namespace_where_nobody_is_asked_is_warned_of(version: str, spec: Json, is_told: bool) -> None:
    """PW-43, SCS-34."""
    body = sidecar_set(version=version, **spec)
    answer = ADMISSION.default(request(body, version=version, kind="SidecarSet"), HandlerView(now=NOW, seed=1))
    assert isinstance(answer, Change)
    assert ["nobody is asked about pods in kube-system" in text for text in answer.warnings] == [True] * is_told


@pytest.mark.parametrize(
    ("image", "is_told"),
    [
        ("nginx@sha256:" + "a" * 64, True),
        ("library/nginx:1@sha256:" + "a" * 64, True),
        ("docker.io/nginx@sha256:" + "a" * 64, True),
        ("docker.io/library/nginx@sha256:" + "a" * 64, False),
        ("localhost/nginx@sha256:" + "a" * 64, False),
        ("registry:5000/nginx@sha256:" + "a" * 64, False),
        ("nginx:1.25", False),
    ],
)
def test_a_digest_without_its_registry_is_warned_of(image: str, is_told: bool) -> None:
    """SCS-84, edge case 20."""
    body = sidecar_set(containers=[{**SIDE, "image": image}])
    answer = ADMISSION.default(request(body, version="v1beta1", kind="SidecarSet"), HandlerView(now=NOW, seed=1))
    assert isinstance(answer, Change)
    assert ["spec.containers[0].image: nodes spell out" in text for text in answer.warnings] == [True] * is_told


@pytest.mark.parametrize(("value", "is_told"), [("5", False), ("high", True), ("", True)])
def test_a_priority_with_which_pods_are_refused_is_warned_of(value: str, is_told: bool) -> None:
    """CLP-5."""
    env = [{"name": "KRUISE_CONTAINER_PRIORITY", "value": value}]
    body = sidecar_set(containers=[{**SIDE, "env": env}])
    answer = ADMISSION.default(request(body, version="v1beta1", kind="SidecarSet"), HandlerView(now=NOW, seed=1))
    assert isinstance(answer, Change)
    assert [text.endswith("pods that get it are refused") for text in answer.warnings] == [True] * is_told


CREATED = [case for case in load("defaults") if case.get("op") != "update"]
CHANGED = [case for case in load("defaults") if case.get("op") == "update"]


@pytest.mark.parametrize("case", CHANGED, ids=lambda case: str(case["case"]))
def test_recorded_defaults_of_updates(case: Json) -> None:
    """SCS-13: hashes are written anew, and what was left out gets its default again."""
    version = case["version"]
    old = defaulted({**head(version), "metadata": {"name": "d"}, **case["base"]}, version=version, gates={})
    new = defaulted(merge.apply(old, case["sent"]), version=version, gates={}, old=old)
    assert (changes(old, new) or {}) == case["changedAgainstStored"]
    assert (new["spec"] != old["spec"]) == case["generationChanged"]


@pytest.mark.parametrize("case", CREATED, ids=lambda case: f"{case['version']} {case['case']}")
def test_recorded_defaults(case: Json) -> None:
    """SCS-5, SCS-7 to SCS-17: what is added, hashes included, byte by byte. A second time nothing is."""
    version = case["version"]
    sent = {**head(version), **case["sent"]}
    made = defaulted(sent, version=version, gates={})
    told = case["returned"]
    if "namespace" in sent["spec"]:
        made, told = convert(made, "v1beta1"), {**told, "spec": told["spec"]}
        made = {**made, "apiVersion": sent["apiVersion"]}
        sent = {**sent, "spec": {key: value for key, value in sent["spec"].items() if key != "namespace"}}
        sent["spec"].pop("namespaceSelector", None)
    assert changes(sent, made) == told
    again = defaulted({**head(version), **case["sent"]}, version=version, gates={}, old=made)
    assert again["spec"].get("containers") == made["spec"].get("containers")
    assert again["spec"]["updateStrategy"] == made["spec"]["updateStrategy"]


@pytest.mark.parametrize("case", load("conversion"), ids=lambda case: f"{case['created']} {case['case']}")
def test_recorded_conversions(case: Json) -> None:
    """SCS-1 to SCS-4."""
    version, other = case["created"], case["readAs"]["version"]
    sent = {**head(version), **case["sent"]}
    sent["metadata"] = {"name": "d", **sent.get("metadata", {})}
    made = convert(convert(defaulted(sent, version=version, gates={}), "v1beta1"), version)
    shown = convert(made, other)
    assert changes({**made, "apiVersion": ""}, {**shown, "apiVersion": ""}) == (case["readAs"]["changed"] or None)
    assert missing(made, shown) == sorted(case["readAs"]["missing"])
    assert convert(shown, version)["spec"] == made["spec"]


def selector(labels: Json | None = None, *expressions: tuple[str, str, list[str]]) -> LabelSelector:
    terms = [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]
    return codec.convert({"matchLabels": labels or {}, "matchExpressions": terms}, LabelSelector)


@pytest.mark.parametrize(
    ("left", "right", "overlap"),
    [
        (selector({"a": "b"}), selector({"c": "d"}), True),
        (selector({"a": "b"}), selector({"a": "b"}), True),
        (selector({"a": "b"}), selector({"a": "c"}), False),
        (selector({"a": "b"}), selector(None, ("a", "In", ["b", "c"])), True),
        (selector({"a": "b"}), selector(None, ("a", "In", ["c"])), False),
        (selector({"a": "b"}), selector(None, ("a", "NotIn", ["b"])), False),
        (selector({"a": "b"}), selector(None, ("a", "NotIn", ["c"])), True),
        (selector(None, ("a", "Exists", [])), selector({"a": "c"}), True),
        (selector(None, ("a", "Exists", [])), selector({"c": "d"}), False),
        (selector({"a": "b"}), selector(None, ("a", "DoesNotExist", [])), False),
        (selector({"c": "d"}), selector(None, ("a", "DoesNotExist", [])), True),
    ],
)
def test_selectors_overlap_or_not(left: LabelSelector, right: LabelSelector, overlap: bool) -> None:
    """SCS-32: in both directions."""
    assert may_overlap(left, right) is overlap
    assert may_overlap(right, left) is overlap


def test_canaries() -> None:
    """SCS-20, SCS-37: checked, and injected in place of their base."""

    async def scenario(world: LocalWorld) -> None:
        def canary(name: str = "canary", base: str = "logs", **spec: Any) -> Json:
            notes = {"annotations": {keys.CANARY: "true", keys.BASE: base}}
            strategy = {"updateStrategy": {"type": "NotUpdate"}}
            return sidecar_set(name, metadata=notes, **{**strategy, **spec})

        await world.create(sidecar_set())
        for wrong, complaint in (
            (canary(base="nobody"), "no SidecarSet nobody"),
            (canary("itself", base="itself"), "canary of itself"),
            (canary(updateStrategy={"type": "RollingUpdate"}), "must be NotUpdate"),
        ):
            with pytest.raises(ClientError, match=complaint):
                await world.create(wrong)
        first = {"matchLabels": {"app": "web", "canary": "yes"}}
        await world.create(canary(selector=first, containers=[{**SIDE, "image": "nginx:canary"}]))
        with pytest.raises(ClientError, match="is a canary itself"):
            await world.create(canary("second", base="canary", containers=[{"name": "other", "image": "i:1"}]))
        await world.create(pod("usual"))
        await world.create(pod("first", labels={"canary": "yes"}))
        await until_counts(world, 1, 1, 1, 1)
        await until_counts(world, 1, 1, 1, 1, name="canary")

    run_local(scenario)


def test_whitelist_of_patched_annotations() -> None:
    """SCS-29, SCS-33."""

    async def scenario(world: LocalWorld) -> None:
        patch = [{"annotations": {"example.com/a": "b"}}]
        with pytest.raises(ClientError, match="whitelist not found"):
            await world.create(sidecar_set(patchPodMetadata=patch))

        async def allow(rules: str) -> None:
            body = {"metadata": {"name": keys.CONFIGURATION, "namespace": "kruise-system"}}
            try:
                await world.client.create(CONFIG_MAPS, {**body, "data": {keys.WHITELIST: rules}}, "kruise-system")
            except ClientError:
                data = {"data": {keys.WHITELIST: rules}}
                await world.client.patch(CONFIG_MAPS, keys.CONFIGURATION, data, "kruise-system")

        for rules, complaint in (
            ("{", "cannot be read"),
            ('{"rules":[{"allowedAnnotationKeyExprs":["^other/"]}]}', "does not allow this annotation"),
            ('{"rules":[{"selector":{"matchLabels":{"a":"b"}},"allowedAnnotationKeyExprs":["."]}]}', "not found"),
        ):
            await allow(rules)
            with pytest.raises(ClientError, match=complaint):
                await world.create(sidecar_set(patchPodMetadata=patch))
        await allow('{"rules":[{"allowedAnnotationKeyExprs":["^example.com/"]}]}')
        twice = [*patch, {"annotations": {"example.com/a": "c"}}]
        with pytest.raises(ClientError, match="already exist"):
            await world.create(sidecar_set(patchPodMetadata=twice))
        await world.create(sidecar_set(patchPodMetadata=patch))

    run_local(scenario)


def test_containers_cannot_be_added_or_change_their_way() -> None:
    """SCS-30."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set())
        for containers, complaint in (
            ([SIDE, {"name": "new", "image": "i:1"}], "container new is not found"),
            ([{**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade"}}], "upgradeType cannot be changed"),
        ):
            with pytest.raises(ClientError, match=complaint):
                await world.patch(SIDECAR_SETS, "logs", {"spec": {"containers": containers}})

    run_local(scenario)
