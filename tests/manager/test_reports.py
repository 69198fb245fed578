"""For any rights whatever: a caller sees what these rights cover, all of it and nothing else."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.codec import decode
from kruise.machinery.journal import Journal
from kruise.manager.reports import Reply, Reports
from tests.support.examples import story_settings
from tests.support.journalled import CONTROLLER, SECRET, record
from tests.toy.api import TROUPES

NAMESPACES = ("bar", "show")
EVERYWHERE = ""
RIGHTS = st.sets(
    st.tuples(
        st.sampled_from(["get", "list"]),
        st.sampled_from([str(PODS), str(TROUPES)]),
        st.sampled_from([EVERYWHERE, *NAMESPACES]),
    )
)


@dataclasses.dataclass(frozen=True)
class Table:
    held: set[tuple[str, str, str]]
    name: str = "eve"

    async def may(self, verb: str, resource: Resource[Any], namespace: str, name: str = "") -> bool:
        return self.has(verb, resource, namespace)

    def has(self, verb: str, resource: Resource[Any], namespace: str) -> bool:
        return bool(self.held & {(verb, str(resource), EVERYWHERE), (verb, str(resource), namespace)})


def reports() -> Reports:
    journal = Journal()
    for namespace in NAMESPACES:
        record(journal, namespace, "a")
    waits = [{"controller": CONTROLLER, "key": f"{where}/a", "seconds": 1.0, "reason": ""} for where in NAMESPACES]
    return Reports(journal, lambda: {CONTROLLER: TROUPES}, lambda: waits)


REPORTS = reports()


async def ask(path: str, rights: Table, **query: str) -> Reply:
    return await REPORTS.answer(path, query, rights)


@story_settings(60)
@given(RIGHTS)
def test_nothing_is_shown_that_rights_do_not_cover_and_nothing_is_left_out(held: set[tuple[str, str, str]]) -> None:
    asyncio.run(check(Table(held)))


async def check(rights: Table) -> None:
    allowed = {where for where in NAMESPACES if rights.has("get", TROUPES, where)}
    readable = {where for where in allowed if rights.has("get", PODS, where) and rights.has("list", PODS, where)}
    listed, waits = await ask("/journal", rights), await ask("/waiting", rights)
    assert (listed.status == 403) == (waits.status == 403) == (not allowed)
    if allowed:
        entries = {entry["key"]["namespace"]: entry for entry in decode(listed.body, list)}
        assert entries.keys() == allowed
        assert {where for where, entry in entries.items() if SECRET in str(entry)} == readable
        assert {wait["key"] for wait in decode(waits.body, list)} == {f"{where}/a" for where in allowed}
    for where in NAMESPACES:
        answers = (
            await ask(f"/journal/{CONTROLLER}/{where}/a", rights),
            await ask("/journal", rights, key=f"{where}/a"),
            await ask("/journal", rights, namespace=where),
        )
        for answer in answers:
            assert answer.status == (200 if where in allowed else 403)
            assert (SECRET.encode() in answer.body) == (where in readable)
