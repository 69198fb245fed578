"""Admission of advanced DaemonSets beyond what was recorded."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from kruise.admission.decisions import Allow
from kruise.machinery.patches import merge
from kruise.workloads.daemonset.admission import ADMISSION
from tests.support import admission
from tests.support.admission import Json, causes_of, messages_of, stored

INVALID, REQUIRED = "FieldValueInvalid", "FieldValueRequired"
ROLLING = "spec.updateStrategy.rollingUpdate"
SERVER = functools.partial(admission.Server, admission=ADMISSION)()


def daemonset(spec: Json | None = None, *, version: str = "v1beta1", **metadata: Any) -> Json:
    """A small sound DaemonSet, with parts of its spec replaced by a JSON merge patch."""
    base = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
        },
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", **metadata},
        "spec": merge.apply(base, dict(spec or {})),
    }


def rolling(**settings: Any) -> Json:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": settings}}


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_the_template_stays_as_it_was_sent(version: str) -> None:
    """DS-11, DS-15: no default goes into it, and one that means the same stays as it is stored."""
    sent = daemonset(version=version)
    once = SERVER.defaults(sent, version=version)
    assert once["spec"]["template"] == sent["spec"]["template"]
    assert SERVER.defaults(once, stored(once), version=version)["spec"] == once["spec"]
    spelt = merge.apply(sent, {"spec": {"template": {"metadata": {"creationTimestamp": None, "annotations": {}}}}})
    assert SERVER.defaults(spelt, stored(once), version=version)["spec"] == once["spec"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(
    ("settings", "causes"),
    [
        ({"maxUnavailable": "0%", "maxSurge": "00%"}, {(f"{ROLLING}.maxUnavailable", REQUIRED)}),
        ({"maxUnavailable": "10%", "maxSurge": "10%"}, {(f"{ROLLING}.maxSurge", INVALID)}),
        ({"maxUnavailable": "0%", "maxSurge": "10%"}, set()),
        (
            {"maxUnavailable": "x", "maxSurge": "y"},
            {(f"{ROLLING}.maxUnavailable", INVALID), (f"{ROLLING}.maxSurge", INVALID)},
        ),
        ({"maxSurge": "0%", "maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"}, set()),
    ],
)
def test_limits_of_an_update(version: str, settings: Json, causes: set[tuple[str, str]]) -> None:
    """DS-17."""
    answer = SERVER.send(daemonset(rolling(**settings), version=version), version=version)
    assert causes_of(answer) == causes, messages_of(answer)


def test_what_was_once_accepted_does_not_stand_in_the_way() -> None:
    old = stored(SERVER.defaults(daemonset({"minReadySeconds": -1, **rolling(partition="x", maxUnavailable=1)})))
    assert isinstance(SERVER.update(old, {"spec": {"burstReplicas": 5}}), Allow)
    answer = SERVER.update(old, {"spec": {"minReadySeconds": -2}})
    assert causes_of(answer) == {("spec.minReadySeconds", INVALID)}


@pytest.mark.parametrize(
    "settings",
    [
        {"maxUnavailable": 1, "partition": 0, "rollingUpdateType": "Standard"},  # DS-121
        {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2},  # DS-123
        {"partition": 10, "paused": True},  # DS-124
        {"rollingUpdateType": "Surging"},  # DS-122
    ],
)
def test_what_walk_throughs_write_is_accepted(settings: Json) -> None:
    """DS-12."""
    answer = SERVER.send(daemonset(rolling(**settings), version="v1alpha1"), version="v1alpha1")
    assert causes_of(answer) == set(), messages_of(answer)


def test_deletion_is_not_protected() -> None:
    """DS-16."""
    guarded = admission.Server(admission=ADMISSION, gates={"ResourcesDeletionProtection": True})
    old = stored(daemonset(labels={"policy.kruise.io/delete-protection": "Always"}))
    assert guarded.judge(guarded.request(None, old, operation="DELETE")) == Allow()
