"""Every recorded answer to a workload, asked again of our admission: same verdict, code, fields and reasons.

The texts are the recorded ones or say more; where the original shows Go syntax, ours does not. One player for all
kinds: `tests/support/recorded_admission.py` says what a kind brings.
"""

from __future__ import annotations

from typing import Any

import pytest

from kruise.admission.decisions import Allow, Deny
from kruise.api.versions import NEWER, OLDER
from kruise.machinery.patches import merge
from tests.support.admission import Json, Server, causes_of, code_of, messages_of, stored
from tests.support.recorded_admission import KINDS, Recorded, case_id, changes, missing, recorded_words, without
from tests.workloads.cloneset.admission_model import pod

PODS = (pod("p1"), pod("own-pod", controller_uid="cs-uid"), pod("other-pod", controller_uid="another-uid"))
GATED = {"ResourcesDeletionProtection": True, "StatefulSetAutoResizePVCGate": True}


def server(kind: Recorded, **options: Any) -> Server:
    return Server(admission=kind.admission, pods=PODS, **options)


def each(name: str) -> pytest.MarkDecorator:
    """Every case of every kind."""
    cases = [(kind, case) for kind in KINDS for case in getattr(kind, name)]
    return pytest.mark.parametrize(("kind", "case"), cases, ids=[f"{kind} {case_id(case)}" for kind, case in cases])


def ask(kind: Recorded, case: Json) -> Any:
    version, base = case["version"], kind.base(case["sent"]["base"])
    patch = kind.with_names(case["sent"]["patch"])
    if case["op"] == "create":
        unused = {**base, "metadata": {"name": f"{base['metadata']['name']}-n"}}
        return server(kind).send(merge.apply(unused, patch), version=version)
    return server(kind).update(stored(server(kind).defaults(base, version=version)), patch, version=version)


@each("verdicts")
def test_verdicts(kind: Recorded, case: Json) -> None:
    """As recorded: CS-40 to CS-50, ST-29 to ST-32, DS-17 to DS-19, BJ-15, BJ-18, BJ-19, ACJ-7, ACJ-30 to ACJ-38,
    UD-23 to UD-35, UD-35a, UD-35b."""
    answer = ask(kind, case)
    if kind.is_accepted(case):
        assert isinstance(answer, Allow), messages_of(answer)
        assert bool(answer.warnings) == (case["case"] in kind.different("warnings")), answer.warnings
        return
    assert code_of(answer) == kind.code(case)
    assert causes_of(answer) == kind.causes(case)
    assert kind.words(case).lower() in messages_of(answer).lower()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_chosen_differences_are_cases(kind: Recorded) -> None:
    """A difference that is listed but never met would hide a mistake."""
    cases = {case["case"]: case for case in kind.verdicts}
    for key in ("accepted", "refused", "causes", "words", "warnings"):
        assert set(cases) >= set(kind.different(key)), key
    said = {case["case"]: case for case in kind.verdicts if "denied the request" in case.get("message", "")}
    for name in kind.different("words"):
        assert recorded_words(said[name]["message"]) not in messages_of(ask(kind, said[name])), name
    assert not any(cases[name]["accepted"] for name in kind.different("accepted"))
    assert all(cases[name]["accepted"] for name in kind.different("refused"))


# Defaults


@each("defaults")
def test_defaults(kind: Recorded, case: Json) -> None:
    """CS-30 to CS-33, ST-23 to ST-27, DS-13 to DS-15, BJ-6, BJ-12 to BJ-14, ACJ-9, ACJ-13 to ACJ-18. Fields that the
    original's schema lacks and ours has are not removed."""
    _compare_defaults(kind, case, {})


@each("gated_defaults")
def test_defaults_with_gates(kind: Recorded, case: Json) -> None:
    """ST-23."""
    _compare_defaults(kind, case, GATED)


def _compare_defaults(kind: Recorded, case: Json, gates: dict[str, bool]) -> None:
    version, asked = case["version"], server(kind, gates=gates)
    if case.get("op") != "update":
        sent = {**kind.head(version), **case["sent"]}
        added = changes(sent, asked.defaults(sent, version=version))
        left_out = kind.different("defaults")
        assert without(added, left_out) == without(case["returned"], left_out)
        return
    base = {**kind.head(version), "metadata": {"name": "d"}, **case["base"]}
    old = stored(asked.defaults(base, version=version))
    if case["code"] >= 400:
        answer = asked.update(old, case["sent"], version=version)
        assert (code_of(answer), causes_of(answer)) == (case["code"], kind.causes(case))
        return
    new = asked.defaults(merge.apply(old, case["sent"]), old, version=version)
    assert (changes(old, new) or {}) == case["changedAgainstStored"]
    assert (new["spec"] != old["spec"]) == case["generationChanged"]
    for path in case.get("removedAgainstStored", ()):
        *above, name = path.split(".")
        holder = new
        for part in above:
            holder = holder[part]
        assert name not in holder


