"""Which kinds somebody acts on in this cluster. Who writes an object of another one is warned, and `kruise why` asks.

A native kind counts as attended if somebody who runs here says so, as is done for the subject of every controller: one
that gets its controller needs no word in this module, and a new one without a controller is not passed over. A manager,
in this process or in one of its own, shows itself by its webhooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kruise.admission.configurations import GROUPS, VALIDATING_NAME
from kruise.api.native.extensions import VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.api.resource import Resource
from kruise.local.apicore import warnings
from kruise.local.apicore.admitting import AdmissionRequest, Operation
from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.proxying import Address
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import encode

GroupKind = tuple[str, str]

NEED_NOBODY: Final[frozenset[GroupKind]] = frozenset(
    {
        ("", "ConfigMap"),
        ("", "Event"),
        ("", "PodTemplate"),
        ("", "Secret"),
        ("", "ServiceAccount"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apps", "ControllerRevision"),
        ("coordination.k8s.io", "Lease"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
    }
)
"""Native kinds that are data which others read, or for which the API server itself does all there is to do. Every other
one needs somebody who acts on it."""


class _Lack(NamedTuple):
    """In words: what a kind lacks here, and what follows for an object of it."""

    what: str
    follows: str = "nothing else happens"


_NO_NETWORK = _Lack("the local cluster has no network", "nothing is routed to pods")
_NO_RBAC = _Lack("the local cluster makes no decisions by RBAC", "who is let in may do everything")
_MORE_THAN_A_CONTROLLER: Final[Mapping[GroupKind, _Lack]] = {
    ("", "Service"): _NO_NETWORK,
    ("discovery.k8s.io", "EndpointSlice"): _NO_NETWORK,
    **{
        ("rbac.authorization.k8s.io", kind): _NO_RBAC
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    },
}
"""What is missing for kinds that a controller alone would not bring to life."""

REPORT: Final = Address("kube-system", "local-cluster", "80")
"""Where the kinds that nobody acts on can be read, through the API server's proxy."""


class Attendance:
    def __init__(self, core: ApiCore) -> None:
        self._core = core
        self._attended: set[GroupKind] = set()
        core.admission.validating.append(self._warn)
        core.services.mount(REPORT, self._report)

    def begin(self, subjects: Iterable[Resource[Any]]) -> None:
        """Somebody acts on these kinds now."""
        self._attended.update((subject.group, subject.kind) for subject in subjects)

    def lacks(self, kind: KindDescription) -> str:
        """Why nothing will happen to objects of a kind, in words; empty where it is looked after, or needs nobody."""
        lack = self._lack(kind)
        return lack.what if lack is not None else ""

    def _lack(self, kind: KindDescription) -> _Lack | None:
        if kind.custom:
            is_lacking = kind.group in GROUPS and not self._has_manager()
            return _Lack(f"no manager is at work that acts on {kind.kind}s") if is_lacking else None
        name = (kind.group, kind.kind)
        if name in NEED_NOBODY or name in self._attended:
            return None
        return _MORE_THAN_A_CONTROLLER.get(name) or _Lack(f"the local cluster has no controller for {kind.kind}s")

    def _has_manager(self) -> bool:
        """Whether one has registered its webhooks. If it died since, writes are refused, and nobody needs a warning."""
        resource = VALIDATING_WEBHOOK_CONFIGURATIONS.group_resource
        found = self._core.storage.get(resource, ("", VALIDATING_NAME))
        return bool(found and found.get("webhooks"))

    async def _warn(self, request: AdmissionRequest) -> None:
        if request.operation is Operation.DELETE or request.subresource:
            return
        lack = self._lack(request.kind)
        if lack is not None:
            is_stored = "would be stored" if request.dry_run else "is stored"
            warnings.warn(f"{lack.what}: {request.name} {is_stored}, and {lack.follows}")

    async def _report(self, path: str, query: Mapping[str, str]) -> Response:
        found = {kind.group_resource: reason for kind in self._core.registry if (reason := self.lacks(kind))}
        return Response(200, encode(found), {"content-type": "application/json"})
