"""Image references, as far as template defaulting reads them: the tag decides the pull policy."""

from __future__ import annotations

import functools
import re

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_REMOTE = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*[:][0-9a-fA-F]{32,}"
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}

LONGEST_NAME = 255


@functools.cache
def _reference() -> re.Pattern[str]:
    return re.compile(rf"((?:{_HOST}/)?{_REMOTE})(?::({_TAG}))?(?:@({_DIGEST}))?")


def image_tag(image: str) -> str:
    """The tag; `latest` where neither tag nor digest is given; empty for a digest alone or a text that is no name."""
    if re.fullmatch("[a-f0-9]{64}", image):
        return ""  # an image id, which is no name
    matched = _reference().fullmatch(_with_domain(image))
    if matched is None:
        return ""
    name, tag, digest = matched.groups()
    path = name.split("/", 1)[1]
    if len(path) > LONGEST_NAME or (digest is not None and not _sound_digest(digest)):
        return ""
    if tag is None:
        return "" if digest else "latest"
    return str(tag)


def _with_domain(image: str) -> str:
    """Names without a registry are in the default one; what has no dot, port or capital letter is no registry."""
    first, slash, rest = image.partition("/")
    is_domain = bool(slash) and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    if not is_domain:
        first, rest = "docker.io", image
    elif first == "index.docker.io":
        first = "docker.io"
    if first == "docker.io" and "/" not in rest:
        rest = f"library/{rest}"
    return f"{first}/{rest}"


def _sound_digest(digest: str) -> bool:
    algorithm, _, encoded = digest.partition(":")
    return _DIGEST_LENGTHS.get(algorithm) == len(encoded) and encoded == encoded.lower()


def default_pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"
