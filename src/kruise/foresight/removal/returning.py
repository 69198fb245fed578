"""Pods that are made again under their names: what brings them back to where they were. Pure.

They are taken to come as they were, so of all that admission does to new pods only this counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kruise.admission.chain import RETURNING
from kruise.api.meta import controller_of
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Feature, Settings
from kruise.foresight.admitting import Gatekeeper
from kruise.foresight.needs import Need, shaping_needs
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.codec import evolve
from kruise.model.world import RefusedWriteError, World

_STATEFUL = "StatefulSet"


def keeps_its_name(pod: Pod) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner.kind == _STATEFUL


def returning_needs(
    namespace: str, pods: Iterable[Pod], *, features: Sequence[Feature], settings: Settings
) -> tuple[Need, ...]:
    """What is to be read about pods that may go: nothing, where none of them keeps its name."""
    if not any(map(keeps_its_name, pods)):
        return ()
    return tuple(shaping_needs(namespace, features=_concerned(features, settings), settings=settings))


class Returning:
    """Asks the admission of those who bring pods back, with what they have in this world."""

    def __init__(self, world: World, *, features: Sequence[Feature], settings: Settings) -> None:
        self._world = world
        self._gatekeeper = Gatekeeper(_concerned(features, settings), settings)
        self._gatekeeper.enter(world)

    def placed(self, pod: Pod) -> Pod:
        """The pod with the place that is remembered of it."""
        if not keeps_its_name(pod):
            return pod
        body = {"apiVersion": PODS.api_version, "kind": PODS.kind, **codec.to_builtins(pod)}
        try:
            found = self._gatekeeper.new_object(plans.create(PODS, body, reason="it is made again"), self._world)
        except RefusedWriteError:
            return pod
        spec = codec.convert(found, Pod).spec
        return evolve(pod, spec=evolve(pod.spec, node_selector=spec.node_selector, affinity=spec.affinity))


def _concerned(features: Sequence[Feature], settings: Settings) -> list[Feature]:
    return [one for one in features if any(step in RETURNING for step, *_ in one.pod_mutations(settings))]
