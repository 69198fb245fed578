"""A forecast is what the cluster then does: some of the cases of `tests/real/cloneset/test_plan_reality.py`."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter

import pytest

from kruise.foresight.forecast import Forecast
from tests.foresight_reality.cases import make_case, suits_real_nodes, suits_real_time
from tests.foresight_reality.comparison import differences, report
from tests.foresight_reality.local import judge, outcome_of
from tests.foresight_reality.reality import Outcome, Reality
from tests.support.examples import EXAMPLES

SEEDS = range(16 * EXAMPLES)
CHANCE = 1
"""So many of them may differ: where fractions of a second decide, a change elsewhere may let another case differ."""
ONCE_WRONG = (336, 538, 640)
"""Forecasts once got these wrong: pods ready at the same instant, env from metadata, a container that is down beside
one that is changed."""


def test_forecasts_come_true() -> None:
    """Waves, final state, worst availability and most pods, against a local cluster on virtual time."""
    verdicts = judge(SEEDS)
    print(report(verdicts))
    assert sum(bool(verdict.differences) for verdict in verdicts) <= CHANCE, report(verdicts)


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_a_forecast_that_was_wrong_once_comes_true(seed: int) -> None:
    [verdict] = judge([seed])
    assert not verdict.differences, report([verdict])


def test_a_case_is_a_value() -> None:
    """The same number gives the same case, and it can be printed and read as JSON."""
    for seed in range(30):
        case = make_case(seed)
        assert case == make_case(seed)
        assert str(seed) in case.text()
        assert json.loads(json.dumps(dataclasses.asdict(case)))["seed"] == seed


def test_cases_are_of_all_kinds() -> None:
    """Every setting, start and change that is drawn is there among 300, and enough of them suit a real cluster."""
    cases = [make_case(seed) for seed in range(300)]
    seen: Counter[str] = Counter()
    for case in cases:
        spec = case.manifest["spec"]
        rolling = spec["updateStrategy"]["rollingUpdate"]
        seen.update(rolling.keys())
        seen.update(spec.keys())
        seen.update((spec.get("lifecycle") or {}).keys())
        seen[rolling["podUpdatePolicy"]] += 1
        seen[spec["updateStrategy"].get("type", "RollingUpdate")] += 1
        seen.update({edit.what for edit in case.change} or ["nothing"])
        seen.update(key for step in case.steps for key in (*step.labels, *step.annotations))
        seen.update(f"{edit.what} before" for step in case.steps for edit in step.edits)
        seen[f"{len(spec['template']['spec']['containers'])} containers"] += 1
        seen["somebody answers" if case.answers_hooks else "nobody answers"] += 1
    wanted = {
        *("ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete", "1 containers", "2 containers", "3 containers"),
        *("partition", "maxUnavailable", "maxSurge", "priorityStrategy", "scatterStrategy", "paused"),
        *("inPlaceUpdateStrategy", "minReadySeconds", "volumeClaimTemplates", "scaleStrategy"),
        *("preNormal", "inPlaceUpdate", "preDelete", "nobody answers"),
        *("image", "label", "annotation", "env", "args", "replicas", "rolling", "type", "min-ready", "to-delete"),
        *("nothing", "image before", "annotation before", "rolling before", "tier", "order"),
        *("sim.kruise.io/never-ready.main", "apps.kruise.io/specified-delete"),
    }
    assert {name for name in wanted if seen[name] < 3} == set()
    assert sum(map(suits_real_time, cases)) >= 60
    assert sum(map(suits_real_nodes, cases)) >= 5


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """One that came true, with several waves."""
    found = outcome_of(12)
    assert isinstance(found.forecast, Forecast)
    assert isinstance(found.reality, Reality)
    assert len(found.forecast.waves) > 2
    assert differences(found) == []
    return found


def _about(outcome: Outcome, **wrong: object) -> set[str]:
    assert isinstance(outcome.forecast, Forecast)
    changed = dataclasses.replace(outcome.forecast, **wrong)  # type: ignore[arg-type]
    return {difference.about for difference in differences(dataclasses.replace(outcome, forecast=changed))}


def test_a_wrong_forecast_is_found(outcome: Outcome) -> None:
    """The comparison is not blind: each part of a forecast, made wrong, is told."""
    forecast = outcome.forecast
    assert isinstance(forecast, Forecast)
    first, second, *rest = forecast.waves
    swapped = (
        dataclasses.replace(first, moves=(second.moves[0], *first.moves[1:])),
        dataclasses.replace(second, moves=(first.moves[0], *second.moves[1:])),
        *rest,
    )
    assert _about(outcome, waves=swapped) == {"wave 1", "wave 2"}
    assert "after the last wave" in _about(outcome, waves=forecast.waves[:-1])
    assert _about(outcome, fewest_available=forecast.fewest_available - 1) == {"availability"}
    assert _about(outcome, most_pods=forecast.most_pods + 1) == {"pods"}
    assert _about(outcome, available_after=0) == {"available in the end"}
    assert _about(outcome, by_revision={forecast.to_revision: 1}) == {"revisions"}


def test_a_refusal_that_was_not_foreseen_is_found(outcome: Outcome) -> None:
    """Admission must say the same to both."""
    words = "spec.replicas: must not be negative"
    refused = dataclasses.replace(outcome, reality=words)
    assert {difference.about for difference in differences(refused)} == {"refusal"}
    both = dataclasses.replace(refused, forecast='admission webhook "v" denied the request: spec.replicas: must not be')
    assert {difference.about for difference in differences(both)} == {"refusal"}
    assert differences(dataclasses.replace(refused, forecast=words)) == []
