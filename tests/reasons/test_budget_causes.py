"""What `kruise why` says of a workload that a budget slows down: the causes are the budget's, the workload is another
kind."""

from __future__ import annotations

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.machinery.causes import Act
from kruise.machinery.client.requests import PatchType
from kruise.reasons.words import answer_lines
from tests.reasons.asking import ask_journal, codes
from tests.scenarios.stage import Stage
from tests.support.manifests import cloneset_manifest
from tests.support.world import LocalWorld, run_local

GATES = "PodUnavailableBudgetDeleteGate=true,PodUnavailableBudgetUpdateGate=true"


def test_a_rollout_under_a_budget_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:  # PUB-101
    async def play(world: LocalWorld) -> None:
        stage = Stage(world, gates=world.options.gates)
        await world.create(cloneset_manifest("web", maxUnavailable="100%"))
        await world.create(
            {
                "apiVersion": POD_UNAVAILABLE_BUDGETS.api_version,
                "kind": POD_UNAVAILABLE_BUDGETS.kind,
                "metadata": {"name": "web"},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
            }
        )
        await world.sleep(20)
        image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"}]
        await world.patch(CLONE_SETS, "web", image, patch_type=PatchType.JSON)

        async def is_held() -> None:
            answer = await ask_journal(stage, monkeypatch)
            assert "unavailable-budget" in codes(answer), answer.waiting
            assert answer.act is Act.NOBODY
            assert "is stuck" not in "\n".join(answer_lines(answer))

        await world.until(is_held, every=0.2)

    run_local(play, feature_gates=GATES)
