"""Asking why in a local world: of the manager's journal and anew, which must tell the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kruise.api.meta import Key
from kruise.cli import journal_access
from kruise.cli.deciding import Asking, explain, lone_pod, owner_of
from kruise.cli.session import Session
from kruise.faces.native import POD
from kruise.machinery.causes import Act, Meaning
from kruise.reasons import dump
from kruise.reasons.links import Answer, Link
from kruise.verbs.lookup import find
from kruise.verbs.targets import Target
from tests.scenarios.stage import Stage
from tests.support.world import LocalWorld

ANEW = Asking(journal=False)


def session_of(world: LocalWorld) -> Session:
    return Session(world.client, namespace=world.namespace, clock=world.clock)


async def ask(stage: Stage, name: str = "web", *, kind: str = "", asking: Asking = ANEW) -> Answer:
    """The answer about a workload; where no kind is named, one of the kind that the stage speaks of."""
    assert isinstance(stage.world, LocalWorld)
    session = session_of(stage.world)
    resource = stage.resource
    target = Target(find(kind or f"{resource.plural}.{resource.group}"), name)
    return await explain(session, target, await session.get(target), asking)


async def ask_both(stage: Stage, monkeypatch: pytest.MonkeyPatch, name: str = "web") -> Answer:
    """The same by the manager's journal as by a decision made anew."""
    anew, asked = await ask(stage, name), await ask_journal(stage, monkeypatch, name)
    assert asked.source.is_journal
    assert story(asked) == story(anew), f"{story(asked)} {story(anew)}"
    return anew


async def ask_journal(stage: Stage, monkeypatch: pytest.MonkeyPatch, name: str = "web", *, kind: str = "") -> Answer:
    world = stage.world
    assert isinstance(world, LocalWorld)

    async def latest_decision(
        session: Session, controller: str, key: Key, *, causes: Iterable[Meaning] = (), manager_url: str = ""
    ) -> tuple[dump.Dumped, str]:
        return dump.read(world.journal.dump(controller, key, causes_once=True), causes), "the manager of the test"

    monkeypatch.setattr(journal_access, "latest_decision", latest_decision)
    return await ask(stage, name, kind=kind, asking=Asking())


def story(answer: Answer) -> dict[str, Any]:
    """Who waits for what, without times."""
    return {
        name: [(link.code, link.leads_to, link.act) for link in waiting.links]
        for name, waiting in answer.waiting.items()
    }


async def ask_pod(stage: Stage, name: str) -> tuple[Link, ...]:
    """What is wrong with a pod of nobody."""
    assert isinstance(stage.world, LocalWorld)
    session = session_of(stage.world)
    document = await session.get(Target(POD, name))
    assert await owner_of(session, document) is None
    return await lone_pod(session, document)


def codes(answer: Answer) -> set[str]:
    return {link.code for waiting in answer.waiting.values() for link in waiting.links}


def ends(answer: Answer, name: str | None = None) -> set[str]:
    names = answer.waiting if name is None else (name,)
    return {link.code for one in names for link in answer.ends(one)}


def is_helped(answer: Answer) -> None:
    """Whatever waits, somebody is told what to do, or that it goes on by itself."""
    for name in answer.waiting:
        found = answer.ends(name)
        assert found, f"the chain of {name or 'the workload'} has no end"
        assert all(link.remedy or link.act is Act.NOBODY for link in found)
