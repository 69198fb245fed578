"""Evictions, bindings and the other subresources of pods."""

from __future__ import annotations

from typing import Any

from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import ManualClock
from tests.local.kinds.cases import budget, pod
from tests.local.kinds.playing import local_transport, send

RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


async def _ours(status: Any = None, **budgets: Any) -> InProcessTransport:
    """A running pod `p`, and budgets by name with their status."""
    ours = await local_transport(ManualClock(), "n")
    body = {**pod(nodeName="node"), "metadata": {"name": "p", "labels": {"app": "x"}}}
    assert (await send(ours, Verb.CREATE, "pods", "n", body=body))[0] == 201
    await _write_status(ours, "pods", "p", status or RUNNING)
    for name, counts in budgets.items():
        body = {**budget(minAvailable=1), "metadata": {"name": name}}
        assert (await send(ours, Verb.CREATE, "poddisruptionbudgets", "n", body=body))[0] == 201
        if counts is not None:
            await _write_status(ours, "poddisruptionbudgets", name, {"observedGeneration": 1, **counts})
    return ours


async def _write_status(ours: InProcessTransport, plural: str, name: str, status: Any) -> None:
    more: Any = {"subresource": "status", "content_type": PatchType.MERGE}
    code, answer = await send(ours, Verb.PATCH, plural, "n", name, {"status": status}, **more)
    assert code == 200, answer


async def _evict(ours: InProcessTransport, **more: Any) -> tuple[int, Any]:
    return await send(ours, Verb.CREATE, "pods", "n", "p", {"metadata": {"name": "p"}}, subresource="eviction", **more)


async def test_without_a_budget_a_pod_can_be_evicted() -> None:
    ours = await _ours()
    assert (await _evict(ours))[0] == 201
    _, gone = await send(ours, Verb.GET, "pods", "n", "p")
    assert gone["status"]["conditions"][-1]["type"] == "DisruptionTarget"
    assert "deletionTimestamp" in gone["metadata"]


async def test_a_budget_is_spent() -> None:
    ours = await _ours(b={"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1})
    assert (await _evict(ours, query=(("dryRun", "All"),)))[0] == 201
    _, found = await send(ours, Verb.GET, "poddisruptionbudgets", "n", "b")
    assert found["status"]["disruptionsAllowed"] == 1
    assert (await _evict(ours))[0] == 201
    _, found = await send(ours, Verb.GET, "poddisruptionbudgets", "n", "b")
    assert found["status"]["disruptionsAllowed"] == 0
    assert list(found["status"]["disruptedPods"]) == ["p"]


async def test_a_spent_budget_refuses() -> None:
    ours = await _ours(b={"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1})
    code, refused = await _evict(ours)
    assert (code, refused["message"]) == (429, VIOLATED)
    cause = refused["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"


async def test_a_budget_that_nobody_looked_at_yet_refuses() -> None:
    ours = await _ours(b=None)
    code, refused = await _evict(ours)
    assert (code, refused["details"]["retryAfterSeconds"]) == (429, 10)


async def test_two_budgets_are_not_supported() -> None:
    ours = await _ours(b=None, c=None)
    code, refused = await _evict(ours)
    assert code == 500
    assert "more than one PodDisruptionBudget" in refused["message"]


async def test_pods_that_do_not_count_are_evicted_whatever_the_budget_says() -> None:
    spent = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
    for status in ({"phase": "Pending"}, {"phase": "Failed"}, {"phase": "Running"}):
        ours = await _ours(status, b=spent)
        assert (await _evict(ours))[0] == 201, status


async def test_logs_are_not_read_from_the_storage() -> None:
    ours = await _ours()
    assert (await send(ours, Verb.GET, "pods", "n", "p", subresource="log"))[0] == 405
    assert (await send(ours, Verb.GET, "pods", "n", "p", subresource="nothing"))[0] == 404


async def test_an_image_can_be_changed_in_place() -> None:
    """What in-place updates stand on: same uid, next generation."""
    ours = await _ours()
    patch = {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}
    _, before = await send(ours, Verb.GET, "pods", "n", "p")
    code, after = await send(ours, Verb.PATCH, "pods", "n", "p", patch, content_type=PatchType.STRATEGIC)
    assert (code, after["metadata"]["generation"]) == (200, before["metadata"]["generation"] + 1)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["containers"][0]["image"] == "nginx:2"


async def test_a_faulty_label_is_named_once() -> None:
    """The core and the pod model both look at metadata."""
    ours = await _ours()
    patch = {"metadata": {"labels": {"a b": "c"}}}
    code, refused = await send(ours, Verb.PATCH, "pods", "n", "p", patch, content_type=PatchType.MERGE)
    assert code == 422
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["metadata.labels"]
