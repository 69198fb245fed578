"""NodeImages as the daemon reads them: one that nobody has written a status of is told from one of zeros."""

from __future__ import annotations

from kruise.api.apps.images import NODE_IMAGES as WHOLE
from kruise.api.apps.images import NodeImageSpec, NodeImageStatus
from kruise.api.meta import ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct


class NodeImage(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeImageSpec = NodeImageSpec()
    status: NodeImageStatus | None = None


NODE_IMAGES = Resource(WHOLE.group, WHOLE.version, WHOLE.plural, WHOLE.kind, WHOLE.namespaced, NodeImage)
