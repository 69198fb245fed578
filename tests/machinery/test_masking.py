"""What is masked for readers who may see an object but not its pods."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.inplace import keys
from kruise.inplace.state import RefMetadata, UpdateSpec, UpdateState, grace_json, state_json
from kruise.machinery.redaction import MASKED, hide, mask_dump, mask_entry
from tests.support.journalled import NOTES

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
        ("/spec/containers/0/env/-", {"name": "TOKEN", "value": SECRET}),
        ("/spec/containers/0/livenessProbe/httpGet", {"path": f"/live?token={SECRET}", "port": 80}),
        ("/spec/containers/0/livenessProbe/httpGet/path", f"/live?token={SECRET}"),
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
        ("/metadata/annotations/lifecycle.apps.kruise.io~1timestamp", "2030-01-01T00:00:00Z"),
        ("/spec/containers/0/livenessProbe/httpGet/path", "/"),
        ("/metadata/labels/app", "web"),
        ("/spec/containers/0/env/0/name", "TOKEN"),
        ("/metadata/uid", "u"),
    ],
)
def test_what_decisions_are_about_is_kept(path: str, value: str) -> None:
    assert masked({"op": "test", "path": path, "value": value}) == value


@pytest.mark.parametrize("name", NOTES)
def test_annotations_of_our_own_that_hold_json_go_whole(name: str) -> None:
    """They hold parts of templates, and these hold secrets."""
    dump = mask_dump({"snapshot": {"metadata": {"annotations": {name: NOTES[name]}}}, "plan": {}}, key=KEY)
    assert dump["snapshot"]["metadata"]["annotations"][name].startswith("redacted-")
    path = f"/metadata/annotations/{name.replace('/', '~1')}"
    assert masked({"op": "add", "path": path, "value": NOTES[name]}).startswith("redacted-")


def test_inside_of_our_own_annotations_the_same_is_hidden_as_elsewhere() -> None:
    """Exactly as if the engine had written it about hidden values."""
    grace, state = keys.UPDATE_GRACE_ANNOTATION, keys.UPDATE_STATE_ANNOTATION

    def noted(secret: str) -> dict[str, str]:
        references = {"main": RefMetadata(labels={"tier": "b"}, annotations={"team/password": secret, "drawn": "blue"})}
        patch = {"metadata": {"annotations": {"team/password": secret, "gone": None}, "labels": {"tier": "<b&c>"}}}
        spec = UpdateSpec(
            revision="r",
            container_images={"main": "nginx:1.26"},
            container_ref_metadata=references,
            meta_data_patch=patch,
            grace_seconds=4,
        )
        waiting = UpdateState(revision="r", update_images=True, next_container_ref_metadata=references)
        return {
            grace: grace_json(spec),
            keys.OLD_UPDATE_GRACE_ANNOTATION: grace_json(spec),
            state: state_json(waiting),
            keys.OLD_UPDATE_STATE_ANNOTATION: state_json(waiting),
        }

    drawn = {"fieldPath": "metadata.annotations['drawn']"}
    document = {"annotations": {"team/password": SECRET, **noted(SECRET)}, "fieldRef": drawn}
    hidden = hide(document, key=KEY)["annotations"]
    assert hidden == {"team/password": hidden["team/password"], **noted(hidden["team/password"])}
    assert hidden["team/password"].startswith("redacted-")
    steps = [
        {"op": "add", "path": f"/annotations/{name.replace('/', '~1')}", "value": noted(SECRET)[name]}
        for name in hidden
        if name in noted("")
    ]
    for step in hide({"steps": steps, "fieldRef": drawn}, key=KEY)["steps"]:
        assert step["value"] == hidden[step["path"].removeprefix("/annotations/").replace("~1", "/")]


@pytest.mark.parametrize("text", ["{", f'{{"revision":"{SECRET}', f'{{"metaDataPatch":"%{SECRET}"}}'])
def test_what_cannot_be_looked_into_goes_whole(text: str) -> None:
    assert SECRET not in str(hide({"annotations": {keys.UPDATE_GRACE_ANNOTATION: text}}, key=KEY))


def test_json_without_secrets_stays_as_it_was_written() -> None:
    text = '{ "b" : 1.0, "a": "\\u00e9" }'
    assert hide({"annotations": {"apps.kruise.io/x": text}}, key=KEY) == {"annotations": {"apps.kruise.io/x": text}}


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
