"""The ordered chain of pod checks behind `/validate-pod` (MGR-44, PW section 4).

A position of the chain says what it can be asked about, and which annotations mark the pods that concern it. That is
fixed here, for all positions, whether or not anybody has taken them: the entries of the webhook configurations are made
of it (`kruise.admission.inventory`), so nothing has to be registered anew when the first pod is marked. Kinds register
their check by the name of the position; a check that nobody registered, because its gate is off, is left out.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Iterator

from kruise.admission.decisions import Allow, Deny, HandlerView, Invalid, Needs, NeedsReads, Verdict, with_notes
from kruise.admission.registry import ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.meta import PartialObject
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.plan import Target
from kruise.machinery.watched import Kinds

PATH = "/validate-pod"


class PodOperation(enum.Enum):
    """What is done to a pod: the operation and the subresource of the request."""

    CREATE = ("CREATE", "")
    UPDATE = ("UPDATE", "")
    DELETE = ("DELETE", "")
    EVICTION = ("CREATE", "eviction")
    EPHEMERAL_CONTAINERS = ("UPDATE", "ephemeralcontainers")
    RESIZE = ("UPDATE", "resize")

    @property
    def verb(self) -> str:
        return self.value[0]

    @property
    def subresource(self) -> str:
        return self.value[1]

    @property
    def shows_pod(self) -> bool:
        """Whether the request carries the pod. An eviction only names it."""
        return self is not PodOperation.EVICTION


_OPERATIONS = {operation.value: operation for operation in PodOperation}


@dataclasses.dataclass(frozen=True, slots=True)
class Position:
    """What a check can be asked about."""

    operations: frozenset[PodOperation]
    marks: tuple[str, ...]
    """Annotations: a pod that has none of them does not concern the check. None: every pod does."""


class PodValidationStep(enum.Enum):
    """The positions, in order."""

    WORKLOAD_SPREAD = Position(
        frozenset({PodOperation.DELETE, PodOperation.EVICTION}),
        marks=("apps.kruise.io/matched-workloadspread",),  # PW-33
    )
    UNAVAILABLE_BUDGET = Position(
        frozenset({PodOperation.UPDATE, PodOperation.DELETE, PodOperation.EVICTION}),
        marks=("pub.kruise.io/related-pub", "kruise.io/related-pub"),  # PW-23
    )


@dataclasses.dataclass(frozen=True, slots=True)
class PodQuestion:
    """What a check is asked."""

    request: AdmissionRequest
    view: HandlerView
    operation: PodOperation
    pod: Pod
    """The pod as it is, before an update; read live for an eviction (PW-35, PW-37); for a creation, the new one."""

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace or self.request.namespace or ""


JudgePod = Callable[[PodQuestion], "Verdict | None"]
"""None and Allow both mean that nothing speaks against it."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Registered:
    judge: JudgePod
    needs: Kinds
    operations: Collection[PodOperation]


class PodValidationChain:
    def __init__(self) -> None:
        self._steps: dict[PodValidationStep, _Registered] = {}

    def register(
        self,
        step: PodValidationStep,
        judge: JudgePod,
        *,
        needs: Kinds = (),
        operations: Collection[PodOperation] | None = None,
    ) -> None:
        """`operations`: those that the check is asked about, where its gates leave only some of the position's."""
        if step in self._steps:
            raise ValueError(f"pod validation step {step.name} is registered twice")
        possible = step.value.operations
        if operations is not None and (beyond := set(operations) - possible):
            names = ", ".join(sorted(operation.name for operation in beyond))
            raise ValueError(f"pod validation step {step.name} is never asked about {names}: no entry covers it")
        self._steps[step] = _Registered(judge, needs, possible if operations is None else operations)

    @property
    def steps(self) -> tuple[PodValidationStep, ...]:
        """The active steps in the order in which they are asked."""
        return tuple(step for step in PodValidationStep if step in self._steps)

    def handler(self) -> ValidatingHandler:
        needs = dict.fromkeys(kind for step in self.steps for kind in self._steps[step].needs)
        return ValidatingHandler(PATH, self.decide, tuple(needs))

    def decide(self, request: AdmissionRequest, view: HandlerView) -> Verdict:
        operation = _OPERATIONS.get((request.operation, request.sub_resource or ""))
        asked = [step for step in self.steps if operation in self._steps[step].operations]
        if operation is None or not asked:
            return Allow()
        if operation is PodOperation.DELETE and not request.has_old_object:
            return Allow()  # PW-31
        pod = _pod(request, view, operation)
        if not isinstance(pod, Pod):
            return pod
        question = PodQuestion(request, view, operation, pod)
        warnings: tuple[str, ...] = ()
        audit: dict[str, str] = {}
        marks = set(_annotations(question))
        for step in asked:
            if step.value.marks and marks.isdisjoint(step.value.marks):
                continue
            answer = self._steps[step].judge(question)
            if answer is None:
                continue
            if isinstance(answer, Needs):
                return answer
            warnings += answer.warnings
            audit.update(answer.audit_annotations)
            if isinstance(answer, Deny | Invalid):
                return with_notes(answer, warnings, audit)
        return with_notes(Allow(), warnings, audit)


def _pod(request: AdmissionRequest, view: HandlerView, operation: PodOperation) -> Pod | NeedsReads | Deny:
    if operation is PodOperation.CREATE:
        return request.decoded(Pod)
    if operation.shows_pod:
        return request.old_decoded(Pod)
    target = Target(PODS, request.namespace or "", request.name or "")
    if not view.was_read(target):
        return NeedsReads(targets=(target,))
    found: Pod | None = view.live(target)
    if found is None:  # PW-34; in the words of the API server
        return Deny(message=f'pods "{target.name}" not found', code=404, reason="NotFound")
    return found


def _annotations(question: PodQuestion) -> Iterator[str]:
    """Of the pod before and after, as in the match conditions: to take a mark away is an update of a marked pod."""
    yield from question.pod.metadata.annotations
    if question.operation.shows_pod and question.request.has_object:
        yield from question.request.decoded(PartialObject).metadata.annotations
