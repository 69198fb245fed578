"""PodUnavailableBudget in `v1alpha1`: what later became fields stands in annotations."""

from __future__ import annotations

from typing import Annotated

from kruise.api.meta import ObjectMeta
from kruise.api.policy.podunavailablebudget import BudgetSpecBase, PodUnavailableBudgetStatus
from kruise.api.schema import About
from kruise.machinery.codec import Struct


class PodUnavailableBudgetSpec(BudgetSpecBase):
    """What is promised."""


class PodUnavailableBudget(Struct):
    """A PodUnavailableBudget limits how many pods of an application are made unavailable at a time: by deletion, by
    eviction, or by an update in place."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PodUnavailableBudgetSpec, About("What is promised.")] = PodUnavailableBudgetSpec()
    status: Annotated[
        PodUnavailableBudgetStatus,
        About("What was last seen. Written by the controller, and by whoever takes from the budget."),
    ] = PodUnavailableBudgetStatus()
