"""Lines out of chunks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.client.lines import LineSplitter


@given(
    st.binary(max_size=200).map(lambda data: data.replace(b"\x00", b"\n")), st.lists(st.integers(1, 40), max_size=60)
)
def test_chunk_boundaries_do_not_matter(data: bytes, sizes: list[int]) -> None:
    """However the stream is cut into chunks, the lines are the same, and what is left is the unfinished line."""
    splitter, lines, rest = LineSplitter(), [], data
    for size in sizes:
        lines += splitter.feed(rest[:size])
        rest = rest[size:]
    lines += splitter.feed(rest)
    *whole, unfinished = data.split(b"\n")
    assert lines == [line for line in whole if line]
    assert splitter.rest == len(unfinished)


def test_a_long_line_in_many_chunks_is_joined_once() -> None:
    """Three megabytes in small chunks come out whole."""
    splitter = LineSplitter()
    for _ in range(3 * 1024):
        assert splitter.feed(b"x" * 1024) == []
    assert splitter.rest == 3 * 1024 * 1024
    assert splitter.feed(b"\nnext") == [b"x" * (3 * 1024 * 1024)]
    assert splitter.rest == 4
