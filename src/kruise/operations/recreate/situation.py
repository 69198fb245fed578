"""What the manager sees of a request in one pass."""

from __future__ import annotations

from datetime import datetime

from kruise.api.apps.containerrecreaterequest import POD_LABEL, ContainerRecreateRequest
from kruise.api.native.pod import Pod
from kruise.machinery.codec import Struct


class Snapshot(Struct):
    request: ContainerRecreateRequest
    pod: Pod | None
    """The one that has the name now; it may be another."""
    now: datetime

    @property
    def living_pod(self) -> Pod | None:
        """The pod that the request is about, unless it is on its way out (CRR-23)."""
        pod = self.pod
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return None
        return pod if pod.metadata.uid == self.request.metadata.labels.get(POD_LABEL) else None
