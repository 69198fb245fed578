"""Known values of both hashes."""

from __future__ import annotations

import pytest

from kruise.machinery.fnv import fnv32, fnv32a


@pytest.mark.parametrize(
    ("data", "first", "second"),
    [(b"", 0x811C9DC5, 0x811C9DC5), (b"a", 0x050C5D7E, 0xE40C292C), (b"foobar", 0x31F0B262, 0xBF9CF968)],
)
def test_known_values(data: bytes, first: int, second: int) -> None:
    assert (fnv32(data), fnv32a(data)) == (first, second)
