"""Whatever is done to pods, every status that is ever written is consistent, and in the end they come to rest."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.local.nodes import make_nodes
from kruise.machinery.client.errors import ForbiddenError, NotFoundError
from kruise.machinery.clock import run_virtual
from tests.local.nodes.world import Json, World, condition, container, pod, script

GATE = "example.com/gate"
IMAGES = ("app:1", "app:2", "app:missing", "busybox:1")
KNOBS = (
    ("never-ready", "true"),
    ("slow-start", "7"),
    ("crash-loop", "1 after 2s"),
    ("unhealthy-after", "9"),
    ("pull-error", "true"),
    ("stop-seconds", "6"),
    ("exit", "0 after 4s"),
)

probes = st.sampled_from(
    [
        {},
        {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 2}},
        {"livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 3, "failureThreshold": 1}},
        {"startupProbe": {"exec": {"command": ["true"]}, "periodSeconds": 2, "failureThreshold": 2}},
        {"lifecycle": {"preStop": {"sleep": {"seconds": 3}}, "postStart": {"exec": {"command": ["sleep", "2"]}}}},
    ]
)
inits = st.sampled_from(
    [
        [],
        [script("sleep 2", "setup")],
        [script("exit 1", "setup")],
        [container("proxy", "envoy:1", restartPolicy="Always")],
        [
            container("proxy", "envoy:1", restartPolicy="Always", startupProbe={"tcpSocket": {"port": 1}}),
            script("true", "s"),
        ],
    ]
)
pods = st.fixed_dictionaries(
    {
        "restartPolicy": st.sampled_from(["Always", "OnFailure", "Never"]),
        "image": st.sampled_from(IMAGES),
        "probes": probes,
        "init": inits,
        "two": st.booleans(),
        "gate": st.booleans(),
        "deadline": st.sampled_from([None, None, None, 25]),
        "knob": st.one_of(st.none(), st.sampled_from(KNOBS)),
    }
)
steps = st.one_of(
    st.tuples(st.just("sleep"), st.sampled_from([0.05, 0.4, 1.0, 3.0, 11.0])),
    st.tuples(st.just("image"), st.sampled_from(IMAGES)),
    st.tuples(st.just("knob"), st.one_of(st.none(), st.sampled_from(KNOBS))),
    st.tuples(st.just("gate"), st.sampled_from(["True", "False"])),
    st.tuples(st.just("cpu"), st.sampled_from(["100m", "200m", "9"])),
    st.tuples(st.just("down"), st.booleans()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("delete"), st.sampled_from([0, 3, 30])),
)


def body(wanted: Json) -> Json:
    resources = {"requests": {"cpu": "50m"}, "limits": {"cpu": "10"}}
    main = [container(image=wanted["image"], resources=resources, **wanted["probes"])]
    if wanted["two"]:
        main.append(script("echo hi; sleep 6", "second"))
    spec: Json = {"containers": main, "initContainers": wanted["init"], "restartPolicy": wanted["restartPolicy"]}
    if wanted["gate"]:
        spec["readinessGates"] = [{"conditionType": GATE}]
    if wanted["deadline"]:
        spec["activeDeadlineSeconds"] = wanted["deadline"]
    knob = wanted["knob"]
    return pod("web", annotations={f"sim.kruise.io/{knob[0]}": knob[1]} if knob else None, **spec)


async def act(world: World, kind: str, value: Any) -> None:
    if kind == "sleep":
        await asyncio.sleep(value)
    elif kind == "image":
        await world.set_image(value)
    elif kind == "knob":
        cleared: Json = {f"sim.kruise.io/{name}": None for name, _ in KNOBS}
        given = {f"sim.kruise.io/{value[0]}": value[1]} if value else {}
        await world.patch({"metadata": {"annotations": cleared | given}})
    elif kind == "gate":
        gate = {"type": GATE, "status": value}
        await world.patch({"status": {"conditions": [gate]}}, subresource="status")
    elif kind == "cpu":
        resources = {"requests": {"cpu": value}}
        await world.patch({"spec": {"containers": [{"name": "app", "resources": resources}]}}, subresource="resize")
    elif kind == "down":
        (world.model.stop_node if value else world.model.start_node)("node-1")
    elif kind == "restart":
        await world.restart()
    else:
        await world.client.delete(PODS, "web", "default", grace_period_seconds=value)


def check(found: Json) -> None:
    told = found["status"]
    if "startTime" not in told:
        return
    every = [*told.get("containerStatuses", ()), *told.get("initContainerStatuses", ())]
    for item in every:
        assert len(item["state"]) == 1, item
        assert not (item["ready"] and "waiting" in item["state"]), item
        if "running" in item["state"]:
            assert item["containerID"]
            assert item["imageID"]
        last = item["lastState"].get("terminated")
        now = item["state"].get("terminated")
        assert not (last and now and last["containerID"] == now.get("containerID")), item
    sidecars = {
        item["name"] for item in found["spec"].get("initContainers", ()) if item.get("restartPolicy") == "Always"
    }
    counted = [item for item in every if item["name"] in sidecars or item in told.get("containerStatuses", ())]
    all_ready = all(item["ready"] for item in counted)
    assert (condition(found, "ContainersReady")["status"] == "True") == (
        all_ready and told["phase"] not in ("Failed", "Succeeded")
    )
    ready = condition(found, "Ready")["status"] == "True"
    if ready:
        assert all_ready
        assert told["phase"] == "Running"
        assert told["podIP"]
    if told["phase"] in ("Succeeded", "Failed"):
        assert not ready
        assert not any("running" in item["state"] for item in every), told
    if told["phase"] == "Succeeded":
        assert all(item["state"]["terminated"]["exitCode"] == 0 for item in told["containerStatuses"])


async def story(wanted: Json, doings: list[tuple[str, Any]]) -> None:
    world = World(make_nodes(1, cpu="4"))
    await world.start()
    await world.client.create(PODS, body(wanted), "default")
    for kind, value in doings:
        try:
            await act(world, kind, value)
        except NotFoundError:
            break
        except ForbiddenError:
            assert kind == "cpu"  # a pod that has ended is not resized
    world.model.start_node("node-1")
    await asyncio.sleep(900)
    counts: dict[tuple[str, str], int] = {}
    ended = ""
    for event in world.core.storage.since("pods", 1):
        found = event.object
        ours = event.type != "DELETED"
        if ours and _is_settled(found, event.previous):
            check(found)
        for item in found["status"].get("containerStatuses", ()):
            key = (found["metadata"]["uid"], item["name"])
            assert item["restartCount"] >= counts.get(key, 0)
            counts[key] = item["restartCount"]
        if ended:
            assert found["status"]["phase"] == ended, "a pod that has ended stays so"
        ended = found["status"]["phase"] if found["status"]["phase"] in ("Failed", "Succeeded") else ""
    left = world.core.storage.get("pods", ("default", "web"))
    if left is not None:
        assert "deletionTimestamp" not in left["metadata"]
        check(left)
        gates = [
            condition(left, gate["conditionType"]).get("status") for gate in left["spec"].get("readinessGates", ())
        ]
        assert condition(left, "Ready")["status"] == "False" or all(gate == "True" for gate in gates)
        if left["status"]["phase"] == "Running":
            assert left["status"]["observedGeneration"] == left["metadata"]["generation"]
    await world.stop()


def _is_settled(found: Json, previous: Json | None) -> bool:
    """A write of a node, not one of somebody else's that it has not seen yet."""
    return previous is None or found["status"].get("containerStatuses") != previous["status"].get("containerStatuses")


@given(wanted=pods, doings=st.lists(steps, max_size=12))
@settings(max_examples=60, deadline=None)
def test_every_status_is_consistent(wanted: Json, doings: list[tuple[str, Any]]) -> None:
    run_virtual(story(wanted, doings))
