"""Who decides in a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kruise.api.resource import Resource
from kruise.feature import Feature, Settings
from kruise.foresight.subjects import facts_of
from kruise.kinds import features
from kruise.local.workloads.controllers import CHILDREN


def deciders(subject: Resource[Any], settings: Settings) -> Sequence[Feature]:
    """Our own kinds; about children of Kubernetes' kinds those who do so in the local cluster. They come first: what is
    read is read with all that they look at. In plans of others they would see too few of the pods of a workload."""
    children = facts_of(subject).children
    is_native = any(spec.subject in children for spec in CHILDREN.controllers(settings))
    return (CHILDREN, *features()) if is_native else features()
