"""All passes of a local world as dumps, not only the latest of each object that a journal keeps."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from kruise.api.meta import Key
from kruise.machinery.journal import Journal
from kruise.replaying import specs


@dataclasses.dataclass(frozen=True, slots=True)
class Pass:
    controller: str
    key: Key
    dump: bytes


@contextlib.contextmanager
def recorded_passes() -> Iterator[list[Pass]]:
    """Whatever a journal notes within the block is in the list, too, but for the cluster's own controllers."""
    passes: list[Pass] = []
    # By their types as well: the cluster has controllers of the same names.
    ours = {(spec.name, spec.snapshot_type) for spec in specs()}
    record = Journal.record

    def record_and_dump(self: Journal, *, controller: str, key: Key, **more: Any) -> None:
        record(self, controller=controller, key=key, **more)
        if (controller, type(more.get("snapshot"))) in ours and (controller, key) in self.dumps():
            passes.append(Pass(controller, key, self.dump(controller, key)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Journal, "record", record_and_dump)
        yield passes
