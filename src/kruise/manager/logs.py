"""Logs on standard error: one line an entry, for people or as JSON, with the reconcile that it belongs to.

Messages are constant; what varies stands in fields, so that lines can be searched and counted.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from kruise.machinery.codec import encode

# Whatever a LogRecord has by itself is not a field of ours.
_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
DETAILED_VERBOSITY = 4


class ContextFilter(logging.Filter):
    """Adds the running reconcile to every record made inside it."""

    def __init__(self, current: Any) -> None:
        super().__init__()
        self._current = current

    def filter(self, record: logging.LogRecord) -> bool:
        for key, value in self._current().items():
            if not hasattr(record, key):
                setattr(record, key, value)
        return True


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _OWN_ATTRIBUTES}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        for key, value in fields_of(record).items():
            entry[key] = value if isinstance(value, str | int | float | bool | None) else str(value)
        if record.exc_info:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return encode(entry).decode()


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={_quoted(value)}" for key, value in fields_of(record).items())
        line = f"{_time(record)} {record.levelname[0]} {record.getMessage()}{fields} ({record.name})"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _quoted(value: object) -> str:
    text = str(value)
    return encode(text).decode() if not text or any(char in text for char in ' "=\n\t') else text


def set_up(*, as_json: bool, verbosity: int, current: Any, stream: TextIO | None = None) -> None:
    """Send all logs to standard error. `current` returns the fields of the running reconcile."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    handler.addFilter(ContextFilter(current))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= DETAILED_VERBOSITY else logging.INFO)
    # An access line for each webhook call would drown everything else.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
