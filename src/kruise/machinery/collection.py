"""Python's search for cycles, and when it is of no use."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def at_rest() -> Iterator[None]:
    """For work that makes thousands of objects without cycles in a second or two: a fifth of its time would go into
    looking for some."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
