"""What is masked for readers who may see an object but not its pods."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.machinery.redaction import MASKED, mask_dump, mask_entry

SECRET = "hunter2-very-secret"
KEY = b"k" * 32


def masked(step: dict[str, Any]) -> Any:
    dump = mask_dump({"snapshot": {}, "plan": {"body": [step]}}, key=KEY)
    return dump["plan"]["body"][0]["value"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/metadata/annotations/team~1password", SECRET),
        ("/metadata/annotations", {"team/password": SECRET, "apps.kruise.io/x": "kept"}),
        ("/spec/containers/0/env", [{"name": "TOKEN", "value": SECRET}]),
        ("/spec/containers/0/env/0/value", SECRET),
        ("/spec/containers/0/args/1", SECRET),
        ("/spec/containers/0/command/0", SECRET),
        ("/spec/containers/0", {"name": "main", "args": [SECRET], "image": "nginx"}),
    ],
)
def test_a_step_of_a_patch_is_masked_as_the_place_it_goes_to(path: str, value: Any) -> None:
    found = str(masked({"op": "add", "path": path, "value": value}))
    assert SECRET not in found
    assert "redacted-" in found
    for kept in ("kept", "TOKEN", "main", "nginx"):
        assert (kept in str(value)) == (kept in found)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/spec/containers/0/image", "nginx:1.26"),
        ("/metadata/annotations/apps.kruise.io~1inplace-update-state", "{}"),
        ("/metadata/labels/app", "web"),
        ("/spec/containers/0/env/0/name", "TOKEN"),
        ("/metadata/uid", "u"),
    ],
)
def test_what_decisions_are_about_is_kept(path: str, value: str) -> None:
    assert masked({"op": "test", "path": path, "value": value}) == value


def test_last_words_and_errors_go() -> None:
    state = {"terminated": {"reason": "Error", "message": SECRET}}
    waiting = {"waiting": {"reason": "CreateContainerError", "message": SECRET}}
    snapshot = {"pods": [{"status": {"containerStatuses": [{"state": state, "lastState": waiting}]}}]}
    dump = mask_dump({"snapshot": snapshot, "plan": {}, "error": SECRET, "fault": SECRET}, key=KEY)
    assert SECRET not in str(dump)
    assert (dump["error"], dump["fault"], dump["redacted"]) == (MASKED, MASKED, True)
    assert "CreateContainerError" in str(dump)


def test_a_record_without_troubles_stays_as_it_is() -> None:
    entry = {"conclusion": {}, "troubles": [], "error": "", "plan": {"counts": {"create pods": 1}}}
    assert mask_entry(entry) == entry
