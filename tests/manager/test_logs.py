"""Log lines: constant messages with fields, for people and for machines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from kruise.manager import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_lines_carry_fields_and_the_running_reconcile(stream: io.StringIO) -> None:
    logs.set_up(as_json=True, verbosity=0, current=lambda: {"reconcile_id": "7f"}, stream=stream)
    logging.getLogger("kruise.x").info("pod created", extra={"pod": "web-0", "count": 2, "odd": object})
    entry = json.loads(stream.getvalue())
    assert (entry["msg"], entry["level"], entry["logger"]) == ("pod created", "info", "kruise.x")
    assert (entry["pod"], entry["count"], entry["reconcile_id"]) == ("web-0", 2, "7f")
    assert isinstance(entry["odd"], str)


def test_text_lines_quote_what_needs_it(stream: io.StringIO) -> None:
    logs.set_up(as_json=False, verbosity=0, current=dict, stream=stream)
    logging.getLogger("kruise.x").warning("refused", extra={"why": 'quota "a" used up', "pod": "web-0"})
    assert stream.getvalue().split(" ", 1)[1] == 'W refused why="quota \\"a\\" used up" pod=web-0 (kruise.x)\n'


def test_exceptions_are_shown_in_both_forms(stream: io.StringIO) -> None:
    for as_json in (True, False):
        logs.set_up(as_json=as_json, verbosity=0, current=dict, stream=stream)
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("kruise.x").exception("failed")
    first, rest = stream.getvalue().split("\n", 1)
    assert "ValueError: broken" in json.loads(first)["stacktrace"]
    assert "ValueError: broken" in rest


def test_details_need_verbosity(stream: io.StringIO) -> None:
    logs.set_up(as_json=False, verbosity=0, current=dict, stream=stream)
    logging.getLogger("kruise.x").debug("detail")
    assert stream.getvalue() == ""
    logs.set_up(as_json=False, verbosity=4, current=dict, stream=stream)
    logging.getLogger("kruise.x").debug("detail")
    assert "D detail" in stream.getvalue()
