"""Plays a recording moment by moment: its steps at their distances, and what others than our controllers did.

What our controllers did is not played but compared: every recorded picture of an object must come, in its order, and
the last one must be the last; the same objects must be there in the end, and the same events must have been told.
A kind of recordings brings its steps, its environment and what a picture of an object shows.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kruise.api.native.events import EVENTS
from kruise.api.resource import Resource
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.patches import merge
from tests.recordings.comparison import Difference
from tests.recordings.environment import Watched
from tests.recordings.player import Played
from tests.support.world import LocalWorld

Json = dict[str, Any]
TAIL = 4.0
"""Seconds after the last line."""
_LINE = re.compile(r"\+([0-9.]+) (.*)")
_STEP = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_REFUSED = re.compile(r"-> HTTP (\d+) \w*: (?:admission webhook \"[^\"]+\" denied the request: )?(.*)")


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    at: float
    target: str
    """`Pod/pod-1`; `#3` for the third step."""
    text: str
    refusal: tuple[int, str] = (0, "")
    """Of a step: with which code and text it was refused."""

    @property
    def document(self) -> Json:
        """The difference that the line tells, behind its words."""
        if self.target.startswith("#"):
            return {}
        for found in re.finditer(r"(?:^| )(\{)", self.text):
            with contextlib.suppress(ValueError):
                document: Json = json.loads(self.text[found.start(1) :])
                return document
        return {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CourseRecording:
    name: str
    environment: str
    """The first line: release, Kubernetes, feature gates."""
    manifests: tuple[Json, ...]
    steps: tuple[str, ...]
    moments: tuple[Moment, ...]
    events: Mapping[tuple[str, ...], int]

    def manifest(self, name: str) -> Json:
        return next(copy.deepcopy(one) for one in self.manifests if one["metadata"]["name"] == name)


def read(path: Path, components: Sequence[str]) -> CourseRecording:
    """`components`: whose events count."""
    text = path.read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    blocks = re.findall(r"^```yaml\n(.*?)^```", sections["Manifest"], flags=re.MULTILINE | re.DOTALL)
    return CourseRecording(
        name=path.stem,
        environment=text.splitlines()[0],
        manifests=tuple(yaml.safe_load(block) for block in blocks),
        steps=tuple(text for _, text in _STEP.findall(sections["Steps"])),
        moments=tuple(_moments(sections["Log"])),
        events=_events(sections["Events"], components),
    )


def _moments(section: str) -> Iterator[Moment]:
    """A refusal stands behind its step, before the next one."""
    lines = [found for raw in section.splitlines() if (found := _LINE.fullmatch(raw)) is not None]
    steps = 0
    for place, found in enumerate(lines):
        if found[2].lstrip().startswith(("->", "Event ")):
            continue
        if found[2].startswith("#### "):
            steps += 1
            behind = itertools.takewhile(
                lambda line: not line.startswith("#### "), (one[2] for one in lines[place + 1 :])
            )
            refusals = [told for line in behind if (told := _REFUSED.match(line.strip())) is not None]
            refusal = (int(refusals[0][1]), refusals[0][2]) if refusals else (0, "")
            yield Moment(float(found[1]), f"#{steps}", found[2].removeprefix("#### "), refusal)
        else:
            target, _, text = found[2].partition(" ")
            yield Moment(float(found[1]), target, text)


def _events(section: str, components: Sequence[str]) -> dict[tuple[str, ...], int]:
    """By object, type, reason and message. The two sorts of recordings have their columns in another order."""
    found: collections.Counter[tuple[str, ...]] = collections.Counter()
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 6 or not any(component in cells[-3:] for component in components):
            continue
        if "/" in cells[0]:
            target, kind, reason, message = (*cells[:3], "|".join(cells[3:-2]))
            count = int(cells[-2].rpartition("/")[2])
        else:
            kind, reason, target, message = (*cells[:3], "|".join(cells[3:-2]))
            count = int(cells[-1].partition("/")[0])
        found[target, kind, reason, message] += count
    return found


class CoursePlayer:
    """`brief`: a recorded picture that stood for less than so many seconds need not come."""

    resources: Mapping[str, Resource[Any]]
    """What is watched and compared, by kind."""
    components: Sequence[str]
    brief = 0.0

    def __init__(self, recording: CourseRecording, world: LocalWorld) -> None:
        self.recording = recording
        self.world = world
        self.recorded: dict[tuple[str, str], list[tuple[float, Any]]] = collections.defaultdict(list)
        """By object and aspect: since when it was shown like this."""
        self.seen: list[Json] = []
        """Our objects, each time that they changed."""
        self.differences: list[Difference] = []
        self.known: dict[str, Json] = {}
        """The recorded objects, as far as the log has told."""

    # What a kind of recordings brings

    async def prepare(self) -> None:
        """Before the first moment."""

    async def step(self, step: str, moment: Moment) -> None:
        raise NotImplementedError

    async def happens(self, kind: str, name: str, moment: Moment) -> None:
        """Anything but a step. What is not ours to do is done here."""

    def picture(self, kind: str, found: Json) -> Mapping[str, Any]:
        """What is compared of an object, by aspect."""
        raise NotImplementedError

    def recorded_document(self, kind: str, moment: Moment) -> Json:
        """What a line of the log tells of an object, as a merge patch."""
        return moment.document

    def told(self, found: Json) -> Json:
        """Our object, in the words of a recording."""
        return found

    def key_of(self, found: Json) -> str:
        """Our object's kind and name, as a recording calls it."""
        return f"{found['kind']}/{found['metadata']['name']}"

    def saw(self, kind: str, found: Json) -> None:
        """One of our objects has changed (`ADDED`, `MODIFIED`, `DELETED`)."""

    def background(self) -> Sequence[Any]:
        """What goes on beside it."""
        return ()

    def name(self, text: str) -> str:
        """A recorded text with our names."""
        return text

    def plain(self, text: str) -> str:
        """Our text with the recorded names."""
        return text

    def told_event(self, text: str) -> str:
        """What an event of ours says, in the words of a recording."""
        return text

    def message(self, text: str) -> str:
        """An event's message, without what is never the same."""
        return text

    # Playing

    async def run(self) -> Played:
        await self.prepare()
        watches = [Watched(self.world, resource) for resource in self.resources.values()]
        for watched in watches:
            watched.listeners.append(self._see)
        tasks = [asyncio.create_task(part) for part in (*(watched.run() for watched in watches), *self.background())]
        await self.begin()
        begin, now = self.world.clock.monotonic(), 0.0
        for moment in self.recording.moments:
            await asyncio.sleep(max(moment.at - now, 0.0))
            now = self.world.clock.monotonic() - begin
            if moment.target.startswith("#"):
                await self.step(self.recording.steps[int(moment.target[1:]) - 1], moment)
            else:
                kind, _, name = moment.target.partition("/")
                self._note(kind, self.name(name), moment)
                await self.happens(kind, name, moment)
        await asyncio.sleep(self.tail)
        self._compare_pictures()
        await self._compare_objects()
        await self._compare_events()
        for task in tasks:
            if task.done():
                task.result()
            task.cancel()
        await asyncio.wait(tasks)
        compared = sum(map(len, self.recorded.values()))
        return Played(differences=self.differences, compared=compared, checked=0, revisions=[])

    tail = TAIL

    async def begin(self) -> None:
        """Right before the first moment, when everything is watched."""

    def _see(self, kind: str, found: Json) -> None:
        self.saw(kind, found)
        if kind != "DELETED":
            self.seen.append(found)

    # Comparing

    def _note(self, kind: str, name: str, moment: Moment) -> None:
        key = f"{kind}/{name}"
        if kind not in self.resources:
            return
        if moment.text.startswith("DELETED"):
            self.known.pop(key, None)
            return
        told = json.loads(self.name(json.dumps(self.recorded_document(kind, moment))))
        document = copy.deepcopy(self.known.get(key, {}))
        self.known[key] = merge.apply(document, told)
        for aspect, picture in self.picture(kind, self.known[key]).items():
            known = self.recorded[key, aspect]
            if not known or known[-1][1] != picture:
                if known and moment.at - known[-1][0] < self.brief:
                    known.pop()
                if not known or known[-1][1] != picture:
                    known.append((moment.at, picture))

    def _pictures(self) -> dict[tuple[str, str], list[Any]]:
        """Of ours, in their order."""
        pictures: dict[tuple[str, str], list[Any]] = collections.defaultdict(list)
        for found in self.seen:
            for aspect, picture in self.picture(found["kind"], self.told(found)).items():
                known = pictures[self.key_of(found), aspect]
                if not known or known[-1] != picture:
                    known.append(picture)
        return pictures

    def _compare_pictures(self) -> None:
        pictures = self._pictures()
        for (key, aspect), recorded in self.recorded.items():
            ours, place = pictures[key, aspect], 0
            for _, picture in recorded:
                if picture in ours[place:]:
                    place = ours.index(picture, place)
                else:
                    self.differ(aspect, f"{self.plain(key)}: {self._text(picture)} does not come")
            last = ours[-1] if ours else {}
            if last != recorded[-1][1]:
                told = f"recorded {self._text(recorded[-1][1])}, ours {self._text(last)}"
                self.differ("end", f"{self.plain(key)}: {told}")

    async def _compare_objects(self) -> None:
        for kind, resource in self.resources.items():
            ours = {self.key_of({"kind": kind, **one}) for one in await self.world.list(resource)}
            recorded = {key for key in self.known if key.startswith(f"{kind}/")}
            for key in sorted(self.counted(kind, ours) ^ self.counted(kind, recorded)):
                self.differ("objects", f"{self.plain(key)} is {'left' if key in ours else 'gone'} in the end")

    def counted(self, kind: str, names: set[str]) -> set[str]:
        """The objects whose presence in the end counts."""
        return names

    async def _compare_events(self) -> None:
        ours: collections.Counter[tuple[str, ...]] = collections.Counter()
        answer = await self.world.client.send(Request(Verb.LIST, EVENTS, ""))
        for event in json.loads(answer.body)["items"]:
            if event.get("source", {}).get("component") in self.components:
                target = f"{event['involvedObject']['kind']}/{event['involvedObject']['name']}"
                target, message = self.told_event(target), self.message(self.told_event(event.get("message", "")))
                ours[target, event["type"], event["reason"], message] += event.get("count") or 1
        recorded: collections.Counter[tuple[str, ...]] = collections.Counter()
        for (target, kind, reason, message), count in self.recording.events.items():
            recorded[self.name(target), kind, reason, self.message(self.name(message))] += count
        for key in sorted({*ours, *recorded}):
            if ours[key] != recorded[key]:
                counts = f"recorded {recorded[key]} times, ours {ours[key]} times"
                self.differ("events", f"{self.plain(' '.join(key))}: {counts}")

    def differ(self, aspect: str, text: str) -> None:
        self.differences.append(Difference(aspect, text))

    def same(self, aspect: str, where: str, recorded: Any, ours: Any) -> None:
        if recorded != ours:
            self.differ(aspect, f"{where}: recorded {recorded!r}, ours {ours!r}")

    def _text(self, picture: Any) -> str:
        return self.plain(picture if isinstance(picture, str) else json.dumps(picture, sort_keys=True))
