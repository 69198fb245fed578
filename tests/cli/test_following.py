"""Following a rollout on virtual time: to its end, through broken watches, and to every other way it can end."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from rich.console import Console

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import REPLICA_SETS
from kruise.api.native.events import LEASES
from kruise.api.native.pod import PODS
from kruise.cli.flags import Writing
from kruise.cli.following import Seen, follow, must_be_revision
from kruise.cli.live_view import LiveView
from kruise.cli.session import NotFinishedError, Session
from kruise.faces.native import STATEFUL_SET
from kruise.faces.progress import Phase
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import Status, TransportError, from_status
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.documents import Json
from kruise.machinery.times import format_micro_time
from kruise.spread.workloadspread.face import FACE as WORKLOAD_SPREAD
from kruise.verbs import images, partitioning
from kruise.verbs.errors import VerbError
from kruise.verbs.targets import Target
from kruise.workloads.broadcastjob.face import FACE as BROADCAST_JOB
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from tests.spread.workloadspread.stories import DEPLOYMENT, create, spread, subset, workload, zones
from tests.support.world import LocalWorld, run_local

WEB = Target(CLONE_SET, "web")


def manifest(**rolling: Any) -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
            "updateStrategy": {
                "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1, **rolling}
            },
        },
    }


class Recorded:
    """A reporter that keeps what it is shown."""

    def __init__(self, *, needs_pods: bool = False) -> None:
        self.needs_pods = needs_pods
        self.seen: list[Seen] = []
        self.troubles: list[str] = []
        self.waits: list[str] = []
        self.closed = 0

    def show(self, seen: Seen) -> None:
        self.seen.append(seen)

    def tick(self) -> None:
        """Nothing is drawn."""

    def trouble(self, text: str) -> None:
        self.troubles.append(text)

    def waits_for(self, text: str) -> None:
        self.waits.append(text)

    def close(self) -> None:
        self.closed += 1

    @property
    def messages(self) -> list[str]:
        return list(dict.fromkeys(one.progress.message for one in self.seen))


class Mute:
    """A transport that never answers what is asked to tell why a rollout stands still."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.unanswered = 0

    async def send(self, request: Request) -> Response:
        if request.resource.plural in ("leases", "services"):
            self.unanswered += 1
            await asyncio.sleep(3600)
        return await self._inner.send(request)

    def stream(self, request: Request) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


