"""Whether the name of an image can be read: by the rules that kubelets go by, and in their words."""

from __future__ import annotations

import functools
import json
import re

_LONGEST = 255
_ALPHANUMERIC = "[a-z0-9]+"
_COMPONENT = rf"{_ALPHANUMERIC}(?:(?:[._]|__|-+){_ALPHANUMERIC})*"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_LABEL = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG = r"\w[\w.-]{0,127}"
_DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(rf"(?:{_DOMAIN}/)?(?P<path>{_PATH})(?::{_TAG})?(?:@(?P<digest>{_DIGEST}))?", re.ASCII)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_DIGEST_SIZES = {"sha256": 64, "sha384": 96, "sha512": 128}
_DOCKER = "docker.io"


@functools.lru_cache(maxsize=4096)
def problem(image: str) -> str:
    """Why a kubelet does not even try to pull it; empty: the name is a good one."""
    reason = _reason(image)
    if not reason:
        return ""
    quoted = json.dumps(image, ensure_ascii=False)
    return f"Failed to apply default image tag {quoted}: couldn't parse image name {quoted}: {reason}"


def _reason(image: str) -> str:
    if _IDENTIFIER.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    domain, rest = _split(image)
    name = rest.partition(":")[0]
    if name.lower() != name:
        return f"invalid reference format: repository name ({name}) must be lowercase"
    found = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if found is None:
        in_lower_case = _REFERENCE.fullmatch(f"{domain}/{rest}".lower()) is not None
        return "repository name must be lowercase" if in_lower_case else "invalid reference format"
    if len(found["path"]) > _LONGEST:
        return f"repository name must not be more than {_LONGEST} characters"
    return _digest_reason(found["digest"]) if found["digest"] else ""


def _split(image: str) -> tuple[str, str]:
    """The registry, and what it is asked for."""
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
