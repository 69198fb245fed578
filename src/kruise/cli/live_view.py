"""The live view of a rollout on a terminal: a bar, the waves, and the pods, redrawn in place."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kruise.cli.drawn_tables import fitting_columns
from kruise.cli.following import Seen
from kruise.faces.progress import Phase, Progress
from kruise.foresight.rendering.words import bar
from kruise.machinery.ages import age
from kruise.machinery.clock import Clock
from kruise.verbs.overview import Overview
from kruise.verbs.podstates import PodState, Side
from kruise.verbs.waves import Waves

_MARKS = {Side.DONE: ("●", "green"), Side.MOVING: ("◐", "yellow"), Side.OLD: ("○", "dim")}
_ORDER = (Side.MOVING, Side.DONE, Side.OLD)
_STATES = {"Ready": "green", "Terminating": "dim", "NotReady": "yellow"}
_TITLES = ("", "POD", "REVISION", "STATE", "READY", "RESTARTS", "WAVE", "AGE", "NODE")
_FIRST = ("POD", "", "STATE", "READY")
_WIDE = 80
_FRAME_LINES = 10
"""What is on the screen beside pods."""


class LiveView:
    """Draws on every change and once a second. The last frame stays."""

    needs_pods = True

    def __init__(self, clock: Clock, console: Console | None = None) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._waves = Waves()
        self._seen: Seen | None = None
        self._trouble = ""
        self._waits_for = ""
        self._console = console or Console()
        # Drawn by us alone: refreshing by itself would take a thread.
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def show(self, seen: Seen) -> None:
        self._seen = seen
        if seen.view is not None:
            self._waves.observe(
                seen.view.pods,
                self._clock.now(),
                wanted=seen.progress.wanted,
                min_ready_seconds=seen.min_ready_seconds,
            )
        self._draw()

    def tick(self) -> None:
        self._draw()

    def trouble(self, text: str) -> None:
        self._trouble = text
        self._draw()

    def waits_for(self, text: str) -> None:
        self._waits_for = text
        self._draw()

    def close(self) -> None:
        self._live.stop()

    def _draw(self) -> None:
        if self._seen is not None and self._seen.view is not None:
            self._live.update(self._frame(self._seen, self._seen.view), refresh=True)

    def _frame(self, seen: Seen, view: Overview) -> RenderableType:
        progress = seen.progress
        style = {Phase.DONE: "green", Phase.FAILED: "red"}.get(progress.phase, "cyan")
        seconds = int(self._clock.monotonic() - self._began)
        head = Text.assemble(
            (f"{view.kind}/{view.name}", "bold"),
            f"  {view.namespace}  ",
            (progress.phase.value, style),
            f"  {seconds}s",
        )
        parts: list[RenderableType] = [head, *self._bar(progress)]
        if progress.phase is not Phase.FAILED:  # the error tells it
            parts.append(Text(progress.message, style))
        kept = progress.wanted - progress.expected
        if kept > 0:
            stay = "1 pod stays at an older revision: the partition keeps it"
            if kept > 1:
                stay = f"{kept} pods stay at an older revision: the partition keeps them"
            parts.append(Text(stay, "dim"))
        if self._waves.count:
            parts.append(Text(self._wave_line(view)))
        if self._waits_for:
            parts.append(Text(self._waits_for, "yellow"))
        if self._trouble:
            parts.append(Text(self._trouble, "red"))
        parts.append(self._pods(view))
        return Group(*parts)

    def _bar(self, progress: Progress) -> list[RenderableType]:
        drawn = bar(
            min(progress.updated, progress.expected),
            progress.expected,
            None,
            min(30, max(10, self._console.width - 30)),
        )
        style = "green" if progress.updated >= progress.expected else "cyan"
        line = Text("━" * drawn.filled, style).append("┄" * (drawn.width - drawn.filled), "dim")
        figures = f"ready {progress.ready}/{progress.wanted}   available {progress.available}   total {progress.total}"
        drawn_line = Text.assemble("updated ", line, f" {progress.updated}/{progress.expected}")
        if self._console.width < _WIDE:
            return [drawn_line, Text(figures)]
        return [drawn_line.append(f" {figures}")]

    def _wave_line(self, view: Overview) -> str:
        members = self._waves.members(self._waves.count)
        moving = sum(pod.side is Side.MOVING for pod in view.pods if pod.name in members)
        return f"wave {self._waves.count}: {moving} moving, {len(members) - moving} done"

    def _pods(self, view: Overview) -> Table:
        room = max(self._console.size.height - _FRAME_LINES, 3)
        ordered = sorted(
            view.pods, key=lambda pod: (_ORDER.index(pod.side), -self._waves.of.get(pod.name, 0), pod.name)
        )
        rows = [self._row(pod) for pod in ordered[:room]]
        # A line for each pod, whatever the width: what does not fit is left out.
        columns = fitting_columns(_TITLES, rows, self._console, first=_FIRST)
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for index in columns:
            table.add_column(_TITLES[index], no_wrap=True)
        for row in rows:
            table.add_row(*(row[index] for index in columns))
        if len(ordered) > room:
            table.add_row("", Text(f"and {len(ordered) - room} more", "dim"))
        return table

    def _row(self, pod: PodState) -> tuple[RenderableType, ...]:
        mark, style = _MARKS[pod.side]
        wave = self._waves.of.get(pod.name, 0)
        return (
            Text(mark, style),
            pod.name,
            str(pod.revision or "?"),
            Text(pod.state, _STATES.get(pod.state, "yellow")),
            pod.containers,
            str(pod.restarts),
            str(wave) if wave else "",
            age(pod.created, self._clock.now()),
            pod.node,
        )
