"""Image references: whether a kubelet can read one, in its words; the tag, which decides the pull policy; and the two
parts, name and tag, by which nodes are told of images."""

from __future__ import annotations

import functools
import json
import re
from typing import NamedTuple

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_DIGEST_SIZES = {"sha256": 64, "sha384": 96, "sha512": 128}
_DOCKER = "docker.io"
_LOWER_CASE = "invalid reference format: repository name must be lowercase"

LONGEST_NAME = 255


@functools.cache
def _reference() -> re.Pattern[str]:
    return re.compile(rf"(?:{_DOMAIN}/)?(?P<path>{_PATH})(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?")


@functools.lru_cache(maxsize=4096)
def problem(image: str) -> str:
    """Why a kubelet does not even try to pull it; empty: the name is a good one."""
    reason = _reason(image)
    if not reason:
        return ""
    quoted = json.dumps(image, ensure_ascii=False)
    return f"Failed to apply default image tag {quoted}: couldn't parse image name {quoted}: {reason}"


def image_tag(image: str) -> str:
    """The tag; `latest` where neither tag nor digest is given; empty for a digest alone or a text that is no name."""
    found = None if _reason(image) else _reference().fullmatch("/".join(_split(image)))
    if found is None:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")


def default_pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


class ImageReference(NamedTuple):
    """An image as NodeImages name it: the same for every way to write the same image."""

    name: str
    """Without `docker.io/` and `library/`; any other registry stays."""
    tag: str
    """The tag; `latest` where none is given; of an image by digest, the digest."""

    def __str__(self) -> str:
        """As it is pulled: a digest is joined with `@`."""
        return f"{self.name}@{self.tag}" if ":" in self.tag else f"{self.name}:{self.tag}"

    @property
    def repository(self) -> str:
        """With its registry, as credentials name it: `docker.io/library/nginx`."""
        return "/".join(_split(self.name))


def reference_problem(image: str) -> str:
    """Why a text is no image reference; empty: it is one."""
    reason = _reason(image)
    return _LOWER_CASE if reason.endswith("must be lowercase") else reason


@functools.lru_cache(maxsize=4096)
def reference_of(image: str) -> ImageReference | None:
    """Name and tag of an image; None for a text that is none."""
    domain, rest = _split(image)
    found = None if _reason(image) else _reference().fullmatch(f"{domain}/{rest}")
    if found is None:
        return None
    path = found["path"]
    is_plain = domain == _DOCKER and path.count("/") == 1 and path.startswith("library/")
    name = f"{domain}/{path}" if domain != _DOCKER else path.removeprefix("library/") if is_plain else path
    return ImageReference(name, found["digest"] or found["tag"] or "latest")


def _reason(image: str) -> str:
    if re.fullmatch("[a-f0-9]{64}", image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    domain, rest = _split(image)
    name = rest.partition(":")[0]
    if name.lower() != name:
        return f"invalid reference format: repository name ({name}) must be lowercase"
    found = _reference().fullmatch(f"{domain}/{rest}")
    if found is None:
        in_lower_case = _reference().fullmatch(f"{domain}/{rest}".lower()) is not None
        return "repository name must be lowercase" if in_lower_case else "invalid reference format"
    if len(found["path"]) > LONGEST_NAME:
        return f"repository name must not be more than {LONGEST_NAME} characters"
    return _digest_reason(found["digest"]) if found["digest"] else ""


def _split(image: str) -> tuple[str, str]:
    """The registry, and what it is asked for. What has no dot, port or capital letter is no registry."""
    first, slash, rest = image.partition("/")
    if not slash:
        return _DOCKER, f"library/{image}"
    if first == "index.docker.io":
        first = _DOCKER
    elif first != "localhost" and "." not in first and ":" not in first and first.lower() == first:
        first, rest = _DOCKER, image
    return first, f"library/{rest}" if first == _DOCKER and "/" not in rest else rest


def _digest_reason(digest: str) -> str:
    algorithm, _, encoded = digest.partition(":")
    size = _DIGEST_SIZES.get(algorithm)
    if size is None:
        return "unsupported digest algorithm" if algorithm.lower() == algorithm else "invalid checksum digest format"
    if len(encoded) != size:
        return "invalid checksum digest length"
    return "" if encoded.lower() == encoded else "invalid checksum digest format"


def repository_and_digest(image: str) -> tuple[str, str] | None:
    """The full name of the repository and the digest, of an image that is given by a digest; None for others."""
    name, at, digest = image.partition("@")
    if not at or ":" not in digest:
        return None
    domain, path = _split(name)
    last = path.rpartition("/")[2]
    return f"{domain}/{path[: len(path) - len(last)]}{last.partition(':')[0]}", digest
