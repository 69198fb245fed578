"""An API server that plays the recording of one team as many: `python -m bench.player DIRECTORY TEAMS` says its port.

A process of its own. It answers lists in pages and watches over TLS, and what the manager writes: a patch changes the
object, which the watch of its kind then tells, as the real server does. On its input it is told, a line of JSON each
time, how many updates of pods it shall send and for how long; what came of it is its answer. The last team is left out
of that: its CloneSets are probes. One of their pods changes its readiness now and then, and the time until the
CloneSet's status says so is taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import random
import re
import ssl
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench import processes
from bench.teamrecording import TEAM, VERSION, ListOf, TeamRecording, address
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.core.schema import merge_schema
from kruise.api.native.pod import PODS
from kruise.machinery.codec import decode, encode
from kruise.machinery.patches import json_patch, merge, strategic
from kruise.machinery.patches.errors import TestFailedError

FIRST_VERSION = 1_000_000_000
PAGE = 500
_TICK = 0.01
_PROBE_EVERY = 0.25
_TEAM_OF = re.compile(r"\b(team|sim)-(\d{3})\b")
_TEAM, _VERSION = TEAM.encode(), VERSION.encode()
_OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_REASONS = {200: "OK", 201: "Created", 404: "Not Found", 422: "Unprocessable Entity"}


class Objects:
    """What the server holds: the recording as so many teams, and what was written since."""

    def __init__(self, recording: TeamRecording, teams: int) -> None:
        self.others = recording.others
        self.version = FIRST_VERSION
        self.pages = {target: self._pages(found, teams) for target, found in recording.lists.items()}
        self._recorded: dict[str, bytes] = {}
        self._written: dict[str, Any] = {}
        for target, found in recording.lists.items():
            for text in (*found.team, *found.shared):
                self._recorded[_path_of(target, json.loads(text)["metadata"])] = text.encode()

    def _pages(self, found: ListOf, teams: int) -> list[bytes]:
        items = [text.encode() for text in found.shared]
        ours = [text.encode() for text in found.team]
        left = len(items) + teams * len(ours)
        pages: list[bytes] = []
        for number in range(teams):
            mark = b"%03d" % number
            items += (item.replace(_TEAM, mark) for item in ours)
            while len(items) > PAGE:
                left -= PAGE
                pages.append(self._page(found, b",".join(items[:PAGE]), len(pages), left > 0))
                del items[:PAGE]
        return [*pages, self._page(found, b",".join(items), len(pages), False)]

    @staticmethod
    def _page(found: ListOf, items: bytes, number: int, goes_on: bool) -> bytes:
        more = f',"continue":"{number + 1}"' if goes_on else ""
        metadata = f'{{"resourceVersion":"{FIRST_VERSION}"{more}}}'
        head = f'{{"kind":"{found.kind}","apiVersion":"{found.api_version}","metadata":{metadata},"items":['
        body = gzip.compress(head.encode() + items + b"]}", 1)
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def get(self, path: str) -> Any:
        """An object as it is now; None: there is none."""
        if path in self._written:
            return self._written[path]
        found = _TEAM_OF.search(path)
        key = _TEAM_OF.sub(rf"\1-{TEAM}", path)
        text = self._recorded.get(key)
        if text is None:
            return None
        return decode(text.replace(_TEAM, found[2].encode()) if found is not None else text, dict[str, Any])

    def put(self, path: str, document: Any) -> bytes:
        document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self.next_version())}}
        self._written[path] = document
        return encode(document)


class Updates:
    """The recorded updates of all pods, each pod's in its order. They begin anywhere, or else all would be of the same
    sort at the same time; those of one team begin at the first."""

    def __init__(self, recording: TeamRecording, in_step: int) -> None:
        self._in_step = in_step
        self.names = tuple(recording.updates)
        self._bodies = [[text.encode() for text in texts] for texts in recording.updates.values()]
        self._done: dict[tuple[int, int], int] = {}

    def next(self, team: int, pod: int, version: int) -> bytes:
        """As a chunk of a watch."""
        bodies, done = self._bodies[pod], self._count(team, pod)
        body = bodies[done % len(bodies)]
        self._done[team, pod] = done + 1
        return chunk(b"MODIFIED", body.replace(_TEAM, b"%03d" % team).replace(_VERSION, b"%d" % version))

    def _count(self, team: int, pod: int) -> int:
        begun = 0 if team == self._in_step else (7 * team + pod) % len(self._bodies[pod])
        return self._done.get((team, pod), begun)

    def turns(self, team: int, pod: int) -> int:
        """How many updates it takes until the readiness is another one."""
        bodies, done = self._bodies[pod], self._count(team, pod)
        before = _is_ready(bodies[(done - 1) % len(bodies)])
        return next(
            count for count in itertools.count(1) if _is_ready(bodies[(done + count - 1) % len(bodies)]) is not before
        )

    def of_owners(self, kind: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, bodies in enumerate(self._bodies):
            owner = decode(bodies[0], dict[str, Any])["metadata"]["ownerReferences"][0]
            if owner["kind"] == kind:
                found.setdefault(owner["name"], []).append(number)
        return found


class Player:
    def __init__(self, recording: TeamRecording, teams: int) -> None:
        self.objects = Objects(recording, teams)
        self.updates = Updates(recording, in_step=teams - 1)
        self.teams = teams
        self._watchers: dict[str, set[asyncio.StreamWriter]] = {}
        self._writes: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        # Workloads of the team itself, not those that a UnitedDeployment made: they are all of one size.
        owners = {name: pods for name, pods in self.updates.of_owners("CloneSet").items() if name.startswith("web-")}
        self._probes = itertools.cycle(sorted(owners.items()))
        self._asked: dict[str, float] = {}
        self._delays: list[float] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that goes away ends its connection, not the server.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, _ = head.split(" ", 2)
                length = re.search(r"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length is not None else b""
                query = parse_qs(urlsplit(target).query)
                if "watch" in query:
                    await self._watch(address(target), reader, writer)
                    return
                if method == "GET":
                    writer.write(self._read(target, query))
                else:
                    kind = re.search(r"\r\ncontent-type: ([^\r;]+)", head, re.IGNORECASE)
                    writer.write(self._write(method, urlsplit(target).path, kind[1] if kind else "", body))
                await writer.drain()

    async def _watch(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = self._watchers.setdefault(target, set())
        writer.write(_OPEN)
        writers.add(writer)
        try:
            await reader.read()
        finally:
            writers.discard(writer)

    def _read(self, target: str, query: dict[str, list[str]]) -> bytes:
        pages = self.objects.pages.get(address(target))
        if pages is not None:
            return pages[int(query.get("continue", ["0"])[0])]
        if target in self.objects.others:
            return reply(200, self.objects.others[target].encode())
        document = self.objects.get(urlsplit(target).path)
        if document is None:
            self._unknown[f"GET {target}"] += 1
            return reply(404, _status(404, target))
        return reply(200, encode(document))

    def _write(self, method: str, path: str, kind: str, body: bytes) -> bytes:
        parts = path.split("/")
        if method == "POST":
            self._writes[f"create {parts[-1]}"] += 1
            document = decode(body, dict[str, Any])
            return reply(201, self.objects.put(f"{path}/{document['metadata'].get('name', '')}", document))
        plain = path.removesuffix("/status")
        document = self.objects.get(plain)
        resource = plain.split("/")[-2]
        self._writes[f"{method.lower()} {resource}"] += 1
        if document is None or method == "DELETE":
            self._unknown[f"{method} {path}"] += 1
            return reply(404, _status(404, path))
        try:
            changed = self._patched(document, method, kind, decode(body, Any))
        except TestFailedError as error:
            return reply(422, _status(422, str(error)))
        answer = self.objects.put(plain, changed)
        self._tell(plain, answer)
        if (asked := self._asked.pop(plain, None)) is not None:
            self._delays.append(time.monotonic() - asked)
        return reply(200, answer)

    @staticmethod
    def _patched(document: Any, method: str, kind: str, patch: Any) -> Any:
        if method == "PUT":
            return patch
        if kind.startswith("application/json-patch"):
            return json_patch.apply(document, patch)
        if kind.startswith("application/strategic"):
            return strategic.apply(document, patch, merge_schema(document["apiVersion"], document["kind"]))
        return merge.apply(document, patch)

    def _tell(self, path: str, body: bytes) -> None:
        parts = path.split("/")
        del parts[-1]
        if "namespaces" in parts[:-1]:
            place = parts.index("namespaces")
            del parts[place : place + 2]
        for target, writers in self._watchers.items():
            if target.partition("?")[0] == "/".join(parts):
                for writer in writers:
                    writer.write(chunk(b"MODIFIED", body))

    # The stream of updates

    async def play(self, rate: float, seconds: float, at_a_time: int) -> dict[str, Any]:
        """So many updates in a second, from all teams or from a few at a time."""
        self._writes.clear()
        self._asked.clear()
        self._delays.clear()
        cpu, began = time.process_time(), time.monotonic()
        order = self._order(at_a_time)
        (writer,) = self._watchers[PODS.path()]
        sent, probe_at, worst = 0, began + _PROBE_EVERY, 0.0
        while (now := time.monotonic()) < began + seconds:
            due = int((now - began) * rate) - sent
            if due:
                chunks = [self.updates.next(*next(order), self.objects.next_version()) for _ in range(min(due, 256))]
                writer.write(b"".join(chunks))
                sent += len(chunks)
            if now >= probe_at:
                probe_at = max(probe_at + _PROBE_EVERY, now)
                self._probe(writer)
            await writer.drain()
            worst = max(worst, time.monotonic() - now)
            if due < 256:
                await asyncio.sleep(_TICK)
        took = time.monotonic() - began
        late = [time.monotonic() - at for at in self._asked.values()]
        return {
            "sent": sent,
            "rate": sent / took,
            "blocked": worst,
            "cpu": (time.process_time() - cpu) / took,
            "delays": self._delays[:],
            "late": late,
            "writes": dict(self._writes),
            "unknown": dict(self._unknown),
        }

    def _order(self, at_a_time: int) -> Iterator[tuple[int, int]]:
        """Which pod is next: any, or any of a few teams, which change after each has had two updates a pod."""
        draw = random.Random(0)
        pods = len(self.updates.names)
        teams = list(range(self.teams - 1)) or [0]
        while True:
            some = draw.sample(teams, min(at_a_time or len(teams), len(teams)))
            every = [(team, pod) for team in some for pod in range(pods)]
            for _ in range(2):
                draw.shuffle(every)
                yield from every

    def _probe(self, writer: asyncio.StreamWriter) -> None:
        name, pods = next(self._probes)
        team, pod = self.teams - 1, pods[0]
        path = CLONE_SETS.path(f"team-{team:03}", name)
        if path in self._asked:
            return  # the last one is not answered yet
        for _ in range(self.updates.turns(team, pod)):
            writer.write(self.updates.next(team, pod, self.objects.next_version()))
        self._asked[path] = time.monotonic()

    def quiet(self) -> dict[str, Any]:
        writes, self._writes = dict(self._writes), Counter()
        return {"writes": writes, "unknown": dict(self._unknown)}


def chunk(kind: bytes, body: bytes) -> bytes:
    line = b'{"type":"%b","object":%b}\n' % (kind, body)
    return b"%x\r\n%b\r\n" % (len(line), line)


def reply(code: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _status(code: int, message: str) -> bytes:
    reason = "NotFound" if code == 404 else "Invalid"
    kind = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return encode({**kind, "code": code, "reason": reason, "message": message})


def _path_of(target: str, metadata: Any) -> str:
    """Where an object of a list is, by itself."""
    root, _, plural = target.partition("?")[0].rpartition("/")
    namespace = metadata.get("namespace", "")
    if namespace and "/namespaces/" not in target:
        root = f"{root}/namespaces/{namespace}"
    return f"{root}/{plural}/{metadata['name']}"


def _is_ready(body: bytes) -> bool:
    conditions = decode(body, dict[str, Any])["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def serve(directory: Path, teams: int) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    player = Player(TeamRecording.load(directory / "team.json"), teams)
    server = await asyncio.start_server(player.answer, processes.HOST, 0, ssl=context)
    processes.settle_heap()
    processes.say({"port": server.sockets[0].getsockname()[1]})
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        told = json.loads(line)
        processes.say(await player.play(**told) if told else player.quiet())
    server.close()


if __name__ == "__main__":
    processes.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
