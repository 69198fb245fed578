"""Resources of containers changed in place (IPU sections 5 and 9, gate InPlaceWorkloadVerticalScaling)."""

from __future__ import annotations

from kruise.inplace import keys
from tests.scenarios.inplace import OLD, update_state
from tests.scenarios.podlog import is_serving, is_true
from tests.scenarios.stage import Stage, restarts_of, scenario, state_of, uids
from tests.support.world import Json


def sized(cpu: str, memory: str = "64Mi", *, limits: Json | None = None, policy: str = "") -> Json:
    made: Json = {"name": "main", "image": OLD, "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    if limits:
        made["resources"]["limits"] = limits
    if policy:
        made["resizePolicy"] = [{"resourceName": name, "restartPolicy": policy} for name in ("cpu", "memory")]
    return made


VERTICAL = {"InPlaceWorkloadVerticalScaling": True}


@scenario("IPU-33", "IPU-41", "IPU-55", gates=VERTICAL, smoke=True)
async def resources_are_resized_without_leaving_service(stage: Stage) -> None:
    """cpu 200m to 100m with resizePolicy NotRequired: same pod, no restart, and never unready (regressions 13, 14)."""
    container = sized("200m", limits={"cpu": "1", "memory": "64Mi"}, policy="NotRequired")
    before = await stage.start(replicas=2, containers=[container])
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "800m"}}
    async with stage.watching() as log:
        await stage.edit_template({"spec": {"containers": [{"name": "main", "resources": resources}]}})
        after = await stage.complete()
    assert uids(after) == uids(before)
    assert log.lowest(is_serving) == 2
    for pod in after:
        assert restarts_of(pod) == {"main": 0}
        wanted = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "800m", "memory": "64Mi"}}
        assert pod["spec"]["containers"][0]["resources"] == wanted
        assert pod["status"]["containerStatuses"][0]["resources"] == wanted
        assert update_state(pod)["updateResources"] is True


@scenario("IPU-33", "IPU-41", gates=VERTICAL)
async def a_resize_that_restarts_takes_the_pod_out_of_service(stage: Stage) -> None:
    """resizePolicy RestartContainer: the pod turns unready first."""
    [old] = await stage.start(replicas=1, containers=[sized("200m", policy="RestartContainer")])
    name = old["metadata"]["name"]
    async with stage.watching() as log:
        changed = [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]
        await stage.edit_template({"spec": {"containers": changed}})
        [new] = await stage.complete()
    assert uids([new]) == uids([old])
    log.first(name, lambda pod: not is_true(pod, keys.IN_PLACE_READY))


@scenario("IPU-33", gates=VERTICAL)
async def resources_that_cannot_be_resized_recreate_the_pod(stage: Stage) -> None:
    """A limit that was not there, or another QoS class: new pods (regression 13, edge case 12)."""
    before = await stage.start(replicas=1, containers=[sized("200m")])
    for resources in (
        {"limits": {"cpu": "1"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "64Mi"}},
    ):
        await stage.edit_template({"spec": {"containers": [{"name": "main", "resources": resources}]}})
        after = await stage.complete()
        assert not set(uids(after)) & set(uids(before))
        before = after
    assert before[0]["status"]["qosClass"] == "Guaranteed"


@scenario("IPU-32", gates={"InPlaceWorkloadVerticalScaling": False})
async def resources_recreate_the_pod_without_the_gate(stage: Stage) -> None:
    """Without the gate no resource is changed in place."""
    before = await stage.start(replicas=1, containers=[sized("200m")])
    changed = [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]
    await stage.edit_template({"spec": {"containers": changed}})
    assert not set(uids(await stage.complete())) & set(uids(before))


@scenario("IPU-61", "IPU-38", gates=VERTICAL)
async def a_resize_that_does_not_fit_can_be_corrected(stage: Stage) -> None:
    """A request beyond the node leaves the pod Updating; another template is applied to it at once (regression 13)."""
    [old] = await stage.start(replicas=1, containers=[sized("200m")])
    name = old["metadata"]["name"]
    too_much = [{"name": "main", "resources": {"requests": {"cpu": "5000"}}}]
    await stage.edit_template({"spec": {"containers": too_much}})

    async def is_infeasible() -> None:
        pod = await stage.pod(name)
        conditions = pod["status"]["conditions"]
        assert [item for item in conditions if item["type"] == "PodResizePending" and item["reason"] == "Infeasible"]
        assert state_of(pod) == "Updating"

    await stage.until(is_infeasible)
    await stage.stays(is_infeasible, seconds=stage.pace.calm / 4)
    fitting = [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]
    await stage.edit_template({"spec": {"containers": fitting}})
    [new] = await stage.complete()
    assert uids([new]) == uids([old])
    assert new["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"
