"""Reports as lines, JSON, Markdown and on a terminal, as whole texts."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kruise.cli.plan_view import draw
from kruise.foresight.forecast import FieldChange, How, Move, Staying, Stop, Warning, Wave
from kruise.foresight.rendering.data import as_data
from kruise.foresight.rendering.lines import lines
from kruise.foresight.rendering.markdown import markdown
from kruise.foresight.rendering.report import Drift, Drifted, Report
from kruise.foresight.rendering.tables import WAVE_TITLES, wave_rows
from kruise.workloads.shared import causes
from tests.foresight_rendering.reports import many, report

SNAPSHOTS = Path(__file__).parent / "snapshots"
DRIFTED = (
    Drifted(object="cloneset.apps.kruise.io/web", how=Drift.CHANGED),
    Drifted(object="pod/web-a", how=Drift.CHANGED),
    Drifted(object="pod/web-z", how=Drift.APPEARED),
)


def creation() -> Report:
    moves = tuple(Move(pod=f"web-{name}", how=How.CREATE, at=0.0, until_available=3.0) for name in "xyz")
    return report(
        live="",
        is_new=True,
        changes=(),
        from_revision="",
        waves=(Wave(number=1, begins=0.0, moves=moves, fewest_available=0),),
        stops=(),
        staying=(),
        warnings=(),
        replicas=3,
        available_before=0,
        fewest_available=0,
        fewest_allowed=None,
        most_pods=3,
        most_allowed=None,
        available_after=3,
        by_revision={"web-new": 3},
        seconds=3.0,
        is_complete=True,
    )


def stuck() -> Report:
    never = Move(pod="web-a", how=How.IN_PLACE, at=0.0, why="image of main changes", until_available=None)
    later = Move(pod="web-b", how=How.IN_PLACE, at=0.0, why="image of main changes", until_available=4.0)
    return report(
        waves=(Wave(number=1, begins=0.0, moves=(never, later), fewest_available=7),),
        stops=(
            Stop(meaning=causes.HOOK, at=1.0, message="waits for label ready", remedy="remove it", is_last=False),
            Stop(
                meaning=causes.MAX_UNAVAILABLE, at=4.0, message="used up by web-a", remedy="repair it", pods=("web-c",)
            ),
        ),
        staying=(
            Staying(pod="web-c", revision="web-old", meaning=causes.MAX_UNAVAILABLE, message="used up by web-a"),
            Staying(pod="web-n", revision="web-old", meaning=causes.UPDATING, message="its image cannot be pulled"),
        ),
        warnings=(Warning(code="deadlock", message="nobody moves any more"),),
        fewest_available=7,
        seconds=None,
    )


REPORTS = {
    "partition": report(notes=("no right to list nodes",), drifted=DRIFTED),
    "creation": creation(),
    "stuck": stuck(),
    "nothing": report(
        changes=(), waves=(), stops=(), staying=(), warnings=(), assumptions=(), is_complete=True, seconds=0.0
    ),
    "many": many(400, at_a_time=10),
}


def drawn(shown: Report, width: int = 100, **options: Any) -> str:
    out = io.StringIO()
    draw(shown, console=Console(file=out, width=width, highlight=False), **options)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


FORMS: dict[str, Callable[[Report], str]] = {
    "lines": lambda shown: "".join(f"{line}\n" for line in lines(shown)),
    "markdown": markdown,
    "terminal": drawn,
    "json": lambda shown: json.dumps(as_data(shown), indent=2) + "\n",
}


@pytest.mark.parametrize("snapshot", sorted(path.name for path in SNAPSHOTS.iterdir()))
def test_snapshot(snapshot: str) -> None:
    name, form, _ = snapshot.split(".")
    assert FORMS[form](REPORTS[name]) == (SNAPSHOTS / snapshot).read_text()


def test_every_report_has_its_snapshots() -> None:
    """But for the JSON of many pods, which is as long as it is dull."""
    wanted = {f"{name}.{form}.txt" for name in REPORTS for form in FORMS} - {"many.json.txt"}
    assert {path.name for path in SNAPSHOTS.iterdir()} == wanted


def test_lines_have_no_escapes_and_no_trailing_space() -> None:
    for shown in REPORTS.values():
        for line in lines(shown, everything=True):
            assert line == line.rstrip()
            assert "\x1b" not in line


def test_thousands_of_pods_are_bounded_unless_all_are_asked_for() -> None:
    shown = many(2000)
    assert len(lines(shown)) < 40
    assert len(drawn(shown).splitlines()) < 40
    assert len(markdown(shown)) < 65_536, "a comment holds no more"
    names = {move.pod for move in shown.forecast.moves}
    whole = ("\n".join(lines(shown, everything=True)), drawn(shown, everything=True), markdown(shown, everything=True))
    for text in whole:
        assert [name for name in names if name not in text] == []
    assert len(as_data(shown)["waves"]) == 2000


def test_the_one_wave_of_many_pods_shows_the_first_names() -> None:
    [row] = [line for line in lines(many(2000, at_a_time=2000)) if line.startswith("1 ")]
    assert row.endswith("web-0000, web-0001, web-0002, web-0003, web-0004 and 1995 more")


def test_the_drawing_fits_a_narrow_terminal() -> None:
    assert max(map(len, drawn(REPORTS["partition"], width=60).splitlines())) <= 60


def test_markdown_and_html_in_values_stay_text() -> None:
    """A value must not draw a table, a link or a tag into somebody's comment."""
    evil = FieldChange(path="spec.x", before="", after='"a|b <img src=x> `c` [d](e)\\n*f*"')
    [cell] = [line for line in markdown(report(changes=(evil,))).splitlines() if line.startswith("| Change")]
    assert cell == '| Change | spec.x: "a\\|b &lt;img src=x&gt; \\`c\\` \\[d\\](e)\\\\n\\*f\\*" is new |'


