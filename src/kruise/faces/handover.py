"""What a kind of ours and Kubernetes' own one of the same sort have in common, so that an object of the one can become
one of the other and its pods stay (pure)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kruise.api.apps.shared import ON_DELETE
from kruise.inplace.keys import REVISION_LABEL
from kruise.machinery.documents import Json, Path, value_at, with_value
from kruise.machinery.revision_names import short_hash

STRATEGY: Path = ("updateStrategy",)
_ROLLING: Path = (*STRATEGY, "rollingUpdate")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """Places are seen from `spec`."""

    same: tuple[Path, ...]
    """What stands at the same place in both, and means the same."""
    elsewhere: tuple[tuple[Path, Path], ...] = ()
    """What stands at another place: in Kubernetes' kind, in ours."""
    idle: Mapping[Path, tuple[Any, ...]]
    """What only one of them has, with the values that change nothing: these may be left behind."""
    binding: tuple[Path, ...] = ()
    """What only one of them has, and what the other would delete or make pods without."""
    pod_label: Callable[[Json], str]
    """How pods name a revision."""
    pod_names: Callable[[Json, bool], Sequence[str]] | None = None
    """What the pods of an object are called, with and without what `names_gate` is about; None: by chance."""
    names_gate: str = ""
    """With this gate our kind names its pods as Kubernetes' own does."""

    def translated(self, spec: Json, *, to_ours: bool) -> Translation:
        places = [(path, path) for path in self.same]
        places += self.elsewhere if to_ours else [(theirs, ours) for ours, theirs in self.elsewhere]
        made: Json = {}
        for source, destination in places:
            if (value := value_at(spec, source)) is not None:
                made = with_value(made, destination, value)
        missing = dict(_values(spec, (), frozenset(source for source, _ in places)))
        if value_at(made, (*STRATEGY, "type")) == ON_DELETE and _ROLLING[-1] in made[STRATEGY[0]]:
            # Only a rolling update has limits; one of the kinds keeps a limit elsewhere, where it always stands.
            rolling = made[STRATEGY[0]].pop(_ROLLING[-1])
            origins = {destination: source for source, destination in places}
            missing |= {origins[(*_ROLLING, name)]: value for name, value in rolling.items() if value}
        lost = [path for path, value in missing.items() if value not in self.idle.get(path, ())]
        return Translation(
            spec=made,
            lost=tuple(path for path in lost if path not in self.binding),
            binding=tuple(path for path in lost if path in self.binding),
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    spec: Json
    lost: tuple[Path, ...]
    """What the other kind does not have."""
    binding: tuple[Path, ...]
    """The same, of what pods would be deleted or made for."""


def _values(value: Any, path: Path, covered: frozenset[Path]) -> Iterator[tuple[Path, Any]]:
    """What somebody wrote, as far as it is not at a place that is covered."""
    if path in covered or value in (None, "", [], {}):
        return
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _values(below, (*path, name), covered)
    else:
        yield path, value


def by_name(revision: Json) -> str:
    return str(revision["metadata"]["name"])


def by_hash(revision: Json) -> str:
    labels = revision["metadata"].get("labels") or {}
    return str(labels.get(REVISION_LABEL) or short_hash(by_name(revision)))
