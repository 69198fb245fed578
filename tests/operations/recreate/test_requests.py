"""Whole requests on the local cluster: manager, webhook, node daemon and nodes."""

from __future__ import annotations

import asyncio
import dataclasses

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.native.pod import PODS
from kruise.machinery.client.requests import PatchType
from tests.operations.recreate.scenes import Scene, condition, container, play, pod, request, restarts, states


def test_one_of_two_containers() -> None:
    """CRR-8, CRR-17, CRR-20, CRR-21, CRR-31, CRR-52, CRR-71, CRR-77: the other runs on."""

    async def scenario(scene: Scene) -> None:
        before = await scene.ready(pod(container("app"), container("side")))
        created = await scene.world.create(request("app"))
        assert created["metadata"]["labels"]["crr.apps.kruise.io/active"] == "true"
        found = await scene.completed()
        assert states(found) == [("app", "Succeeded", True)]
        assert "message" not in found["status"]
        after = await scene.pod()
        assert restarts(after) == {"app": 1, "side": 0}
        assert after["status"]["podIP"] == before["status"]["podIP"]
        [entry] = found["status"]["containerStatusSnapshot"]
        [app] = [item for item in after["status"]["containerStatuses"] if item["name"] == "app"]
        assert entry == {"name": "app", "ready": True, "restartCount": 1, "containerID": app["containerID"]}
        await asyncio.sleep(5)
        assert "crr.apps.kruise.io/active" not in (await scene.request())["metadata"]["labels"]
        assert restarts(await scene.pod()) == {"app": 1, "side": 0}

    play(scenario)


def test_without_order_all_restart_together() -> None:
    """CRR-51, CRR-73: one is stopped after the other, without waiting for the start."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("a"), container("b"), annotations={"sim.kruise.io/slow-start": "5"}))
        await scene.world.create(request("a", "b"))
        await scene.request_is(lambda found: states(found) == [("a", "Recreating", True), ("b", "Recreating", True)])
        assert states(await scene.completed()) == [("a", "Succeeded", True), ("b", "Succeeded", True)]
        assert restarts(await scene.pod()) == {"a": 1, "b": 1}

    play(scenario)


def test_in_order_one_waits_for_the_other() -> None:
    """CRR-51, CRR-74: in the order of the request, not of the pod, and each as long as minStartedSeconds says."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("a"), container("b")))
        began = scene.now
        await scene.world.create(request("b", "a", strategy={"orderedRecreate": True, "minStartedSeconds": 4}))
        await scene.request_is(lambda found: states(found)[:1] == [("b", "Recreating", True)])
        while states(await scene.request())[0][1] != "Succeeded":
            assert states(await scene.request())[1] == ("a", "Pending", False)
            assert restarts(await scene.pod())["a"] == 0
            await asyncio.sleep(0.2)
        assert scene.now - began >= 4
        assert states(await scene.completed()) == [("b", "Succeeded", True), ("a", "Succeeded", True)]
        assert 8 <= scene.now - began <= 12

    play(scenario)


