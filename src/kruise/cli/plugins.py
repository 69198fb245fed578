"""What is wrong with kinds that other packages bring: printed once, and nothing stops for it."""

from __future__ import annotations

import click

from kruise import kinds

_printed: set[str] = set()


def print_problems() -> None:
    """To whoever sits at the terminal, or reads the log."""
    for problem in kinds.problems():
        if problem not in _printed:
            _printed.add(problem)
            click.echo(f"Warning: {problem}", err=True)