class Broken:
    """A transport whose watches end in the ways that watches end."""

    def __init__(self, inner: Transport, *, end: str) -> None:
        self._inner = inner
        self._end = end
        self.broken = 0

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._inner.stream(request) as lines:
            yield self._cut(lines)

    async def _cut(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        count = 0
        async for line in lines:
            yield line
            count += 1
            if count == 2:
                self.broken += 1
                if self._end == "expired":
                    raise from_status(Status(code=410, reason="Expired", message="too old"))
                raise TransportError("the watch tore", sent=True)

    async def close(self) -> None:
        await self._inner.close()


def session_of(world: LocalWorld, transport: Transport | None = None) -> Session:
    client = world.client if transport is None else Client(transport, clock=world.clock)
    return Session(client, namespace="default", clock=world.clock)


def on_web(scenario: Callable[[LocalWorld, Session], Awaitable[None]], **rolling: Any) -> None:
    """Run a scenario on a CloneSet that has come up."""

    async def main(world: LocalWorld) -> None:
        await world.create(manifest(**rolling))
        session = session_of(world)
        await follow(session, WEB, await session.get(WEB), Recorded(), timeout=60)
        await scenario(world, session)

    run_local(main)


async def update(session: Session, image: str = "nginx:1.26") -> Json:
    document = await session.get(WEB)
    changed = await session.change(WEB, document, lambda now: images.change(CLONE_SET, now, {"main": image}), Writing())
    assert changed is not None
    return changed


def test_a_rollout_is_followed_to_its_end() -> None:  # KK-1
    async def scenario(world: LocalWorld, session: Session) -> None:
        reporter = Recorded(needs_pods=True)
        await follow(session, WEB, await update(session), reporter, timeout=300)
        assert reporter.messages[0] == "Waiting for CloneSet spec update to be observed..."
        assert reporter.messages[-1] == "partitioned roll out complete: 4 new pods have been updated..."
        last = reporter.seen[-1]
        assert last.progress.phase is Phase.DONE
        assert last.view is not None
        assert [(pod.revision, pod.is_ready) for pod in last.view.pods] == [(2, True)] * 4
        assert reporter.closed == 1

    on_web(scenario)


def test_the_state_before_the_change_is_not_taken_for_its_end() -> None:
    """A server may list from a cache that has not seen the write yet."""

    async def scenario(world: LocalWorld, session: Session) -> None:
        written = await session.get(WEB)
        written["metadata"]["generation"] += 1
        reporter = Recorded()
        with pytest.raises(NotFinishedError, match="timed out after 3 s"):
            await follow(session, WEB, written, reporter, timeout=3)
        assert not reporter.seen

    on_web(scenario)


async def leave_stale_lease(world: LocalWorld) -> None:
    """End the manager, and let its lease run out."""
    await world.kill_manager()
    held = {
        "holderIdentity": "manager_1",
        "leaseDurationSeconds": 15,
        "renewTime": format_micro_time(world.clock.now()),
    }
    lease = {"metadata": {"name": "kruise-manager", "namespace": "kruise-system"}, "spec": held}
    await world.client.create(LEASES, lease, "kruise-system")
    await asyncio.sleep(50)


def test_a_status_that_nobody_keeps_is_told_as_such() -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        await leave_stale_lease(world)
        reporter = Recorded()
        await follow(session, WEB, await session.get(WEB), reporter, watch=False)
        [note] = reporter.troubles
        assert note.startswith("no manager is at work: manager_1 renewed the lease kruise-system/kruise-manager last")
        assert note.endswith("; the status is what it left behind")

    on_web(scenario)


def test_an_aborted_rollout_is_over_when_every_pod_is_back() -> None:
    """A StatefulSet names the old revision as the newest at once; its pods take longer."""

    async def scenario(world: LocalWorld, session: Session) -> None:
        database = Target(STATEFUL_SET, "db")
        set_ = manifest() | {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}}
        set_["spec"] |= {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}
        await session.create(STATEFUL_SET.resource, set_, Writing())
        await follow(session, database, await session.get(database), Recorded(), timeout=300)

        def with_new_image(now: Json) -> Json:
            return images.change(STATEFUL_SET, now, {"main": "nginx:1.26"})

        before = await session.get(database)
        changed = await session.change(database, before, with_new_image, Writing())
        assert changed is not None
        await follow(session, database, changed, Recorded(), timeout=300)
        now, known = await session.get(database), await session.revisions(database, before)
        aborted = await session.change(
            database, now, lambda now: partitioning.abort(STATEFUL_SET, now, known).changed, Writing()
        )
        assert aborted is not None
        await follow(session, database, aborted, Recorded(), timeout=300)
        pods = await world.client.list(PODS, "default")
        assert [pod.spec.containers[0].image for pod in pods.items] == ["nginx:1.25"] * 3

    run_local(lambda world: scenario(world, session_of(world)))


@pytest.mark.parametrize("watch", [False, True])
def test_a_status_that_pods_contradict_is_no_end(watch: bool) -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        await leave_stale_lease(world)
        pods = await world.client.list(PODS, "default")
        await world.client.delete(PODS, pods.items[0].metadata.name, "default")
        reporter = Recorded()
        with pytest.raises(NotFinishedError, match=r"no manager is at work.*\[manager-down\]"):
            await follow(session, WEB, await session.get(WEB), reporter, watch=watch, timeout=20)
        assert reporter.messages == ["the status is out of date: it tells of 4 available pods, and there are 3"]
        assert len(reporter.troubles) == 1, "it is said once"

    on_web(scenario)


def test_a_workload_spread_without_its_target_is_not_done() -> None:
    """Its status has no place for that; with the target it is done."""

    async def play(world: LocalWorld) -> None:
        await zones(world, "a", "b")
        made, target = spread(subset("a", "a", 2), subset("b", "b")), workload(3)
        await world.create(made)
        await world.sleep(5)
        session, ws = session_of(world), Target(WORKLOAD_SPREAD, "ws")
        with pytest.raises(NotFinishedError, match=r"workloadspread.*/ws is not finished: .*there is no CloneSet"):
            await follow(session, ws, await session.get(ws), Recorded(), watch=False)
        shown = Recorded()
        with pytest.raises(NotFinishedError, match=r"timed out after 20 s: Waiting: there is no CloneSet web"):
            await follow(session, ws, await session.get(ws), shown, timeout=20)
        following = asyncio.create_task(follow(session, ws, await session.get(ws), shown, timeout=120))
        await world.sleep(10)
        assert not following.done()
        await world.create(target)
        await following
        assert shown.seen[-1].progress.phase is Phase.DONE

    run_local(play)


