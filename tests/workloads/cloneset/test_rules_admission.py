"""Each case of the rules about the order of an update, and strategies that say as little as possible."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.admission.decisions import Allow, Invalid
from tests.support.admission import messages_of
from tests.workloads.cloneset.admission_model import Server, cloneset

SERVER = Server()
MATCHED = {"matchLabels": {"tier": "front"}}


def sent(version: str, **rollout: Any) -> Any:
    """The verdict about a CloneSet whose rollout has these settings, wherever its version keeps them."""
    strategy: dict[str, Any] = rollout if version == "v1alpha1" else {"rollingUpdate": rollout}
    return SERVER.send(cloneset({"updateStrategy": strategy}, version=version), version=version)


def weights(*terms: tuple[int, Any]) -> dict[str, Any]:
    return {"weightPriority": [{"weight": weight, "matchSelector": selector} for weight, selector in terms]}


PRIORITIES = [
    (weights((0, MATCHED), (100, MATCHED)), ""),
    ({"orderPriority": [{"orderedKey": "order"}, {"orderedKey": "other"}]}, ""),
    ({**weights((1, MATCHED)), "orderPriority": [{"orderedKey": "order"}]}, "only one of"),
    (weights((-1, MATCHED)), "weightPriority[0]"),
    (weights((1, MATCHED), (101, MATCHED)), "weightPriority[1]"),
    (weights((1, {})), "selector can not be empty"),
    (weights((1, {"matchExpressions": [{"key": "a", "operator": "Near"}]})), "invalid selector"),
    ({"orderPriority": [{"orderedKey": "order"}, {"orderedKey": ""}]}, "orderPriority[1]"),
]
SCATTERS = [
    ([{"key": "a", "value": "1"}, {"key": "a", "value": "2"}, {"key": "b", "value": "1"}], ""),
    ([{"key": "a", "value": ""}], ""),
    ([{"key": "", "value": "1"}], "scatterStrategy[0]: key"),
    ([{"key": "a", "value": "1"}, {"key": "a", "value": "1"}], "scatterStrategy[1]: duplicated"),
]


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(("strategy", "complaint"), PRIORITIES)
def test_priorities(version: str, strategy: dict[str, Any], complaint: str) -> None:  # IPU-3, CS-46
    _judged(sent(version, priorityStrategy=strategy), complaint)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(("terms", "complaint"), SCATTERS)
def test_scatter_terms(version: str, terms: list[dict[str, str]], complaint: str) -> None:  # IPU-4, CS-46
    _judged(sent(version, scatterStrategy=terms), complaint)


def _judged(answer: Any, complaint: str) -> None:
    if not complaint:
        assert isinstance(answer, Allow), answer
    else:
        assert isinstance(answer, Invalid), answer
        assert complaint in messages_of(answer)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_on_delete_needs_no_settings(version: str) -> None:  # CS-43, CS-51
    strategy = {"updateStrategy": {"type": "OnDelete"}}
    assert isinstance(SERVER.send(cloneset(strategy, version=version), version=version), Allow)


def test_a_weight_over_the_limit_of_an_integer_is_refused() -> None:  # IPU-3
    answer = sent("v1beta1", priorityStrategy=weights((2**40, MATCHED)))
    assert isinstance(answer, Invalid), answer
