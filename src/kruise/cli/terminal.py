"""What the terminal can show: its characters and its width.

Commands write any character that they like. What the terminal has no way to show goes out as a plain one instead: that
is decided in one place, where text becomes bytes, so that no command can end in an encoding error.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Mapping
from typing import TextIO

PLAIN = {
    "→": "->",
    "←": "<-",
    "└": "`-",
    "├": "|-",
    "─": "-",
    "│": "|",
    "┃": "|",
    "━": "=",
    "┄": ".",
    "╸": "=",
    "╺": " ",
    "●": "*",
    "◐": "~",
    "○": "o",
    "✓": "+",
    "✔": "+",
    "✗": "x",
    "·": "-",
    "•": "*",
    "–": "-",
    "—": "-",
    "…": "~",  # one column: rich ends with it what it cuts off
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "×": "x",
    "µ": "u",
    "μ": "u",
}
ERRORS = "kruise.plain"
ASCII = "kruise-ascii"
"""ASCII under a name that click does not know: what it takes for a mistake of ours it writes as UTF-8."""
_UTF8 = "utf-8"


def prepare(environ: Mapping[str, str] = os.environ) -> None:
    """From here on the standard output and error take any text."""
    codecs.register(_find_codec)
    codecs.register_error(ERRORS, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            name = charset(stream.encoding, environ, is_utf8_assumed=bool(sys.flags.utf8_mode))
            stream.reconfigure(encoding=ASCII if name == "ascii" else name, errors=ERRORS)


def charset(encoding: str, environ: Mapping[str, str], *, is_utf8_assumed: bool) -> str:
    """The characters of the terminal, by the name of a codec.

    Python takes the locale C, and each one that is not installed, for UTF-8 (`is_utf8_assumed`). But who has chosen one
    of them by its name has said what the terminal understands.
    """
    encoding = codecs.lookup(encoding).name
    if encoding != _UTF8 or not is_utf8_assumed or environ.get("PYTHONUTF8") or environ.get("PYTHONIOENCODING"):
        return encoding
    # LC_CTYPE is of no help: Python sets it.
    chosen = environ.get("LC_ALL") or environ.get("LANG") or ""
    if chosen in ("C", "POSIX"):
        return "ascii"
    try:
        return codecs.lookup(chosen.partition(".")[2].partition("@")[0] or _UTF8).name
    except LookupError:
        return _UTF8


def shows(text: str) -> bool:
    """Whether the standard output can show all of a text as it is."""
    try:
        text.encode(sys.stdout.encoding or _UTF8)
    except UnicodeEncodeError:
        return False
    return True


def width() -> int:
    """Columns of the terminal; 0: the standard output is none, and lines may be as long as they like."""
    if not sys.stdout.isatty():
        return 0
    import shutil

    return shutil.get_terminal_size().columns


def has_lost_reader(error: BaseException) -> bool:
    """Whether a command ended since nobody reads its output any more, as behind `| head -1`."""
    return _is_of_a_pipe(error) and not _has_reader(sys.stdout)


def _is_of_a_pipe(error: BaseException | None) -> bool:
    if error is None:
        return False
    if isinstance(error, BaseExceptionGroup) and any(map(_is_of_a_pipe, error.exceptions)):
        return True
    return isinstance(error, BrokenPipeError) or _is_of_a_pipe(error.__cause__)


def _has_reader(stream: io.TextIOBase | TextIO) -> bool:
    """A connection to a server breaks likewise, and that must be told."""
    looking = select.poll()
    try:
        looking.register(stream, 0)
    except (OSError, ValueError):
        return True
    return not any(events & select.POLLERR for _, events in looking.poll(0))


def fall_silent() -> None:
    """What is left in buffers goes nowhere: Python would complain when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != ASCII:
        return None
    ascii_codec = codecs.lookup("ascii")
    return codecs.CodecInfo(
        ascii_codec.encode,
        ascii_codec.decode,
        streamreader=ascii_codec.streamreader,
        streamwriter=ascii_codec.streamwriter,
        incrementalencoder=ascii_codec.incrementalencoder,
        incrementaldecoder=ascii_codec.incrementaldecoder,
        name=ASCII,
    )


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(sign: str) -> str:
    """One or two ASCII characters for another one: `e` for an accented e."""
    if sign in PLAIN:
        return PLAIN[sign]
    import unicodedata

    return unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode() or "?"
