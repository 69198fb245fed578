"""What a player must be told beside the recording itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Directions:
    """What the words of a recording leave open."""

    targets: Mapping[int, str] = dataclasses.field(default_factory=dict)
    """The pod that a step is about."""
    waits: Mapping[int, float] = dataclasses.field(default_factory=dict)
    """Seconds after a step, where the recorded distance would show another moment."""
    unsettled: frozenset[int] = frozenset()
    """Steps after which the recorded cluster had not come to rest before the next one."""
    together: frozenset[int] = frozenset()
    """Steps after which pods were acted on at once, so that the order within them means nothing."""
    glances: Mapping[int, float] = dataclasses.field(default_factory=dict)
    """Seconds after a step at which the recording printed an object, before the step had come to rest."""
    spread: bool = False
    """Whether the recording is about how the pods are spread over zones."""
    objects: Sequence[Mapping[str, Any]] = ()
    """What was there before the first step: classes and volumes."""
    gap: Sequence[str] = ()
    """Lines that the log leaves out and the rest of it proves."""
    late: Mapping[int, float] = dataclasses.field(default_factory=dict)
    """Pods (by number) that started so many seconds later than the others: the log leaves the start out, but the order
    of later acts tells it."""
