"""Which content new pods get, and when they get none, on the local cluster (SCS-34 to SCS-44, SCS-62 to SCS-66)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change, HandlerView
from kruise.api.apps.shared import FailureBudgetStatus
from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.meta import OwnerReference
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.machinery import codec
from kruise.machinery.client.errors import ClientError
from kruise.machinery.store import Store
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.content import content_of, revision_data
from kruise.sidecars.sidecarset.injecting import Injection, draw
from kruise.sidecars.sidecarset.matching import WATCHED_NAMESPACES, WATCHED_REVISIONS, WATCHED_SETS
from tests.admission.helpers import request_of
from tests.support.sidecarsets import (
    NOW,
    SIDE,
    image,
    names,
    pod,
    set_image,
    sidecar_set,
    status,
    stored,
    until_counts,
)
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]


def test_earlier_content_for_new_pods() -> None:
    """SCS-6, SCS-24, SCS-38 to SCS-43, SCS-80."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set(customVersion="v1", updateStrategy={"paused": True}))
        await until_counts(world, 0, 0, 0, 0)
        first = (await status(world))["latestRevision"]
        await set_image(world, "nginx:1.26")
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"customVersion": "v2"}})
        await until_counts(world, 0, 0, 0, 0)

        async def inject(**revision: Any) -> None:
            await world.patch(SIDECAR_SETS, "logs", {"spec": {"injectionStrategy": {"revision": revision or None}}})

        async def injected(name: str, **labels: str) -> Json:
            await world.create(pod(name, labels=labels))
            return await world.get(PODS, name)

        with pytest.raises(ClientError, match="Cannot find specific ControllerRevision"):
            await inject(customVersion="v9")
        with pytest.raises(ClientError, match="Cannot find specific ControllerRevision"):
            await inject(revisionName="nobody")
        await inject(customVersion="v1")
        old = await injected("old")
        assert image(old) == "nginx:1.25"
        assert json.loads(old["metadata"]["annotations"][keys.HASH])["logs"]["controllerRevision"] == first
        selector = {"matchLabels": {"gray": "yes"}}
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"updateStrategy": {"paused": False, "selector": selector}}})
        await inject(revisionName=first, customVersion=None, policy="Partial")
        assert image(await injected("gray", gray="yes")) == "nginx:1.26"
        assert image(await injected("plain")) == "nginx:1.25"
        await inject(policy="Always")
        assert image(await injected("held")) == "nginx:1.25"
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"updateStrategy": {"selector": None}}})
        assert image(await injected("at-once")) == "nginx:1.26", "it would be rewritten before it has started"
        await until_counts(world, 5, 5, 5, 5)

    run_local(scenario)


def asked(current: SidecarSet, *revisions: ControllerRevision) -> Json:
    """A new pod, as the webhook leaves it."""
    sets, namespaces, known = Store(WATCHED_SETS), Store(WATCHED_NAMESPACES), Store(WATCHED_REVISIONS)
    sets.replace([current], 7)
    namespaces.replace([], 7)
    known.replace(list(revisions), 7)
    stores: dict[Any, Any] = {SIDECAR_SETS: sets, NAMESPACES: namespaces, CONTROLLER_REVISIONS: known}
    body = pod()
    context = StepContext(
        request_of(body, kind="Pod", resource="pods"), HandlerView(now=NOW, seed=1, stores=stores.__getitem__), "d"
    )
    answer = Injection("kruise-system")(body, context)
    assert isinstance(answer, Change)
    return answer.object


def revision(manifest: Json, name: str = "logs-1") -> ControllerRevision:
    current = stored(manifest)
    document = {
        "metadata": {
            "name": name,
            "namespace": "kruise-system",
            "resourceVersion": "3",
            "labels": {keys.NAME_LABEL: "logs"},
            "annotations": dict(current.metadata.annotations),
        },
        "revision": 1,
        "data": json.loads(revision_data(current)),
    }
    return codec.decode(json.dumps(document).encode(), ControllerRevision)


def test_a_tag_finds_what_the_controller_counts_as_its_own() -> None:
    """SCS-74, SCS-80: also revisions that nobody owns, and none of a SidecarSet of that name that is gone."""
    wanted = stored(
        sidecar_set(
            containers=[{**SIDE, "image": "nginx:1.26"}],
            injectionStrategy={"revision": {"customVersion": "v1"}},
            updateStrategy={"type": "NotUpdate"},
        )
    )

    def tagged(number: int, owner: str, image: str) -> ControllerRevision:
        known = revision(sidecar_set(containers=[{**SIDE, "image": image}]), f"logs-{number}")
        reference = OwnerReference(api_version="v1", kind="SidecarSet", name="logs", uid=owner, controller=True)
        metadata = codec.evolve(
            known.metadata,
            labels={**known.metadata.labels, keys.CUSTOM_VERSION: "v1"},
            owner_references=(reference,) if owner else (),
        )
        return codec.evolve(known, metadata=metadata, revision=number)

    nobodys, gone = tagged(1, "", "nginx:1"), tagged(3, "uid-gone", "nginx:3")
    assert image(asked(wanted, nobodys, gone)) == "nginx:1"
    assert image(asked(wanted, nobodys, gone, tagged(2, "uid-logs", "nginx:2"))) == "nginx:2"


