"""Parts of pods that say where they may run, as subsets of several kinds have them."""

from __future__ import annotations

from typing import Annotated

from kruise.api.schema import About, Int64
from kruise.machinery.codec import Struct


class NodeSelectorRequirement(Struct):
    """A requirement on one label or field of a node."""

    key: Annotated[str, About("The label or field that the requirement is about.", required=True)] = ""
    operator: Annotated[
        str, About("How it relates to the values: In, NotIn, Exists, DoesNotExist, Gt or Lt.", required=True)
    ] = ""
    values: Annotated[
        tuple[str, ...],
        About(
            "The values of In and NotIn, at least one; of Gt and Lt one number. Empty for Exists and DoesNotExist.",
            is_atomic=True,
        ),
    ] = ()


class Toleration(Struct):
    """A taint that pods put up with."""

    key: Annotated[str, About("The taint. Empty with operator Exists: every taint.")] = ""
    operator: Annotated[str, About("Equal or Exists. Equal if absent.")] = ""
    value: Annotated[str, About("The value of the taint, for Equal.")] = ""
    effect: Annotated[str, About("NoSchedule, PreferNoSchedule or NoExecute. Every effect if absent.")] = ""
    toleration_seconds: Annotated[
        Int64 | None, About("With NoExecute: how many seconds a pod stays. For ever if absent.")
    ] = None
