"""The native kinds of the local cluster against a real API server: the same requests, answers and tables.

With `KRUISE_RECORD=1` the answers are written down for the tests that have no server (`tests/local/kinds`).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from kruise.local.kinds import NATIVE_KINDS
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import RealClock
from tests.local.kinds import recorded
from tests.local.kinds.cases import CREATES, UPDATES, Case
from tests.local.kinds.playing import RESOURCES, facts, local_table, local_transport, play, remove, shown_rows, tables
from tests.local.kinds.table_cases import TABLES
from tests.support.realcluster import ControlPlane

NOT_SERVED = {"attach", "exec", "portforward", "proxy", "token"}


@pytest.fixture(scope="module")
def server() -> Iterator[ControlPlane]:
    """A control plane without controllers, which would change what is compared."""
    with ControlPlane(controller_manager=False, scheduler=False) as cluster:
        cluster.create_namespace("kinds")
        yield cluster


@pytest.fixture
async def real(server: ControlPlane) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(kubeconfig.load(server.kubeconfig))
    yield transport
    await transport.close()


@pytest.mark.smoke
@pytest.mark.parametrize(("what", "cases"), [("creates", CREATES), ("updates", UPDATES)])
async def test_same_answers(what: str, cases: tuple[Case, ...], real: HttpTransport) -> None:
    """Code, reason, fields at fault and the stored object are equal; messages nearly always."""
    ours = await local_transport(RealClock(), "kinds")
    counts: Counter[str] = Counter()
    differences: list[str] = []
    answers: dict[str, Any] = {}
    other_words: list[str] = []
    for number, case in enumerate(cases):
        title = f"{case.plural}: {case.title}"
        their, our = await play(real, case, "kinds", number), await play(ours, case, "kinds", number)
        answers[title] = their
        words = {their.get("message", ""), our.pop("message", "")}
        their = {key: value for key, value in their.items() if key != "message"}
        if our != their:
            differences.append(f"{title}\n  ours   {json.dumps(our)}\n  theirs {json.dumps(their)}")
        counts["refused" if their["code"] >= 400 else "accepted"] += 1
        if len(words) == 1:
            counts["the same words"] += their["code"] >= 400
        else:
            other_words.append("\n  ".join((title, *sorted(words))))
    print(f"\n{what}: {len(cases)} requests over {len({case.plural for case in cases})} kinds, {dict(counts)}")
    print("\n".join(other_words))
    _record(what, answers)
    assert not differences, "\n".join(differences)
    assert counts["the same words"] >= 0.8 * counts["refused"]


@pytest.mark.smoke
async def test_same_tables(real: HttpTransport) -> None:
    """Columns and cells are those of the real server, for objects in all the states that tables tell apart."""
    ours = await local_transport(RealClock(), "kinds")
    differences: list[str] = []
    answers: dict[str, Any] = {}
    cells = 0
    for plural in TABLES:
        names = await tables(real, plural, "kinds")
        await tables(ours, plural, "kinds")
        their = await _real_table(real, plural, names)
        our = await local_table(ours, plural, "kinds", names)
        for name in names:
            await remove(real, plural, "kinds", name)
        answers[plural] = their
        cells += sum(len(row) for row in their["rows"])
        if our["head"] != their["head"]:
            differences.append(f"{plural}\n  ours   {our['head']}\n  theirs {their['head']}")
        for mine, other in zip(our["rows"], their["rows"], strict=True):
            if mine != other:
                differences.append(f"{plural}\n  ours   {mine}\n  theirs {other}")
    print(f"\ntables: {len(TABLES)} kinds, {cells} cells")
    _record("tables", answers)
    assert not differences, "\n".join(differences)


@pytest.mark.smoke
async def test_same_facts(real: HttpTransport) -> None:
    """The table of kinds is true in what it says about generations, status writes, updates and deletes."""
    ours = await local_transport(RealClock(), "kinds")
    theirs = {plural: await facts(real, plural, "kinds") for plural in TABLES}
    found = {plural: await facts(ours, plural, "kinds") for plural in TABLES}
    _record("facts", theirs)
    print(f"\nfacts: {len(theirs)} kinds")
    for plural, their in theirs.items():
        assert found[plural] == their, plural


@pytest.mark.smoke
def test_same_names(server: ControlPlane) -> None:
    """Singular and short names, categories and subresources are those of the real server's discovery."""
    for kind in NATIVE_KINDS:
        root = f"/apis/{kind.group}/v1" if kind.group else "/api/v1"
        listed = {one["name"]: one for one in server.request("GET", root).ok()["resources"]}
        their = listed[kind.plural]
        assert kind.singular == their["singularName"]
        assert (kind.kind, kind.namespaced) == (their["kind"], their["namespaced"])
        assert list(kind.short_names) == their.get("shortNames", []), kind.plural
        assert list(kind.categories) == their.get("categories", []), kind.plural
        ours = {*kind.subresources, *(["status"] if kind.has_status else ())}
        theirs = {name.partition("/")[2] for name in listed if name.startswith(f"{kind.plural}/")}
        assert theirs - ours <= NOT_SERVED, kind.plural
        assert ours <= theirs, kind.plural


async def _real_table(real: HttpTransport, plural: str, names: list[str]) -> Any:
    resource = RESOURCES[plural]
    namespace = "kinds" if resource.namespaced else ""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    rows, head = [], []
    for name in names:
        answer = await real.send(Request(Verb.GET, resource, namespace, name, accept=accept))
        table = json.loads(answer.body)
        assert table["kind"] == "Table", table
        head = [[one["name"], one["type"], one["format"], one["priority"]] for one in table["columnDefinitions"]]
        rows.append(table["rows"][0]["cells"])
    return {"head": head, "rows": shown_rows(head, rows, "kinds")}


def _record(what: str, answers: Any) -> None:
    if os.environ.get("KRUISE_RECORD"):
        recorded.write(what, answers, RealClock().now())
