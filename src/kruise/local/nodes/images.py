"""Images: what they are called, how large they are, and how long a node takes to get one.

Everything follows from the name, so that it is the same each time: the digest is a hash of it, the size too. A table
(of the model, of a Node or of a pod, by annotation) can give a size, make two names one image, or make a pull fail.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.machinery.quantity import parse_quantity

SMALLEST = 2 * 1024 * 1024
LARGEST = 120 * 1024 * 1024
RESOLVE_SECONDS = 0.25
"""What asking the registry takes, also for an image that is here already."""


@functools.lru_cache(maxsize=4096)
def full_name(image: str) -> str:
    """As a container runtime names it: `nginx` is `docker.io/library/nginx:latest`."""
    rest, at, digest = image.partition("@")
    first, slash, path = rest.partition("/")
    if not (slash and ("." in first or ":" in first or first == "localhost")):
        first, path = "docker.io", rest
    if first == "docker.io" and "/" not in path:
        path = f"library/{path}"
    if at:
        path = path.partition(":")[0]
        return f"{first}/{path}@{digest}"
    return f"{first}/{path}" if ":" in path else f"{first}/{path}:latest"


def repository(name: str) -> str:
    """A full name without its tag or digest."""
    base = name.partition("@")[0]
    head, colon, tag = base.rpartition(":")
    return head if colon and "/" not in tag else base


@functools.lru_cache(maxsize=4096)
def digest(name: str) -> str:
    _, at, given = name.partition("@")
    return given if at else f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    name: str
    id: str
    size: int


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why an image cannot be had, as the container runtime says it."""

    text: str


def find(image: str, tables: Sequence[Mapping[str, Any]] = (), size: int | None = None) -> Image | Refusal:
    """What the registry has under this name. Earlier tables win."""
    name = full_name(image)
    entry = _entry(image, name, tables)
    error = entry.get("error")
    if error:
        return Refusal(unavailable(image, "" if error is True else str(error)))
    if _is_missing(name):
        return Refusal(unavailable(image))
    source = name
    same = entry.get("same-as")
    if isinstance(same, str) and same:
        source = full_name(same)
    if size is None:
        size = _size(entry.get("size")) or _usual_size(source)
    return Image(name, f"{repository(name)}@{digest(source)}", size)


def unavailable(image: str, text: str = "") -> str:
    """containerd's words for an image that nobody can find, or those that were asked for."""
    if text:
        return text
    name = full_name(image)
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{name}": failed to resolve reference '
        f'"{name}": {name}: not found'
    )


def _is_missing(name: str) -> bool:
    tag = name.rpartition(":")[2]
    registry = name.partition("/")[0].partition(":")[0]
    return tag == "missing" or registry.startswith("invalid.") or registry.endswith(".invalid")


def _entry(image: str, name: str, tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for table in tables:
        found = table.get(image) or table.get(name)
        if found:
            return dict(found)
    return {}


def _size(value: Any) -> int | None:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        return max(0, parse_quantity(value).value())
    except ValueError:
        return None


@functools.lru_cache(maxsize=4096)
def _usual_size(name: str) -> int:
    number = int.from_bytes(hashlib.sha256(b"size " + name.encode()).digest()[:8], "big")
    return SMALLEST + number % (LARGEST - SMALLEST)


@dataclasses.dataclass(frozen=True, slots=True)
class Pull:
    """A pull that was begun: it waits for its turn, then it runs."""

    begins: float
    ends: float


class NodeImages:
    """The images of one node. Pulls go one after the other, as a kubelet does them unless told otherwise."""

    def __init__(self, bandwidth: float, present: Sequence[Image] = ()) -> None:
        self._bandwidth = bandwidth
        self._present: dict[str, Image] = {image.name: image for image in present}
        self._coming: dict[str, float] = {}
        self._free_at = 0.0

    @property
    def present(self) -> Sequence[Image]:
        return tuple(self._present.values())

    def get(self, image: str) -> Image | None:
        return self._present.get(full_name(image))

    def remove(self, image: str) -> None:
        """Somebody takes it off the node."""
        self._present.pop(full_name(image), None)

    def begin(self, image: Image | Refusal, now: float) -> Pull:
        """Take a turn in the queue."""
        begins = max(now, self._free_at)
        takes = RESOLVE_SECONDS
        if isinstance(image, Image):
            known = self._present.get(image.name)
            if (known is None or known.id != image.id) and self._coming.get(image.name, 0.0) < now:
                takes += image.size / self._bandwidth
                self._coming[image.name] = begins + takes
        self._free_at = begins + takes
        return Pull(begins, begins + takes)

    def arrived(self, image: Image) -> bool:
        """The pull is over; whether it brought anything new."""
        self._coming.pop(image.name, None)
        known = self._present.get(image.name)
        self._present[image.name] = image
        return known is None or known.id != image.id
