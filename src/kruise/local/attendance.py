"""Which kinds somebody acts on in this cluster. Who writes an object of another one is warned, and `kruise why` asks.

A native kind counts as attended if it is the subject of a controller that runs here: one that gets its controller needs
no word in this module. A manager, in this process or in one of its own, shows itself by its webhooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kruise.admission.configurations import GROUPS, VALIDATING_NAME
from kruise.api.native.extensions import VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.local.apicore import warnings
from kruise.local.apicore.admitting import AdmissionRequest, Operation
from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.proxying import Address
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import encode
from kruise.machinery.spec import ControllerSpec

GroupKind = tuple[str, str]

NEED_A_CONTROLLER: Final[frozenset[GroupKind]] = frozenset(
    {
        ("", "LimitRange"),
        ("", "PersistentVolumeClaim"),
        ("", "ResourceQuota"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("policy", "PodDisruptionBudget"),
    }
)
"""Native kinds that mean nothing to anybody but a controller. Others are data that clients read, or the API server does
itself what there is to do, as it gives a Service its address."""

REPORT: Final = Address("kube-system", "local-cluster", "80")
"""Where the kinds that nobody acts on can be read, through the API server's proxy."""


class Attendance:
    def __init__(self, core: ApiCore) -> None:
        self._core = core
        self._attended: set[GroupKind] = set()
        core.admission.validating.append(self._warn)
        core.services.mount(REPORT, self._report)

    def begin(self, specs: Iterable[ControllerSpec[Any]]) -> None:
        """These controllers run now."""
        self._attended.update((spec.subject.group, spec.subject.kind) for spec in specs)

    def lacks(self, kind: KindDescription) -> str:
        """Why nothing will happen to objects of a kind, in words; empty where it is looked after, or needs nobody."""
        if kind.custom:
            is_lacking = kind.group in GROUPS and not self._has_manager()
            return f"no manager is at work that acts on {kind.kind}s" if is_lacking else ""
        name = (kind.group, kind.kind)
        is_lacking = name in NEED_A_CONTROLLER and name not in self._attended
        return f"the local cluster has no controller for {kind.kind}s" if is_lacking else ""

    def _has_manager(self) -> bool:
        """Whether one has registered its webhooks. If it died since, writes are refused, and nobody needs a warning."""
        resource = VALIDATING_WEBHOOK_CONFIGURATIONS.group_resource
        found = self._core.storage.get(resource, ("", VALIDATING_NAME))
        return bool(found and found.get("webhooks"))

    async def _warn(self, request: AdmissionRequest) -> None:
        if request.operation is Operation.DELETE or request.subresource:
            return
        reason = self.lacks(request.kind)
        if reason:
            warnings.warn(f"{reason}: {request.name} is stored, and nothing else happens")

    async def _report(self, path: str, query: Mapping[str, str]) -> Response:
        found = {kind.group_resource: reason for kind in self._core.registry if (reason := self.lacks(kind))}
        return Response(200, encode(found), {"content-type": "application/json"})
