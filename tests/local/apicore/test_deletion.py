"""Deletes: finalizers, grace periods, propagation, preconditions, collections."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.local.apicore.deletion import DeleteOptions, Fate, decide
from kruise.local.kinds import POD_KIND
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import VIRTUAL_EPOCH, ManualClock
from tests.local.harness import CONFIG_MAPS, PODS, WIDGETS, Api, cm, pod, widget

STAY = "kruise.io/stay"


async def test_a_plain_delete_answers_with_what_is_gone() -> None:
    api = Api()
    _, made = await api.create(WIDGETS, widget("a"))
    code, answer = await api.delete(WIDGETS, "a")
    details = {"name": "a", "group": "toys.kruise.io", "kind": "widgets", "uid": made["metadata"]["uid"]}
    assert (code, answer["status"], answer["details"]) == (200, "Success", details)
    assert (await api.delete(WIDGETS, "a"))[0] == 404


async def test_finalizers_keep_an_object_until_the_last_is_gone() -> None:
    api = Api()
    await api.create(WIDGETS, widget("a", finalizers=[STAY, "kruise.io/too"]))
    code, marked = await api.delete(WIDGETS, "a")
    assert code == 200
    assert marked["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    assert (await api.delete(WIDGETS, "a"))[1] == marked, "a second delete changes nothing"
    assert (await api.create(WIDGETS, widget("a")))[1]["message"].startswith("object is being deleted: ")
    await api.patch(WIDGETS, "a", {"metadata": {"finalizers": [STAY]}})
    code, refused = await api.patch(WIDGETS, "a", {"metadata": {"finalizers": [STAY, "kruise.io/new"]}})
    assert (code, refused["details"]["causes"][0]["field"]) == (422, "metadata.finalizers")
    assert (await api.patch(WIDGETS, "a", {"metadata": {"finalizers": []}}))[0] == 200
    assert (await api.get(WIDGETS, "a"))[0] == 404
    assert [kind for kind, _ in await api.events_since(WIDGETS, "2")] == ["MODIFIED", "DELETED"]


async def test_a_pod_on_a_node_gets_its_grace_period() -> None:
    clock = ManualClock()
    api = Api(clock=clock)
    await api.create(PODS, pod("a", grace=40))
    _, marked = await api.delete(PODS, "a")
    assert marked["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:40Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 40
    clock.advance(5)
    assert (await api.delete(PODS, "a"))[1] == marked
    assert (await api.delete(PODS, "a", {"gracePeriodSeconds": 60}))[1] == marked, "never longer"
    _, shorter = await api.delete(PODS, "a", {"gracePeriodSeconds": 20})
    assert shorter["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:20Z"
    clock.advance(30)
    _, late = await api.delete(PODS, "a", {"gracePeriodSeconds": 10})
    assert late["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:35Z", "not in the past"
    assert late["metadata"]["deletionGracePeriodSeconds"] == 1, "whoever works on it still ends it"
    _, last = await api.delete(PODS, "a", {"gracePeriodSeconds": 0})
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.get(PODS, "a"))[0] == 404
    events = await api.events_since(PODS, "1")
    assert [kind for kind, _ in events] == ["MODIFIED"] * 4 + ["DELETED"]
    assert last["metadata"]["resourceVersion"] == events[-1][1]["metadata"]["resourceVersion"]


@pytest.mark.parametrize("pending", [True, False])
async def test_pods_with_nothing_to_wind_up_go_at_once(pending: bool) -> None:
    api = Api()
    await api.create(PODS, pod("a", node="" if pending else "n1"))
    if not pending:
        await api.patch(PODS, "a", {"status": {"phase": "Failed"}}, subresource="status")
    code, gone = await api.delete(PODS, "a", {"gracePeriodSeconds": 50})
    assert (code, gone["kind"]) == (200, "Pod")
    assert (await api.get(PODS, "a"))[0] == 404


async def test_a_pod_with_grace_and_finalizers_outlives_both() -> None:
    api = Api()
    await api.create(PODS, pod("a", finalizers=[STAY]))
    await api.delete(PODS, "a")
    await api.patch(PODS, "a", {"metadata": {"finalizers": []}})
    assert (await api.get(PODS, "a"))[0] == 200, "its grace period is not over"
    await api.delete(PODS, "a", {"gracePeriodSeconds": 0})
    assert (await api.get(PODS, "a"))[0] == 404
    await api.create(PODS, pod("b", finalizers=[STAY]))
    await api.delete(PODS, "b", {"gracePeriodSeconds": 0})
    assert (await api.get(PODS, "b"))[0] == 200, "its finalizer is still there"
    await api.patch(PODS, "b", {"metadata": {"finalizers": []}})
    assert (await api.get(PODS, "b"))[0] == 404


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Orphan", [STAY, "orphan"]), ("Foreground", [STAY, "foregroundDeletion"]), ("Background", [STAY])],
)
async def test_propagation_sets_the_collectors_finalizers(policy: str, finalizers: list[str]) -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a", finalizers=[STAY]))
    _, marked = await api.delete(CONFIG_MAPS, "a", query=(("propagationPolicy", policy),))
    assert marked["metadata"]["finalizers"] == finalizers


async def test_foreground_keeps_an_object_without_finalizers() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    await api.delete(CONFIG_MAPS, "a", {"propagationPolicy": "Foreground"})
    _, kept = await api.get(CONFIG_MAPS, "a")
    assert kept["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_preconditions() -> None:
    api = Api()
    _, made = await api.create(PODS, pod("a", node=""))
    about = made["metadata"]
    for wrong in ({"uid": "other"}, {"resourceVersion": "77"}, {"uid": about["uid"], "resourceVersion": "77"}):
        code, refused = await api.delete(PODS, "a", {"preconditions": wrong})
        assert (code, refused["reason"]) == (409, "Conflict")
        assert "in the precondition" in refused["message"]
    right = {"uid": about["uid"], "resourceVersion": about["resourceVersion"]}
    assert (await api.delete(PODS, "a", {"preconditions": right}))[0] == 200


async def test_collections_go_by_selector() -> None:
    api = Api()
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        await api.create(CONFIG_MAPS, cm(name, labels={"l": label}))
    query = (("labelSelector", "l=x"),)
    code, answer = await api.send(Verb.DELETE_COLLECTION, CONFIG_MAPS, query=query)
    assert (code, [item["metadata"]["name"] for item in answer["items"]]) == (200, ["a", "b"])
    _, left = await api.list(CONFIG_MAPS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["c"]


async def test_collections_over_all_namespaces_with_grace() -> None:
    api = Api()
    await api.create(PODS, pod("a"), namespace="one")
    await api.create(PODS, pod("b"), namespace="two")
    await api.send(Verb.DELETE_COLLECTION, PODS, body={"gracePeriodSeconds": 7}, namespace="")
    _, left = await api.list(PODS, namespace="")
    assert [item["metadata"]["deletionGracePeriodSeconds"] for item in left["items"]] == [7, 7]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"propagationPolicy": "Up"}, "propagationPolicy"),
        ({"propagationPolicy": "Orphan", "orphanDependents": False}, "propagationPolicy"),
        ({"dryRun": ["Maybe"]}, "dryRun"),
    ],
)
async def test_options_that_are_refused(body: Any, field: str) -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    code, refused = await api.delete(CONFIG_MAPS, "a", body)
    assert (code, refused["details"]["causes"][0]["field"]) == (422, field)
    assert (await api.delete(CONFIG_MAPS, "a", query=(("gracePeriodSeconds", "soon"),)))[0] == 400


def test_negative_grace_counts_as_one_second() -> None:
    obj = {
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30},
    }
    outcome = decide(POD_KIND, obj, DeleteOptions(grace_period_seconds=-5), VIRTUAL_EPOCH)
    assert outcome.fate is Fate.MARK
    assert outcome.object["metadata"]["deletionGracePeriodSeconds"] == 1
    assert "deletionTimestamp" not in obj["metadata"], "the input is left alone"


def test_zero_grace_on_a_marked_pod_brings_its_time_forward() -> None:
    now = VIRTUAL_EPOCH + timedelta(seconds=10)
    obj = {
        "metadata": {
            "name": "a",
            "uid": "u",
            "resourceVersion": "1",
            "deletionTimestamp": "2030-01-01T00:00:30Z",
            "deletionGracePeriodSeconds": 30,
        },
        "spec": {"nodeName": "n"},
    }
    outcome = decide(POD_KIND, obj, DeleteOptions(grace_period_seconds=0), now)
    assert outcome.fate is Fate.REMOVE
    assert outcome.object["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:10Z"
