"""What a real API server answered, for tests that have none. `KRUISE_RECORD=1` with `tests/real` writes it anew."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

_DIRECTORY = Path(__file__).parent / "recorded"


def write(what: str, answers: dict[str, Any], at: datetime) -> None:
    """One answer per line, so that changes can be read."""
    _DIRECTORY.mkdir(exist_ok=True)
    lines = [json.dumps([title, answer], sort_keys=True, separators=(",", ":")) for title, answer in answers.items()]
    (_DIRECTORY / f"{what}.jsonl").write_text("\n".join((json.dumps(at.isoformat()), *lines)) + "\n")


def read(what: str) -> tuple[datetime, dict[str, Any]]:
    """When it was recorded, and the answers by title."""
    moment, *lines = (json.loads(line) for line in (_DIRECTORY / f"{what}.jsonl").read_text().splitlines())
    return datetime.fromisoformat(moment), dict(lines)
