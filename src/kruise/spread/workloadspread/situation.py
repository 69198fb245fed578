"""What a pass over a WorkloadSpread sees."""

from __future__ import annotations

from datetime import datetime

from kruise.api.apps.workloadspread import WorkloadSpread
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery.codec import Struct, field
from kruise.spread.workloadspread.versions import IGNORED


class Seen(Struct):
    """The workload, as far as it matters."""

    exists: bool = False
    replicas: int | None = None
    """None: nobody can tell."""
    latest_version: str = IGNORED
    """Of its newest pods."""
    problem: str = ""
    """Why it could not be looked at, in words."""


class Snapshot(Struct, kw_only=True):
    spread: WorkloadSpread
    target: Seen
    pods: tuple[Pod, ...] = ()
    """Of the workload, finished and terminating ones too; where there is a filter, those that it selects."""
    terminating: tuple[str, ...] = ()
    """Names of pods whose deletion was answered, though they do not say so yet."""
    nodes: dict[str, Node] = field(default_factory=dict)
    """Those of pods that are in no subset yet."""
    rivals: dict[str, str] = field(default_factory=dict)
    """Other WorkloadSpreads by names of pods that are both theirs and ours, and bear their mark. They stay there."""
    versioned: tuple[str, ...] = ()
    now: datetime
