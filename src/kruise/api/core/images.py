"""Image references: whether a kubelet can read one, in its words, and the tag, which decides the pull policy."""

from __future__ import annotations

import functools
import json
import re

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_DIGEST_SIZES = {"sha256": 64, "sha384": 96, "sha512": 128}
_DOCKER = "docker.io"

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
