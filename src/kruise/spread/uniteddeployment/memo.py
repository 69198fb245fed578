"""What the plan of a UnitedDeployment remembers for its status and events."""

from __future__ import annotations

from kruise.api.apps.uniteddeployment import SubsetStatus
from kruise.machinery.codec import Struct, field
from kruise.machinery.memo import RolloutMemo


class Part(Struct, kw_only=True):
    """A subset, as the plan has it."""

    name: str
    pods: int
    """That it is to have."""
    why: str
    partition: int = 0
    child: str = ""
    """Name of its workload, that is there or is made."""


class Memo(RolloutMemo, kw_only=True):
    word: str = ""
    """The kind of the children, as events name it."""
    parts: tuple[Part, ...] = ()
    statuses: tuple[SubsetStatus, ...] = ()
    """Of the subsets, as they are to be written."""
    replicas: int = 0
    ready: int = 0
    updated: int = 0
    updated_ready: int = 0
    reserved: int = 0
    current_revision: str = ""
    collision_count: int | None = None
    label_selector: str = ""
    refused: str = ""
    """Why nothing was decided about the children."""
    misshapen: dict[str, str] = field(default_factory=dict)
    """Why the workload of a subset cannot be made, by subset."""
    subset_of: dict[str, str] = field(default_factory=dict)
    """Subsets by the names of their workloads."""
