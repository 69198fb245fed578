"""What a forecast asks a kind beside its decisions.

The decisions themselves are the kind's own code, found by its controller. Here stands only what people ask about: how
many pods are wanted, what the limits promise, when a pod serves, which hooks hold it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kruise.api.apps.shared import Lifecycle
from kruise.api.meta import controller_of
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.inplace.keys import REVISION_LABEL
from kruise.machinery.intorpercent import IntOrPercent
from kruise.machinery.wording import full_name

if TYPE_CHECKING:
    from kruise.machinery.plan import Plan


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A limit as somebody wrote it, and the number of pods that it comes to."""

    path: str
    given: IntOrPercent
    pods: int
    is_given: bool = True
    """False: it is the default."""


def amount_of(path: str, given: IntOrPercent | None, pods: int) -> Amount | None:
    """A limit that has no default."""
    return None if given is None else Amount(path=path, given=given, pods=pods)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a workload promises while it is rolled out."""

    unavailable: Amount | None = None
    surge: Amount | None = None
    partition: Amount | None = None
    is_paused: bool = False
    is_on_delete: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is around an object when the forecast begins."""

    nodes: Sequence[Node] = ()
    pods: Sequence[Pod] = ()
    """Those that were read for the forecast, of whatever owner."""
    namespaces: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """The labels of those that were read."""


def is_controlled(subject: Any, pod: Pod) -> bool:
    owner = controller_of(pod)
    return owner is not None and bool(owner.uid == subject.metadata.uid)


def _nothing(subject: Any) -> None:
    return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForecastFacts:
    """Each takes the object as the controller reads it."""

    resource: Resource[Any]
    """With the struct of its objects, in the version that is stored."""
    wanted: Callable[[Any, Around], int]
    """How many pods there should be: by the spec, by the nodes that fit, or as many as are selected."""
    serves: Callable[[Pod, int, datetime], bool]
    """Whether a pod is available, by the kind's own rule; the number is minReadySeconds."""
    owns: Callable[[Any, Pod], bool] = is_controlled
    """Whether a pod is one of those that the forecast is about."""
    untouched: Callable[[Any, Around], str] = lambda subject, around: ""
    """What does not happen although somebody may expect it, in a sentence; empty: there is nothing of the kind."""
    contributed: Callable[[Any, Pod], str] | None = None
    """Which revision of the subject a pod of somebody else has; None: the label tells."""
    is_current: Callable[[Any, Pod], bool] | None = None
    """Whether a pod of somebody else has what the subject puts into pods now, whatever revision it names; None: the
    revision tells."""
    limits: Callable[[Any], Limits] = lambda subject: Limits()
    min_ready_seconds: Callable[[Any], int] = lambda subject: 0
    computed: tuple[str, ...] = ()
    """Annotations that admission computes of the rest: nobody changes them."""
    policy: Callable[[Any], str] = lambda subject: ""
    """The update policy as it is written: `ReCreate`, `InPlaceIfPossible`, `InPlaceOnly`."""
    in_place_policies: frozenset[str] = frozenset()
    """The policies under which pods may be changed in place."""
    lifecycle: Callable[[Any], Lifecycle | None] = _nothing
    update_revision: Callable[[Any], str] = lambda subject: ""
    """As the status has it; empty before the first look at the object."""
    history_limit: Callable[[Any], int | None] = _nothing
    revision_label: str = REVISION_LABEL
    """The label of pods that names the revision of its template."""
    children: tuple[Resource[Any], ...] = ()
    """Kinds of workloads that it makes, with the labels of its selector, and that make its pods: what they look at is
    read, too."""
    parts: Callable[[Plan], tuple[str, ...]] = lambda plan: ()
    """What its last plan gives to each of its parts, and why."""
    part: str = "Subset"
    """What a part is called."""
    claim_templates: Callable[[Any], tuple[Any, ...]] = lambda subject: ()
    claims_stay: Callable[[Any], tuple[str, str]] = lambda subject: ("", "")
    """Which claims a change of their templates does not reach, and what to do about it; empty: it reaches all."""

    def called(self, namespace: str, name: str) -> str:
        """What people call a pod: a subject in no namespace may have pods in all of them."""
        return name if self.resource.namespaced else full_name(namespace, name)

    def name_of(self, pod: Pod) -> str:
        return self.called(pod.metadata.namespace, pod.metadata.name)

    def revision_of(self, subject: Any, pod: Pod) -> str:
        """Which revision of the subject a pod has; empty: none."""
        if self.contributed is not None:
            return self.contributed(subject, pod)
        return pod.metadata.labels.get(self.revision_label, "")
