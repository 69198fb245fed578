"""How a ContainerRecreateRequest is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable

from kruise.api.apps.containerrecreaterequest import POD_LABEL, REQUESTS, ContainerRecreateRequest
from kruise.api.apps.conversion.containerrecreaterequest import convert
from kruise.api.apps.definitions.containerrecreaterequest import DEFINITION
from kruise.api.meta import Key, key_of
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Conversion, Feature, Settings
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, own_key
from kruise.machinery.watched import Watched
from kruise.operations.recreate.admission import GATE, handlers
from kruise.operations.recreate.decide import conclude, decide
from kruise.operations.recreate.situation import Snapshot

NAME = "containerrecreaterequest-controller"
_BY_POD = "pod-uid"


def _pod_of(request: ContainerRecreateRequest) -> tuple[str, ...]:
    """Requests that are over have nothing to learn from their pod, so they are not found by it."""
    uid = request.metadata.labels.get(POD_LABEL, "")
    return (uid,) if uid and not request.is_over else ()


WATCHED = Watched(REQUESTS, indexes={_BY_POD: _pod_of})


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """Only pods with a request, and only what a request asks about (CRR-20)."""
    pod = new if new is not None else old
    if pod is None:
        return ()
    requests = stores.store(REQUESTS).by_index(_BY_POD, pod.metadata.uid)
    if not requests or (old is not None and new is not None and _facts(old) == _facts(new)):
        return ()
    return tuple(key_of(request) for request in requests)


def _facts(pod: Pod) -> tuple[object, ...]:
    return pod.metadata.uid, pod.metadata.deletion_timestamp is not None, pod.status.container_statuses


def snapshot(view: View, key: Key) -> Snapshot | None:
    request = view.store(REQUESTS).get(*key)
    if request is None:
        return None
    pod = view.store(PODS).get(key.namespace, request.spec.pod_name)
    return Snapshot(request=request, pod=pod, now=view.now)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not settings.gates.get(GATE, True):
        return ()
    return (
        ControllerSpec(
            name=NAME,
            subject=REQUESTS,
            sources=(Source(WATCHED, own_key), Source(PODS, _pod_keys)),
            snapshot=snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            workers=settings.workers_of("crr"),
        ),
    )


FEATURE = Feature(
    name="containerrecreaterequest",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=lambda settings: handlers(),
    conversions=(Conversion(convert.group, convert.kind, convert),),
)
