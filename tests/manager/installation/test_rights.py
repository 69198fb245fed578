"""The rights of an installation, one by one: each is used, and what stops without it says so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hack import rights as maker
from kruise.doctor.findings import LACKS_RIGHTS
from kruise.doctor.rules import installation
from kruise.doctor.snapshot import Snapshot
from kruise.feature import handlers_of
from kruise.kinds import features
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.clock import run_virtual
from kruise.machinery.watched import watched
from kruise.manager import gates
from kruise.manager.installation import grants
from kruise.manager.installation.documents import named
from kruise.manager.installation.granting import Right, rights_of
from kruise.manager.installation.grants import READ, Grant
from kruise.manager.options import Options
from tests.manager.installation.rights import DAEMON_ROWS, ELSEWHERE, OF_DAEMONS_ELSEWHERE, ROWS, Row, others
from tests.support import rights
from tests.support.dying_both import NodeDaemon
from tests.support.world import LocalWorld, local_world

ROOT = Path(__file__).resolve().parents[3]
OTHERS = others.GAMES.group
DENIED_WITHIN = 3000.0
"""Virtual seconds until a story asks for what its row says."""


def _uses_held(guard: rights.Guarded, granted: tuple[Grant, ...]) -> list[rights.Asked]:
    held = {
        right
        for grant in granted
        if grant.is_held
        for right in rights_of({"apiGroups": [grant.group], "resources": grant.resources, "verbs": grant.verbs})
    }
    return [asked for asked in guard.used if asked.right._replace(name="") in held]


def _asks(asked: rights.Asked, row: Row) -> bool:
    right = asked.right
    return (right.group, right.resource, right.verb) == (row.group, row.resource, row.verb)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_what_needs_it_stops_without_it_says_why_and_goes_on_with_it(
    row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with local_world(start=False, feature_gates=row.story.gates, **row.story.flags) as world:
            full = world.grants
            world.grants = lambda scope: rights.without(full(scope), row.right)
            world.start_manager()
            await world.sleep(1)
            async with _stopped(world, row, world.guard, told):
                world.grants = full
            assert not _uses_held(world.guard, grants.MANAGER)

    told: list[str] = []
    with caplog.at_level(logging.WARNING):
        run_virtual(main())
    _is_told(row, told, caplog)


@pytest.mark.parametrize("row", DAEMON_ROWS, ids=lambda row: row.id)
def test_the_same_of_the_daemon(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with local_world(feature_gates=row.story.gates, node_daemon=False, **row.story.flags) as world:
            full = rights.grants_with(tuple(world.features), rights.DAEMON, world.options.gates)
            granted = [lambda scope: rights.without(full(scope), row.right)]
            inner = InProcessTransport(world.cluster.core)
            guard = rights.Guarded(inner, lambda: granted[0], rights.user_of(rights.DAEMON))
            daemon = NodeDaemon(world)
            daemon.start(guard, journal=world.journal)
            try:
                async with _stopped(world, row, guard, told):
                    granted[0] = full
                assert not _uses_held(guard, grants.DAEMON)
            finally:
                await daemon.kill()

    told: list[str] = []
    with caplog.at_level(logging.WARNING):
        run_virtual(main())
    _is_told(row, told, caplog)


@contextlib.asynccontextmanager
async def _stopped(world: LocalWorld, row: Row, guard: rights.Guarded, told: list[str]) -> AsyncIterator[None]:
    """The story of a row, as far as it comes; after the block, to its end."""
    story = asyncio.create_task(row.story.play(world), name=row.story.name)
    try:
        await _denied(guard, row, story)
        await world.sleep(3)
        assert row.is_only_told or not story.done(), f"{row.story.name} goes on without: {story}"
        told.extend(await _told(world))
        yield
        await story
    finally:
        story.cancel()
        await asyncio.wait({story})


def _is_told(row: Row, told: list[str], caplog: pytest.LogCaptureFixture) -> None:
    lines = [*told, *map(_line, caplog.records)]
    words = f'cannot {row.verb} resource "{row.resource}" in API group "{row.group}"'
    assert any(words in line for line in lines), "\n".join(dict.fromkeys(lines))


def _line(record: logging.LogRecord) -> str:
    return f"{record.getMessage()} {record.__dict__.get('error', '')} {record.exc_info[1] if record.exc_info else ''}"


async def _told(world: LocalWorld) -> Iterator[str]:
    """What people can see of it: events, and decisions, as `kruise why` shows them."""
    seen = [str(event.get("message", "")) for event in await world.events()]
    for controller, key in world.journal.subjects():
        seen += [json.dumps(entry, ensure_ascii=False) for entry in world.journal.entries(controller, key, limit=5)]
    return iter(line.replace('\\"', '"') for line in seen)


async def _denied(guard: rights.Guarded, row: Row, story: asyncio.Task[None]) -> None:
    async with asyncio.timeout(DENIED_WITHIN):
        while not any(_asks(asked, row) for asked in guard.denied):
            if story.done():
                story.result()
                raise AssertionError(f"{row.story.name} never asks to {row.verb} {row.resource}")
            await asyncio.sleep(0.1)


# Reading


def _only(gate: str) -> str:
    return ",".join(f"{name}={str(name == gate).lower()}" for name in gates.GATES)


GATES = {
    "defaults": "",
    "all": "AllAlpha=true,AllBeta=true,EnableExternalCerts=false",
    "none": _only(""),
    **{f"only-{gate}": _only(gate) for gate in gates.GATES},
    **{f"without-{gate}": f"{gate}=false" for gate, about in gates.GATES.items() if about.default},
}
REGISTERED = {
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
}
"""What the webhook server watches, whatever the gates."""


def _readers(chosen: Mapping[str, bool]) -> dict[tuple[str, str], set[str]]:
    """What controllers and webhooks watch with these gates, and which of them cannot do without."""
    found: dict[tuple[str, str], set[str]] = {}
    options = Options(gates=chosen)
    for feature in features():
        for spec in feature.controllers(options):
            for source in spec.all_sources:
                needing = found.setdefault((source.resource.group, source.resource.plural), set())
                if not source.optional:
                    needing.add(spec.name)
    for handler in handlers_of(features(), options):
        for kind in handler.needs:
            resource = watched(kind).resource
            found.setdefault((resource.group, resource.plural), set()).add(handler.path)
    return found


@pytest.mark.parametrize("chosen", GATES.values(), ids=list(GATES))
def test_what_may_be_listed_is_what_is_watched_under_these_gates(chosen: str) -> None:
    [role] = [one for one in rights.roles_with(features(), chosen) if one["metadata"]["name"] == "kruise-manager-role"]
    granted = {
        (right.group, right.resource)
        for rule in role["rules"]
        for right in rights_of(rule)
        if right.verb == "watch" and right.group not in ("authentication.k8s.io", "authorization.k8s.io")
    }
    assert granted - REGISTERED == _readers(gates.resolve(gates.parse(chosen))).keys()


KINDS = _readers(gates.resolve(gates.parse(GATES["all"])))


@pytest.mark.parametrize(("group", "plural"), sorted(KINDS), ids=lambda part: part)
def test_a_kind_that_may_not_be_read_is_named_and_those_who_need_it_wait(
    group: str, plural: str, caplog: pytest.LogCaptureFixture
) -> None:
    began: set[str] = set()

    async def main() -> None:
        async with local_world(start=False, feature_gates=GATES["all"]) as world:
            full = world.grants
            taken = Right(group, plural, "list")
            world.grants = lambda scope: rights.without(full(scope), taken)
            caplog.clear()  # of controllers of Kubernetes itself, which have the same names
            world.start_manager()
            await world.sleep(60)
            [(_, why)] = world.waiting_for.items()
            assert f'cannot list resource "{plural}" in API group "{group}" at the cluster scope' in why
            began.update(_begun(caplog))
            world.grants = full
            await world.sleep(120)
            assert not world.waiting_for

    with caplog.at_level(logging.INFO, logger="kruise"):
        run_virtual(main())
    needing = {name for name in KINDS[group, plural] if not name.startswith("/")}
    assert not began & needing
    assert needing <= _begun(caplog)


def _begun(caplog: pytest.LogCaptureFixture) -> set[str]:
    return {record.__dict__["controller"] for record in caplog.records if record.getMessage() == "controller started"}


# The table


def _to_show(granted: tuple[Grant, ...]) -> set[tuple[str, str, str]]:
    """What has to be shown to be used; reading whole kinds is, by what is watched."""
    found = set()
    for grant in granted:
        group = grant.group if grant.groups is None else ""
        for resource in grant.resources:
            for verb in set(grant.verbs) - set(READ if set(READ) <= set(grant.verbs) else ()):
                is_status = verb == "get" and "/" in resource and "patch" in grant.verbs
                if not (grant.is_held or is_status or (verb == "update" and "patch" in grant.verbs)):
                    found.add((group, resource, verb))
    return found


def test_every_right_of_the_manager_has_its_story() -> None:
    shown = {tuple(row.right[:3]) for row in ROWS if row.group != OTHERS} | ELSEWHERE.keys()
    assert _to_show((*grants.MANAGER, *grants.LEADER)) == shown


def test_every_right_of_the_daemon_has_its_story() -> None:
    shown = {tuple(row.right[:3]) for row in DAEMON_ROWS if row.verb != "list"} | OF_DAEMONS_ELSEWHERE.keys()
    assert _to_show((*grants.DAEMON, *grants.DAEMON_SECRETS)) == shown
    assert {row.resource for row in DAEMON_ROWS if row.verb == "list"} == {
        resource for grant in grants.DAEMON if "list" in grant.verbs for resource in grant.resources
    }


@pytest.mark.parametrize("place", sorted({*ELSEWHERE.values(), *OF_DAEMONS_ELSEWHERE.values()}))
def test_stories_of_other_tests_are_there(place: str) -> None:
    path, _, name = place.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()


# The page, and the doctor


@pytest.mark.parametrize(
    ("role", "right"),
    [
        (role, right)
        for role in rights.roles_with(features(), GATES["all"])
        if role["kind"] in rights.ROLES and role["metadata"]["name"].startswith("kruise-")
        for rule in role["rules"]
        for right in rights_of(rule)
        if right.verb in ("list", "create", "patch", "delete", "get")
    ][::7],
    ids=lambda part: f"{part.verb}-{part.resource}" if isinstance(part, Right) else "",
)
def test_the_doctor_names_what_is_missing(role: dict[str, Any], right: Right) -> None:
    """Some of all: each is looked at in the same way."""
    live = {**role, "rules": rights.without(role["rules"], right)}
    now = datetime(2030, 1, 1, tzinfo=UTC)
    seen = Snapshot(now=now, version="1", wanted=[role], live={named(role): live}, is_installed=True)
    [found] = [finding for finding in installation.rules(seen) if finding.code == LACKS_RIGHTS.code]
    assert found.fix is not None
    assert f"{right.verb}" in found.message
    assert right.resource in found.message


def test_the_page_is_up_to_date() -> None:
    assert maker.PAGE.read_text() == maker.page(), f"run {maker.COMMAND}"
