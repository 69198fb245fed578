"""How PersistentPodStates are watched, and what they bring to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.admission.chain import PodStep
from kruise.api.apps.definitions.persistentpodstate import DEFINITION
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.apps.shared import GROUP
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED
from kruise.api.meta import Key, Object, key_of
from kruise.api.native.apps import STATEFUL_SETS
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.feature import Feature, PodMutation, Settings
from kruise.machinery.mapping import NODE, NODE_INDEX
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, Stores, View, own_key
from kruise.machinery.watched import Watched
from kruise.spread.persistentpodstate import keys
from kruise.spread.persistentpodstate.admission import CONVERSION, handlers, inject
from kruise.spread.persistentpodstate.custom import asking
from kruise.spread.persistentpodstate.decide import Snapshot, asks, conclude, decide, words_of_waiting
from kruise.spread.persistentpodstate.situation import Looked
from kruise.spread.persistentpodstate.targets import (
    CUSTOM_OWNER,
    CUSTOM_OWNER_INDEX,
    TARGET,
    WATCHED_STATES,
    Workload,
    is_supported,
    owner_of,
    target_of,
)
from kruise.workloads.shared.reading import tasks_of

NAME = "persistentpodstate-controller"


def _of_pod(pod: Pod, stores: Stores) -> Iterable[Key]:
    """The object that a pod's annotation names, and the one that remembers its owner's pods: another one may have taken
    over since. Of a workload that nobody here watches also the one of its name: it may be asked for."""
    injected = pod.metadata.annotations.get(keys.INJECTED)
    found = [Key(pod.metadata.namespace, injected)] if injected else []
    owner = owner_of(pod)
    if owner is not None:
        own = [key_of(one) for one in stores.store(PERSISTENT_POD_STATES).by_index(TARGET, owner.value)]
        found += own
        if not own and owner.is_custom:
            found.append(Key(owner.namespace, owner.name))
    return dict.fromkeys(found)


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """PPS-16: a pod that becomes ready, begins to go or is gone; and one that its place does not take, for `why`."""
    if new is None:
        return _of_pod(old, stores) if old is not None else ()
    is_going = new.metadata.deletion_timestamp is not None
    was_going = old is not None and old.metadata.deletion_timestamp is not None
    was_ready = old is not None and is_ready(old)
    has_moved_on = words_of_waiting(new) != (words_of_waiting(old) if old is not None else "")
    if (is_going and not was_going) or (is_ready(new) and not was_ready) or has_moved_on:
        return _of_pod(new, stores)
    return ()


def _node_keys(old: Node | None, new: Node | None, stores: Stores) -> Iterable[Key]:
    """A node that comes late: only those who remember pods on it are looked at."""
    if old is not None or new is None or not len(stores.store(PERSISTENT_POD_STATES)):
        return ()
    pods = stores.store(PODS).by_index(NODE, new.metadata.name)
    return dict.fromkeys(key for pod in pods for key in _of_pod(pod, stores))


class _WorkloadKeys:
    """What concerns a workload: the object of its name, where annotations ask for it, and the one that remembers it."""

    def __init__(self, group: str) -> None:
        self._group = group

    def __call__(self, old: Any, new: Any, stores: Stores) -> Iterable[Key]:
        changed = new if new is not None else old
        if changed is None:
            return
        if _asked(old) != _asked(new):
            yield key_of(changed)
        if old is None or new is None or _meaning(old) != _meaning(new):
            metadata = changed.metadata
            workload = Workload(metadata.namespace, self._group, "StatefulSet", metadata.name)
            store = stores.store(PERSISTENT_POD_STATES)
            yield from map(key_of, store.by_index(TARGET, workload.value))


def _asked(workload: Object | None) -> tuple[str, str]:
    if workload is None:
        return "", ""
    annotations = workload.metadata.annotations
    return asks(annotations), annotations.get(keys.AUTO, "")


def _meaning(workload: Any) -> tuple[Any, ...]:
    return (
        workload.metadata.uid,
        workload.metadata.deletion_timestamp is not None,
        workload.spec.replicas,
        getattr(workload.spec, "ordinals", None),
        getattr(workload.spec, "reserve_ordinals", ()),
    )


def snapshot(view: View, key: Key) -> Snapshot | None:
    state = view.store(PERSISTENT_POD_STATES).get(*key)
    native, advanced = view.store(STATEFUL_SETS).get(*key), view.store(ADVANCED).get(*key)
    # Those who look from outside cannot ask.
    looked = view.outside if isinstance(view.outside, Looked) else None
    custom = looked.named if looked is not None else None
    if state is None and native is None and advanced is None and custom is None:
        return None
    target = target_of(state) if state is not None else None
    is_custom = target is not None and not is_supported(target.group, target.kind)
    natives = (
        view.store(STATEFUL_SETS).get(target.namespace, target.name)
        if target is not None and _is(target, "apps")
        else None
    )
    advanceds = (
        view.store(ADVANCED).get(target.namespace, target.name) if target is not None and _is(target, GROUP) else None
    )
    workload = natives or advanceds or (looked.target if looked is not None else None)
    pods = _pods(view, target, workload.metadata.uid if workload is not None else "") if target is not None else ()
    nodes = view.store(NODES)
    found = (nodes.get("", name) for name in dict.fromkeys(pod.spec.node_name for pod in pods) if name)
    return Snapshot(
        namespace=key.namespace,
        name=key.name,
        state=state,
        native=native,
        advanced=advanced,
        native_target=natives,
        advanced_target=advanceds,
        custom=custom,
        custom_target=looked.target if looked is not None else None,
        is_known=not is_custom or (looked is not None and not looked.problem),
        problem=looked.problem if is_custom and looked is not None else "",
        pods=pods,
        nodes=tuple(node for node in found if node is not None),
    )


def _is(target: Workload, group: str) -> bool:
    return (target.group, target.kind) == (group, "StatefulSet")


def _pods(view: View, target: Workload, uid: str) -> tuple[Pod, ...]:
    store = view.store(PODS)
    if uid:
        return store.by_index(OWNER, uid)
    # Whoever cannot ask for the workload goes by its name.
    return store.by_index(CUSTOM_OWNER, target.value)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    sources: tuple[Source[Any], ...] = (
        Source(WATCHED_STATES, own_key),
        Source(Watched(PODS, indexes={**OWNER_INDEX, **NODE_INDEX, **CUSTOM_OWNER_INDEX}), _pod_keys),
        Source(STATEFUL_SETS, _WorkloadKeys("apps")),
        Source(ADVANCED, _WorkloadKeys(GROUP)),
        Source(NODES, _node_keys),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=PERSISTENT_POD_STATES,
            sources=sources,
            snapshot=snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            workers=tasks_of(settings, "persistentpodstate"),
            outside=asking(settings.own_namespace),
        ),
    )


FEATURE = Feature(
    name="persistentpodstate",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=handlers,
    pod_mutations=lambda settings: (PodMutation(PodStep.PERSISTENT_POD_STATE, inject, (WATCHED_STATES,)),),
    conversions=(CONVERSION,),
)
