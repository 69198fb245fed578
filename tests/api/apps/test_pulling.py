"""What a job that pulls images may not say."""

from __future__ import annotations

import pytest

from kruise.api.apps.images import PullTemplate
from kruise.api.apps.pulling import parallelism_problem


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, ""),
        (0, ""),
        ("7", ""),
        ("+7", ""),
        (-1, "parallelism must be non-negative"),
        ("-1", "parallelism must be non-negative"),
        ("50%", "parallelism does not support percentage value: write how many nodes"),
        ("--5", 'parallelism must be a valid integer: "--5" is none'),
        ("9" * 5000, f'parallelism must be a valid integer: "{"9" * 5000}" is none'),
    ],
    ids=lambda value: str(value)[:12],
)
def test_parallelism(given: int | str | None, problem: str) -> None:  # ILPJ-2
    assert parallelism_problem(PullTemplate(parallelism=given)) == problem
