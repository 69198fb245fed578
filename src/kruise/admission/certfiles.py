"""The certificate directory: all files replaced together (MGR-35).

As the kubelet does it: the files live in a directory of their own, `..data` is a link to it, and each file name is a
link through `..data`. Renaming a new `..data` over the old one changes all files in one step. Whoever wants two files
that belong together resolves `..data` once (`resolved`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

_DATA = "..data"


class CertificateDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def resolved(self) -> Path:
        """The directory behind the links: its files never change, and it stays for one replacement longer."""
        link = self.path / _DATA
        return self.path / os.readlink(link) if link.is_symlink() else self.path

    def read(self) -> dict[str, bytes]:
        """All files, of one generation. Empty where there is no directory."""
        for _ in range(3):
            try:
                base = self.resolved
                return {item.name: item.read_bytes() for item in base.iterdir() if _is_content(item)}
            except FileNotFoundError:
                continue  # replaced twice while we read, or not there at all
        return {}

    def write(self, files: Mapping[str, bytes]) -> bool:
        """Replace the directory's files by these. False if they are there already."""
        if self.read() == dict(files) and (self.path / _DATA).is_symlink():
            return False
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = self.resolved if (self.path / _DATA).is_symlink() else None
        fresh = Path(tempfile.mkdtemp(prefix="..", dir=self.path))
        try:
            for name, content in files.items():
                descriptor = os.open(fresh / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
            _link(self.path / _DATA, fresh.name)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        for name in files:
            if not (self.path / name).is_symlink():
                _link(self.path / name, f"{_DATA}/{name}")
        self._clean(keep={fresh.name, before.name if before else "", *files})
        return True

    def _clean(self, keep: set[str]) -> None:
        """Remove links whose file is gone, and generations before the last: a reader may still be in that one."""
        for item in self.path.iterdir():
            if item.name in keep or item.name == _DATA:
                continue
            if item.is_symlink() and os.readlink(item).startswith(f"{_DATA}/"):
                item.unlink(missing_ok=True)
            elif item.name.startswith("..") and item.is_dir() and not item.is_symlink():
                shutil.rmtree(item, ignore_errors=True)


def _is_content(item: Path) -> bool:
    return not item.name.startswith("..") and item.is_file()


def _link(path: Path, target: str) -> None:
    """Make or replace a link in one step."""
    temporary = path.parent / f"{path.name}.{os.getpid()}.tmp"
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()  # left by a process that died here
    os.symlink(target, temporary)
    os.replace(temporary, path)
