"""Pictures side by side: what the recording knows, and whether ours is like it."""

from __future__ import annotations

import re
from typing import Any

from tests.recordings.parsing import Json
from tests.recordings.recorded import ID_LABEL, STATE_LABEL, UNTOLD, Acts, Picture


def unlike(recorded: Picture, ours: Picture) -> list[str]:
    """Aspects that the recording knows and ours has otherwise."""
    if bool(recorded) != bool(ours):
        return ["presence"] if not recorded else sorted(recorded)
    aspects: list[str] = []
    for aspect, value in recorded.items():
        now = ours.get(aspect)
        if aspect.startswith("container ") and isinstance(now, dict):
            now = {key: now.get(key) for key in value}
        if value == UNTOLD:
            continue
        if isinstance(value, dict) and isinstance(now, dict):
            now = {key: UNTOLD if value.get(key) == UNTOLD else told for key, told in now.items()}
        if now != value:
            aspects.append(aspect)
    return aspects


def holds(ours: Any, printed: Any) -> bool:
    """Whether ours has everything that was printed; lists of named things are compared by name."""
    if isinstance(printed, dict):
        return isinstance(ours, dict) and all(holds(ours.get(key), value) for key, value in printed.items())
    if isinstance(printed, list) and printed and all(isinstance(item, dict) and "name" in item for item in printed):
        named = {item.get("name"): item for item in ours or ()}
        return all(holds(named.get(item["name"]), item) for item in printed)
    return bool(ours == printed)


def with_acts(pictures: dict[str, Picture], acts: Acts) -> dict[str, Picture]:
    """Pictures that also tell what was done to the pod, or that nothing was."""
    for name in {*acts.updated, *acts.deleted, *acts.states}:
        pictures.setdefault(name, {})
    for name, picture in pictures.items():
        for aspect, acted in (("turn of update", acts.updated), ("turn of deletion", acts.deleted)):
            picture[aspect] = [turn for turn, other in enumerate(acted) if other == name]
        picture["states"] = acts.states.get(name, [])
        picture.setdefault("claims", [])
    return pictures


def anonymous(labels: Json) -> Json:
    return {**labels, ID_LABEL: "<id>"} if ID_LABEL in labels else labels


def sparse(picture: Picture) -> Picture:
    kept = {aspect: value for aspect, value in picture.items() if not re.match(r"condition |container |phase", aspect)}
    kept["labels"] = {key: value for key, value in kept["labels"].items() if key != STATE_LABEL}
    return kept
