"""The ordered pod chain and the registry of paths."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.admission.chain import PodChain, PodStep, StepContext
from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, NeedsReads
from kruise.admission.registry import MutatingHandler, Registry, ValidatingHandler
from kruise.api.native.config import CONFIG_MAPS, SECRETS
from kruise.machinery.plan import Target
from tests.admission.helpers import request_of

VIEW = HandlerView(now=datetime(2030, 1, 1, tzinfo=UTC), seed=1)
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {"containers": []}}


def adds(word: str) -> Callable[[dict[str, Any], StepContext], Mutation]:
    def mutate(pod: dict[str, Any], context: StepContext) -> Mutation:
        return Change(object={**pod, "trail": [*pod.get("trail", []), word]}, warnings=(word,))

    return mutate


def test_the_order_is_that_of_the_contract() -> None:  # MGR-43, PW section 3
    assert [step.name for step in sorted(PodStep)] == [
        "READINESS_GATE",
        "WORKLOAD_SPREAD",
        "SIDECAR_SET",
        "LAUNCH_PRIORITY",
        "UNAVAILABLE_BUDGET",
        "PERSISTENT_POD_STATE",
        "LIVENESS_PROBE",
        "PROBE_MARKER",
        "SIDECAR_TERMINATOR",  # warns, and changes nothing
    ]


def test_each_step_works_on_the_result_of_the_one_before_whatever_the_order_of_registration() -> None:  # PW-10
    chain = PodChain()
    for step in (PodStep.PROBE_MARKER, PodStep.SIDECAR_SET, PodStep.READINESS_GATE):
        chain.register(step, adds(step.name))
    answer = chain.decide(request_of(POD, kind="Pod", resource="pods"), VIEW)
    assert isinstance(answer, Change)
    assert answer.object["trail"] == ["READINESS_GATE", "SIDECAR_SET", "PROBE_MARKER"]
    assert answer.warnings == ("READINESS_GATE", "SIDECAR_SET", "PROBE_MARKER")


def test_a_chain_that_changes_nothing_allows_without_a_change() -> None:  # PW-9
    chain = PodChain()
    chain.register(PodStep.SIDECAR_SET, lambda pod, context: None)
    chain.register(PodStep.LAUNCH_PRIORITY, lambda pod, context: Allow())
    assert chain.decide(request_of(POD), VIEW) == Allow(audit_annotations={})


def test_the_first_refusal_ends_the_chain() -> None:
    chain = PodChain()
    chain.register(PodStep.READINESS_GATE, adds("first"))
    chain.register(PodStep.PERSISTENT_POD_STATE, lambda pod, context: Deny(message="no"))
    chain.register(PodStep.PROBE_MARKER, adds("never"))
    answer = chain.decide(request_of(POD), VIEW)
    assert isinstance(answer, Deny)
    assert answer.warnings == ("first",)


def test_what_a_step_needs_goes_to_the_server() -> None:
    needs = NeedsReads(targets=(Target(CONFIG_MAPS, "a", "b"),))
    chain = PodChain()
    chain.register(PodStep.WORKLOAD_SPREAD, lambda pod, context: needs)
    assert chain.decide(request_of(POD), VIEW) == needs


@pytest.mark.parametrize(("own", "expected"), [(None, "shop"), ("", "shop"), ("own", "own")])
def test_a_pod_without_namespace_takes_the_requests(own: str | None, expected: str) -> None:  # PW-8
    seen: list[str] = []

    def look(pod: dict[str, Any], context: StepContext) -> None:
        seen.append(context.namespace)

    chain = PodChain()
    chain.register(PodStep.SIDECAR_SET, look)
    chain.decide(request_of({"metadata": {"namespace": own}}), VIEW)
    assert seen == [expected]


def test_the_chain_is_one_handler_that_needs_what_its_steps_need() -> None:
    chain = PodChain()
    chain.register(PodStep.SIDECAR_SET, adds("a"), needs=(CONFIG_MAPS, SECRETS))
    chain.register(PodStep.READINESS_GATE, adds("b"), needs=(SECRETS,))
    handler = chain.handler()
    assert handler.path == "/mutate-pod"
    assert handler.needs == (SECRETS, CONFIG_MAPS)
    with pytest.raises(ValueError, match="SIDECAR_SET is registered twice"):
        chain.register(PodStep.SIDECAR_SET, adds("again"))


def test_the_registry_has_one_handler_per_path() -> None:
    registry = Registry(MutatingHandler("/m", lambda r, v: Allow()), ValidatingHandler("/v", lambda r, v: Allow()))
    assert registry.paths == {"/m", "/v"}
    with pytest.raises(ValueError, match="two handlers for /m"):
        registry.add(MutatingHandler("/m", lambda r, v: Allow()))
    for path in ("/convert", "/healthz", "no-slash"):
        with pytest.raises(ValueError, match="cannot be a webhook path"):
            registry.add(MutatingHandler(path, lambda r, v: Allow()))
