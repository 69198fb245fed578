"""Which of our pods is which recorded pod: any renaming under which all that was seen of them is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Fits = Callable[[str, str], bool]


def match(recorded: Sequence[str], ours: Sequence[str], fits: Fits, bound: Mapping[str, str]) -> dict[str, str] | None:
    """A one-to-one assignment that keeps `bound`; None when there is none."""
    if len(recorded) != len(ours):
        return None
    taken = {our: name for name, our in bound.items()}
    partner: dict[str, str] = {}  # ours -> recorded

    def allowed(name: str, our: str) -> bool:
        return bound.get(name, our) == our and taken.get(our, name) == name and fits(name, our)

    def find(name: str, tried: set[str]) -> bool:
        for our in ours:
            if our in tried or not allowed(name, our):
                continue
            tried.add(our)
            if our not in partner or find(partner[our], tried):
                partner[our] = name
                return True
        return False

    if not all(find(name, set()) for name in recorded):
        return None
    return {name: our for our, name in partner.items()}
