"""What tools see of a rollout that know none of our kinds: two conditions, as kstatus reads them (Flux waits with it).

`Reconciling` says that the object is not yet, or not everywhere, what its spec says; `Stalled` that it will not get
there by itself. An object that stands as it should has neither.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from kruise.faces.progress import Phase, Progress, is_rolling
from kruise.machinery.documents import Json
from kruise.machinery.wording import plural

RECONCILING, STALLED = "Reconciling", "Stalled"


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """A condition that is true."""

    kind: str
    reason: str
    message: str


def told(progress: Callable[[Json], Progress], document: Json) -> Told | None:
    """What is told of an object, by its metadata, the rolling part of its spec and its status; None: nothing, for it is
    done and no pod keeps an older template."""
    seen = progress(document)
    older = f"{seen.total - seen.updated} of {plural(seen.total, 'pod')} keep an older template"
    match seen.phase:
        case Phase.FAILED if not is_rolling(document) and seen.updated < seen.total:
            return Told(RECONCILING, "UpdatedByHand", f"{older} until somebody deletes them")
        case Phase.FAILED:
            return Told(STALLED, "RolloutFailed", seen.message)
        case Phase.DONE if seen.updated < seen.wanted:
            kept = f"{seen.wanted - seen.updated} of {plural(seen.wanted, 'pod')} keep what they had"
            return Told(RECONCILING, "KeptBack", kept)
        case Phase.DONE:
            return None
        case _:
            return Told(RECONCILING, "Paused" if seen.is_paused else "RollingOut", seen.message)
