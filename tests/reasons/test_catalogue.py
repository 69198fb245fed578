"""The catalogue of causes: every cause has an entry, every entry is used and documented, and kinds bring their own."""

from __future__ import annotations

import ast
import functools
import importlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kruise
from kruise.api.native.pod import PODS
from kruise.foresight.forecast import Stop
from kruise.foresight.rendering.verdict import Verdict, headline, verdict_of
from kruise.machinery.causes import ENDLESS, MINUTE, WAITED_FOR, Act, Catalogue, Meaning
from kruise.machinery.codec import encode
from kruise.machinery.digest import plan_to_data
from kruise.machinery.plan import Held, Plan, Target
from kruise.protection.podunavailablebudget import causes as podunavailablebudget
from kruise.reasons import causes, dump
from kruise.spread.persistentpodstate import causes as persistentpodstate
from kruise.workloads.cloneset import causes as cloneset
from kruise.workloads.daemonset import causes as daemonset
from kruise.workloads.shared import waiting
from kruise.workloads.shared.causes import FAILURE_BUDGET, HOOK, MAX_UNAVAILABLE, PAUSED, SHARED
from kruise.workloads.shared.failure_budget import ANNOTATION
from kruise.workloads.statefulset import causes as statefulset
from tests.foresight_rendering.reports import report
from tests.reasons.test_answers import answer_of, document
from tests.support.clonesets import NOW, make_pod

SOURCES = Path(kruise.__file__).parent
DOCUMENTS = SOURCES.parents[1] / "docs"
MODULES = sorted(path for path in SOURCES.rglob("causes.py") if path.parent.name != "machinery")
OF_KINDS = (cloneset.CAUSES, statefulset.CAUSES, daemonset.CAUSES, podunavailablebudget.HOLDING)
NO_PLANS = {"reasons", "foresight", "local"}
"""Rooms whose causes no plan of a manager names."""
WORDS = {Act.SOMEBODY: "somebody", Act.NOBODY: "nobody", Act.INTENDED: "asked for"}


def module_of(path: Path) -> Any:
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return importlib.import_module(".".join(("kruise", *parts)))


def entries_in(path: Path) -> dict[str, Meaning]:
    return {name: value for name, value in vars(module_of(path)).items() if isinstance(value, Meaning)}


@functools.cache
def words_of(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", path.read_text()))


def calls_of(name: str) -> Iterator[Path]:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text() if name in words_of(path) else "")):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == name:
                yield path.relative_to(SOURCES)


def test_every_cause_is_made_from_an_entry_of_the_catalogue() -> None:
    home = Path("machinery/causes.py")
    imported = {path.relative_to(SOURCES) for path in SOURCES.rglob("*.py") if "causes import" in path.read_text()}
    made = {path for path in calls_of("Cause") if path in imported or path == home}
    assert made == {home}
    elsewhere = {path for path in calls_of("Meaning") if path.name != "causes.py"}
    assert elsewhere == set(), "entries stand in modules called causes.py, where this test finds them"
    assert {path.relative_to(SOURCES) for path in MODULES} >= {
        Path("workloads/shared/causes.py"),
        Path("reasons/causes.py"),
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.parent.name)
def test_no_entry_is_forgotten_or_left_over(path: Path) -> None:
    """Each is in a list of its module, for those who look codes up, and somebody names it elsewhere."""
    module, entries = module_of(path), entries_in(path)
    listed = [one for value in vars(module).values() if isinstance(value, tuple) for one in value]
    assert Counter(listed) == Counter(entries.values())
    others = frozenset[str]().union(*(words_of(one) for one in SOURCES.rglob("*.py") if one != path))
    assert entries.keys() - others == set()


def test_a_code_means_one_thing() -> None:
    found = Counter(meaning.code for path in MODULES for meaning in entries_in(path).values())
    assert {code: number for code, number in found.items() if number > 1} == {}
    assert len(found) > 40


@pytest.mark.parametrize(
    "meaning", [one for path in MODULES for one in entries_in(path).values()], ids=lambda one: one.code
)
def test_an_entry_agrees_with_itself(meaning: Meaning) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", meaning.code)
    assert meaning.says
    assert "\n" not in meaning.says
    if meaning.act is Act.INTENDED:
        assert meaning.is_wanted
        assert meaning.field, "whoever asked for it wrote it somewhere"
        assert meaning.patience == ENDLESS
    if meaning.waits_for_others:
        assert (meaning.act, meaning.patience) == (Act.NOBODY, ENDLESS)
    if meaning.patience == 0:
        assert meaning.act is Act.SOMEBODY
    if meaning.relief:
        assert meaning.waits_for_others
        assert meaning.field
    meaning.remedy.format(target="cloneset/web", flags="", pod="web-a", by_hand="kubectl edit pod web-a")


def test_the_field_of_the_failure_budget_is_its_annotation() -> None:
    assert f"metadata.annotations[{ANNOTATION}]" == FAILURE_BUDGET.field


# Documents


def normal(meaning: Meaning) -> str:
    if meaning.waits_for_others:
        return "as long as others take"
    return {0.0: "not at all", MINUTE: "a minute", ENDLESS: ""}[meaning.patience]


def table(meanings: tuple[Meaning, ...]) -> str:
    rows = [
        f"| `{one.code}` | {one.says} | {WORDS[one.act]} | {normal(one)} | {f'`{one.field}`' if one.field else ''} |"
        for one in meanings
    ]
    return "\n".join(("| code | meaning | who acts | normal for | set by |", "|---|---|---|---|---|", *rows))


