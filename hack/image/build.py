"""Puts the layers together, and keeps what took long.

The first two layers change seldom: they are kept under `~/.cache/pykruise/image`, by what they were made of. Packages
of Debian get newer while nothing here changes: `fresh` asks for them again, as a release does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack import version as tags
from hack.image import application, base, oci, sbom

ROOT = application.ROOT
_HERE = Path(__file__).resolve().parent
# As they were when this process began: whoever edits one while it works must not find his version's name taken.
_MAKERS = {path: path.read_bytes() for path in sorted(_HERE.glob("*.py"))}
_MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}
_WHEEL_INPUTS = ("pyproject.toml", "README.md", "LICENSE", "hack/version.py")
_BILL = "bill.json"
_IMAGES_KEPT = 5
LAYERS = ("base", "dependencies", "kruise")
ENSURE = "python -m hack.image --ensure"
USER = 65534
EPOCH = 315532800
"""1980, before which archives cannot say a time. A release sets SOURCE_DATE_EPOCH."""


@dataclass(frozen=True)
class Built:
    image: oci.Image
    bill: Mapping[str, Any]
    version: str


def own_architecture() -> str:
    return _MACHINE.get(platform.machine(), platform.machine())


def epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))


def cache_directory() -> Path:
    place = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(place) / "pykruise" / "image"


def digest_of_inputs(architecture: str) -> str:
    """Names all that an image is made of, but for the versions of Debian's packages."""
    sources = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    completions = sorted((ROOT / "completions").iterdir())
    inputs = (ROOT / name for name in _WHEEL_INPUTS)
    files = [*sorted(sources), *completions, *inputs, application.LOCKED, *_MAKERS]
    return _digest(f"{architecture} {tags.version()}", *files)


def build(architecture: str, *, fresh: bool = False) -> Built:
    """The image for one architecture."""
    with _workshop() as work:
        debian, python = make_trees(work, architecture, work, fresh=fresh)
        version = next(each["version"] for each in python if each["name"] == "pykruise")
        made_by = ("packages of Debian", "requirements/runtime.txt", f"pykruise {version}")
        layers = [oci.layer(work / name, by, epoch()) for name, by in zip(LAYERS, made_by, strict=True)]
    made = oci.image(layers, architecture=architecture, epoch=epoch(), running=_RUNNING, labels=_labels(version))
    bill = sbom.bill("pykruise", version, debian, python, architecture=architecture, epoch=epoch(), digest=made.digest)
    return Built(made, bill, version)


def make_trees(
    place: Path, architecture: str, work: Path, *, fresh: bool = False
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A directory for each layer in `place`, and the packages of Debian and of Python that are in them."""
    first, second, third = (place / name for name in LAYERS)
    debian = _base(architecture, first, work, fresh=fresh)
    own = _runnable(architecture, first, work, fresh=fresh)
    _kept(
        f"dependencies-{architecture}-{_digest(architecture, _HERE / 'application.py', application.LOCKED)}",
        second,
        lambda tree: _dependencies(tree, architecture, own),
        fresh=fresh,
    )
    application.install_kruise(third, work, epoch())
    application.compile_all(third, application.SITE, own)
    return debian, [*application.packages_of(second), *application.packages_of(third)]


def ensure(architecture: str) -> Built:
    """The image of this very tree, made once."""
    kept = _kept_image(architecture)
    if not kept.exists():
        built = build(architecture)
        kept.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".", dir=kept.parent))
        oci.write_layout(made, [built.image], f"pykruise:{built.version}")
        (made / _BILL).write_text(json.dumps(built.bill))
        shutil.rmtree(kept, ignore_errors=True)
        made.rename(kept)
        # There may be more trees than one, and each of them has had many images.
        for older in sorted(kept.parent.glob("[!.]*"), key=lambda path: path.stat().st_mtime)[:-_IMAGES_KEPT]:
            shutil.rmtree(older, ignore_errors=True)
    return find(architecture)


def _kept_image(architecture: str) -> Path:
    return cache_directory() / "images" / f"{digest_of_inputs(architecture)}-{epoch()}"


def find(architecture: str) -> Built:
    """The same, where it has been made; otherwise an error that says how to."""
    kept = _kept_image(architecture)
    if not kept.exists():
        raise base.PrerequisiteError(f"there is no image of this tree yet (looked in {kept.parent}): run `{ENSURE}`")
    bill = json.loads((kept / _BILL).read_text())
    return Built(oci.read_layout(kept), bill, bill["metadata"]["component"]["version"])


_RUNNING: Mapping[str, Any] = {
    "User": f"{USER}:{USER}",
    "Env": ["PATH=/usr/local/bin:/usr/bin"],
    "Entrypoint": ["kruise"],
    "Cmd": ["--help"],
    "WorkingDir": "/",
}


def _labels(version: str) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": "pykruise",
        "org.opencontainers.image.description": "Advanced Kubernetes workloads and in-place update, in Python",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }


def _base(architecture: str, tree: Path, work: Path, *, fresh: bool) -> list[dict[str, Any]]:
    def make(tree: Path) -> None:
        packages = base.make(tree, architecture, epoch())
        own = _runnable(architecture, tree, work, fresh=fresh)
        application.compile_all(tree, Path("usr/lib") / base.PYTHON, own)
        (tree / _LISTING).write_text(json.dumps(packages))

    _kept(
        f"base-{architecture}-{_digest(architecture, _HERE / 'base.py', _HERE / 'application.py')}",
        tree,
        make,
        fresh=fresh,
    )
    listing = tree / _LISTING
    packages: list[dict[str, Any]] = json.loads(listing.read_text())
    listing.unlink()
    return packages


_LISTING = "packages.json"


def _runnable(architecture: str, tree: Path, work: Path, *, fresh: bool) -> Path:
    """A base whose Python this machine can run: the very one, or its like for this architecture."""
    own = own_architecture()
    if architecture == own:
        return tree
    other = work / f"base-{own}"
    if not other.exists():
        _base(own, other, work, fresh=fresh)
    return other


def _dependencies(tree: Path, architecture: str, python: Path) -> None:
    application.install_dependencies(tree, architecture)
    application.compile_all(tree, application.SITE, python)


def _kept(name: str, tree: Path, make: Callable[[Path], None], *, fresh: bool) -> None:
    """Fills `tree` from the cache, or makes it and keeps it."""
    kept = cache_directory() / "parts" / f"{name}-{epoch()}"
    if fresh or not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{kept.name}-", dir=kept.parent))
        try:
            make(made / "tree")
            part = name.rpartition("-")[0]
            for older in (kept, *kept.parent.glob(f"{part}-*")):
                shutil.rmtree(older, ignore_errors=True)
            (made / "tree").rename(kept)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(kept, tree, symlinks=True)


def _digest(architecture: str, *files: Path) -> str:
    digest = hashlib.sha256(architecture.encode())
    for path in files:
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode() + (_MAKERS.get(path) or path.read_bytes()))
    return digest.hexdigest()[:32]


@contextmanager
def _workshop() -> Iterator[Path]:
    """A directory to work in; one build at a time, so that none is done twice."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    with (cache_directory() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        work = Path(tempfile.mkdtemp(prefix="pykruise-image-"))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
