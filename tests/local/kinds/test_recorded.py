"""Our answers are those that a real API server gave to the same requests."""

from __future__ import annotations

import pytest

from kruise.machinery.clock import ManualClock
from tests.local.kinds import recorded
from tests.local.kinds.cases import CREATES, UPDATES, Case
from tests.local.kinds.playing import facts, local_table, local_transport, play, tables
from tests.local.kinds.table_cases import TABLES


@pytest.mark.parametrize(("what", "cases"), [("creates", CREATES), ("updates", UPDATES)])
async def test_answers(what: str, cases: tuple[Case, ...]) -> None:
    """Codes, reasons, fields at fault and stored objects."""
    at, answers = recorded.read(what)
    ours = await local_transport(ManualClock(at), "kinds")
    for number, case in enumerate(cases):
        title = f"{case.plural}: {case.title}"
        our, their = await play(ours, case, "kinds", number), answers[title]
        our.pop("message", None), their.pop("message", None)
        assert our == their, title
    assert len(answers) == len(cases)


async def test_tables() -> None:
    """Columns and cells."""
    at, answers = recorded.read("tables")
    ours = await local_transport(ManualClock(at), "kinds")
    for plural in TABLES:
        names = await tables(ours, plural, "kinds")
        assert await local_table(ours, plural, "kinds", names) == answers[plural], plural


async def test_facts() -> None:
    """Generations, status writes, updates without a version or an object, deletes."""
    at, answers = recorded.read("facts")
    ours = await local_transport(ManualClock(at), "kinds")
    for plural in TABLES:
        assert await facts(ours, plural, "kinds") == answers[plural], plural