def test_success_comes_when_min_started_seconds_are_over() -> None:
    """CRR-47, and at that moment, not some seconds later."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app")))
        await scene.world.create(request("app", strategy={"minStartedSeconds": 7}))
        restarted = await scene.pod_is(lambda found: restarts(found)["app"] == 1)
        began = scene.now
        await scene.completed()
        assert 6.5 <= scene.now - began <= 7.5
        assert restarted["status"]["containerStatuses"][0]["restartCount"] == 1

    play(scenario)


def test_a_hook_is_run_before_the_stop() -> None:
    """DMN-55 to DMN-58: as long as it takes, within the grace; and its failure is told, and stops nothing."""

    async def scenario(scene: Scene) -> None:
        slow = container("slow", lifecycle={"preStop": {"exec": {"command": ["sleep", "4"]}}})
        bad = container("bad", lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "echo no; exit 7"]}}})
        web = container(
            "web",
            ports=[{"name": "http", "containerPort": 80}],
            lifecycle={"preStop": {"httpGet": {"path": "/", "port": "http"}}},
        )
        await scene.ready(pod(slow, bad, web, terminationGracePeriodSeconds=10))
        began = scene.now
        await scene.world.create(request("slow", "bad", "web"))
        await scene.pod_is(lambda found: restarts(found)["slow"] == 1)
        assert 4 <= scene.now - began <= 6
        await scene.completed()
        assert restarts(await scene.pod()) == {"slow": 1, "bad": 1, "web": 1}
        await scene.world.cluster.nodes.flush_events()
        events = await scene.world.events("p")
        [failed] = [event for event in events if event["reason"] == "FailedPreStopHook"]
        assert failed["message"] == (
            "preStop hook of container bad failed: command 'sh -c echo no; exit 7' exited with 7: no"
        )
        kills = [event for event in events if event["source"]["component"] == "kruise-daemon-crr"]
        stopping = [event["message"] for event in kills if event["reason"] == "Killing"]
        assert stopping == [
            f"Stopping container {name} by ContainerRecreateRequest r" for name in ("slow", "bad", "web")
        ]
        assert {event["involvedObject"]["fieldPath"] for event in kills if event["reason"] == "Killing"} == {
            f"spec.containers{{{name}}}" for name in ("slow", "bad", "web")
        }

    play(scenario)


def test_a_hook_that_takes_too_long_is_left_alone() -> None:
    """DMN-59, CRR section 12, 3: the grace is over, the container is stopped."""

    async def scenario(scene: Scene) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "60"]}}}
        await scene.ready(pod(container("app", lifecycle=hook), terminationGracePeriodSeconds=30))
        began = scene.now
        await scene.world.create(request("app", strategy={"terminationGracePeriodSeconds": 3}))
        await scene.pod_is(lambda found: restarts(found)["app"] == 1)
        assert 3 <= scene.now - began <= 6.5

    play(scenario)


def test_the_deadline_does_not_cut_a_kill_short() -> None:
    """CRR-28, CRR-29, CRR-58: the picture that is told there."""

    async def scenario(scene: Scene) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "8"]}}}
        await scene.ready(pod(container("app", lifecycle=hook), container("side"), terminationGracePeriodSeconds=20))
        began = scene.now
        await scene.world.create(request("app", "side", activeDeadlineSeconds=3, ttlSecondsAfterFinished=30))
        found = await scene.completed()
        assert 3 <= scene.now - began <= 5
        assert found["status"]["message"] == "recreating has exceeded the activeDeadlineSeconds"
        assert states(found) == [("app", "Pending", False), ("side", "Pending", False)]
        found = await scene.request_is(lambda found: states(found)[0][1] == "Recreating")
        assert states(found) == [("app", "Recreating", True), ("side", "Pending", False)]
        assert found["status"]["phase"] == "Completed"
        await asyncio.sleep(10)
        assert restarts(await scene.pod()) == {"app": 1, "side": 0}
        await scene.gone()

    play(scenario)


def test_the_pod_is_not_ready_before_its_container_stops() -> None:
    """CRR-32 to CRR-34, CRR-63, CRR-75: finalizer, reason, condition; then all is given back."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app")))
        began = scene.now
        await scene.world.create(request("app", strategy={"unreadyGracePeriodSeconds": 5}))
        held = await scene.pod_is(lambda found: condition(found, "Ready")["status"] == "False", within=2)
        assert condition(held, "KruisePodReady")["message"] == (
            '[{"userAgent":"ContainerRecreateRequest","key":"default/r"}]'
        )
        found = await scene.request_is(lambda found: bool(found["status"].get("conditions")))
        assert found["metadata"]["finalizers"] == ["crr.apps.kruise.io/unready-acquired"]
        time = found["status"]["conditions"][0]["lastTransitionTime"]
        await scene.pod_is(lambda found: restarts(found)["app"] == 1)
        assert 5 <= scene.now - began <= 8
        found = await scene.completed()
        assert found["status"]["conditions"][0]["lastTransitionTime"] == time
        given_back = await scene.pod_is(lambda found: condition(found, "Ready")["status"] == "True", within=3)
        assert condition(given_back, "KruisePodReady")["message"] == "[]"
        await scene.request_is(lambda found: "finalizers" not in found["metadata"], within=3)

    play(scenario)


