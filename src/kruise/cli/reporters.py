"""How the course of a rollout is shown: lines, JSON events, or a view that is redrawn in place."""

from __future__ import annotations

import json
import sys
from typing import TextIO

import click

from kruise.cli.following import Reporter, Seen
from kruise.faces.progress import Phase
from kruise.machinery.clock import Clock
from kruise.machinery.documents import name_of
from kruise.machinery.times import format_micro_time
from kruise.verbs.targets import Target


class Lines:
    """One line for each change: for pipes and logs."""

    def __init__(self, *, detail: bool = False, stream: TextIO | None = None) -> None:
        self.needs_pods = detail
        self._stream = stream or sys.stdout
        self._last: list[str] = []

    def show(self, seen: Seen) -> None:
        if seen.progress.phase is Phase.FAILED:
            return  # the error tells it
        lines = [seen.progress.message]
        if self.needs_pods and seen.view is not None:
            updated = [pod for pod in seen.view.pods if pod.is_new]
            ready = " ".join(pod.name for pod in updated if pod.is_ready)
            others = " ".join(pod.name for pod in updated if not pod.is_ready)
            lines += [f"updated and ready pods: [{ready}]", f"updated pods that are not ready: [{others}]"]
        # Most events change nothing that is shown.
        if lines != self._last:
            click.echo("\n".join(lines), file=self._stream)
            self._last = lines

    def tick(self) -> None:
        """A line stands for itself."""

    def trouble(self, text: str) -> None:
        click.echo(f"note: {text}", err=True)

    def waits_for(self, text: str) -> None:
        if text:
            click.echo(text, file=self._stream)

    def close(self) -> None:
        """Nothing is open."""


class Events:
    """One JSON object a line: for programs."""

    def __init__(self, target: Target, clock: Clock, *, detail: bool = False) -> None:
        self.needs_pods = detail
        self._target = target
        self._clock = clock
        self._last: dict[str, object] = {}

    def show(self, seen: Seen) -> None:
        event: dict[str, object] = {
            "object": self._target.kind.named(name_of(seen.document)),
            **seen.progress.as_data(),
        }
        if self.needs_pods and seen.view is not None:
            event["pods"] = [pod.as_data() for pod in seen.view.pods]
        if event != self._last:
            self._last = event
            click.echo(json.dumps({"time": format_micro_time(self._clock.now()), **event}))

    def tick(self) -> None:
        """An event is told when it happens."""

    def trouble(self, text: str) -> None:
        self._print("Trouble", text)

    def waits_for(self, text: str) -> None:
        if text:
            self._print("Waiting", text)

    def _print(self, phase: str, text: str) -> None:
        click.echo(json.dumps({"time": format_micro_time(self._clock.now()), "phase": phase, "message": text}))

    def close(self) -> None:
        """Nothing is open."""


def reporter_for(
    target: Target, clock: Clock, *, output: str = "", detail: bool = False, plain: bool = False
) -> Reporter:
    """What fits where the output goes."""
    if output == "json":
        return Events(target, clock, detail=detail)
    if not plain and sys.stdout.isatty():
        from kruise.cli.live_view import LiveView

        return LiveView(clock)
    return Lines(detail=detail)
