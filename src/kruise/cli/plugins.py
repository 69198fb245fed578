"""What is wrong with kinds that other packages bring: told once, and nothing stops for it."""

from __future__ import annotations

import click

from kruise import kinds

_told: set[str] = set()


def tell_problems() -> None:
    """To whoever sits at the terminal, or reads the log."""
    for problem in kinds.problems():
        if problem not in _told:
            _told.add(problem)
            click.echo(f"Warning: {problem}", err=True)
