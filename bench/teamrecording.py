"""What an API server told the manager about one team, to be played as many teams.

Recorded from a real server: every list that the manager asked for, and of each pod the updates in the order in which
they came while its container stopped being ready and was ready again. Whatever tells the team from another one (its
name, the names of its nodes, the ends of uids) is marked, so that a player can put a number there.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench import processes
from bench.fleet import GATES, NODES_PER_TEAM, Json, members, team_name
from bench.living import Fleet, note, side_by_side
from kruise.api.native.pod import PODS
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.codec import decode, encode
from tests.support.kruisecluster import MANAGER, KruiseCluster

TEAM = "@T@"
"""Stands for the number of a team, three digits."""
VERSION = "@V@"
"""Stands for the version of an object, in updates."""
_NEVER_READY = "sim.kruise.io/never-ready"
_UID = re.compile(r"\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{9})[0-9a-f]{3}\b")
_OURS = re.compile(rf"\b{team_name(0)}\b")
_NODE = re.compile(r"\bsim-(\d+)\b")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """What a list has of the team, and what it has besides."""

    kind: str
    api_version: str
    team: tuple[str, ...]
    shared: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TeamRecording:
    lists: dict[str, ListOf]
    """By path and selectors, as `address` writes them."""
    others: dict[str, str]
    """Further answers, by path."""
    updates: dict[str, tuple[str, ...]]
    """Of each pod, by its name: the objects in the order in which they came. After the last one it is as it was."""

    def save(self, path: Path) -> None:
        path.write_bytes(encode(dataclasses.asdict(self)))

    @classmethod
    def load(cls, path: Path) -> TeamRecording:
        return decode(path.read_bytes(), cls)


def address(target: str) -> str:
    """Of a list or watch: what it is about, without how it is asked for."""
    url = urlsplit(target)
    query = parse_qs(url.query)
    selectors = [f"{name}={query[name][0]}" for name in ("fieldSelector", "labelSelector") if name in query]
    return "?".join([url.path, "&".join(selectors)]) if selectors else url.path


def record(path: Path) -> None:
    """Makes a cluster with one team, and writes what it tells."""
    with KruiseCluster(nodes=NODES_PER_TEAM, flags=(f"--feature-gates={GATES}",)) as cluster:
        processes.run(_record(cluster)).save(path)


async def _record(cluster: KruiseCluster) -> TeamRecording:
    team = team_name(0)
    async with Client(HttpTransport(load(cluster.kubeconfig))) as client:
        fleet = Fleet(cluster, client)
        await fleet.label_nodes([team])
        await fleet.namespace(team)
        everything = list(members(team))
        await fleet.make(everything)
        await fleet.until_settled(everything)
        await asyncio.sleep(10)
        note("a team is made and settled")
        listed, read = _asked_for(cluster)
        lists = {target: await _list(fleet, target) for target in listed}
        others = {target: (await _read(fleet, target)).decode() for target in read}
        updates = await _updates(fleet, team)
        note(f"{sum(map(len, updates.values()))} updates of {len(updates)} pods recorded")
    return TeamRecording(lists=lists, others=others, updates=updates)


def _asked_for(cluster: KruiseCluster) -> tuple[set[str], set[str]]:
    """What the manager has listed since its start, and what else it has read."""
    asked = [entry for entry in cluster.plane.audit_entries() if entry.user == MANAGER and entry.code == 200]
    lists = {address(entry.uri) for entry in asked if entry.verb == "list"}
    return lists, {entry.uri for entry in asked if entry.verb == "get" and not entry.resource} | {"/version"}


async def _list(fleet: Fleet, target: str) -> ListOf:
    body = decode(await _read(fleet, target), dict[str, Any])
    items = [_item(item, body) for item in body["items"]]
    return ListOf(
        kind=body["kind"],
        api_version=body["apiVersion"],
        team=tuple(marked(item) for item in items if _is_of_team(item)),
        shared=tuple(json.dumps(item) for item in items if not _is_of_team(item)),
    )


async def _read(fleet: Fleet, target: str) -> bytes:
    answer = await fleet.client.send(Request(Verb.GET, None, raw_path=target, timeout=60))
    return answer.body


def _item(item: Json, body: Json) -> Json:
    """Items of lists of native kinds do not say what they are; updates of them do."""
    return {"kind": body["kind"].removesuffix("List"), "apiVersion": body["apiVersion"], **item}


def _is_of_team(item: Json) -> bool:
    """It is in the team's namespace, or bears its name: revisions of a SidecarSet are elsewhere."""
    metadata = item["metadata"]
    return any(pattern.search(metadata.get(field, "")) for field in ("namespace", "name") for pattern in (_OURS, _NODE))


def marked(item: Json) -> str:
    text = _UID.sub(rf"\1{TEAM}", json.dumps(item))
    text = _NODE.sub(rf"sim-{TEAM}-\1", text)
    return _OURS.sub(f"team-{TEAM}", text)


async def _updates(fleet: Fleet, team: str) -> dict[str, tuple[str, ...]]:
    pods = [pod for pod in await fleet.listed(PODS, team) if pod["status"].get("phase") == "Running"]
    names = [pod["metadata"]["name"] for pod in pods]
    seen: dict[str, list[Json]] = defaultdict(list)
    ready = dict.fromkeys(names, True)
    version = max(int(pod["metadata"]["resourceVersion"]) for pod in pods)
    async with _following(fleet, team, version, seen, ready):
        for wish in ("true", None):
            body = {"metadata": {"annotations": {_NEVER_READY: wish}}}
            await side_by_side(fleet.client.patch(PODS, name, body, team, patch_type=PatchType.MERGE) for name in names)
            async with asyncio.timeout(180):
                while any(ready[name] is (wish is not None) for name in names):  # noqa: ASYNC110
                    await asyncio.sleep(0.5)
        await asyncio.sleep(5)  # others may write after the node
    return {name: tuple(_versionless(item) for item in seen[name]) for name in names}


@contextlib.asynccontextmanager
async def _following(
    fleet: Fleet, team: str, version: int, seen: dict[str, list[Json]], ready: dict[str, bool]
) -> AsyncIterator[None]:
    async def follow() -> None:
        query = (("watch", "true"), ("resourceVersion", str(version)), ("timeoutSeconds", "600"))
        async with fleet.client.transport.stream(Request(Verb.WATCH, PODS, team, query=query)) as lines:
            async for line in lines:
                event = decode(line, dict[str, Any])
                pod = event["object"]
                name = pod["metadata"]["name"]
                if event["type"] == "MODIFIED" and name in ready:
                    seen[name].append(pod)
                    conditions = pod["status"].get("conditions", ())
                    ready[name] = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def _versionless(item: Json) -> str:
    metadata = {**item["metadata"], "resourceVersion": VERSION}
    return marked({**item, "metadata": metadata})
