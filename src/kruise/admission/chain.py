"""The ordered chain of pod mutations behind `/mutate-pod` (MGR-43, PW section 3).

The order is fixed here and observable (PW-10): each step works on the result of the one before. Kinds register their
step by name; a step that nobody registered, because its gate is off, is left out.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Invalid, Mutation, Needs, with_notes
from kruise.admission.registry import MutatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.machinery.watched import Kinds

PATH = "/mutate-pod"


class PodStep(enum.IntEnum):
    """The positions, in order."""

    READINESS_GATE = 1
    WORKLOAD_SPREAD = 2
    SIDECAR_SET = 3
    LAUNCH_PRIORITY = 4
    UNAVAILABLE_BUDGET = 5
    PERSISTENT_POD_STATE = 6
    LIVENESS_PROBE = 7
    PROBE_MARKER = 8
    SIDECAR_TERMINATOR = 9
    """It only warns."""


RETURNING = frozenset((PodStep.PERSISTENT_POD_STATE,))
"""They bring a pod that is made again under its name back to where it was, whatever it got when it was made first."""


@dataclasses.dataclass(frozen=True, slots=True)
class StepContext:
    """What a step may see beside the pod."""

    request: AdmissionRequest
    view: HandlerView
    namespace: str
    """The pod's namespace; the request's where the pod itself has none (PW-8)."""


Mutate = Callable[[dict[str, Any], StepContext], "Mutation | None"]
"""Gets the pod as the steps before left it; it must not change it but return `Change` with a new one. None and Allow
both mean unchanged."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Registered:
    mutate: Mutate
    needs: Kinds


class PodChain:
    def __init__(self) -> None:
        self._steps: dict[PodStep, _Registered] = {}

    def register(self, step: PodStep, mutate: Mutate, *, needs: Kinds = ()) -> None:
        if step in self._steps:
            raise ValueError(f"pod step {step.name} is registered twice")
        self._steps[step] = _Registered(mutate, needs)

    @property
    def steps(self) -> tuple[PodStep, ...]:
        """The active steps in the order in which they run."""
        return tuple(sorted(self._steps))

    def handler(self) -> MutatingHandler:
        needs = dict.fromkeys(kind for step in self.steps for kind in self._steps[step].needs)
        return MutatingHandler(PATH, self.decide, tuple(needs))

    def decide(self, request: AdmissionRequest, view: HandlerView) -> Mutation:
        pod = request.body()
        context = StepContext(request, view, _namespace(pod, request))
        warnings: tuple[str, ...] = ()
        audit: dict[str, str] = {}
        changed = False
        for step in self.steps:
            answer = self._steps[step].mutate(pod, context)
            if answer is None:
                continue
            if isinstance(answer, Needs):
                return answer
            warnings += answer.warnings
            audit.update(answer.audit_annotations)
            if isinstance(answer, Deny | Invalid):
                return with_notes(answer, warnings, audit)
            if isinstance(answer, Change):
                pod = dict(answer.object)
                changed = True
        return with_notes(Change(object=pod) if changed else Allow(), warnings, audit)


def _namespace(pod: dict[str, Any], request: AdmissionRequest) -> str:
    metadata = pod.get("metadata")
    own = metadata.get("namespace") if isinstance(metadata, dict) else None
    return own or request.namespace or ""
