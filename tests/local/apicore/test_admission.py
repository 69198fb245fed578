"""The admission seam: order, refusal, and writes that overtake each other while admission thinks."""

from __future__ import annotations

import asyncio
from typing import Any

from kruise.local.apicore import AdmissionRequest
from kruise.local.apicore.errors import forbidden, too_many_requests
from kruise.machinery.client.requests import Request, Verb
from tests.local.harness import CONFIG_MAPS, PODS, WIDGETS, Api, cm, pod, widget


def labelled(name: str) -> Any:
    async def mutate(request: AdmissionRequest) -> dict[str, Any] | None:
        assert request.object is not None
        metadata = request.object["metadata"]
        seen = metadata.get("labels", {}).get("seen", "")
        labels = {**metadata.get("labels", {}), "seen": seen + name}
        return {**request.object, "metadata": {**metadata, "labels": labels}}

    return mutate


async def test_mutating_in_order_then_validating() -> None:
    api = Api()
    api.core.admission.mutating += [labelled("a"), labelled("b")]
    shown: list[Any] = []

    async def validate(request: AdmissionRequest) -> None:
        assert request.object is not None
        shown.append((request.operation, request.name, request.object["metadata"]["labels"]["seen"]))
        assert request.object["metadata"]["uid"], "the object is complete"

    api.core.admission.validating.append(validate)
    _, made = await api.create(CONFIG_MAPS, cm("x"))
    await api.patch(CONFIG_MAPS, "x", {"data": {"a": "2"}})
    assert made["metadata"]["labels"] == {"seen": "ab"}
    assert shown == [("CREATE", "x", "ab"), ("UPDATE", "x", "abab")]


async def test_generated_names_are_known_to_validation() -> None:
    api = Api()
    names: list[str] = []

    async def validate(request: AdmissionRequest) -> None:
        names.append(request.name)

    api.core.admission.validating.append(validate)
    _, made = await api.create(WIDGETS, {"metadata": {"generateName": "w-"}})
    assert names == [made["metadata"]["name"]]


async def test_a_refusal_is_the_answer_and_nothing_is_stored() -> None:
    api = Api()
    await api.create(PODS, pod("a"))

    async def refuse(request: AdmissionRequest) -> None:
        raise forbidden(request.kind.group, request.kind.plural, request.name, f"no {request.operation} today")

    api.core.admission.validating.append(refuse)
    for answer, operation in (
        (await api.create(PODS, pod("b")), "CREATE"),
        (await api.patch(PODS, "a", {"metadata": {"labels": {"x": "1"}}}), "UPDATE"),
        (await api.delete(PODS, "a"), "DELETE"),
    ):
        assert (answer[0], answer[1]["reason"]) == (403, "Forbidden")
        assert answer[1]["message"].endswith(f"is forbidden: no {operation} today")
    assert api.core.storage.version == 1


async def test_eviction_is_shown_and_can_be_held_back() -> None:
    api = Api()
    await api.create(PODS, pod("a"))

    async def budget(request: AdmissionRequest) -> None:
        if request.subresource == "eviction":
            raise too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", 10)

    api.core.admission.validating.append(budget)
    code, refused = await api.create(PODS, {"metadata": {"name": "a"}}, name="a", subresource="eviction")
    assert (code, refused["details"]["retryAfterSeconds"]) == (429, 10)
    request = Request(Verb.CREATE, PODS, "default", "a", "eviction", body=b'{"metadata":{"name":"a"}}')
    assert (await api.transport.send(request)).headers["retry-after"] == "10"


async def test_no_update_is_lost_while_admission_thinks() -> None:
    """Both patches wait in admission at once; the second one to store starts again from what the first one made."""
    api = Api()
    await api.create(WIDGETS, widget("a"))
    calls = 0

    async def slow(request: AdmissionRequest) -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)

    api.core.admission.validating.append(slow)
    one, two = await asyncio.gather(
        api.patch(WIDGETS, "a", {"spec": {"one": 1}}), api.patch(WIDGETS, "a", {"spec": {"two": 2}})
    )
    assert {one[0], two[0]} == {200}
    assert (await api.get(WIDGETS, "a"))[1]["spec"] == {"size": 1, "one": 1, "two": 2}
    assert calls == 3


async def test_a_guarded_update_that_was_overtaken_conflicts() -> None:
    api = Api()
    _, made = await api.create(WIDGETS, widget("a"))

    async def slow(request: AdmissionRequest) -> None:
        await asyncio.sleep(0)

    api.core.admission.validating.append(slow)
    body = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {"one": 1}}
    codes = await asyncio.gather(*(api.patch(WIDGETS, "a", body | {"spec": {"n": number}}) for number in range(3)))
    assert sorted(code for code, _ in codes) == [200, 409, 409]


async def test_names_are_unique_also_while_admission_thinks() -> None:
    api = Api()

    async def slow(request: AdmissionRequest) -> None:
        await asyncio.sleep(0)

    api.core.admission.validating.append(slow)
    codes = await asyncio.gather(*(api.create(WIDGETS, widget("a")) for _ in range(3)))
    assert sorted(code for code, _ in codes) == [201, 409, 409]


async def test_an_object_that_went_away_meanwhile_is_not_found() -> None:
    api = Api()
    await api.create(WIDGETS, widget("a"))
    patch = asyncio.Event()

    async def slow(request: AdmissionRequest) -> None:
        if request.operation == "UPDATE":
            await patch.wait()

    api.core.admission.validating.append(slow)
    task = asyncio.create_task(api.patch(WIDGETS, "a", {"spec": {"one": 1}}))
    await asyncio.sleep(0.001)
    await api.delete(WIDGETS, "a")
    patch.set()
    assert (await task)[0] == 404
