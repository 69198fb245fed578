"""What scripts print, how long they take and how they end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local.nodes.commands import FOREVER, Program
from tests.support.examples import EXAMPLES


def run(text: str, **variables: str) -> tuple[float, int, list[str]]:
    program = Program(("/bin/sh", "-c", text), tuple(sorted(variables.items())))
    seconds, code = program.ending()
    return seconds, code, [line for _, line in program.output(min(seconds, 1000.0))]


@pytest.mark.parametrize(
    ("text", "code", "lines"),
    [
        ("for i in 9 8 7 6 5 4 3 2 1; do echo $i; done", 0, list("987654321")),
        ('echo "preDelete"', 0, ["preDelete"]),
        ("echo one; echo two && exit 3; echo no", 3, ["one", "two"]),
        ("false || echo saved", 0, ["saved"]),
        ("false && echo no", 1, []),
        ("! false", 0, []),
        ("x=3; while [ $x -gt 0 ]; do echo $x; x=$((x-1)); done; exit $x", 0, ["3", "2", "1"]),
        ("until [ $((n)) -ge 2 ]; do n=$((n + 1)); done; echo $n", 0, ["2"]),
        ('if [ -z "$FOO" ]; then echo none; else echo $FOO; fi', 0, ["bar"]),
        ("if false; then echo a; elif true; then echo b; else echo c; fi", 0, ["b"]),
        ("for i in $(seq 2 3); do printf 'n=%s\\n' $i; done", 0, ["n=2", "n=3"]),
        ("echo start | cat; (exit 3); echo $?", 0, ["start", "3"]),
        ("echo '$FOO' \"$FOO\" ${FOO}x ${NONE:-default}", 0, ["$FOO bar barx default"]),
        ("echo hidden > /tmp/file; echo seen >&2; echo gone 2>/dev/null", 0, ["seen", "gone"]),
        ("# nothing\nset -e\necho one\necho two\n", 0, ["one", "two"]),
        ("{ echo a; echo b; } && (cd /tmp; echo c)", 0, ["a", "b", "c"]),
        ("for i in 1 2 3; do if [ $i = 2 ]; then continue; fi; [ $i = 3 ] && break; echo $i; done", 0, ["1"]),
        ("echo -n a; echo b", 0, ["ab"]),
        ("sh -c 'exit 5'; echo $?", 0, ["5"]),
        ("wget -q http://example.com && echo fetched", 0, ["fetched"]),
    ],
)
def test_scripts(text: str, code: int, lines: list[str]) -> None:
    assert run(text, FOO="bar")[1:] == (code, lines)


@pytest.mark.parametrize(
    ("text", "seconds"), [("sleep 3", 3.0), ("sleep 1m && sleep 2", 62.0), ("sleep 0.5; sleep .5", 1.0)]
)
def test_sleeps_add_up(text: str, seconds: float) -> None:
    assert run(text)[0] == seconds


@pytest.mark.parametrize(
    "text",
    [
        "while true; do echo x; sleep 5; done",
        "nginx -g 'daemon off;'",
        "trap 'exit 0' TERM; sleep infinity",
        "tail -f /dev/null",
        "exec /app/server --port 80",
        "while :; do :; done",
        "echo 'not closed",
        "cat <<EOF\nx\nEOF",
        "echo $((1 << 99))",
        "case x in *) ;; esac",
    ],
)
def test_what_does_not_end_or_cannot_be_read_is_a_service(text: str) -> None:
    assert run(text)[0] == FOREVER


def test_output_has_its_moments() -> None:
    program = Program(("sh", "-c", "while true; do echo tick; sleep 5; done"))
    assert program.output(12.0) == [(0.0, "tick"), (5.0, "tick"), (10.0, "tick")]


@pytest.mark.parametrize(
    ("argv", "ending"),
    [
        (("echo", "started"), (0.05, 0)),
        (("true",), (0.05, 0)),
        (("false",), (0.05, 1)),
        (("sleep", "999d"), (999 * 86400.0, 0)),
        (("perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"), (2.0, 0)),
        (("/pause",), (FOREVER, 0)),
        ((), (FOREVER, 0)),
    ],
)
def test_plain_commands(argv: tuple[str, ...], ending: tuple[float, int]) -> None:
    assert Program(argv).ending() == ending


@given(st.text(alphabet="echo $(){};&|<>'\"\n ifthendoxslp123=[]-`\\#", max_size=60))
@settings(max_examples=75 * EXAMPLES, deadline=None)
def test_any_text_is_answered(text: str) -> None:
    seconds, code = Program(("sh", "-c", text)).ending()
    assert seconds > 0
    assert 0 <= code < 256
