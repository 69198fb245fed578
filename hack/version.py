"""The version of this tree, from its tags: pyproject.toml asks for it when something is built or installed.

    python hack/version.py    print it

- A tree that is as its tag left it has the version of the tag: `v1.2.3` is 1.2.3, `v1.2.3rc1` is 1.2.3rc1.
- Any other is on its way to the next one: 1.2.4.dev0 after `v1.2.3`, or `NEXT` where that is higher. There is no number
  of commits in it: the same files make the same wheel and the same image, whatever was committed beside them.
- Where no tags can be asked it is `NEXT`, too. `PYKRUISE_VERSION` overrides that, for builds that have the files and
  not their history.
- An sdist has its own in PKG-INFO, which is all that hatchling looks at there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NEXT = "0.1.0"
"""The release that this tree leads to. Raised when more than a patch is on its way."""
OVERRIDE = "PYKRUISE_VERSION"

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")


class Release(NamedTuple):
    numbers: tuple[int, int, int]
    stage: str = ""
    """`a`, `b` or `rc`, or none: the release itself, which comes after them."""
    count: int = 0

    @property
    def order(self) -> tuple[tuple[int, int, int], bool, str, int]:
        return (self.numbers, not self.stage, self.stage, self.count)

    @property
    def following(self) -> Release:
        """The least that may come after it."""
        if self.stage:
            return self._replace(count=self.count + 1)
        major, minor, patch = self.numbers
        return Release((major, minor, patch + 1))

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers)) + (f"{self.stage}{self.count}" if self.stage else "")


class Tags(NamedTuple):
    here: Iterable[str]
    """Those of the very commit."""
    behind: Iterable[str]
    """Those of it and of all before it."""
    is_changed: bool
    """Whether files are not as they were committed."""


def release_of(text: str) -> Release | None:
    found = _RELEASE.fullmatch(text)
    if found is None:
        return None
    major, minor, patch, stage, count = found.groups()
    return Release((int(major), int(minor), int(patch)), stage or "", int(count or 0))


def decide(tags: Tags | None, following: str = NEXT) -> str:
    """Tags of other forms are somebody else's."""
    wanted = release_of(following)
    assert wanted is not None
    if tags is None:
        return f"{wanted}.dev0"
    here = _releases(tags.here)
    if here and not tags.is_changed:
        return str(here[-1])
    behind = _releases(tags.behind)
    if behind and behind[-1].numbers >= wanted.numbers:
        wanted = behind[-1].following
    return f"{wanted}.dev0"


def _releases(tags: Iterable[str]) -> list[Release]:
    found = (release_of(tag[1:]) for tag in tags if tag.startswith("v"))
    return sorted((release for release in found if release is not None), key=lambda release: release.order)


def read_tags(root: Path = ROOT) -> Tags | None:
    """None: there is no git here. A repository that only surrounds the tree does not count."""
    if not (root / ".git").exists():
        return None
    try:
        return Tags(
            _git(root, "tag", "--points-at", "HEAD"),
            _git(root, "tag", "--merged", "HEAD"),
            bool(_git(root, "status", "--porcelain", "--untracked-files=no")),
        )
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", "") or error
        sys.stderr.write(
            f"Warning: git does not tell the tags ({str(why).strip()}): the version is that of no release\n"
        )
        return None


def _git(root: Path, *arguments: str) -> list[str]:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def version(environment: Mapping[str, str] = os.environ, root: Path = ROOT) -> str:
    if (root / "PKG-INFO").exists():
        return str(HeaderParser().parsestr((root / "PKG-INFO").read_text(encoding="utf-8"))["Version"])
    given = environment.get(OVERRIDE, "")
    if not given:
        return decide(read_tags(root))
    if release_of(given.removesuffix(".dev0")) is None:
        raise ValueError(f"{OVERRIDE} is {given!r}, which is no version such as 1.2.3, 1.2.3rc1 or 1.2.3.dev0")
    return given


if __name__ == "__main__":
    sys.stdout.write(f"{version()}\n")
