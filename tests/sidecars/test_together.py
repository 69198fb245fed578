"""Sidecars and the order of start, in one admission."""

from __future__ import annotations

from kruise.api.native.pod import PODS
from tests.support.sidecarsets import SIDE, pod, sidecar_set, until_counts
from tests.support.world import LocalWorld, run_local


def test_a_sidecar_set_may_order_the_containers() -> None:
    """CLP-9, SCS-46, SCS-131: the annotation that it patches takes effect at once, and places decide the order."""

    async def scenario(world: LocalWorld) -> None:
        ordered = {"apps.kruise.io/container-launch-priority": "Ordered"}
        late = {"name": "late", "image": "nginx:1.25", "podInjectPolicy": "AfterAppContainer"}
        await world.create(
            sidecar_set(
                containers=[SIDE, late],
                patchPodMetadata=[{"annotations": ordered, "patchPolicy": "Overwrite"}],
            )
        )
        await world.create(pod())
        await until_counts(world, 1, 1, 1, 1)
        made = await world.get(PODS, "web-1")
        keys = {
            one["name"]: one["env"][-1]["valueFrom"]["configMapKeyRef"]["key"] for one in made["spec"]["containers"]
        }
        assert keys == {"side": "p_0", "main": "p_-1", "late": "p_-2"}
        began = {one["name"]: one["state"]["running"]["startedAt"] for one in made["status"]["containerStatuses"]}
        assert began["side"] <= began["main"] <= began["late"]

    run_local(scenario, feature_gates="SidecarSetPatchPodMetadataDefaultsAllowed=true")
