"""What a pod's annotations ask the node model to do: fail, be slow, or be other than usual.

    sim.kruise.io/<knob>                for every container of the pod
    sim.kruise.io/<knob>.<container>    for one of them; it wins

They are read when they matter, so a change works on a running pod: `docs/nodes.md` lists them.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from kruise.machinery.quantity import parse_quantity
from kruise.machinery.times import TimeError, parse_go_duration

PREFIX = "sim.kruise.io/"
NODE_DOWN = "kruise.io/sim-node"
"""On a Node: `down` takes it down until the annotation goes."""

_OUTCOME = re.compile(r"(?:(\d{1,3}))?\s*(?:after\s+(\S+))?")


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """A container ends with this code, so many seconds after its start."""

    code: int
    after: float


class Knobs:
    """The knobs of one pod. What cannot be read counts as not given: a simulation must not stop for a typo."""

    __slots__ = ("_given",)

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._given = {key[len(PREFIX) :]: value for key, value in annotations.items() if key.startswith(PREFIX)}

    def __bool__(self) -> bool:
        return bool(self._given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Knobs) and self._given == other._given

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._given.items())))

    def text(self, knob: str, container: str = "") -> str:
        if not self._given:
            return ""
        return self._given.get(f"{knob}.{container}") or self._given.get(knob, "")

    def flag(self, knob: str, container: str = "") -> bool:
        return self.text(knob, container).lower() in ("true", "yes", "1")

    def seconds(self, knob: str, container: str = "") -> float | None:
        return _seconds(self.text(knob, container))

    def number(self, knob: str, container: str = "") -> int | None:
        text = self.text(knob, container)
        return int(text) if text.isascii() and text.isdecimal() else None

    def size(self, knob: str, container: str = "") -> int | None:
        """An amount of bytes such as `50Mi`."""
        text = self.text(knob, container)
        try:
            return parse_quantity(text).value() if text else None
        except ValueError:
            return None

    def ending(self, container: str) -> Ending | None:
        """`exit: "3 after 10s"` and `crash-loop: "1"`, which ends at once and by itself counts as a failure."""
        for knob, usual in (("exit", 0), ("crash-loop", 1)):
            text = self.text(knob, container)
            if not text:
                continue
            if text.lower() in ("true", "yes"):
                return Ending(usual, 0.0)
            matched = _OUTCOME.fullmatch(text.strip())
            if matched is not None:
                return Ending(int(matched[1]) if matched[1] else usual, _seconds(matched[2] or "") or 0.0)
        return None

    def images(self) -> Mapping[str, Any]:
        """The table of `images`: per name `size`, `same-as` and `error`."""
        return image_table(self.text("images"))


def image_table(text: str) -> Mapping[str, Any]:
    if not text:
        return {}
    try:
        table = json.loads(text)
    except ValueError:
        return {}
    return {name: entry for name, entry in table.items() if isinstance(entry, dict)} if isinstance(table, dict) else {}


def _seconds(text: str) -> float | None:
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parse_go_duration(text))
    except TimeError:
        return None