def test_a_workload_spread_whose_pods_another_one_spreads_is_not_done() -> None:
    """Both may be made: one of a Deployment, the other of its ReplicaSet."""

    async def play(world: LocalWorld) -> None:
        await zones(world, "a", "b")
        await create(world, spread(subset("a", "a", 2), subset("b", "b"), target=DEPLOYMENT))
        await create(world, workload(3, DEPLOYMENT))
        await world.sleep(30)
        [replica_set] = (await world.client.list(REPLICA_SETS, "default")).items
        other = spread(subset("a", "a", 1), subset("b", "b"), name="other")
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set.metadata.name}
        await create(world, {**other, "spec": {**other["spec"], "targetRef": reference}})
        await world.sleep(5)
        session, target = session_of(world), Target(WORKLOAD_SPREAD, "other")
        with pytest.raises(
            NotFinishedError, match=r"/other is not finished: .*3 pods of .* spread by WorkloadSpread ws"
        ):
            await follow(session, target, await session.get(target), Recorded(), watch=False)
        first = Target(WORKLOAD_SPREAD, "ws")
        await follow(session, first, await session.get(first), Recorded(), watch=False)
        following = asyncio.create_task(follow(session, target, await session.get(target), Recorded(), timeout=120))
        await world.sleep(10)
        assert not following.done()
        await world.client.delete(WORKLOAD_SPREAD.resource, "ws", "default")
        await following

    run_local(play)


def test_an_end_that_leaves_no_pods_available_is_not_doubted() -> None:
    """The pods of a job have finished; copies, images and other workloads have none of their own at all."""
    job = Target(BROADCAST_JOB, "once")
    container = {"name": "main", "image": "busybox:1.36", "command": ["true"]}
    manifest = {
        "apiVersion": BROADCAST_JOB.resource.api_version,
        "kind": BROADCAST_JOB.resource.kind,
        "metadata": {"name": "once"},
        "spec": {
            "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
            "completionPolicy": {"type": "Always"},
        },
    }

    async def scenario(world: LocalWorld) -> None:
        session = session_of(world)
        await world.client.create(BROADCAST_JOB.resource, manifest, "default")
        await follow(session, job, await session.get(job), Recorded(), timeout=300)
        await leave_stale_lease(world)
        reporter = Recorded()
        await follow(session, job, await session.get(job), reporter, timeout=20)
        assert [trouble.partition(":")[0] for trouble in reporter.troubles] == ["no manager is at work"]

    run_local(scenario)


@pytest.mark.parametrize("end", ["expired", "torn"])
def test_a_watch_that_ends_is_taken_up_again(end: str) -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        transport = Broken(world.client.transport, end=end)
        reporter = Recorded()
        await follow(session_of(world, transport), WEB, await update(session), reporter, timeout=300)
        assert reporter.seen[-1].progress.phase is Phase.DONE
        assert transport.broken > 1

    on_web(scenario)


def test_a_deleted_object_ends_it() -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        document = await update(session)

        async def delete() -> None:
            await asyncio.sleep(2)
            await world.delete(CLONE_SETS, "web")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(delete())
            with pytest.raises(VerbError, match="has been deleted while it was followed"):
                await follow(session, WEB, document, Recorded())

    on_web(scenario, paused=True)


@pytest.mark.parametrize("timeout", [3, 7, 30])
@pytest.mark.parametrize("is_mute", [False, True])
def test_time_may_be_over(timeout: int, is_mute: bool) -> None:
    """Then it ends, with the reason as far as it is known, whether the API server answers or not."""

    async def scenario(world: LocalWorld, session: Session) -> None:
        transport = Mute(world.client.transport)
        document = await update(session)
        began = world.clock.monotonic()
        text = f"timed out after {timeout} s: Waiting for partitioned roll out"
        asked = session_of(world, transport) if is_mute else session
        with pytest.raises(NotFinishedError, match=text) as caught:
            await follow(asked, WEB, document, Recorded(), timeout=timeout)
        assert world.clock.monotonic() - began == pytest.approx(timeout, abs=0.01)
        assert caught.value.exit_code == 3
        assert str(caught.value).endswith("; see: kruise why cloneset/web")
        assert ("[paused]" in str(caught.value)) is not is_mute
        assert bool(transport.unanswered) is is_mute

    on_web(scenario, paused=True)


