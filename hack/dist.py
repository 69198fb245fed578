"""Makes the packages of a release: sdist, wheel and their checksums. See `make dist`.

    python hack/dist.py [--output DIRECTORY]

The wheel is built from the sdist, so whatever the sdist lacks is missed here and not by whoever builds from it. The
same files give the same bytes: archives hold no time but SOURCE_DATE_EPOCH, if it is set, and nothing of this machine.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
SUMS = "SHA256SUMS"


class NotReadyError(Exception):
    """Why this tree cannot be released."""


def make(output: Path) -> list[Path]:
    """Sdist, wheel and checksums. Those of other versions are left out of `output`: the sums name all that is there."""
    output.mkdir(parents=True, exist_ok=True)
    for old in output.glob("pykruise-*"):
        old.unlink()
    sdist = build("sdist", ROOT, output)
    version = sdist.name.removeprefix("pykruise-").removesuffix(".tar.gz")
    if not is_told(version, CHANGELOG.read_text()):
        sdist.unlink()
        raise NotReadyError(f"CHANGELOG.md says nothing of {version}: what is under Unreleased needs that heading")
    with tempfile.TemporaryDirectory() as place:
        wheel = build("wheel", unpack(sdist, Path(place)), output)
    sums = output / SUMS
    sums.write_text("".join(f"{digest(path)}  {path.name}\n" for path in (sdist, wheel)))
    return [sdist, wheel, sums]


def build(target: str, tree: Path, output: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", f"--target={target}", f"--directory={output.absolute()}"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotReadyError(f"the {target} cannot be built:\n{done.stdout}{done.stderr}")
    sys.stderr.writelines(line for line in done.stderr.splitlines(keepends=True) if line.startswith("Warning"))
    [made] = output.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def unpack(sdist: Path, place: Path) -> Path:
    with tarfile.open(sdist) as archive:
        # Early 3.11 has no filters, and later ones warn where none is chosen.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(place)
    return place / sdist.name.removesuffix(".tar.gz")


def is_told(version: str, changelog: str) -> bool:
    """Development has no heading of its own."""
    return ".dev" in version or re.search(rf"^## {re.escape(version)}(?![\w.])", changelog, re.MULTILINE) is not None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python hack/dist.py", description="Make sdist and wheel.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where to put them; default: dist")
    try:
        made = make(parser.parse_args().output)
    except NotReadyError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path in made:
        sys.stdout.write(f"{path} {path.stat().st_size / 1e6:.1f} MB\n" if path.name != SUMS else f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