def test_json_tells_absent_from_null() -> None:
    changes = (
        FieldChange(path="a", before="", after="null"),
        FieldChange(path="b", before="3", after=""),
        FieldChange(path="c", before='{"x": [1]}', after='"y"'),
    )
    assert as_data(report(changes=changes))["changes"] == [
        {"path": "a", "after": None},
        {"path": "b", "before": 3},
        {"path": "c", "before": {"x": [1]}, "after": "y"},
    ]


def test_json_leaves_out_nothing_of_a_forecast() -> None:
    """A field that a forecast gains must be shown to programs, too."""
    told = {
        "kind": "object",
        "namespace": "object",
        "name": "object",
        "from_revision": "revisions",
        "to_revision": "revisions",
        "by_revision": "revisions",
        "available_before": "available",
        "fewest_available": "available",
        "fewest_allowed": "available",
        "available_after": "available",
        "most_pods": "pods",
        "most_allowed": "pods",
        "is_complete": "complete",
        "is_cut": "cut",
        "part": "parts",  # the word above them, where people read
    }
    # Only workloads that make others have parts, and only theirs have the field.
    partitioned = REPORTS["partition"]
    shown = dataclasses.replace(partitioned, forecast=dataclasses.replace(partitioned.forecast, parts=("a",)))
    data = as_data(shown)
    for field in dataclasses.fields(shown.forecast):
        assert told.get(field.name, field.name) in data


def test_a_plan_that_is_cut_says_how_to_see_the_rest() -> None:
    cut = report(stops=(), staying=(), is_cut=True, seconds=90.0)
    assert "Note: there is more to come than was looked at -> --thorough looks to the end" in lines(cut)


def test_long_values_are_cut_and_many_changes_counted() -> None:
    changes = tuple(FieldChange(path=f"spec.f{number}", before="", after=f'"{"x" * 100}"') for number in range(25))
    said = [line for line in lines(report(changes=changes)) if line.startswith("Change:")]
    assert len(said) == 21
    assert said[-1].endswith("and 5 more fields")
    assert said[0].endswith("xxx... is new")
    assert len(said[0]) < 100


@pytest.mark.parametrize(
    ("others", "takes"),
    [
        pytest.param((), "-", id="nobody else"),
        pytest.param((4.0,), "4s", id="one that serves"),
        pytest.param((4.0, None), "4s, some never", id="one that never serves"),
        pytest.param((None,), "never", id="only one that never serves"),
    ],
)
def test_pods_that_are_deleted_need_not_serve(others: tuple[float | None, ...], takes: str) -> None:
    gone = Move(pod="web-z", how=How.DELETE, at=0.0, why="4 pods are there, 2 are wanted")
    changed = [Move(pod=f"web-{at}", how=How.IN_PLACE, at=0.0, until_available=at) for at in others]
    shown = report(waves=(Wave(number=1, begins=0.0, moves=(gone, *changed), fewest_available=7),))
    [row] = wave_rows(shown)
    assert dict(zip(WAVE_TITLES, row.cells, strict=True))["TAKES"] == takes
