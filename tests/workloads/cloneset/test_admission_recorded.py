"""Every recorded answer to a CloneSet, asked again of our admission: same verdict, code, fields and reasons.

The texts are the recorded ones or say more; where the original shows Go syntax, ours does not.
"""

from __future__ import annotations

from typing import Any

import pytest

from kruise.admission.decisions import Allow, Deny
from kruise.machinery.patches import merge
from tests.workloads.cloneset.admission_cases import (
    ACCEPTED_HERE,
    DEFAULTS,
    MORE_WARNINGS,
    OTHER_CAUSES,
    OTHER_WORDS,
    PROTECTION,
    SUBRESOURCES,
    VALIDATION,
    V,
    base_of,
    case_id,
    changes,
    recorded_words,
    with_names,
)
from tests.workloads.cloneset.admission_model import (
    Json,
    Server,
    causes_of,
    code_of,
    messages_of,
    pod,
    recorded_causes,
    request,
    stored,
)

SERVER = Server(
    pods=(pod("p1"), pod("own-pod", controller_uid="cs-uid"), pod("other-pod", controller_uid="another-uid")),
)


def ask(case: Json) -> Any:
    base, patch = base_of(case["sent"]["base"]), with_names(case["sent"]["patch"])
    if case["op"] == "create":
        unused = {**base, "metadata": {"name": "cs-n"}}
        return SERVER.send(merge.apply(unused, patch), version=V)
    return SERVER.update(stored(SERVER.defaults(base, version=V)), patch, version=V)


@pytest.mark.parametrize("case", VALIDATION["cases"], ids=case_id)
def test_verdicts(case: Json) -> None:
    """CS-40 to CS-50, as recorded."""
    answer = ask(case)
    name = case["case"]
    if case["accepted"] or name in ACCEPTED_HERE:
        assert isinstance(answer, Allow), messages_of(answer)
        assert bool(answer.warnings) == (name in MORE_WARNINGS)
        return
    assert code_of(answer) == case["code"]
    if name in OTHER_CAUSES:
        assert causes_of(answer) == OTHER_CAUSES[name][0]
        return
    assert causes_of(answer) == recorded_causes(case["message"])
    if name in OTHER_WORDS:
        assert with_names(OTHER_WORDS[name]) in messages_of(answer)
    else:
        assert with_names(recorded_words(case["message"])) in messages_of(answer)


def test_the_chosen_differences_are_cases() -> None:
    """A difference that is listed but never met would hide a mistake."""
    names = {case["case"] for case in VALIDATION["cases"]}
    assert names >= {*ACCEPTED_HERE, *OTHER_CAUSES, *OTHER_WORDS, *MORE_WARNINGS}


# Defaults


@pytest.mark.parametrize("case", DEFAULTS, ids=case_id)
def test_defaults(case: Json) -> None:
    """CS-30 to CS-33, to the letter. Fields that the original's schema lacks and ours has are not removed."""
    head = {"apiVersion": f"apps.kruise.io/{V}", "kind": "CloneSet"}
    if case.get("op") != "update":
        sent = {**head, **case["sent"]}
        assert changes(sent, SERVER.defaults(sent, version=V)) == case["returned"]
        return
    old = stored(SERVER.defaults({**head, "metadata": {"name": "d"}, **case["base"]}, version=V))
    new = SERVER.defaults(merge.apply(old, case["sent"]), old, version=V)
    assert changes(old, new) == case["changedAgainstStored"]
    assert (new["spec"] != old["spec"]) == case["generationChanged"]
    for path in case.get("removedAgainstStored", ()):
        *above, name = path.split(".")
        holder = new
        for part in above:
            holder = holder[part]
        assert name not in holder


# Subresources


def test_subresources_are_not_judged() -> None:
    """The webhooks are not called for them (the API server itself refuses a scale to -1), and would let them pass."""
    assert {case["op"] for case in SUBRESOURCES} == {"scale", "update", "delete"}
    old = stored(SERVER.defaults(base_of("cs"), version=V))
    for case in SUBRESOURCES:
        if case["op"] == "delete":
            continue
        part = "status" if "status" in case["case"] else "scale"
        asked = request(merge.apply(old, case["sent"].get("patch", {})), old, version=V, subresource=part)
        assert SERVER.judge(asked) == Allow()


# Deletion protection


def deleted(case: Json, *, terminating: bool) -> Json:
    sent = case["sent"]
    labels = sent.get("labels", {})
    if "dp4" in labels:
        labels = labels["dp4"]
    cloneset = base_of("cs")
    cloneset["spec"] = {**cloneset["spec"], "replicas": sent.get("replicas", 2)}
    result = stored({**cloneset, "metadata": {"name": "cs", "labels": labels}})
    result["metadata"]["annotations"] = sent.get("annotations", {})
    if terminating:
        result["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return result


@pytest.mark.parametrize("case", PROTECTION, ids=case_id)
def test_deletion_protection(case: Json) -> None:
    """CS-52 with the gate on (DP-10 to DP-20). A collection is deleted object by object."""
    server = Server(gates={"ResourcesDeletionProtection": True})
    if case["op"] == "create":
        base = {**base_of("cs"), "metadata": {"name": "cs", "labels": case["sent"]["labels"]}}
        assert isinstance(server.send(base, version=V), Allow)
        return
    if case["op"] == "update":
        old = stored(server.defaults(base_of("cs"), version=V))
        assert isinstance(server.update(old, case["sent"]["patch"], version=V), Allow)
        return
    stored_object = deleted(case, terminating="already terminating" in case["case"])
    dry_run = case["sent"].get("dryRun", False)
    answer = server.judge(request(None, stored_object, version=V, operation="DELETE", dry_run=dry_run))
    if case["accepted"]:
        assert answer == Allow()
        return
    assert isinstance(answer, Deny)
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert case["message"].endswith(f"denied the request: {answer.message}")


@pytest.mark.parametrize("case", [case for case in SUBRESOURCES if case["op"] == "delete"], ids=case_id)
def test_without_the_gate_nothing_is_protected(case: Json) -> None:
    """CS-52, DP-11."""
    assert case["accepted"]
    asked = request(None, deleted(case, terminating=False), version=V, operation="DELETE")
    assert SERVER.judge(asked) == Allow()
