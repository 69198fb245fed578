"""Pods that end although sidecars run beside them, as stories that a local world and real nodes play alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.native.apps import JOBS
from kruise.api.native.pod import PODS
from tests.support.world import World

Json = dict[str, Any]
KILL = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
IGNORE = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
IMAGE = "busybox:1.36"


def main(code: int = 0, seconds: int = 2) -> Json:
    return {"name": "main", "image": IMAGE, "command": ["sh", "-c", f"sleep {seconds}; exit {code}"]}


def sidecar(name: str = "side", *, code: int = 0, ignores: bool = False) -> Json:
    """Ends with the code when it is asked to."""
    env = [{"name": KILL, "value": "true"}]
    if ignores:
        env.append({"name": IGNORE, "value": "true"})
    command = ["sh", "-c", f"trap 'exit {code}' TERM; while :; do sleep 1; done"]
    return {"name": name, "image": IMAGE, "command": command, "env": env}


def job(*containers: Json, policy: str = "Never") -> Json:
    spec = {"restartPolicy": policy, "terminationGracePeriodSeconds": 3, "containers": list(containers)}
    template = {"metadata": {"labels": {"app": "work"}}, "spec": spec}
    return {"metadata": {"name": "work"}, "spec": {"backoffLimit": 1, "template": template}}


async def ended(world: World, kind: str) -> None:
    """The Job is over, in this way."""

    async def check() -> None:
        conditions = (await world.get(JOBS, "work"))["status"].get("conditions", [])
        assert kind in {item["type"] for item in conditions if item["status"] == "True"}, conditions

    await world.until(check, within=180)


async def phases(world: World) -> list[str]:
    return [pod["status"]["phase"] for pod in await world.list(PODS, "app=work")]


async def run(world: World, manifest: Json) -> None:
    await world.client.create(JOBS, manifest, world.namespace)


async def a_job_ends(world: World) -> None:
    """The sidecar is stopped through the node daemon, and the Job is complete (JST-13, JST-16)."""
    await run(world, job(main(), sidecar()))
    await ended(world, "Complete")
    pod = (await world.list(PODS, "app=work"))[0]
    request = await world.get(REQUESTS, f"sidecar-termination-{pod['metadata']['uid']}")
    assert request["spec"]["podName"] == pod["metadata"]["name"]
    assert [one["name"] for one in request["spec"]["containers"]] == ["side"]
    assert request["spec"]["strategy"]["forceRecreate"] is True
    assert request["spec"]["strategy"]["failurePolicy"] == "Ignore"
    assert request["metadata"]["ownerReferences"][0]["name"] == pod["metadata"]["name"]


async def an_event_tells_of_it(world: World) -> None:
    """JST-15."""
    await run(world, job(main(), sidecar()))
    await ended(world, "Complete")
    pod = (await world.list(PODS, "app=work"))[0]
    notes = await world.events(pod["metadata"]["name"], "SidecarTerminator")
    assert notes[0]["message"] == "Kruise SidecarTerminator is trying to terminate sidecar [side] using crr"


async def exit_codes_are_ignored(world: World) -> None:
    """A sidecar whose exit code is to be ignored fails, and the Job is complete all the same (JST-21 to JST-24)."""
    await run(world, job(main(), sidecar(code=7, ignores=True)))
    await ended(world, "Complete")
    pod = (await world.list(PODS, "app=work"))[0]
    told = {item["type"]: item for item in pod["status"]["conditions"]}["SidecarTerminated"]
    assert (told["status"], told["message"]) == ("True", "Terminated by Sidecar Terminator")
    await world.sleep(20)
    assert await phases(world) == ["Succeeded"]  # and it stays so


async def the_main_container_fails(world: World) -> None:
    """With Never the pod fails by its main container, and nothing goes on running (JST-4)."""
    manifest = job(main(code=1), sidecar(ignores=True))
    manifest["spec"]["backoffLimit"] = 0
    await run(world, manifest)
    await ended(world, "Failed")


async def on_failure_a_sidecar_that_fails_does_not_keep_the_job(world: World) -> None:
    """With OnFailure a kubelet starts a sidecar that failed again, for ever: the pod ends by its main containers."""
    manifest = job(main(), sidecar(code=3), policy="OnFailure")
    manifest["spec"]["backoffLimit"] = 3  # the one restart counts for it
    await run(world, manifest)
    await ended(world, "Complete")
    assert set(await phases(world)) == {"Succeeded"}


async def both_sorts(world: World) -> None:
    """First the one whose exit counts, then the other, which the terminal phase ends (JST-11, JST-14, B6.2)."""
    await run(world, job(main(), sidecar("counts"), sidecar("not", code=9, ignores=True)))
    await ended(world, "Complete")
    requests = await world.list(REQUESTS)
    assert [[one["name"] for one in item["spec"]["containers"]] for item in requests] == [["counts"]]

    async def all_stopped() -> None:
        statuses = (await world.list(PODS, "app=work"))[0]["status"]["containerStatuses"]
        assert all("terminated" in one["state"] for one in statuses), statuses

    await world.until(all_stopped, within=180)  # a kubelet looks at the phase once a minute
    assert await phases(world) == ["Succeeded"]


Story = Callable[[World], Awaitable[None]]
STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        a_job_ends,
        an_event_tells_of_it,
        exit_codes_are_ignored,
        the_main_container_fails,
        on_failure_a_sidecar_that_fails_does_not_keep_the_job,
        both_sorts,
    )
}
