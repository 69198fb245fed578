"""Packages of somebody else, as an installer would leave them on disk: a folder that belongs on the path."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

TOY = Path(__file__).parents[1] / "toy"


def write_distribution(site: Path, name: str, kinds: Mapping[str, str]) -> None:
    """A distribution with these entry points of the group `kruise.kinds`: `{"Kind.group": "package"}`."""
    information = site / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{kind} = {package}\n" for kind, package in kinds.items()]
    (information / "entry_points.txt").write_text("".join(["[kruise.kinds]\n", *lines]))


def install_toy(site: Path) -> None:
    """The toy kind as the package `troupe` of a distribution of its own."""
    shutil.copytree(TOY, site / "troupe", ignore=shutil.ignore_patterns("__pycache__"))
    write_distribution(site, "troupe-kind", {"Troupe.toy.pykruise.dev": "troupe"})