def test_a_request_deleted_in_its_grace_releases_the_pod() -> None:
    """CRR section 12, 7."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app")))
        await scene.world.create(request("app", strategy={"unreadyGracePeriodSeconds": 60}))
        await scene.pod_is(lambda found: condition(found, "Ready")["status"] == "False")
        await scene.request_is(lambda found: bool(found["status"].get("conditions")))
        await scene.world.delete(REQUESTS, "r")
        await scene.gone()
        await scene.pod_is(lambda found: condition(found, "Ready")["status"] == "True")
        await asyncio.sleep(90)
        assert restarts(await scene.pod()) == {"app": 0}

    play(scenario)


def test_without_the_gate_the_grace_is_kept_all_the_same() -> None:
    """CRR-32, CRR section 12, 14."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app")))
        began = scene.now
        await scene.world.create(request("app", strategy={"unreadyGracePeriodSeconds": 5}))
        await scene.request_is(lambda found: bool(found.get("status", {}).get("conditions")))
        found = await scene.request()
        assert "finalizers" not in found["metadata"]
        assert condition(await scene.pod(), "Ready")["status"] == "True"
        await scene.completed()
        assert scene.now - began >= 5

    play(scenario, feature_gates="")


def test_the_next_request_begins_when_the_one_before_is_done() -> None:
    """CRR-41, CRR section 12, 9: the second finds its container recreated already; with force it is stopped again."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app"), container("other")))
        await scene.world.create(request("app", name="r1", strategy={"minStartedSeconds": 3}))
        await scene.world.create(request("app", name="r2"))
        await scene.world.create(request("other", name="r3"))
        await scene.request_is(lambda found: found.get("status", {}).get("phase") == "Pending", "r2")
        first = await scene.completed("r1")
        assert states(first) == [("app", "Succeeded", True)]
        second = await scene.completed("r2", within=2)
        assert [state[:2] for state in states(second)] == [("app", "Succeeded")]
        await scene.completed("r3", within=5)
        assert restarts(await scene.pod()) == {"app": 1, "other": 1}

    play(scenario)


def test_force_stops_what_was_replaced_already() -> None:
    """CRR-46, row 4: once."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app")))
        await scene.world.create(request("app", name="r1"))
        await scene.world.create(request("app", name="r2", strategy={"forceRecreate": True}))
        await scene.completed("r1")
        assert states(await scene.completed("r2")) == [("app", "Succeeded", True)]
        await asyncio.sleep(30)
        assert restarts(await scene.pod()) == {"app": 2}

    play(scenario)


def test_failure_policies() -> None:
    """CRR-76."""

    async def scenario(scene: Scene) -> None:
        stubborn = {"sim.kruise.io/stop-error.a": "the shim does not answer"}
        for name, policy in (("p", "Fail"), ("q", "Ignore")):
            await scene.ready(pod(container("a"), container("b"), name=name, annotations=stubborn))
            await scene.world.create(request("a", "b", name=name, pod=name, strategy={"failurePolicy": policy}))
        failed = await scene.completed("p")
        assert states(failed) == [("a", "Failed", False), ("b", "Pending", False)]
        assert failed["status"]["containerRecreateStates"][0]["message"] == (
            "kill container error: rpc error: code = Unknown desc = the shim does not answer"
        )
        assert "message" not in failed["status"]
        assert states(await scene.completed("q")) == [("a", "Failed", False), ("b", "Succeeded", True)]
        assert restarts(await scene.pod("p")) == {"a": 0, "b": 0}
        assert restarts(await scene.pod("q")) == {"a": 0, "b": 1}

    play(scenario)


def test_nobody_answers_on_the_node() -> None:
    """CRR-27, DMN-100: a minute, then the request says why; nothing was done."""

    async def scenario(scene: Scene) -> None:
        found = await scene.ready(pod(container("app")))
        scene.world.cluster.nodes.stop_daemon(found["spec"]["nodeName"])
        began = scene.now
        await scene.world.create(request("app"))
        ended = await scene.completed(within=90)
        assert 60 <= scene.now - began <= 62
        assert ended["status"]["message"] == "daemon has not responded for a long time"
        assert states(ended) == []
        assert restarts(await scene.pod()) == {"app": 0}

    play(scenario)


