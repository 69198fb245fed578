"""Dumps as files: reading them, deciding over them again, and keeping them as golden tests.

A golden test is a dump in a folder beside one small test file, which decides over every dump there and compares.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kruise import release
from kruise.kinds import features
from kruise.machinery.codec import DecodeError, Raw, decode, encode
from kruise.machinery.journal import Replay, ReplayError, replay
from kruise.machinery.plan_difference import differences
from kruise.machinery.spec import ControllerSpec
from kruise.manager import gates
from kruise.manager.options import Options

SUFFIX = ".json.gz"
TEST_FILE = "test_golden.py"
_GZIP = b"\x1f\x8b"

TEST_TEXT = '''"""Golden decisions: each dump in this folder must decide today as it was recorded.

Add one with `kruise replay DUMP --golden FOLDER`. Where a change of a decision is meant,
`kruise replay FOLDER/*.json.gz --golden FOLDER --accept` records what is decided now: look at the difference first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kruise.replaying import SUFFIX, check

DUMPS = sorted(Path(__file__).parent.glob(f"*{SUFFIX}"))


@pytest.mark.parametrize("dump", DUMPS, ids=[path.name.removesuffix(SUFFIX) for path in DUMPS])
def test_decides_as_recorded(dump: Path) -> None:
    assert check(dump) == ()
'''


def specs() -> tuple[ControllerSpec[Any], ...]:
    """Every controller of this build, whatever gates it hides behind: a dump holds the gates that it was made under."""
    everything = Options(gates=dict.fromkeys(gates.resolve({}), True))
    return tuple(spec for feature in features() for spec in feature.controllers(everything))


def read(path: Path) -> bytes:
    """A dump file, compressed or not. Raises `ReplayError`."""
    try:
        return unpacked(path.read_bytes(), str(path))
    except OSError as error:
        raise ReplayError(f"{path} cannot be read: {error.strerror or error}") from error


def unpacked(data: bytes, origin: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ReplayError(f"{origin} is cut off or damaged: {error}") from error


def again(dump: bytes, origin: str = "the dump", *, known: Iterable[ControllerSpec[Any]] = ()) -> Replay:
    """Decide over a dump again. Raises `ReplayError` that names where the dump came from."""
    if not dump.strip():
        raise ReplayError(f"{origin} is empty")
    try:
        return replay(dump, tuple(known) or specs())
    except ReplayError as error:
        raise ReplayError(f"{origin}: {error}") from error


def difference_lines(done: Replay) -> tuple[str, ...]:
    """The differences between what was recorded and what is decided now, in lines; empty where there are none."""
    lines = [line for one in differences(done.recorded, done.plan) for line in one.lines]
    if done.error != done.recorded_error:
        lines.insert(0, f"~ error {done.recorded_error or 'none'} -> {done.error or 'none'}")
    return tuple(lines)


def check(path: Path) -> tuple[str, ...]:
    """What a golden test asks: the differences of a dump file."""
    return difference_lines(again(read(path), path.name))


def accepted(dump: bytes, done: Replay) -> bytes:
    """The dump with the plan of today in place of the recorded one. The snapshot stays as it is, byte for byte."""
    try:
        document = decode(dump, dict[str, Raw])
    except DecodeError as error:
        raise ReplayError(f"the dump does not fit: {error}") from error
    changed = {**document, "version": Raw(encode(release())), "plan": Raw(encode(done.plan))}
    changed.pop("error", None)
    if done.error:
        changed["error"] = Raw(encode(done.error))
    return encode(changed)


def golden_name(done: Replay) -> str:
    return f"{done.key.name}-{done.digest[:8]}"


def write_golden(folder: Path, name: str, dump: bytes, *, overwrite: bool, note: Callable[[str], None]) -> Path:
    """Put a dump into a folder of golden tests, and the test file beside it where there is none yet."""
    place = folder / f"{name}{SUFFIX}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if place.exists() and not overwrite and unpacked(place.read_bytes(), str(place)) != dump:
            raise ReplayError(f"{place} exists already and is another dump: choose another name with --name")
        # Without a time in it the same dump makes the same file.
        place.write_bytes(gzip.compress(dump, compresslevel=9, mtime=0))
        test = folder / TEST_FILE
        if not test.exists():
            test.write_text(TEST_TEXT)
            note(f"{test} written: it runs every dump beside it")
    except OSError as error:
        raise ReplayError(f"{error.filename or folder} cannot be written: {error.strerror or error}") from error
    return place
