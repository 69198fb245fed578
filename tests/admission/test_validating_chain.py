"""The ordered checks behind `/validate-pod`: who is asked about what, in which order, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.admission.decisions import Allow, Deny, HandlerView, NeedsReads, NeedsWrites, Verdict
from kruise.admission.inventory import VALIDATING, pod_checks
from kruise.admission.registry import MutatingHandler, Registry
from kruise.admission.review import UndecodableError
from kruise.admission.validating_chain import (
    PATH,
    PodOperation,
    PodQuestion,
    PodValidationChain,
    PodValidationStep,
    Position,
)
from kruise.api.meta import ObjectMeta
from kruise.api.native.config import CONFIG_MAPS, SECRETS
from kruise.api.native.pod import PODS, Pod
from kruise.local.webhooks.conditions import compiled
from kruise.machinery import plan as plans
from kruise.machinery.plan import Target
from kruise.machinery.watched import Watched
from tests.admission.helpers import request_of

SPREAD, BUDGET = PodValidationStep.WORKLOAD_SPREAD, PodValidationStep.UNAVAILABLE_BUDGET
MARKS = {step: step.value.marks[0] for step in PodValidationStep}
VIEW = HandlerView(now=datetime(2030, 1, 1, tzinfo=UTC), seed=1)
TARGET = Target(PODS, "shop", "basket")
Judge = Callable[[PodQuestion], Verdict | None]


def pod(*marks: str) -> dict[str, Any]:
    annotations = dict.fromkeys(marks, "x")
    return {"kind": "Pod", "metadata": {"name": "basket", "namespace": "shop", "annotations": annotations}}


MARKED = pod(*MARKS.values())


def asked(operation: PodOperation, old: Any = None, new: Any = None) -> Any:
    """The request as the API server makes it."""
    has_old = operation in (PodOperation.DELETE, PodOperation.UPDATE) or operation.subresource in ("resize",)
    has_old = has_old or operation is PodOperation.EPHEMERAL_CONTAINERS
    return request_of(
        {"kind": "Eviction"} if operation is PodOperation.EVICTION else None if operation.verb == "DELETE" else new,
        old=old if has_old else None,
        operation=operation.verb,
        subresource=operation.subresource,
        kind="Pod",
        resource="pods",
    )


def with_pod_read(document: dict[str, Any] | None) -> HandlerView:
    found = None
    if document is not None:
        found = Pod(metadata=ObjectMeta(name="basket", annotations=document["metadata"]["annotations"]))
    return HandlerView(now=VIEW.now, seed=1, reads={TARGET: found})


def view_for(operation: PodOperation, document: dict[str, Any]) -> HandlerView:
    return VIEW if operation.shows_pod else with_pod_read(document)


class Asked:
    """A chain whose checks note that they were asked."""

    def __init__(self, **answers: Verdict) -> None:
        self.calls: list[str] = []
        self.questions: list[PodQuestion] = []
        self.chain = PodValidationChain()
        for step in (BUDGET, SPREAD):  # the order of registration does not matter
            self.chain.register(step, self._judge(step.name, answers.get(step.name)))

    def _judge(self, name: str, answer: Verdict | None) -> Judge:
        def judge(question: PodQuestion) -> Verdict | None:
            self.calls.append(name)
            self.questions.append(question)
            return answer

        return judge


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (PodOperation.UPDATE, ["UNAVAILABLE_BUDGET"]),
        (PodOperation.DELETE, ["WORKLOAD_SPREAD", "UNAVAILABLE_BUDGET"]),
        (PodOperation.EVICTION, ["WORKLOAD_SPREAD", "UNAVAILABLE_BUDGET"]),
        (PodOperation.CREATE, []),
        (PodOperation.EPHEMERAL_CONTAINERS, []),
        (PodOperation.RESIZE, []),
    ],
)
def test_who_is_asked_about_what_in_the_order_of_the_contract(operation: PodOperation, expected: list[str]) -> None:
    """MGR-44, PW-1, PW section 4."""
    asking = Asked()
    said = asking.chain.decide(asked(operation, MARKED, MARKED), view_for(operation, MARKED))
    assert said == Allow(audit_annotations={})
    assert asking.calls == expected
    assert all(question.operation is operation for question in asking.questions)


def test_a_request_that_is_none_of_these_concerns_nobody() -> None:
    """PW-33: a DELETE of a subresource is not the end of the pod."""
    asking = Asked()
    for operation, subresource in (("DELETE", "ephemeralcontainers"), ("CONNECT", "exec"), ("UPDATE", "status")):
        request = request_of(MARKED, old=MARKED, operation=operation, subresource=subresource)
        assert asking.chain.decide(request, VIEW) == Allow()
    assert asking.calls == []


@pytest.mark.parametrize("operation", [PodOperation.DELETE, PodOperation.EVICTION])
def test_a_check_is_asked_only_about_pods_that_carry_one_of_its_marks(operation: PodOperation) -> None:
    """PW-23, PW-33."""
    for marks, expected in (
        ((), []),
        (("example/other",), []),
        (SPREAD.value.marks, ["WORKLOAD_SPREAD"]),
        (("kruise.io/related-pub",), ["UNAVAILABLE_BUDGET"]),
        (("pub.kruise.io/related-pub",), ["UNAVAILABLE_BUDGET"]),
    ):
        asking = Asked()
        document = pod(*marks)
        asking.chain.decide(asked(operation, document), view_for(operation, document))
        assert asking.calls == expected, marks


@pytest.mark.parametrize(("old", "new"), [(MARKED, pod()), (pod(), MARKED)])
def test_a_mark_that_comes_or_goes_in_an_update_counts(old: dict[str, Any], new: dict[str, Any]) -> None:
    asking = Asked()
    asking.chain.decide(asked(PodOperation.UPDATE, old, new), VIEW)
    assert asking.calls == ["UNAVAILABLE_BUDGET"]


def test_the_pod_as_it_was_is_judged() -> None:  # PW-35, PW-37
    asking = Asked()
    new = {**MARKED, "spec": {"nodeName": "later"}}
    asking.chain.decide(asked(PodOperation.UPDATE, {**MARKED, "spec": {"nodeName": "before"}}, new), VIEW)
    (question,) = asking.questions
    assert question.pod.spec.node_name == "before"
    assert question.request.body()["spec"] == {"nodeName": "later"}
    assert question.namespace == "shop"


def test_the_pod_of_an_eviction_is_read_live_once_for_all() -> None:  # PW-34, PW-37
    asking = Asked()
    request = asked(PodOperation.EVICTION)
    assert asking.chain.decide(request, VIEW) == NeedsReads(targets=(TARGET,))
    assert asking.calls == []
    assert isinstance(asking.chain.decide(request, with_pod_read(MARKED)), Allow)
    assert asking.calls == ["WORKLOAD_SPREAD", "UNAVAILABLE_BUDGET"]


def test_the_eviction_of_a_pod_that_is_gone_fails() -> None:  # PW-34
    said = Asked().chain.decide(asked(PodOperation.EVICTION), with_pod_read(None))
    assert said == Deny(message='pods "basket" not found', code=404, reason="NotFound")


def test_a_delete_without_an_old_object_passes_and_an_update_without_one_does_not() -> None:  # PW-31, PW-4
    asking = Asked(UNAVAILABLE_BUDGET=Deny(message="no"))
    assert asking.chain.decide(asked(PodOperation.DELETE), VIEW) == Allow()
    with pytest.raises(UndecodableError, match="has no oldObject"):
        asking.chain.decide(asked(PodOperation.UPDATE, None, MARKED), VIEW)


def test_the_first_refusal_ends_the_chain_with_what_was_said_before() -> None:  # PUB-73
    asking = Asked(
        WORKLOAD_SPREAD=Allow(warnings=("slot",), audit_annotations={"spread": "s"}),
        UNAVAILABLE_BUDGET=Deny(message="no", warnings=("full",), audit_annotations={"budget": "b"}),
    )
    said = asking.chain.decide(asked(PodOperation.DELETE, MARKED), VIEW)
    assert said == Deny(message="no", warnings=("slot", "full"), audit_annotations={"spread": "s", "budget": "b"})
    asking = Asked(WORKLOAD_SPREAD=Deny(message="never"))
    asking.chain.decide(asked(PodOperation.DELETE, MARKED), VIEW)
    assert asking.calls == ["WORKLOAD_SPREAD"]


def test_notes_of_all_checks_reach_the_answer() -> None:
    asking = Asked(WORKLOAD_SPREAD=Allow(warnings=("one",)), UNAVAILABLE_BUDGET=Allow(warnings=("two",)))
    assert asking.chain.decide(asked(PodOperation.DELETE, MARKED), VIEW) == Allow(
        warnings=("one", "two"), audit_annotations={}
    )


def test_what_a_check_needs_goes_to_the_server_before_the_next_is_asked() -> None:
    write = plans.patch(TARGET, {}, uid="u", reason="book")
    asking = Asked(WORKLOAD_SPREAD=NeedsWrites(actions=(write,)))
    assert asking.chain.decide(asked(PodOperation.DELETE, MARKED), VIEW) == NeedsWrites(actions=(write,))
    assert asking.calls == ["WORKLOAD_SPREAD"]


def test_gates_may_leave_a_check_only_some_of_its_operations() -> None:  # PW-32
    chain = PodValidationChain()
    chain.register(BUDGET, lambda question: Deny(message="no"), operations={PodOperation.DELETE})
    assert isinstance(chain.decide(asked(PodOperation.DELETE, MARKED), VIEW), Deny)
    assert chain.decide(asked(PodOperation.UPDATE, MARKED, MARKED), VIEW) == Allow()
    assert chain.decide(asked(PodOperation.EVICTION), VIEW) == Allow(), "nobody needs the pod, so nobody reads it"
    with pytest.raises(ValueError, match="WORKLOAD_SPREAD is never asked about RESIZE, UPDATE"):
        chain.register(SPREAD, lambda question: None, operations=[PodOperation.UPDATE, PodOperation.RESIZE])


def test_the_chain_is_one_handler_that_needs_what_its_checks_need() -> None:
    budgets = Watched(CONFIG_MAPS, indexes={"name": lambda item: (item.metadata.name,)})
    chain = PodValidationChain()
    chain.register(BUDGET, lambda question: None, needs=(budgets, SECRETS))
    chain.register(SPREAD, lambda question: None, needs=(SECRETS,))
    handler = chain.handler()
    assert (handler.path, handler.needs) == ("/validate-pod", (SECRETS, budgets))
    with pytest.raises(ValueError, match="UNAVAILABLE_BUDGET is registered twice"):
        chain.register(BUDGET, lambda question: None)
    with pytest.raises(ValueError, match="two handlers for /validate-pod"):
        Registry(handler, MutatingHandler(PATH, lambda request, view: Allow()))


# The entries that are made of it


def test_every_operation_of_a_position_is_covered_by_an_installed_entry() -> None:
    covered = {
        (operation, entry.resource.partition("/")[2])
        for entry in VALIDATING
        if entry.path == PATH
        for operation in entry.operations
    }
    assert covered == {operation.value for step in PodValidationStep for operation in step.value.operations}


def test_entries_ask_for_what_positions_can_be_asked_about() -> None:
    marked = Position(frozenset({PodOperation.CREATE, PodOperation.RESIZE}), marks=("example/a",))
    other = Position(frozenset({PodOperation.DELETE, PodOperation.EVICTION}), marks=("example/b", "example/a"))
    found = {entry.name: entry for entry in pod_checks([marked, other])}
    assert {name: (entry.resource, entry.operations) for name, entry in found.items()} == {
        "vpod.kb.io": ("pods", ("CREATE", "DELETE")),
        "vpodeviction.kb.io": ("pods/eviction", ("CREATE",)),
        "vpodresize.kb.io": ("pods/resize", ("UPDATE",)),
    }
    assert found["vpodeviction.kb.io"].match_conditions == ()
    (condition,) = found["vpodresize.kb.io"].match_conditions
    assert "'example/a' in object.metadata.annotations" in condition["expression"]
    assert "example/b" not in condition["expression"]
    (condition,) = found["vpod.kb.io"].match_conditions
    calls = compiled(condition["expression"])
    assert calls is not None
    for verb, mark in ((verb, mark) for verb in ("CREATE", "DELETE") for mark in ("example/a", "example/b")):
        asked = calls({"object": pod(mark), "oldObject": None, "request": {"operation": verb}})
        assert asked == (verb == "DELETE" or mark == "example/a"), "only what a position is asked about"


def test_a_position_without_marks_concerns_every_pod() -> None:
    every = Position(frozenset({PodOperation.UPDATE}), marks=())
    marked = Position(frozenset({PodOperation.DELETE}), marks=("example/a",))
    (entry,) = pod_checks([every, marked])
    assert entry.match_conditions == ()
