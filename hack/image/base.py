"""The first layer: what of Debian a Python program needs, extracted by mmdebstrap, not installed.

No maintainer script runs, so there is neither a shell nor anything that needs one, and any machine makes it for any
architecture.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

SUITE = "bookworm"
PYTHON = "python3.11"
# Certificates are for plugins that fetch credentials of registries; the API server's come with the pod's account.
INCLUDED = (PYTHON, "ca-certificates", "netbase", "base-files")
# Only what packages want for their own installation, or for people at a shell. Their files are taken away again.
DROPPED = {
    *("adduser", "base-passwd", "bash", "coreutils", "dash", "debconf", "debianutils", "diffutils", "dpkg"),
    *("gcc-12-base", "libacl1", "libattr1", "libc-bin", "libgmp10", "libmd0", "libpcre2-8-0", "libselinux1", "mawk"),
    *("openssl", "passwd", "perl-base", "readline-common", "sed", "tar"),
}
_KEPT_OF_DROPPED = ("usr/share/doc/",)
_OS_RELEASE = ("usr/lib/os-release", "etc/os-release", "etc/debian_version")
# Python's own tests, its packaging, its windows, and what is for building extensions.
_PRUNED = (
    *(f"usr/lib/{PYTHON}/{name}" for name in ("test", "ensurepip", "lib2to3", "idlelib", "pydoc_data", "turtledemo")),
    *("dev", "boot", "home", "proc", "run", "sys", "etc/apt", "etc/dpkg", "etc/hostname", "etc/resolv.conf"),
    *("etc/fstab", "etc/cron.daily", "etc/logrotate.d", "etc/update-motd.d", "lib/systemd", "usr/lib/systemd"),
    *("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bash-completion"),
    *("usr/share/applications", "usr/share/pixmaps", "usr/share/binfmts", "usr/share/ca-certificates"),
    *("usr/lib/valgrind", "usr/share/gcc", "usr/share/gdb", "usr/sbin", "var", "usr/lib/binfmt.d"),
    *(f"usr/bin/{name}3.11" for name in ("pdb", "pydoc", "pygettext")),
)
# Python 3.14 wants to be told, and Debian's 3.11 does not know the word.
_AS_IT_IS: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
_CERTIFICATES = Path("usr/share/ca-certificates/mozilla")
_PASSWD = "root:x:0:0:root:/:/nonexistent\nnobody:x:65534:65534:nobody:/:/nonexistent\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"


class PrerequisiteError(RuntimeError):
    """Something is missing on this machine; the text says what, and how to get it."""


def make(tree: Path, architecture: str, epoch: int) -> list[dict[str, Any]]:
    """Fills `tree`; returns the control fields of the packages that are in it, by name."""
    program = shutil.which("mmdebstrap")
    if program is None:
        raise PrerequisiteError("mmdebstrap not found on PATH: `apt-get install --no-install-recommends mmdebstrap`")
    sources = _sources()
    work = tree.parent / f"{tree.name}.debian"
    work.mkdir()
    listing, packed = work / "packages.json", work / "root.tar"
    # The hook runs while the packages lie where apt has put them.
    hook = f'{sys.executable} {Path(__file__).resolve()} "$1" {listing}'
    command = [
        program,
        *("--quiet", "--variant=extract", f"--architectures={architecture}", f"--include={','.join(INCLUDED)}"),
        *(f"--extract-hook={hook}", SUITE, str(packed), *map(str, sources)),
    ]
    done = subprocess.run(
        command, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise PrerequisiteError(f"mmdebstrap failed:\n{done.stderr.strip()[-3000:]}")
    packages = json.loads(listing.read_text())
    tree.mkdir(parents=True)
    with tarfile.open(packed) as tar:
        # Devices are the runtime's to make.
        tar.extractall(tree, [each for each in tar if not each.isdev()], **_AS_IT_IS)
    _trim(tree, packages)
    shutil.rmtree(work)
    left = [each for each in packages if each["Package"] not in DROPPED]
    _complete(tree, left)
    return left


def _sources() -> list[Path]:
    """The machine's own apt sources of Debian, in whichever form they are written."""
    listed = Path("/etc/apt/sources.list")
    found = [listed, *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    chosen = [path for path in found if path.suffix in (".list", ".sources") and _has_suite(path)]
    if not chosen:
        raise PrerequisiteError(f"no apt source of this machine has Debian {SUITE}: see /etc/apt/sources.list")
    return chosen


def _has_suite(path: Path) -> bool:
    if not path.is_file():
        return False
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    return any(SUITE in line.split() for line in lines)


def _trim(tree: Path, packages: list[dict[str, Any]]) -> None:
    bundle = b"".join(path.read_bytes() for path in sorted((tree / _CERTIFICATES).glob("*.crt")))
    kept = {file for each in packages if each["Package"] not in DROPPED for file in each["files"]}
    for each in packages:
        unwanted = each["Package"] in DROPPED or each["Package"] == "base-files"
        for name in each["files"]:
            if name in _OS_RELEASE or not unwanted or (each["Package"] in DROPPED and name in kept):
                continue
            if not name.startswith(_KEPT_OF_DROPPED):
                (tree / name).unlink(missing_ok=True)
    for name in _PRUNED:
        path = tree / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    documents = tree / "usr/share/doc"
    for path in sorted(documents.rglob("*"), reverse=True):
        # Licences are to be handed on with what they are about.
        if path.is_symlink() or (path.is_file() and path.name != "copyright"):
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    for path in tree.glob("usr/lib/*/gconv"):  # encodings that Python has by itself
        shutil.rmtree(path)
    for name in DROPPED:
        shutil.rmtree(documents / name, ignore_errors=True)
    for path in sorted(tree.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
    certificates = tree / "etc/ssl/certs/ca-certificates.crt"
    certificates.parent.mkdir(parents=True, exist_ok=True)
    certificates.write_bytes(bundle)


def _complete(tree: Path, packages: list[dict[str, Any]]) -> None:
    for name in ("proc", "sys", "dev", "run", "tmp", "var/lib/dpkg/status.d", "log", "usr/bin"):
        (tree / name).mkdir(parents=True, exist_ok=True)
    (tree / "tmp").chmod(0o1777)
    (tree / "etc/passwd").write_text(_PASSWD)
    (tree / "etc/group").write_text(_GROUP)
    # Where no runtime puts another one in its place.
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (tree / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    (tree / "usr/bin/python3").symlink_to(PYTHON)
    for each in packages:
        # Where scanners look for packages of images that have no dpkg.
        fields = "".join(f"{key}: {value}\n" for key, value in each.items() if key != "files")
        (tree / "var/lib/dpkg/status.d" / each["Package"]).write_text(fields)


def _list_packages(root: Path) -> list[dict[str, Any]]:
    """What each downloaded package says of itself, and which files it has."""
    fields = ("Package", "Status", "Version", "Architecture", "Source", "Maintainer", "Description")
    found = []
    for deb in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        control: dict[str, Any] = {"Status": "install ok installed"}
        for name in fields:
            said = subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True).stdout
            if value := said.strip():
                control[name] = value.splitlines()[0]
        listing = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
        control["files"] = _files_of(listing)
        found.append({name: control[name] for name in (*fields, "files") if name in control})
    return sorted(found, key=lambda each: str(each["Package"]))


def _files_of(tar: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        return [each.name.removeprefix("./") for each in opened if not each.isdir()]


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(_list_packages(Path(sys.argv[1]))))
