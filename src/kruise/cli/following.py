"""Following a rollout to its end: a workload and, where asked for, its pods and revisions, by watches that survive.

Nothing is polled. A watch that expires or tears is taken up again (`kruise.machinery.watch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from kruise.api.meta import ObjectMeta, controller_of
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.api.resource import Resource
from kruise.cli.session import NotFinishedError, Session, revision_selector, selector_text
from kruise.faces.face import Face, History, Pods
from kruise.faces.progress import Phase, Progress, number
from kruise.inplace.availability import is_available
from kruise.machinery import codec
from kruise.machinery.client.errors import ClientError
from kruise.machinery.documents import Json, namespace_of, uid_of, value_at
from kruise.machinery.store import Store
from kruise.machinery.watch import Scope, Watcher
from kruise.machinery.wording import namespace_flag, plural
from kruise.verbs.errors import VerbError
from kruise.verbs.history import REVISION_ANNOTATION, Revision, revisions_of
from kruise.verbs.overview import Overview, overview
from kruise.verbs.targets import Target

TROUBLE_SECONDS = 5.0
"""After so long a watch that does not work is spoken of."""
STANDSTILL_SECONDS = 5.0
"""So long nothing may change before it is told what the rollout waits for; and so long again until the next look."""
_ANSWER_SECONDS = 5.0
"""Whoever follows a rollout does not wait longer than this to hear why it stands still."""


class Whole(codec.Struct):
    """An object with all that the verbs read of it, undecoded."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: codec.Raw = codec.Raw(b"{}")
    status: codec.Raw = codec.Raw(b"{}")
    data: codec.Raw = codec.Raw(b"{}")
    revision: int = 0

    def document(self) -> Json:
        found: Json = codec.to_builtins(self)
        found["metadata"] = codec.to_builtins(self.metadata)
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A moment of a rollout. Without pods where only the object is followed."""

    document: Json
    progress: Progress
    view: Overview | None = None
    min_ready_seconds: int = 0
    """How long a pod must be ready before it counts as available."""


class Reporter(Protocol):
    """Who shows it."""

    needs_pods: bool

    def show(self, seen: Seen) -> None: ...

    def tick(self) -> None:
        """Time passes; called about once a second."""

    def trouble(self, text: str) -> None: ...

    def waits_for(self, text: str) -> None:
        """It stands still; the text says why, in one line. Empty: it moves again."""

    def close(self) -> None: ...


class Follower:
    """The watches of one workload."""

    def __init__(self, session: Session, target: Target, document: Json, *, with_pods: bool) -> None:
        self._kind = target.kind
        self._target = target
        self._uid = uid_of(document)
        self._generation = number(document, "metadata", "generation")
        self._session = session
        is_namespaced = self._kind.resource.namespaced
        self._namespace = (namespace_of(document) or session.namespace) if is_namespaced else ""
        self.changed = asyncio.Event()
        self._objects = self._store(_whole(target.kind.resource))
        self._scopes: dict[Store[Any], Scope] = {
            self._objects: Scope(self._namespace, fields=f"metadata.name={target.name}")
        }
        self._pods: Store[Pod] | None = None
        self._revisions: Store[Whole] | None = None
        self._labels = selector_text(target.kind, document)
        if with_pods and target.kind.history is not None:
            self._pods = self._store(PODS)
            self._revisions = self._store(_history(target.kind.history))
            self._scopes |= {
                self._pods: Scope(self._namespace, self._labels),
                self._revisions: Scope(self._namespace, revision_selector(target.kind, document)),
            }
        self._watchers = [
            Watcher(session.client, store, clock=session.clock, random=random.Random(), scope=scope)
            for store, scope in self._scopes.items()
        ]

    def _store(self, resource: Resource[Any]) -> Store[Any]:
        store: Store[Any] = Store(resource)
        store.subscribe(lambda old, new: self.changed.set())
        return store

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for watcher in self._watchers:
                tasks.create_task(watcher.run())
                tasks.create_task(self._tell_synced(watcher))

    async def _tell_synced(self, watcher: Watcher[Any]) -> None:
        await watcher.synced.wait()
        self.changed.set()  # an empty list changes nothing in a store

    @property
    def trouble(self) -> str:
        return next((one.state.trouble for one in self._watchers if one.state.trouble), "")

    def look(self) -> Seen | None:
        """What is known now; None before the first lists are in, and while they are older than what was read or written
        before: a server may answer from a cache."""
        if not all(store.synced for store in self._scopes):
            return None
        found = self._objects.get(self._namespace, self._target.name)
        if found is None or found.metadata.uid != self._uid:
            raise VerbError(f"{self._target} has been deleted while it was followed")
        document = found.document()
        if number(document, "metadata", "generation") < self._generation:
            return None
        if self._kind.progress is None:
            raise VerbError(f"{self._target} has no rollout to follow")
        view = None
        if self._pods is not None:
            view = overview(self._kind, document, self._pods.list(self._namespace), self._known_revisions(document))
        return Seen(document, self._kind.progress(document), view, number(document, *self._kind.min_ready))

    async def with_pods_of_now(self, seen: Seen, patience: float) -> Seen:
        """The last look: its pods must not be older than what the object says of them, as those of a watch may be."""
        if self._pods is None:
            return seen
        try:
            async with asyncio.timeout(patience):
                pods = (await self._session.client.list(PODS, self._namespace, labels=self._labels)).items
        except (ClientError, TimeoutError):
            return seen
        view = overview(self._kind, seen.document, pods, self._known_revisions(seen.document))
        return dataclasses.replace(seen, view=view)

    async def available_pods(self, document: Json) -> int:
        """How many there are now, whatever the status says."""
        pods = (await self._session.client.list(PODS, self._namespace, labels=self._labels)).items
        if self._kind.pods is not Pods.SELECTED:
            owned = (pod for pod in pods if (owner := controller_of(pod)) is not None and owner.uid == self._uid)
            pods = tuple(owned)
        wait, now = number(document, *self._kind.min_ready), self._session.clock.now()
        return sum(is_active(pod) and is_available(pod, wait, now) for pod in pods)

    def _known_revisions(self, document: Json) -> list[Revision]:
        assert self._revisions is not None
        return revisions_of(self._kind, document, (one.document() for one in self._revisions.list(self._namespace)))


def _whole(resource: Resource[Any]) -> Resource[Whole]:
    return Resource(resource.group, resource.version, resource.plural, resource.kind, resource.namespaced, Whole)


def _history(history: History) -> Resource[Whole]:
    kind = "ReplicaSet" if history is History.REPLICA_SETS else "ControllerRevision"
    return Resource("apps", "v1", history.value, kind, True, Whole)


@contextlib.asynccontextmanager
async def following(session: Session, target: Target, document: Json, *, with_pods: bool) -> AsyncIterator[Follower]:
    follower = Follower(session, target, document, with_pods=with_pods)
    running = asyncio.create_task(follower.run())
    try:
        yield follower
    finally:
        running.cancel()
        await asyncio.wait({running})


async def follow(
    session: Session,
    target: Target,
    document: Json,
    reporter: Reporter,
    *,
    timeout: float = 0.0,
    watch: bool = True,
    check: Callable[[Json], None] | None = None,
    progress: Callable[[Progress], Progress] | None = None,
) -> None:
    """Show a rollout until it is done.

    Raises `VerbError` where it fails or the object goes away, and `NotFinishedError` when time is over, or when
    `watch` is off and it is not done. `check` may refuse what it sees; `progress` puts it in other words.
    """
    last = ""
    deadline = session.clock.monotonic() + timeout if timeout else None
    standstill = Standstill(session, target, deadline)
    doubt = Doubt(session, target, deadline)
    try:
        async with following(session, target, document, with_pods=reporter.needs_pods) as follower:
            began = session.clock.monotonic()
            noted = ""
            while True:
                seen = follower.look()
                if seen is not None:
                    if check is not None:
                        check(seen.document)
                    if progress is not None:
                        seen = dataclasses.replace(seen, progress=progress(seen.progress))
                    if seen.progress.phase is Phase.DONE and target.kind.is_ours:
                        seen = await doubt.about(seen, follower)
                        if note := doubt.take_note():
                            reporter.trouble(note)
                    last = seen.progress.message
                    if seen.progress.is_over:
                        seen = await follower.with_pods_of_now(seen, _patience(session, deadline, _ANSWER_SECONDS))
                    reporter.show(seen)
                    if seen.progress.phase is Phase.FAILED:
                        raise VerbError(f"{last}; see: {standstill.command}")
                    if seen.progress.is_over:
                        return
                    if not watch:
                        raise NotFinishedError(f"{target} is not finished: {await standstill.ask()}")
                    if (waits := standstill.look(seen.progress, follower.changed.set)) is not None:
                        reporter.waits_for(waits)
                if deadline is not None and session.clock.monotonic() >= deadline:
                    why = f"; {standstill.answer}" if last else ""
                    raise NotFinishedError(
                        f"timed out after {timeout:g} s: {last or follower.trouble or 'no answer'}{why}"
                    )
                trouble = follower.trouble
                if trouble and trouble != noted and session.clock.monotonic() - began > TROUBLE_SECONDS:
                    reporter.trouble(trouble)
                    noted = trouble
                await _next(follower, deadline, session)
                reporter.tick()
    finally:
        standstill.close()
        reporter.close()


class Doubt:
    """Whether a status that says "complete" is true: not where no manager is at work and the pods contradict it, nor
    where the plan knows what the status has no place for."""

    def __init__(self, session: Session, target: Target, deadline: float | None) -> None:
        self._session = session
        self._target = target
        self._kind = target.kind
        self._deadline = deadline
        self._next_look = 0.0
        self._available: int | None = None
        """Pods that are, where nobody keeps the status up to date; None: somebody does, as far as is known."""
        self._unmet = ""
        """What the plan says in its place."""
        self._note = ""
        self._is_told = False

    def take_note(self) -> str:
        """What to say about it, once."""
        if not self._note or self._is_told:
            return ""
        self._is_told = True
        return self._note

    async def about(self, seen: Seen, follower: Follower) -> Seen:
        now = self._session.clock.monotonic()
        if now >= self._next_look:
            self._next_look = now + STANDSTILL_SECONDS
            await self._look(seen, follower)
            await self._ask_the_plan(seen)
        if self._unmet:
            progress = dataclasses.replace(seen.progress, phase=Phase.PROGRESSING, message=self._unmet)
            return dataclasses.replace(seen, progress=progress)
        told = min(seen.progress.available, seen.progress.wanted)
        if self._available is None or self._available >= told:
            return seen
        message = (
            f"the status is out of date: it tells of {plural(told, 'available pod')}, and there are {self._available}"
        )
        progress = dataclasses.replace(seen.progress, phase=Phase.PROGRESSING, message=message)
        return dataclasses.replace(seen, progress=progress)

    async def _look(self, seen: Seen, follower: Follower) -> None:
        from kruise.cli.attending import manager_of

        # Where there is no answer, what was known before holds.
        with contextlib.suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_patience(self._session, self._deadline, _ANSWER_SECONDS)):
                manager = await manager_of(self._session)
                if not manager.is_down:
                    self._available = None
                    return
                self._note = f"{manager.words}; the status is what it left behind"
                if self._kind.promises_available_pods:
                    self._available = await follower.available_pods(seen.document)

    async def _ask_the_plan(self, seen: Seen) -> None:
        if not self._kind.unmet:
            return
        from kruise.cli.deciding import Asking, explain

        with contextlib.suppress(VerbError, ClientError, TimeoutError):
            async with asyncio.timeout(_patience(self._session, self._deadline, _ANSWER_SECONDS)):
                answer = await explain(self._session, self._target, seen.document, Asking())
                links = [link for held in answer.waiting.values() for link in held.links]
                found = next((link.message for link in links if link.meaning in self._kind.unmet), "")
                self._unmet = f"Waiting: {found}..." if found else ""


class Standstill:
    """What a rollout waits for, asked for when nothing has changed for a while, and before time is over.

    Whoever follows never waits for the answer: it is looked for aside, and the last one serves.
    """

    def __init__(self, session: Session, target: Target, deadline: float | None) -> None:
        self._session = session
        self._target = target
        self._deadline = deadline
        self._progress: Progress | None = None
        self._since = 0.0
        self._next_look = 0.0
        self._asking: asyncio.Task[str] | None = None
        self._answer = ""
        self._told = ""

    @property
    def command(self) -> str:
        """How to see more."""
        namespace = self._target.namespace or self._session.namespace
        flags = namespace_flag(namespace)
        return f"kruise why {self._target.kind.word}/{self._target.name}{flags}"

    @property
    def answer(self) -> str:
        """The last one, or at least where to find it."""
        return self._answer or self._see

    @property
    def _see(self) -> str:
        return f"see: {self.command}"

    def look(self, progress: Progress, wake: Callable[[], None]) -> str | None:
        """The line to show; None where it stays as it is. `wake` is called when there is an answer."""
        now = self._session.clock.monotonic()
        if progress != self._progress:
            self.close()
            self._progress, self._since, self._answer = progress, now, ""
            self._next_look = now + STANDSTILL_SECONDS
            if self._deadline is not None:
                self._next_look = min(self._next_look, self._deadline - _ANSWER_SECONDS)
        elif self._asking is not None and self._asking.done():
            self._answer, self._asking = self._asking.result(), None
            self._next_look = now + STANDSTILL_SECONDS
        if self._asking is None and now >= self._next_look:
            self._asking = asyncio.create_task(self.ask())
            self._asking.add_done_callback(lambda _: wake())
        text = self._answer if now - self._since >= STANDSTILL_SECONDS else ""
        if text == self._told:
            return None
        self._told = text
        return text

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def ask(self) -> str:
        """Why it does not move, in one line, and how to see more. Whatever cannot be read is left for that command."""
        from kruise.cli.deciding import Asking, explain
        from kruise.reasons.summary import line_of

        try:
            async with asyncio.timeout(_patience(self._session, self._deadline, _ANSWER_SECONDS)):
                document = await self._session.get(self._target)
                line = line_of(await explain(self._session, self._target, document, Asking()))
        except (VerbError, ClientError, TimeoutError):
            line = ""
        return f"{line}; {self._see}" if line else self._see


async def _next(follower: Follower, deadline: float | None, session: Session) -> None:
    """Wait for a change, for a second at most: ages on the screen grow, and the deadline must be kept."""
    try:
        async with asyncio.timeout(_patience(session, deadline, 1.0)):
            await follower.changed.wait()
            follower.changed.clear()
    except TimeoutError:
        return


def _patience(session: Session, deadline: float | None, most: float) -> float:
    return most if deadline is None else max(min(most, deadline - session.clock.monotonic()), 0.0)


def must_be_revision(kind: Face, wanted: int, revisions: list[Revision]) -> Callable[[Json], None]:
    """Refuse to follow another revision than the one that is meant."""

    numbers = {revision.name: str(revision.number) for revision in revisions}

    def check(document: Json) -> None:
        if kind.history is History.REPLICA_SETS:
            running = str(value_at(document, ("metadata", "annotations", REVISION_ANNOTATION), ""))
        else:
            name = str(value_at(document, kind.revision_field, ""))
            # A DaemonSet does not name it. A name that was not there before belongs to a later revision.
            running = numbers.get(name, name) if name else max(numbers.values(), key=int, default="")
        if running and running != str(wanted):
            raise VerbError(f"desired revision ({wanted}) is different from the running revision ({running})")

    return check
