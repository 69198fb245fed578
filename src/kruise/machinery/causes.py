"""Why an object is held back, and what each cause means: a part of a plan that readers need without the rest of it.

The catalogue of causes is made of `Meaning`s. Each stands in a module called `causes.py`: those that several kinds
share in `kruise.workloads.shared`, a kind's own in its folder. A cause is made from its entry (`PARTITION.cause(...)`),
so none can be named that nobody has explained. `why`, the condition `Waiting`, the verdicts of `plan` and the documents
read these entries. A kind from elsewhere brings entries of its own: its plans carry them along.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

ENDLESS = float("inf")
MINUTE = 60.0

UNAVAILABLE = "unavailable"
"""The list in a cause's details of the pods that use up its limit."""
LABEL_CHANGES = "labelChanges"
"""The list in a cause's details of what `kubectl label pod` has to be told to end it: `name-`, `name=value`."""
WAITED_FOR = (UNAVAILABLE, "leaving", "pods")
"""The lists in a cause's details that name pods: those that have to move on before whoever is held can."""


class Act(enum.StrEnum):
    """Who has to do something."""

    SOMEBODY = "somebody"
    """It stays like this until somebody does something."""
    NOBODY = "nobody"
    """It goes on by itself."""
    INTENDED = "intended"
    """It is what the spec asks for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Meaning:
    """An entry of the catalogue: what is true of a cause wherever it occurs. It is known by its code."""

    code: str
    """Stable, for programs: `partition`, `max-unavailable`, `hook`, ..."""
    says: str
    """In one line, for people."""
    act: Act
    field: str = ""
    """What sets it: a field of the workload, or an annotation."""
    patience: float = ENDLESS
    """Seconds for which it is normal, from the last change of the pod that it holds. 0: somebody has to act at once.
    Endless: it was asked for, or ends by itself, or lasts as long as others take."""
    waits_for_others: bool = False
    """Something else is behind it. Where its details tell the pods that use up its limit, its patience is theirs."""
    is_wanted: bool = False
    """Somebody asked to be waited for: where a rollout stops for nothing else, it is not stuck."""
    is_before_turn: bool = False
    """Whom it holds has not been chosen yet. Whom another cause holds keeps its place among those that move."""
    is_own_step: bool = False
    """A step of the pod's own way. That the pod does not serve meanwhile needs no other explanation."""
    is_for_want_of_a_node: bool = False
    """It holds a pod that has no node, and is over as soon as it has one."""
    remedy: str = ""
    """What `why` tells to do, in place of what the plan says; {target}, {flags}, {pod} and {by_hand} (a
    command that changes the pod) are filled in."""
    relief: str = ""
    """Of a limit: what to do where it holds although no pod uses it up."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meaning) and other.code == self.code

    def __hash__(self) -> int:
        return hash(self.code)

    def cause(self, message: str, *, details: Mapping[str, Any] | None = None, remedy: str = "") -> Cause:
        return Cause(meaning=self, message=message, details=details or {}, remedy=remedy)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One link in the chain of causes that holds an object back. Made by `Meaning.cause`."""

    meaning: Meaning
    message: str
    """For people. No program reads it: what one needs is in the details."""
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    remedy: str = ""

    @property
    def code(self) -> str:
        return self.meaning.code


class Catalogue:
    """Entries by code: for those who read causes that somebody else has written down."""

    def __init__(self, meanings: Iterable[Meaning], others: Callable[[], Iterable[Meaning]] | None = None) -> None:
        """`others` are asked for when a code is not among `meanings`: a kind may be held by what another one knows, as
        by a budget."""
        self._by_code = {meaning.code: meaning for meaning in meanings}
        self._others = others

    def meaning(self, code: str, remedy: str) -> Meaning:
        """A code that is not known here (a manager of another version wrote it) is taken at its word: with a remedy
        somebody has to act, without one it goes on by itself."""
        if code not in self._by_code and self._others is not None:
            self._by_code = {meaning.code: meaning for meaning in self._others()} | self._by_code
            self._others = None
        known = self._by_code.get(code)
        if known is not None:
            return known
        return Meaning(code=code, says="a cause that is not known here", act=Act.SOMEBODY if remedy else Act.NOBODY)
