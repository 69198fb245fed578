"""The recorded answers to CloneSets, and where ours differ on purpose, for tests with and without a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.workloads.cloneset.admission_model import Json, load

V = "v1alpha1"
DEFAULTS: list[Json] = load("defaults")
VALIDATION: Json = load("validation")
SUBRESOURCES: list[Json] = load("validation-2")["cases"]
PROTECTION: list[Json] = load("validation-gated")["cases"]
NAMES = {"$OWNPOD": "own-pod", "$OTHERPOD": "other-pod", "<254 times a>": "a" * 254}

ACCEPTED_HERE = {
    "updateStrategy type OnDelete": "CS-43: an oversight of the original; CS-20 says what it becomes",
}
OTHER_CAUSES: dict[str, tuple[set[tuple[str, str]], str]] = {
    "replicas as string": (
        {("spec.replicas", "FieldValueTypeInvalid")},
        "the original answers with the words of Go's JSON decoder and no field",
    ),
    "unparsable quantity": (
        {("spec.template.spec.containers[0].resources.requests[cpu]", "FieldValueTypeInvalid")},
        "the original does not say which quantity",
    ),
    "no selector": (
        {("spec.selector", "FieldValueRequired")},
        "the original's own defaults write null into the field, and the schema complains about that",
    ),
    "selector with unknown operator": (
        {("spec.selector.matchExpressions[0].operator", "FieldValueInvalid")},
        "the original says the same a second time, about the whole selector, in Go syntax",
    ),
    "selector In without values": (
        {("spec.selector.matchExpressions[0].values", "FieldValueRequired")},
        "the original says the same a second time, about the whole selector, in Go syntax",
    ),
}
_NO_PERCENTAGE = 'must be an integer or a percentage, such as 2, "20%" or "0.5%"'
_BOTH_ZERO = "maxUnavailable and maxSurge should not both be less than 1"
_NO_MATCH = "`selector` does not match template `labels`"
OTHER_WORDS: dict[str, str] = {
    # The API server's own check of the scale subresource, which comes first on a server, has other words.
    "replicas negative": "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    "replicas -1": "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    # Go syntax in place of the value.
    "selector does not match template labels": f'Invalid value: {{"app":"cs"}}: {_NO_MATCH}',
    "no template": f"spec.template.metadata.labels: Invalid value: {{}}: {_NO_MATCH}, spec.template.spec.containers",
    "template labels changed so that the selector misses": f'Invalid value: {{"app":"n"}}: {_NO_MATCH}',
    "maxUnavailable 0": f"Invalid value: 0: {_BOTH_ZERO}",
    'maxUnavailable "0%"': f'Invalid value: "0%": {_BOTH_ZERO}',
    "maxUnavailable -1": f"Invalid value: -1: {_BOTH_ZERO}",
    'maxUnavailable "-20%"': f'Invalid value: "-20%": {_BOTH_ZERO}',
    "maxUnavailable 0 and maxSurge 0": f"Invalid value: 0: {_BOTH_ZERO}",
    "podsToDelete of own pod twice": 'Invalid value: ["$OWNPOD","$OWNPOD"]: duplicated items [$OWNPOD]',
    "priority bad matchSelector": "for 'in', 'notin' operators, values set can't be empty",
    # The name of a Go function, and no word about what would be right; what follows from it is not said as well.
    'partition "abc"': f'Invalid value: "abc": {_NO_PERCENTAGE}',
    'partition "%"': f'Invalid value: "%": {_NO_PERCENTAGE}',
    'maxUnavailable "5"': f'Invalid value: "5": {_NO_PERCENTAGE}',
    'maxUnavailable "abc"': f'Invalid value: "abc": {_NO_PERCENTAGE}',
    'maxSurge "abc"': f'Invalid value: "abc": {_NO_PERCENTAGE}',
    'maxSurge "5"': f'Invalid value: "5": {_NO_PERCENTAGE}',
    # Which entry it is, and the range that really holds.
    "priority weight 101": "weightPriority[0]: weight must be a number in the range 0-100, not 101",
    "priority weight -1": "weightPriority[0]: weight must be a number in the range 0-100, not -1",
    "priority empty matchSelector": "weightPriority[0]: selector can not be empty",
    "scatterStrategy empty key": "scatterStrategy[0]: key should not be empty",
    "scatterStrategy duplicate": "scatterStrategy[1]: duplicated key=a value=x",
    # The same, or more of it.
    "updateStrategy type Recreate": "must be 'ReCreate', 'InPlaceIfPossible', 'InPlaceOnly' or 'OnDelete'",
    "activeDeadlineSeconds set": "Forbidden: activeDeadlineSeconds in cloneset is not supported",
    "maxSurge 1 with InPlaceOnly": "Invalid value: 1: can not use maxSurge with strategy type InPlaceOnly",
}
MORE_WARNINGS = {
    'scaleStrategy.maxUnavailable "abc"': "accepted as recorded, but no pod would ever be created",
    "scaleStrategy.maxUnavailable -1": "accepted as recorded, but no pod would ever be created",
    'scaleStrategy.maxUnavailable "5"': "accepted as recorded, but no pod would ever be created",
}


def case_id(case: Json) -> str:
    return f"{case.get('op', 'create')}: {case['case']}"


def recorded_words(message: str) -> str:
    """The complaints in a recorded message, without who makes them."""
    words = message.partition("denied the request: ")[2] or message.partition("is invalid: ")[2]
    return words.strip("[]").removeprefix(".")


def with_names(value: Any, names: Mapping[str, str] = NAMES) -> Any:
    text = json.dumps(value)
    for placeholder, name in {**NAMES, **names}.items():
        text = text.replace(placeholder, name)
    return json.loads(text)


def base_of(name: str) -> Json:
    base = VALIDATION["bases"][name]
    return {
        "apiVersion": f"apps.kruise.io/{V}",
        "kind": "CloneSet",
        "metadata": base["metadata"],
        "spec": base["spec"],
    }


def changes(before: Any, after: Any) -> Any:
    """What was added or changed, in the form of the recording; None if nothing."""
    if isinstance(before, dict) and isinstance(after, dict):
        new = {name: value for name, value in after.items() if name not in before}
        inner = {name: changes(before[name], value) for name, value in after.items() if name in before}
        return {**{name: part for name, part in inner.items() if part is not None}, **new} or None
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        parts = {f"[{i}]": changes(one, other) for i, (one, other) in enumerate(zip(before, after, strict=True))}
        return {place: part for place, part in parts.items() if part is not None} or None
    return None if before == after else after
