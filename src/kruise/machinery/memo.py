"""What a plan remembers beside its actions. Pure.

`decide` works out more than writes: counts, errors, how each pod moves. `conclude` and whoever explains a plan must not
work it out a second time. Each kind has a struct of its own for it; what every rollout can tell is in `RolloutMemo`,
so that readers of plans need to know no kind.
"""

from __future__ import annotations

from kruise.machinery.codec import Struct


class RolloutMemo(Struct):
    """What the plan of any rollout tells."""

    update_revision: str = ""
    """The revision of the present template; it may be newer than what the status names."""
    update_error: str = ""
    """Why updating cannot go on, whatever the writes do."""
