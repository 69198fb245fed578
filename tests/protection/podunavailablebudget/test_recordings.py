"""What was recorded of the original with budgets, step by step, played again: the same answers, the same numbers.

Differences that are meant: a refused eviction answers 429 and not 403 (PUB-91), and the status has `identities` too.
"""

from __future__ import annotations

from typing import Any

from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType
from kruise.protection.podunavailablebudget import keys
from tests.scenarios.budgets import BudgetStage
from tests.scenarios.stage import OK_GATE, names
from tests.support.world import LocalWorld, run_local

NEGATIVE = 'podunavailablebudget.policy.kruise.io "pub" is forbidden: pub unavailable allowed is negative'
MARK = "unavailable-pod.kruise.io/a"


class _Playing:
    """One recording on the stage; pods by the order of their creation."""

    def __init__(self, world: LocalWorld) -> None:
        self.stage = BudgetStage(world, gates=world.options.gates)

    async def answer(self, work: Any) -> tuple[int, str]:
        try:
            await work
        except ApiError as error:
            return error.code, str(error)
        return 200, ""

    async def refused(self, work: Any, code: int) -> None:
        said, text = await self.answer(work)
        assert said == code, text
        assert NEGATIVE in text

    async def passes(self, work: Any) -> None:
        said, text = await self.answer(work)
        assert said == 200, text

    async def ready(self, pod: str, is_ready: bool) -> None:
        condition = {"type": OK_GATE, "status": "True" if is_ready else "False"}
        await self.stage.client.patch(
            PODS,
            pod,
            {"status": {"conditions": [condition]}},
            self.stage.namespace,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )

    async def started(self, replicas: int, pod: Any = None) -> list[str]:
        await self.stage.create(
            version="v1alpha1",
            replicas=replicas,
            pod=pod,
            strategy={"type": "InPlaceIfPossible", "maxUnavailable": replicas},
        )

        async def there() -> list[str]:
            found = await self.stage.pods()
            assert [one["status"].get("phase") for one in found] == ["Running"] * replicas
            return names(found)

        found: list[str] = await self.stage.until(there)
        return found

    async def newest(self, known: set[str]) -> str:
        async def come() -> str:
            found = set(names(await self.stage.pods())) - known
            assert found
            return found.pop()

        name: str = await self.stage.until(come)
        return name


def test_eviction_and_delete() -> None:
    """The recording podunavailablebudget-eviction-delete: maxUnavailable 1 over three pods (PUB-40, PUB-62, PUB-90)."""

    async def play(world: LocalWorld) -> None:
        playing = _Playing(world)
        stage = playing.stage
        gated = {"readinessGates": [{"conditionType": OK_GATE}]}
        one, two, three = await playing.started(3, gated)
        for pod in (one, two, three):
            await playing.ready(pod, True)
        await stage.reaches(readyReplicas=3)
        await stage.budget(version="v1alpha1", maxUnavailable=1)
        await stage.shows(1, 3, 2, 3)
        assert (await stage.pod(one))["metadata"]["annotations"][keys.RELATED] == "pub"
        await playing.ready(one, False)
        await stage.shows(0, 2, 2, 3)
        await playing.refused(stage.evict(two), 429)
        await playing.refused(stage.delete_pod(two), 403)
        await stage.has_event("PubPreventPodDeletion", "openkruise pub prevents pod deletion", name=two, type="Warning")
        await playing.passes(stage.delete_pod(one))
        four = await playing.newest({one, two, three})
        assert (await stage.pod(four))["metadata"]["annotations"][keys.RELATED] == "pub"
        await playing.ready(four, True)
        await stage.shows(1, 3, 2, 3)
        await playing.passes(stage.evict(two))
        status = await stage.shows(0, 2, 2, 3)
        await playing.refused(stage.evict(three), 429)
        five = await playing.newest({one, two, three, four})
        status = await stage.shows(0, 2, 2, 3)
        assert "disruptedPods" not in status
        await playing.ready(five, True)
        await stage.shows(1, 3, 2, 3)

    run_local(play)


def test_update_gate() -> None:
    """The recording podunavailablebudget-update-gate: images and marks by users (PUB-52, PUB-60, PUB-70)."""

    async def play(world: LocalWorld) -> None:
        playing = _Playing(world)
        stage = playing.stage
        one, two, three, four = await playing.started(4)
        await stage.reaches(readyReplicas=4)
        await stage.budget(version="v1alpha1", maxUnavailable=1)
        await stage.shows(1, 4, 3, 4)
        await playing.passes(stage.set_image(one, "nginx:u1"))
        await playing.refused(stage.set_image(two, "nginx:u1"), 403)
        await playing.passes(stage.set_image(one, "nginx:u2"))
        await playing.refused(stage.evict(three), 429)
        await playing.refused(stage.delete_pod(three), 403)
        await playing.passes(stage.label(three, x="y"))
        mark = {"metadata": {"labels": {MARK: "1"}}}
        await playing.refused(stage.world.patch(PODS, three, mark), 403)
        await stage.shows(1, 4, 3, 4)
        assert "unavailablePods" not in await stage.numbers()
        await playing.passes(stage.world.patch(PODS, three, mark))
        assert set((await stage.numbers())["unavailablePods"]) == {three}
        await stage.shows(0, 3, 3, 4)
        await playing.passes(stage.set_image(three, "nginx:u3"))
        await playing.refused(stage.set_image(four, "nginx:u3"), 403)
        await playing.passes(stage.annotate(four, keys.NO_PROTECT, "true"))
        await playing.passes(stage.set_image(four, "nginx:u4"))
        await stage.world.patch(PODS, three, {"metadata": {"labels": {MARK: None}}})
        await stage.shows(1, 4, 3, 4)

    run_local(play, feature_gates="PodUnavailableBudgetUpdateGate=true")