@pytest.mark.parametrize(
    "meanings",
    [
        SHARED,
        *OF_KINDS,
        podunavailablebudget.OF_BUDGETS,
        persistentpodstate.CAUSES,
        causes.OF_PODS,
        causes.OF_WORKLOADS,
    ],
)
def test_the_document_is_the_catalogue(meanings: tuple[Meaning, ...]) -> None:
    expected = table(meanings)
    assert expected in (DOCUMENTS / "why.md").read_text(), f"docs/why.md should have:\n{expected}"


def test_the_document_tells_when_the_condition_waiting_comes() -> None:
    text = (DOCUMENTS / "failure-budget.md").read_text()
    _, _, section = text.partition("## Why it waits")
    rows = [set(re.findall(r"`([A-Za-z]+)`", row)) for row in section.splitlines() if row.startswith("| `")]
    told = [one for one in (*SHARED, *itertools.chain(*OF_KINDS)) if one.patience != ENDLESS or one.relief]
    groups = (
        [one for one in told if one.patience == 0],
        [one for one in told if one.patience == MINUTE],
        [one for one in told if one.relief],
    )
    assert rows == [{waiting.reason_of(one) for one in group} for group in groups]


# A kind from elsewhere

MOON = Meaning(
    code="moon",
    says="the moon is not full",
    act=Act.SOMEBODY,
    field="spec.moon",
    patience=0,
    remedy="change the moon of {target}",
)
TIDE = Meaning(code="tide", says="it goes with the tide", act=Act.INTENDED, is_wanted=True)


def plan_of(*meanings: Meaning) -> Plan:
    return Plan(
        held=tuple(
            Held(target=Target(PODS, "demo", f"web-{number}"), causes=(meaning.cause("it waits", remedy="see"),))
            for number, meaning in enumerate(meanings)
        )
    )


def test_the_condition_waiting_tells_causes_of_other_kinds() -> None:
    found = waiting.summarized(plan_of(MOON, TIDE).held, {}, NOW).summary
    assert found is not None
    assert (found.reason, found.message) == ("Moon", "web-0: it waits (see)")


def test_a_forecast_stops_or_is_stuck_by_what_the_cause_means() -> None:
    def verdict(*meanings: Meaning) -> Verdict:
        stops = tuple(Stop(meaning=meaning, at=0.0, message=meaning.says) for meaning in meanings)
        return verdict_of(report(waves=(), staying=(), warnings=(), stops=stops).forecast)

    assert verdict(TIDE) is Verdict.STOPS
    assert verdict(TIDE, MOON) is Verdict.STUCK
    assert verdict(PAUSED, MAX_UNAVAILABLE) is Verdict.STUCK
    for follower in (one for one in (*SHARED, *itertools.chain(*OF_KINDS)) if one.waits_for_others):
        assert verdict(HOOK, follower) is Verdict.STOPS, "it goes on when the hook is answered"
    stops = tuple(Stop(meaning=meaning, at=0.0, message=meaning.says) for meaning in (TIDE, MOON))
    assert headline(report(waves=(), staying=(), warnings=(), stops=stops)).endswith(": the moon is not full")


@pytest.mark.parametrize("is_known", [True, False])
def test_a_journal_is_read_with_the_causes_of_its_kind(is_known: bool) -> None:
    """Those of a version that is not here are taken at their word."""
    body = encode({"plan": plan_to_data(plan_of(MOON, MAX_UNAVAILABLE), causes_once=True)})
    decision = dump.read(body, (MOON,) if is_known else ()).decision
    [(_, [own]), (_, [shared])] = decision.held
    assert own.meaning.field == (MOON.field if is_known else "")
    assert shared.meaning is MAX_UNAVAILABLE
    answer = answer_of([make_pod("0", old=True)], decision, document(replicas=1))
    [link] = answer.waiting["web-0"].links
    assert (link.code, link.act) == ("moon", Act.SOMEBODY)
    assert link.remedy == ("change the moon of cloneset/web" if is_known else "see")


@pytest.mark.parametrize(
    "meaning",
    [one for path in MODULES if not NO_PLANS & set(path.parts) for one in entries_in(path).values()],
    ids=lambda one: one.code,
)
def test_a_journal_of_any_kind_is_read_with_the_causes_of_all(meaning: Meaning) -> None:
    """A budget may hold the pods of any workload, though only the budget's kind tells of it (PUB-101)."""
    body = encode({"plan": plan_to_data(plan_of(meaning), causes_once=True)})
    [(_, [cause])] = dump.read(body).decision.held
    assert cause.meaning is meaning


def test_what_is_not_known_goes_on_by_itself_unless_it_has_a_remedy() -> None:
    catalogue = Catalogue(SHARED)
    assert catalogue.meaning("partition", "") is SHARED[0]
    assert catalogue.meaning("moon", "do something").act is Act.SOMEBODY
    assert catalogue.meaning("moon", "").act is Act.NOBODY


def test_what_a_journal_keeps_of_a_cause() -> None:
    [held] = plan_to_data(plan_of(MOON))["held"]
    assert held["causes"] == [{"code": "moon", "message": "it waits", "details": {}, "remedy": "see"}]


@pytest.mark.parametrize("key", WAITED_FOR)
def test_who_is_waited_for_is_data(key: str) -> None:
    """A message may name whom it likes."""
    cause = MAX_UNAVAILABLE.cause("like web-c, not web-b", details={key: ["web-b"], "others": ["web-c"]})
    pods = [make_pod("a", old=True), make_pod("b", ready=False), make_pod("c", ready=False)]
    held = ((dump.About("", "pods", "web-a"), (cause,)),)
    answer = answer_of(pods, dump.Decision(held=held), document(replicas=3))
    assert [link.leads_to for link in answer.waiting["web-a"].links] == [("web-b",)]