def test_the_pod_goes() -> None:
    """CRR-23, CRR section 12, 8."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app")))
        await scene.world.create(request("app", strategy={"unreadyGracePeriodSeconds": 60}))
        await scene.request_is(lambda found: found.get("status", {}).get("phase") == "Recreating")
        await scene.world.delete(PODS, "p")
        found = await scene.completed()
        assert found["status"]["message"] == "pod has gone"
        await scene.request_is(lambda found: "finalizers" not in found["metadata"])

    play(scenario)


def test_ttl() -> None:
    """CRR-22, CRR section 12, 15: 0 means at once."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app"), container("b")))
        await scene.world.create(request("app", name="at-once", ttlSecondsAfterFinished=0))
        await scene.gone("at-once", within=10)
        await scene.world.create(request("b", name="later", ttlSecondsAfterFinished=3))
        await scene.completed("later")
        began = scene.now
        await scene.gone("later")
        assert 3 <= scene.now - began <= 6

    play(scenario)


def test_a_container_that_will_not_start_again() -> None:
    """It is said at once, not at the deadline."""

    async def scenario(scene: Scene) -> None:
        done = {"name": "done", "image": "busybox:1.34", "command": ["sh", "-c", "exit 0"]}
        await scene.world.create(pod(done, container("main"), restartPolicy="Never"))
        await scene.pod_is(
            lambda found: (
                [next(iter(item["state"])) for item in found["status"].get("containerStatuses", ())]
                == ["terminated", "running"]
            )
        )
        await scene.world.create(request("done", "main", strategy={"failurePolicy": "Ignore"}))
        found = await scene.completed()
        assert states(found)[0] == ("done", "Failed", False)
        assert found["status"]["containerRecreateStates"][0]["message"] == (
            "the container has ended with exit code 0, and restartPolicy Never does not start it again"
        )

    play(scenario)


def test_a_container_that_crashes_once_after_its_restart() -> None:
    """CRR-47: what counts is the container that stays; it is stopped once."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app")))
        await scene.world.patch(
            PODS,
            "p",
            {"metadata": {"annotations": {"sim.kruise.io/exit": "1 after 2s", "sim.kruise.io/crash-count": "2"}}},
        )
        await scene.world.create(request("app", strategy={"minStartedSeconds": 5}))
        assert states(await scene.completed(within=120)) == [("app", "Succeeded", True)]
        assert restarts(await scene.pod()) == {"app": 2}

    play(scenario)


def test_applied_again_nothing_changes() -> None:
    """In both versions, by patch and by server-side apply, also when it is done."""

    async def scenario(scene: Scene) -> None:
        await scene.ready(pod(container("app"), container("b")))
        for name, version in (("app", "v1alpha1"), ("b", "v1beta1")):
            manifest = request(name, name=name, version=version)
            resource = dataclasses.replace(REQUESTS, version=version)
            await scene.world.create(manifest)
            done = await scene.completed(name)
            for patch_type in (PatchType.MERGE, PatchType.APPLY, PatchType.APPLY):
                await scene.world.client.patch(
                    resource,
                    name,
                    manifest,
                    "default",
                    patch_type=patch_type,
                    field_manager="user",
                    force=patch_type is PatchType.APPLY,
                )
                after = await scene.request(name)
                assert after["spec"] == done["spec"]
                assert after["status"] == done["status"]
                assert after["metadata"]["generation"] == 1
        assert restarts(await scene.pod()) == {"app": 1, "b": 1}

    play(scenario)


def test_a_request_deleted_during_its_kill_holds_nobody_up() -> None:
    """CRR-40, CRR-58: the kill comes to its end, and nobody is left to be told; the next request has its turn."""

    async def scenario(scene: Scene, *, same_name: bool) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "4"]}}}
        await scene.ready(pod(container("app", lifecycle=hook), container("side"), terminationGracePeriodSeconds=10))
        await scene.world.create(request("app"))
        await scene.request_is(lambda found: states(found) == [("app", "Pending", False)])
        await asyncio.sleep(1)  # the hook runs
        await scene.world.delete(REQUESTS, "r")
        await scene.gone()
        name = "r" if same_name else "next"
        await scene.world.create(request("side", name=name))
        assert states(await scene.completed(name, within=30)) == [("side", "Succeeded", True)]
        assert restarts(await scene.pod()) == {"app": 1, "side": 1}

    play(lambda scene: scenario(scene, same_name=False))
    play(lambda scene: scenario(scene, same_name=True))