def test_a_rollout_that_stands_still_says_what_it_waits_for() -> None:
    """Once, in one line, with the command that tells more; and again at the end of the time."""

    async def scenario(world: LocalWorld, session: Session) -> None:
        reporter = Recorded()
        with pytest.raises(NotFinishedError) as caught:
            await follow(session, WEB, await update(session, "nginx:missing"), reporter, timeout=40)
        [told] = [text for text in reporter.waits if "image-pull" in text]
        assert re.fullmatch(
            r"cloneset/web is stuck: pod web-\w{5}: container main cannot get its image nginx:missing: .* "
            r"\[image-pull\]; see: kruise why cloneset/web",
            told,
        )
        assert str(caught.value).endswith(told)

    on_web(scenario)


def test_a_rollout_that_moves_says_nothing_of_the_kind() -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        reporter = Recorded()
        await follow(session, WEB, await update(session), reporter, timeout=300)
        assert reporter.waits == []

    on_web(scenario)


def test_without_watching_it_tells_the_state_once() -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        reporter = Recorded()
        with pytest.raises(NotFinishedError, match=r"is not finished: .*; see: kruise why cloneset/web"):
            await follow(session, WEB, await update(session), reporter, watch=False)
        assert len(reporter.seen) == 1

    on_web(scenario, paused=True)


def test_an_exceeded_deadline_fails() -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        await world.patch(CLONE_SETS, "web", {"spec": {"progressDeadlineSeconds": 5}})
        document = await update(session, "nginx:missing")
        with pytest.raises(VerbError, match="exceeded its progress deadline; see: kruise why cloneset/web"):
            await follow(session, WEB, document, Recorded(), timeout=60)

    on_web(scenario)


def test_another_revision_than_the_wanted_one_is_refused() -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        document = await session.get(WEB)
        known = await session.revisions(WEB, document)
        must_be_revision(CLONE_SET, 1, known)(document)
        with pytest.raises(VerbError, match=r"desired revision \(7\) is different from the running revision \(1\)"):
            must_be_revision(CLONE_SET, 7, known)(document)

    on_web(scenario)


def test_a_change_meets_another_one() -> None:
    """Somebody inserts a container between our read and our write: the patch is made anew, and both changes stay."""

    async def scenario(world: LocalWorld, session: Session) -> None:
        stale = await session.get(WEB)
        pods = stale["spec"]["template"]["spec"]["containers"]
        await world.patch(
            CLONE_SETS,
            "web",
            {"spec": {"template": {"spec": {"containers": [{"name": "first", "image": "redis:7"}, *pods]}}}},
        )
        after = await session.change(
            WEB, stale, lambda now: images.change(CLONE_SET, now, {"main": "nginx:1.27"}), Writing()
        )
        assert after is not None
        found = [(one["name"], one["image"]) for one in after["spec"]["template"]["spec"]["containers"]]
        assert found == [("first", "redis:7"), ("main", "nginx:1.27")]

    on_web(scenario)


def test_the_live_view_draws_waves_and_pods() -> None:
    async def scenario(world: LocalWorld, session: Session) -> None:
        console = Console(record=True, width=120, height=40, force_terminal=True, file=io.StringIO())
        await follow(session, WEB, await update(session), LiveView(world.clock, console), timeout=300)
        drawn = console.export_text()
        last = drawn[drawn.rindex("cloneset.apps.kruise.io/web") :]
        assert "Done" in last
        assert "4/4 ready 4/4" in last
        assert "wave 4: 0 moving, 1 done" in last
        rows = [line.split() for line in last.splitlines() if line.startswith("●")]
        assert sorted(row[6] for row in rows) == ["1", "2", "3", "4"], "one pod in each wave: maxUnavailable is 1"
        assert "◐" in drawn, "pods were seen on their way"

    on_web(scenario)
