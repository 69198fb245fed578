"""CloneSet in `v1alpha1`: the flat update strategy, and reuse of claims that is switched off instead of on.

No controller reads this version; the structs are the source of its schema. `conversion.cloneset` maps it to the stored
version.
"""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.cloneset import CloneSetBase, CloneSetRollout, CloneSetStatus
from kruise.api.apps.shared import IntOrPercent
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About
from kruise.machinery.codec import Struct, field


class CloneSetScaleStrategy(Struct):
    """How pods are added and removed."""

    pods_to_delete: Annotated[
        tuple[str, ...],
        About(
            "Names of pods to delete. If replicas is lowered at the same time, these pods go first; otherwise new pods "
            "take their place. A name can be added only while such a pod exists. Names of pods that are gone are "
            "removed from the list."
        ),
    ] = ()
    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "How many pods may be unavailable while pods are added: a number, or a percentage of replicas, rounded up. "
            "No limit if absent."
        ),
    ] = None
    disable_pvc_reuse: Annotated[
        bool,
        About(
            "Whether claims are deleted whose pod was removed from outside. False if absent: a new pod takes the name "
            "and the claims."
        ),
    ] = field(default=False, name="disablePVCReuse")


class CloneSetUpdateStrategy(CloneSetRollout):
    """How pods go over to a new template."""

    type: Annotated[
        str,
        About(
            "How a pod is updated. ReCreate: it is deleted and a new one is made. InPlaceIfPossible: its containers "
            "are changed where that suffices, else it is recreated. InPlaceOnly: it is never recreated, and a change "
            "that would need it is refused. OnDelete: only pods that are made anew, after somebody has deleted their "
            "predecessors, get the new template. ReCreate if absent."
        ),
    ] = ""


class CloneSetSpec(CloneSetBase):
    """What is wanted."""

    scale_strategy: Annotated[CloneSetScaleStrategy, About("How pods are added and removed.")] = CloneSetScaleStrategy()
    update_strategy: Annotated[CloneSetUpdateStrategy, About("How pods go over to a new template.")] = (
        CloneSetUpdateStrategy()
    )


class CloneSet(Struct):
    """A CloneSet keeps a number of interchangeable pods, and updates them, in place where possible."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[CloneSetSpec, About("What is wanted.")] = CloneSetSpec()
    status: Annotated[CloneSetStatus, About("What was last seen. Written by the controller.")] = CloneSetStatus()
