"""Answers of a real API server, recorded so that the model is compared with them without one.

`KRUISE_RECORD=1` with `tests/real/machinery/test_pod_model.py` writes the file anew. It has one case per line: what was
asked, and the answers as `comparison` shapes them. Templates that are in the code are named only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "recorded.jsonl"
GENERATED = 60
"""How many of the generated templates are kept in the file."""


def is_recording() -> bool:
    return os.environ.get("KRUISE_RECORD") == "1"


def read(kind: str) -> dict[str, dict[str, Any]]:
    """The recorded cases of a kind (`accepted`, `refused`, `generated`, `base`, `update`) by name."""
    with FILE.open(encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return {case["name"]: case for case in cases if case["kind"] == kind}


def write(kind: str, cases: Iterable[dict[str, Any]]) -> None:
    """Replace the cases of one kind and keep the others."""
    kept = []
    if FILE.exists():
        with FILE.open(encoding="utf-8") as lines:
            kept = [line for line in lines if json.loads(line)["kind"] != kind]
    new = [json.dumps({"kind": kind, **case}, sort_keys=True, separators=(",", ":")) + "\n" for case in cases]
    FILE.write_text("".join(sorted([*kept, *new])), encoding="utf-8")
