"""Advanced StatefulSet in `v1alpha1`: without reserved ordinals, hooks, limits of scaling and the fate of claims.

No controller reads this version; the structs are the source of its schema. `conversion.statefulset` maps it to the
stored version.
"""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.statefulset import StatefulSetBase, StatefulSetStatus
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About
from kruise.machinery.codec import Struct


class StatefulSetSpec(StatefulSetBase):
    """What is wanted."""


class StatefulSet(Struct):
    """An advanced StatefulSet keeps pods with a fixed name and claims of their own, and updates them, in place where
    possible."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[StatefulSetSpec, About("What is wanted.")] = StatefulSetSpec()
    status: Annotated[StatefulSetStatus, About("What was last seen. Written by the controller.")] = StatefulSetStatus()
