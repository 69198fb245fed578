"""Scenarios of CloneSet admission, for the local cluster and a real one."""

from __future__ import annotations

import dataclasses

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS
from kruise.api.versions import NEWER, OLDER
from kruise.machinery.client.requests import Verb
from tests.support.admission_scenarios import Stage
from tests.support.recorded_admission import Recorded
from tests.support.world import World

KIND = Recorded("cloneset")
ALPHA = dataclasses.replace(CLONE_SETS, version=OLDER)


async def with_pods(world: World) -> Stage:
    """The recorded objects, and pods of theirs under the names that requests use."""
    stage = Stage(world, KIND)
    await stage.create_bases()
    spec = {"containers": [{"name": "main", "image": "nginx:1.25"}, {"name": "side", "image": "x"}]}
    await world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}, "spec": spec})

    async def pod_of(name: str) -> str:
        pods = await world.list(PODS, f"app={name}")
        assert pods, f"no pod of {name} yet"
        return str(pods[0]["metadata"]["name"])

    own = await world.until(lambda: pod_of("cs"))
    other = await world.until(lambda: pod_of("cs-ipo"))
    return dataclasses.replace(stage, names={"$OWNPOD": own, "$OTHERPOD": other})


async def recorded_verdicts(world: World) -> None:
    """CS-40 to CS-50."""
    await (await with_pods(world)).verdicts()


async def recorded_defaults(world: World) -> None:
    """CS-30 to CS-33."""
    await Stage(world, KIND).defaults()


async def subresources(world: World) -> None:
    await (await with_pods(world)).subresources()


async def protected(world: World) -> None:
    await Stage(world, KIND).protected()


async def both_versions(world: World) -> None:
    """CS-2, CS-30: one object, created bare through v1beta1, reads alike through both, and v1alpha1 may change it."""
    stage = Stage(world, KIND)
    bare = {**KIND.base("cs"), "apiVersion": CLONE_SETS.api_version, "metadata": {"name": "both"}}
    created = await world.create(bare)
    assert created["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0},
    }
    flat = await world.get(ALPHA, "both")
    assert flat["spec"]["updateStrategy"] == {
        "type": "ReCreate",
        "partition": 0,
        "maxUnavailable": "20%",
        "maxSurge": 0,
    }
    assert flat["spec"]["template"] == created["spec"]["template"]
    said = await stage.say(Verb.PATCH, OLDER, {"spec": {"updateStrategy": {"partition": "x"}}}, "both")
    assert (said.code, said.causes) == (422, {("spec.updateStrategy.partition", "FieldValueInvalid")})
    rolling = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": "x"}}}}
    said = await stage.say(Verb.PATCH, NEWER, rolling, "both")
    assert (said.code, said.causes) == (422, {("spec.updateStrategy.rollingUpdate.partition", "FieldValueInvalid")})
    await world.patch(ALPHA, "both", {"spec": {"updateStrategy": {"type": "OnDelete"}}})  # CS-43
    assert (await world.get(ALPHA, "both"))["spec"]["updateStrategy"] == {"type": "OnDelete"}  # CS-20