PINNED = {"injectionStrategy": {"revision": {"revisionName": "logs-1", "policy": "Always"}}}


def test_a_pinned_revision_that_is_updated_at_once_keeps_what_updates_never_change() -> None:
    """SCS-41, SCS-43, SCS-104, SCS-107: images and annotations are the present ones; init containers, volumes and pull
    secrets those of the revision."""
    mounted = {**SIDE, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    old = sidecar_set(
        containers=[mounted],
        initContainers=[{"name": "init", "image": "i:1"}],
        volumes=[{"name": "v", "emptyDir": {}}],
        imagePullSecrets=[{"name": "old"}],
        patchPodMetadata=[{"annotations": {"k": "1", "kept": "1"}, "patchPolicy": "Overwrite"}],
    )
    new = sidecar_set(
        containers=[{**mounted, "image": "nginx:1.26"}],
        initContainers=[{"name": "init", "image": "i:2"}],
        volumes=[{"name": "v", "hostPath": {"path": "/v"}}],
        imagePullSecrets=[{"name": "new"}],
        patchPodMetadata=[{"annotations": {"k": "2"}, "patchPolicy": "Overwrite"}],
        **PINNED,
    )
    whole = asked(stored(new, latest_revision="logs-2"), revision(old))
    assert image(whole) == "nginx:1.26"
    assert [item["image"] for item in whole["spec"]["initContainers"]] == ["i:1"]
    assert whole["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert whole["spec"]["imagePullSecrets"] == [{"name": "old"}]
    annotations = whole["metadata"]["annotations"]
    assert (annotations["k"], annotations["kept"]) == ("2", "1")
    record = json.loads(annotations[keys.HASH])["logs"]
    assert (record["hash"], record["controllerRevision"]) == (content_of(stored(new)).hash, "logs-2")


def test_a_rollout_that_its_budget_stopped_does_not_reach_pinned_pods() -> None:
    """SCS-41: a bad image stays where it was stopped."""
    bad = stored(sidecar_set(containers=[{**SIDE, "image": "nginx:bad"}], **PINNED), latest_revision="logs-2")
    assert image(asked(bad, revision(sidecar_set()))) == "nginx:bad"
    stopped = codec.evolve(bad.status, failure_budget=FailureBudgetStatus(revision="logs-2", failed=2, budget="1"))
    assert image(asked(codec.evolve(bad, status=stopped), revision(sidecar_set()))) == "nginx:1.25"


def test_shares_of_partial_are_drawn() -> None:
    """SCS-42: evenly."""
    drawn = [draw(seed, "logs") for seed in range(2000)]
    assert all(0 <= one < 1 for one in drawn)
    assert 0.45 < sum(one <= 0.5 for one in drawn) / len(drawn) < 0.55


def test_who_gets_sidecars_and_who_does_not() -> None:
    """SCS-34, SCS-35, SCS-44, SCS-62, SCS-65, SCS-66; edge case 4."""

    async def scenario(world: LocalWorld) -> None:
        around = {"matchLabels": {"team": "a"}}
        await world.create(sidecar_set(namespaceSelector=around, updateStrategy={"type": "NotUpdate"}))

        async def sidecars(name: str) -> list[str]:
            await world.create(pod(name))
            return names((await world.get(PODS, name))["spec"]["containers"])

        assert await sidecars("before") == ["main"]
        await world.client.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": "a"}}})
        await world.sleep(1)
        assert await sidecars("after") == ["side", "main"]
        await until_counts(world, 1, 1, 1, 1)  # counts follow the pods, also with NotUpdate
        await set_image(world, "nginx:1.26")
        await until_counts(world, 1, 0, 1, 0)
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"injectionStrategy": {"paused": True}}})
        await world.sleep(1)
        assert await sidecars("paused") == ["main"]
        await world.delete(SIDECAR_SETS, "logs")
        await world.sleep(5)
        assert names((await world.get(PODS, "after"))["spec"]["containers"]) == ["side", "main"]
        assert await sidecars("gone") == ["main"]

    run_local(scenario)


def test_a_clash_is_refused_when_the_pod_is_made() -> None:
    """SCS-61: with the names of both."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set())
        with pytest.raises(ClientError, match=r"SidecarSet logs has a sidecar side, and the pod has a container side"):
            await world.create(pod(containers=[{"name": "side", "image": "nginx:1.25"}]))

    run_local(scenario)
