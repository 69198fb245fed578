"""The manager on a real API server with exactly the rights of an installation, and with one of them less.

The API server also asks who changes owners whether they may (`OwnerReferencesPermissionEnforcement`).
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kruise.manager.installation.granting import Right
from tests.scenarios.stage import Stage
from tests.scenarios.theatre import PACE
from tests.support import rights
from tests.support.kruisecluster import ALONE, MANAGER, KruiseCluster
from tests.support.realcluster import ControlPlane

pytestmark = pytest.mark.long

_OWNERS = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KruiseCluster]:
    with (
        ControlPlane(audit=True, apiserver_args=(_OWNERS,)) as plane,
        KruiseCluster(plane, nodes=2, flags=ALONE) as started,
    ):
        yield started


def _take(cluster: KruiseCluster, taken: Right | None) -> None:
    """Returns when the API server decides by it."""
    cluster.taken = taken
    cluster.give_rights()
    if taken is not None:
        deadline = time.monotonic() + 30
        while _may(cluster, taken):
            assert time.monotonic() < deadline, f"{taken} is still there"
            time.sleep(0.1)


def _may(cluster: KruiseCluster, right: Right) -> bool:
    plural, _, subresource = right.resource.partition("/")
    about = {"group": right.group, "resource": plural, "subresource": subresource, "verb": right.verb}
    review = {"spec": {"user": MANAGER, "groups": rights.groups_of(), "resourceAttributes": about}}
    answer = cluster.plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).ok()
    return bool(answer["status"]["allowed"])


async def _told(stage: Stage, cluster: KruiseCluster, words: str) -> None:
    async def is_told() -> None:
        events = [event["message"] for event in await stage.world.events()]
        log = cluster.manager_log.read_text().replace('\\"', '"')
        assert any(words in message for message in events) or words in log, (events, log[-2000:])

    await stage.until(is_told)


@pytest.mark.smoke
def test_a_whole_life_needs_no_more(cluster: KruiseCluster) -> None:
    mark = cluster.plane.audit_mark()

    async def story(stage: Stage) -> None:
        await stage.start(replicas=2)
        await stage.set_image("nginx:1.26")
        await stage.complete()
        await stage.scale(1)
        await stage.complete()

    _play(cluster, story)
    entries = [entry for entry in cluster.plane.audit_entries(mark) if entry.user == MANAGER]
    assert any(entry.is_write for entry in entries)
    assert [(entry.verb, entry.resource, entry.uri) for entry in entries if entry.code == 403] == []


def test_without_a_right_it_stops_says_why_and_goes_on_with_it(cluster: KruiseCluster) -> None:
    async def story(stage: Stage) -> None:
        await stage.create(replicas=2)
        await _told(stage, cluster, 'cannot create resource "pods" in API group ""')
        with pytest.raises(AssertionError):
            await stage.complete(within=3)
        _take(cluster, None)
        await stage.complete()

    _take(cluster, Right("", "pods", "create"))
    try:
        _play(cluster, story)
    finally:
        _take(cluster, None)


def test_a_kind_that_cannot_be_read_is_named_and_read_later(cluster: KruiseCluster) -> None:
    """CloneSets look at claims: without them their controller does not begin."""
    taken = Right("", "persistentvolumeclaims", "list")
    cluster.stop_manager()

    async def story(stage: Stage) -> None:
        await stage.create(replicas=1)
        await _told(stage, cluster, 'cannot list resource "persistentvolumeclaims" in API group ""')
        assert await stage.pods() == []
        _take(cluster, None)
        await stage.complete()

    _take(cluster, taken)
    try:
        cluster.start_manager()
        _play(cluster, story)
    finally:
        _take(cluster, None)


def _play(cluster: KruiseCluster, story: Callable[[Stage], Awaitable[None]]) -> None:
    namespace = f"rights-{uuid.uuid4().hex[:6]}"
    cluster.plane.create_namespace(namespace)

    async def main() -> None:
        async with cluster.world(namespace) as world:
            await story(Stage(world, gates={}, pace=PACE))

    try:
        asyncio.run(main())
    finally:
        cluster.plane.delete_namespace(namespace)
