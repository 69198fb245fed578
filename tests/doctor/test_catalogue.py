"""Every trouble can be found, and is in docs/doctor.md."""

from __future__ import annotations

from pathlib import Path

import kruise.doctor
from kruise.doctor import findings
from kruise.doctor.findings import CATALOGUE, Trouble

SOURCES = Path(kruise.doctor.__file__).parent
DOCUMENT = SOURCES.parents[2] / "docs" / "doctor.md"


def table() -> str:
    rows = (f"| `{one.code}` | {one.severity.value} | {one.says} | {one.mended} |" for one in CATALOGUE)
    return "\n".join(("| code | severity | meaning | `--fix` |", "|---|---|---|---|", *rows))


def test_the_document_has_every_finding() -> None:
    assert table() in DOCUMENT.read_text(), f"docs/doctor.md should have:\n{table()}"


def test_codes_are_unique() -> None:
    assert len({one.code for one in CATALOGUE}) == len(CATALOGUE)


def test_every_trouble_is_looked_for() -> None:
    text = "".join(path.read_text() for path in (SOURCES / "rules").glob("*.py"))
    names = [name for name, value in vars(findings).items() if isinstance(value, Trouble)]
    assert [name for name in names if f" {name}.found(" not in text] == []