# Conversion


@each("conversions")
def test_conversions(kind: Recorded, case: Json) -> None:
    """ST-6, DS-5, DS-107, BJ-2 to BJ-4, ACJ-3: what the other version shows, as recorded. Written back, nothing is
    lost; the original loses what v1alpha1 has no fields for."""
    version, other = case["created"], case["readAs"]["version"]
    assert {version, other} == {OLDER, NEWER}
    sent = {**kind.head(version), "metadata": {"name": "d"}, **case["sent"]}
    sent["metadata"] = {"name": "d", **sent["metadata"]}
    convert = kind.admission.convert
    made = convert(convert(server(kind).defaults(sent, version=version), NEWER), version)
    shown = convert(made, other)
    left_out = kind.different("conversion")
    told = {**case["readAs"]["changed"]}
    assert without(changes({**made, "apiVersion": ""}, {**shown, "apiVersion": ""}), left_out) == without(
        told, left_out
    )
    assert missing(made, shown) == sorted(case["readAs"]["missing"])
    written = convert(server(kind).defaults(shown, stored(shown), version=other), version)
    assert missing(made, written) == []
    assert changes(made["spec"], written["spec"]) is None


# Subresources


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_subresources_are_not_judged(kind: Recorded) -> None:
    """The webhooks are not called for them (the API server itself refuses a scale to -1), and would let them pass."""
    asked = server(kind)
    for case in kind.subresources:
        if case["op"] == "delete":
            continue
        old = stored(asked.defaults(kind.base_of(case["version"]), version=case["version"]))
        part = "status" if "status" in case["case"] else "scale"
        new = merge.apply(old, case["sent"].get("patch", {}))
        assert asked.judge(asked.request(new, old, version=case["version"], subresource=part)) == Allow()


# Deletion protection


def deleted(kind: Recorded, case: Json, *, terminating: bool) -> Json:
    sent = case["sent"]
    labels = sent.get("labels", {})
    if "dp4" in labels:
        labels = labels["dp4"]
    base = kind.base_of(case["version"])
    if "replicas" in base["spec"]:
        base["spec"] = {**base["spec"], "replicas": sent.get("replicas", 2)}
    result = stored({**base, "metadata": {"name": "d", "labels": labels}})
    result["metadata"]["annotations"] = sent.get("annotations", {})
    if terminating:
        result["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return result


@each("protection")
def test_deletion_protection(kind: Recorded, case: Json) -> None:
    """CS-52, ST-34, DS-16 with the gate on (DP-10 to DP-20). A collection is deleted object by object."""
    version, asked = case["version"], server(kind, gates={"ResourcesDeletionProtection": True})
    base = kind.base_of(version)
    if case["op"] == "create":
        labelled = {**base, "metadata": {"name": "d", "labels": case["sent"]["labels"]}}
        assert isinstance(asked.send(labelled, version=version), Allow)
        return
    if case["op"] == "update":
        old = stored(asked.defaults(base, version=version))
        assert isinstance(asked.update(old, case["sent"]["patch"], version=version), Allow)
        return
    old = deleted(kind, case, terminating="already terminating" in case["case"])
    dry_run = case["sent"].get("dryRun", False)
    answer = asked.judge(asked.request(None, old, version=version, operation="DELETE", dry_run=dry_run))
    if case["accepted"]:
        assert answer == Allow()
        return
    assert isinstance(answer, Deny)
    assert (answer.code, answer.reason) == (403, "Forbidden")
    said, _, advice = answer.message.partition("; ")
    assert case["message"].endswith(f"denied the request: {said}")
    assert "take the label away" in advice


@each("subresources")
def test_without_the_gate_nothing_is_protected(kind: Recorded, case: Json) -> None:
    """CS-52, ST-34, DP-11."""
    if case["op"] == "delete":
        assert case["accepted"]
        asked = server(kind)
        old = deleted(kind, case, terminating=False)
        assert asked.judge(asked.request(None, old, version=case["version"], operation="DELETE")) == Allow()
