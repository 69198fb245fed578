"""Budgets, pods and requests for pure tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kruise.admission.decisions import HandlerView
from kruise.admission.review import AdmissionRequest, GroupVersionKind, UserInfo
from kruise.api.meta import PartialObject
from kruise.api.native.pod import Pod
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.machinery import codec
from kruise.machinery.codec import Raw
from kruise.machinery.store import Store
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.indexes import WATCHED_BUDGETS

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
GATES: Mapping[str, bool] = {keys.DELETE_GATE: True, keys.UPDATE_GATE: True}
Json = dict[str, Any]


def budget(
    name: str = "pub",
    *,
    spec: Mapping[str, Any] | None = None,
    allowed: int = 1,
    current: int = 3,
    desired: int = 2,
    total: int = 3,
    annotations: Mapping[str, str] | None = None,
    version: str = "7",
    namespace: str = "demo",
    **status: Any,
) -> PodUnavailableBudget:
    document = {
        "apiVersion": POD_UNAVAILABLE_BUDGETS.api_version,
        "kind": "PodUnavailableBudget",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "generation": 1,
            "resourceVersion": version,
            "annotations": dict(annotations or {}),
        },
        "spec": dict(spec or {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}),
        "status": {
            "unavailableAllowed": allowed,
            "currentAvailable": current,
            "desiredAvailable": desired,
            "totalReplicas": total,
            "observedGeneration": 1,
            **status,
        },
    }
    return codec.convert(document, PodUnavailableBudget)


def pod_document(
    name: str = "web-a",
    *,
    is_ready: bool = True,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    containers: Sequence[Mapping[str, Any]] | None = None,
    statuses: Sequence[Mapping[str, Any]] | None = None,
    **metadata: Any,
) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": f"uid-of-{name}",
            "resourceVersion": "5",
            "labels": {"app": "web", **(labels or {})},
            "annotations": {keys.RELATED: "pub", **(annotations or {})},
            **metadata,
        },
        "spec": {"containers": list(containers or [{"name": "main", "image": "nginx:1.25"}])},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
            "containerStatuses": list(statuses or ()),
        },
    }


def pod(name: str = "web-a", **options: Any) -> Pod:
    return codec.convert(pod_document(name, **options), Pod)


def view(*budgets: PodUnavailableBudget, gates: Mapping[str, bool] = GATES, **more: Any) -> HandlerView:
    store: Store[Any] = Store(WATCHED_BUDGETS)
    store.replace(budgets, 100)
    return HandlerView(now=NOW, seed=1, gates=gates, stores=lambda resource: store, **more)


def request(
    operation: str,
    new: Mapping[str, Any] | None = None,
    old: Mapping[str, Any] | None = None,
    *,
    version: str = "v1beta1",
    subresource: str = "",
    user: str = "jane",
) -> AdmissionRequest:
    shown = new or old or {}
    about = codec.convert(shown, PartialObject)
    return AdmissionRequest(
        uid="1",
        kind=GroupVersionKind(group="policy.kruise.io", version=version, kind="PodUnavailableBudget"),
        sub_resource=subresource,
        name=about.metadata.name,
        namespace="demo",
        operation=operation,
        user_info=UserInfo(username=user),
        object=Raw(codec.encode(new)) if new is not None else Raw(),
        old_object=Raw(codec.encode(old)) if old is not None else Raw(),
    )
