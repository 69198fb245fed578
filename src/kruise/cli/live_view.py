"""The live view of a rollout on a terminal: a bar, the waves, and the pods, redrawn in place."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kruise.cli.following import Seen
from kruise.faces.progress import Phase
from kruise.machinery.ages import age
from kruise.machinery.clock import Clock
from kruise.verbs import waves
from kruise.verbs.overview import Overview
from kruise.verbs.podstates import PodState, Side

_MARKS = {Side.DONE: ("●", "green"), Side.MOVING: ("◐", "yellow"), Side.OLD: ("○", "dim")}
_ORDER = (Side.MOVING, Side.DONE, Side.OLD)
_STATES = {"Ready": "green", "Terminating": "dim", "NotReady": "yellow"}
_FRAME_LINES = 9
"""What is on the screen beside pods."""


class LiveView:
    """Draws on every change and once a second. The last frame stays."""

    needs_pods = True

    def __init__(self, clock: Clock, console: Console | None = None) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._waves = waves.Waves()
        self._seen: Seen | None = None
        self._trouble = ""
        self._console = console or Console()
        # Drawn by us alone: refreshing by itself would take a thread.
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def show(self, seen: Seen) -> None:
        self._seen = seen
        if seen.view is not None:
            self._waves = waves.observe(self._waves, seen.view.pods, self._clock.monotonic())
        self._draw()

    def tick(self) -> None:
        self._draw()

    def trouble(self, text: str) -> None:
        self._trouble = text
        self._draw()

    def close(self) -> None:
        self._live.stop()

    def _draw(self) -> None:
        if self._seen is not None and self._seen.view is not None:
            self._live.update(self._frame(self._seen, self._seen.view), refresh=True)

    def _frame(self, seen: Seen, view: Overview) -> RenderableType:
        progress = view.progress
        style = {Phase.DONE: "green", Phase.FAILED: "red"}.get(progress.phase, "cyan")
        seconds = int(self._clock.monotonic() - self._began)
        head = Text.assemble(
            (f"{view.kind}/{view.name}", "bold"),
            f"  {view.namespace}  ",
            (progress.phase.value, style),
            f"  {seconds}s",
        )
        bar = Table.grid(padding=(0, 1))
        total = max(progress.expected, 1)
        bar.add_row(
            "updated",
            ProgressBar(
                total=total,
                completed=min(progress.updated, total),
                width=30,
                complete_style="cyan",
                finished_style="green",
            ),
            f"{progress.updated}/{progress.expected}",
            f"ready {progress.ready}/{progress.wanted}   available {progress.available}   total {progress.total}",
        )
        parts: list[RenderableType] = [head, bar, Text(progress.message, style)]
        kept = progress.wanted - progress.expected
        if kept > 0:
            parts.append(Text(f"{kept} pods stay at an older revision: the partition keeps them", "dim"))
        if self._waves.count:
            parts.append(Text(self._wave_line()))
        if self._trouble:
            parts.append(Text(self._trouble, "red"))
        parts.append(self._pods(view))
        return Group(*parts)

    def _wave_line(self) -> str:
        moving = [name for name in self._waves.members(self._waves.count) if name in self._waves.moving]
        done = len(self._waves.members(self._waves.count)) - len(moving)
        return f"wave {self._waves.count}: {len(moving)} moving, {done} done"

    def _pods(self, view: Overview) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for title in ("", "POD", "REVISION", "STATE", "READY", "RESTARTS", "WAVE", "AGE", "NODE"):
            table.add_column(title)
        room = max(self._console.size.height - _FRAME_LINES, 3)
        ordered = sorted(
            view.pods, key=lambda pod: (_ORDER.index(pod.side), -self._waves.of.get(pod.name, 0), pod.name)
        )
        for pod in ordered[:room]:
            table.add_row(*self._row(pod))
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
