"""SidecarSet in `v1alpha1`: with a namespace, and the version tag as a label of the object.

No controller reads this version; the structs are the source of its schema. `conversion.sidecarset` maps it to the
stored version.
"""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.sidecarset import SidecarSetBase, SidecarSetStatus
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About
from kruise.machinery.codec import Struct


class SidecarSetSpec(SidecarSetBase):
    """What is wanted."""

    namespace: Annotated[
        str, About("The only namespace whose pods get the sidecars. It counts before namespaceSelector.")
    ] = ""


class SidecarSet(Struct):
    """A SidecarSet puts containers into the pods that it selects, and updates them there in place."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[SidecarSetSpec, About("What is wanted.")] = SidecarSetSpec()
    status: Annotated[SidecarSetStatus, About("What was last seen. Written by the controller.")] = SidecarSetStatus()
