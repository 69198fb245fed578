"""What `kruise replay` does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from kruise import release, replaying
from kruise.cli.plugins import print_problems
from kruise.cli.printing import note
from kruise.machinery.journal import Replay, ReplayError
from kruise.machinery.plan_difference import differences
from kruise.replaying import SUFFIX

_DIFFERENT, _UNREADABLE = 1, 2

_SHOWN_LINES = 60


class _UnreadableError(click.ClickException):
    exit_code = _UNREADABLE


def replay(dumps: tuple[str, ...], golden: str, name: str, accept: bool, output: str | None) -> None:
    _check_usage(dumps, golden, name, accept)
    results: list[dict[str, Any]] = []
    different = False
    for dump in dumps:
        try:
            done, body = _decide(dump)
            if golden:
                chosen = name or _own_name(dump, golden)
                done = _keep(done, body, Path(golden), chosen, accept, output)
        except ReplayError as error:
            raise _UnreadableError(str(error)) from error
        finally:
            print_problems()  # a dump may be of a kind that was left out
        different = different or not done.plan_equal
        if output:
            results.append(_data(dump, done))
        else:
            _print_result(dump if len(dumps) > 1 else "", done)
    if output:
        click.echo(json.dumps(results[0] if len(results) == 1 else results, indent=4))
    if different:
        sys.exit(_DIFFERENT)


def _check_usage(dumps: tuple[str, ...], golden: str, name: str, accept: bool) -> None:
    if not dumps:
        raise click.UsageError("name the file that kruise journal KIND/NAME --dump FILE has written")
    if (name or accept) and not golden:
        raise click.UsageError("--name and --accept go with --golden FOLDER")
    if name and len(dumps) > 1:
        raise click.UsageError("--name is for one dump")
    if "/" in name:
        raise click.UsageError(f"--name {name}: a name of a file, without its folder")


def _decide(dump: str) -> tuple[Replay, bytes]:
    if dump == "-":
        body = replaying.unpacked(sys.stdin.buffer.read(), "standard input")
        return replaying.again(body, "standard input"), body
    body = replaying.read(Path(dump))
    return replaying.again(body, dump), body


def _own_name(dump: str, golden: str) -> str:
    """A dump that is in the folder already keeps its name."""

    path = Path(dump)
    is_there = path.name.endswith(SUFFIX) and path.parent.resolve() == Path(golden).resolve()
    return path.name.removesuffix(SUFFIX) if is_there else ""


def _keep(done: Replay, body: bytes, folder: Path, name: str, accept: bool, output: str | None) -> Replay:
    if accept and not done.plan_equal:
        body = replaying.accepted(body, done)
        done = replaying.again(body)
    if not done.plan_equal:
        note("not kept: a golden test of what is decided otherwise would fail. --accept records what is decided now")
        return done
    place = replaying.write_golden(folder, name or replaying.golden_name(done), body, overwrite=accept, note=note)
    if not output:
        click.echo(f"golden test written: {place}")
    return done


def _print_result(origin: str, done: Replay) -> None:
    about = f"{done.controller} about {done.key}, decision {done.reconcile_id} of {done.time}"
    click.echo(f"{origin}: {about}" if origin else about)
    if done.version != release():
        click.echo(f"written by PyKruise {done.version or 'of an unknown version'}, decided again by {release()}")
    if not done.digest_equal:
        click.echo(
            f"the digest is not {done.digest[:8]} any more: the dump was changed, or this version sees other parts of "
            "an object"
        )
    if done.plan_equal:
        click.echo(f"equal: {_summary(done)}")
        return
    lines = replaying.difference_lines(done)
    click.echo("different (- recorded, + decided now, ~ changed):")
    for line in lines[:_SHOWN_LINES]:
        click.echo(f"  {line}")
    if len(lines) > _SHOWN_LINES:
        click.echo(f"  and {len(lines) - _SHOWN_LINES} more lines; -o json has all")


def _summary(done: Replay) -> str:
    if done.error:
        return f"deciding fails with the same error: {done.error}"
    actions = sum(len(chain) for phase in done.plan["phases"] for chain in phase["chains"])
    return f"the same plan, {actions} actions, {len(done.plan['held'])} held"


def _data(origin: str, done: Replay) -> dict[str, Any]:
    return {
        "dump": origin,
        "equal": done.plan_equal,
        "digestEqual": done.digest_equal,
        "controller": done.controller,
        "namespace": done.key.namespace,
        "name": done.key.name,
        "id": done.reconcile_id,
        "time": done.time,
        "digest": done.digest,
        "recordedBy": done.version,
        "decidedBy": release(),
        "differences": [one.to_data() for one in differences(done.recorded, done.plan)],
        "recordedError": done.recorded_error,
        "error": done.error,
        "recorded": done.recorded,
        "plan": done.plan,
    }
