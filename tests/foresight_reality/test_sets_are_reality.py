"""Forecasts of StatefulSets and DaemonSets are what the cluster then does. Ten cases of each by default, 300 with
`KRUISE_EXAMPLES=30`."""

from __future__ import annotations

from collections import Counter

import pytest

from kruise.foresight.forecast import Forecast, How
from tests.foresight_reality.comparison import differences, report
from tests.foresight_reality.local import MAKERS, judge, outcome_of
from tests.foresight_reality.reality import Reality
from tests.foresight_reality.sets import make_daemon_case, make_stateful_case
from tests.support.examples import EXAMPLES

CASES = 10 * EXAMPLES
KINDS = ("statefulset", "daemonset")
ONCE_WRONG = (63, 224)
"""Of StatefulSets: pods that came in the same pass in which others went were foreseen after these, and made before."""


@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_come_true(kind: str) -> None:
    """Order, final state, worst availability and most pods, against a local cluster on virtual time."""
    verdicts = judge(range(CASES), MAKERS[kind])
    print(report(verdicts))
    assert sum(bool(verdict.differences) for verdict in verdicts) <= CASES // 100, report(verdicts)


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_a_forecast_that_was_wrong_once_comes_true(seed: int) -> None:
    [verdict] = judge([seed], make_stateful_case)
    assert not verdict.differences, report([verdict])


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_a_value(kind: str) -> None:
    for seed in range(20):
        assert MAKERS[kind](seed) == MAKERS[kind](seed)


def test_cases_are_of_all_kinds() -> None:
    """Every setting and change that is drawn is there among 300."""
    seen: Counter[str] = Counter()
    for seed in range(300):
        for case in (make_stateful_case(seed), make_daemon_case(seed)):
            spec = case.manifest["spec"]
            rolling = spec["updateStrategy"].get("rollingUpdate", {})
            seen.update((*spec, *rolling, *(spec.get("lifecycle") or ()), *case.gates.replace("=true", "").split(",")))
            seen.update(str(rolling.get(name)) for name in ("podUpdatePolicy", "rollingUpdateType"))
            seen[spec.get("podManagementPolicy", "")] += 1
            seen.update(f"{edit.what} {edit.where}" for edit in case.change if edit.what in ("spec", "rolling"))
    wanted = {
        *("OrderedReady", "Parallel", "reserveOrdinals", "ordinals", "unorderedUpdate", "partition", "maxUnavailable"),
        *("volumeClaimTemplates", "volumeClaimUpdateStrategy", "persistentVolumeClaimRetentionPolicy", "scaleStrategy"),
        *("ReCreate", "InPlaceIfPossible", "InPlaceOnly", "Standard", "maxSurge", "selector", "burstReplicas"),
        *("preDelete", "inPlaceUpdate", "StatefulSetStartOrdinal", "StatefulSetAutoResizePVCGate"),
        *("DaemonSetPruneIneligibleNodes", "spec reserveOrdinals", "spec ordinals", "spec volumeClaimTemplates"),
        *("spec updateStrategy", "rolling selector", "rolling partition", "rolling paused"),
    }
    assert {name for name in wanted if seen[name] < 3} == set()


def test_a_pod_that_is_made_anew_under_its_name_is_another_one() -> None:
    """Where only names were compared, a forecast of updates in place would come true although pods were rebuilt."""
    outcome = next(
        found
        for found in (outcome_of(seed, make_stateful_case) for seed in range(20))
        if isinstance(found.forecast, Forecast)
        and isinstance(found.reality, Reality)
        and any(move.how is How.RECREATE for move in found.forecast.moves)
    )
    assert isinstance(outcome.reality, Reality)
    assert set(outcome.reality.survivors) < set(outcome.reality.pods)
    assert differences(outcome) == []
