"""What a kubelet has to say about a pod."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """An event to be recorded."""

    kind: str
    reason: str
    message: str
    field_path: str = ""
