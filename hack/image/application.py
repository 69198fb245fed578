"""The other two layers: the locked dependencies, and PyKruise itself, as packages of Debian's Python."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hack.image.base import PYTHON, PrerequisiteError

ROOT = Path(__file__).resolve().parents[2]
LOCKED = ROOT / "requirements" / "runtime.txt"
SITE = Path("usr/local/lib") / PYTHON / "dist-packages"
"""On the path of Debian's Python as it is, so no variable has to say so."""
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBCS = ("manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
_LAUNCHER = """\
#!/usr/bin/python3
import sys

from kruise.cli.main import main

sys.exit(main())
"""


def install_dependencies(tree: Path, architecture: str) -> None:
    """Wheels only, each with its locked hash: nothing is built, and nothing of them runs here."""
    if architecture not in _MACHINES:
        raise PrerequisiteError(f"no image for {architecture!r}: there are {', '.join(_MACHINES)}")
    platforms = [f"--platform={glibc}_{_MACHINES[architecture]}" for glibc in _GLIBCS]
    chosen = ["--require-hashes", "--only-binary=:all:", "--implementation=cp", "--python-version=3.11", *platforms]
    _pip(tree, [*chosen, f"--requirement={LOCKED}"])


def install_kruise(tree: Path, work: Path, epoch: int) -> None:
    """The wheel of this tree, and the commands."""
    wheels = work / "wheel"
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={wheels}"],
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PrerequisiteError(f"the wheel cannot be built:\n{done.stdout}{done.stderr}")
    [wheel] = wheels.glob("*.whl")
    _pip(tree, [str(wheel)])
    for name in ("kruise", "kubectl-kruise"):
        command = tree / "usr/local/bin" / name
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text(_LAUNCHER)
        command.chmod(0o755)


def compile_all(tree: Path, folder: Path, base: Path) -> None:
    """Nothing can be compiled at run time, on a file system that is read only. The order is fixed, and no time is kept,
    so that the result is always the same. The Python is the one of `base`: that of the image, or one like it that this
    machine can run; it runs where it lies, for which nobody has to be root."""
    python, environment = _python_of(base)
    command = [*python, "-m", "compileall", "-q", "-j1", "--invalidation-mode=unchecked-hash"]
    done = subprocess.run(
        [*command, "-s", str(tree), "-p", "/", str(tree / folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PrerequisiteError(f"{folder} cannot be compiled:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _python_of(base: Path) -> tuple[list[str], dict[str, str]]:
    [loader] = base.glob("lib/*/ld-linux-*.so.*")
    libraries = f"{loader.parent}:{base / 'usr/lib' / loader.parent.name}"
    command = [str(loader), "--library-path", libraries, str(base / "usr/bin" / PYTHON), "-S"]
    return command, {"PYTHONHOME": str(base / "usr"), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def packages_of(tree: Path) -> list[dict[str, Any]]:
    """Name, version and licence of each package, as its metadata say."""
    found = []
    for metadata in sorted((tree / SITE).glob("*.dist-info/METADATA")):
        about = HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))
        licence = about.get("License-Expression") or _classified(about.get_all("Classifier") or [])
        found.append({"name": about["Name"], "version": about["Version"], "licence": licence})
    return found


def _classified(classifiers: list[str]) -> str:
    names = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    return " AND ".join(sorted(names))


def _pip(tree: Path, arguments: list[str]) -> None:
    target = tree / SITE
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--no-compile", "--no-warn-script-location", f"--target={target}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PrerequisiteError(f"pip failed:\n{done.stderr[-3000:]}")
    # Commands with the path of this machine's Python, what is for shells, and what tells where a wheel lay.
    for name in ("bin", "share"):
        shutil.rmtree(target / name, ignore_errors=True)
    for about in target.glob("*.dist-info"):
        for name in ("direct_url.json", "REQUESTED", "INSTALLER"):
            (about / name).unlink(missing_ok=True)
        _keep_true(about / "RECORD", target)


def _keep_true(record: Path, target: Path) -> None:
    with record.open(newline="") as file:
        rows = sorted(row for row in csv.reader(file) if row and (target / row[0]).exists())
    with record.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
