"""Dumps without the values that people keep secret, which still decide the same. Pure.

Values are replaced by a keyed fingerprint: equal values stay equal and others stay different, so that templates compare
as before, and nobody without the key (which is thrown away) can find out by trying what a value was.

Replaced: values of environment variables, commands and arguments of containers and hooks, values of HTTP headers of
probes, and annotations that are neither ours nor Kubernetes' own. Kept is what decisions are about: names, labels,
images, resources, states and times, and annotations that environment variables are made from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kruise.machinery.codec import DecodeError, decode, encode
from kruise.machinery.journal import Decider, ReplayError, replay
from kruise.machinery.plan_difference import differences

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PREFIX = "redacted-"
_OWN = re.compile(r"(^|\.)(kruise\.io|kubernetes\.io|k8s\.io)/")
_REFERENCE = re.compile(r"^metadata\.annotations\['(.+)'\]$")
_TEXTS = frozenset({"args", "command"})
_NAMED_VALUES = frozenset({"env", "httpHeaders"})
_STATES = frozenset({"waiting", "terminated"})
MASKED = "(masked: it takes the right to get and list pods in the namespace)"

Mask = Callable[[str], str]


def redacted(dump: bytes, specs: Iterable[Decider], *, key: bytes) -> bytes:
    """The dump without secrets. Raises `ReplayError` where it would decide otherwise: nothing is to be written then."""
    known = tuple(specs)
    if not replay(dump, known).plan_equal:
        raise ReplayError(
            "this version decides otherwise over the dump as it is, so it cannot tell whether the dump would decide "
            "the same without its secrets. Use the version that wrote it"
        )
    try:
        document = decode(dump, dict)
    except DecodeError as error:
        raise ReplayError(f"the dump does not fit: {error}") from error
    hidden = hide({name: document[name] for name in ("snapshot", "plan")}, key=key)
    written = encode({**document, **hidden, "redacted": True})
    again = replay(written, known)
    if not again.plan_equal:
        first = next(iter(differences(again.recorded, again.plan)), None)
        said = "; ".join(line.strip() for line in first.lines) if first else again.error
        raise ReplayError(
            "without its secrets the dump would not decide the same, because this pass computes something from them "
            f"(a new template's revision is named by a hash of it): {said}. Dump a later pass, or leave out --redact"
        )
    return written


def hide(document: dict[str, Any], *, key: bytes) -> dict[str, Any]:
    """A document of whatever objects, without their secrets."""
    hidden: dict[str, Any] = _redacted(document, _masking(key), frozenset(_referenced(document)))
    return hidden


def mask_dump(dump: dict[str, Any], *, key: bytes) -> dict[str, Any]:
    """For a reader who may see the object but not its pods. Stricter than `redacted`: annotations that variables are
    made from and what containers said last go, too, so that it need not decide the same."""
    mask = _masking(key)
    masked = {name: _stricter(_redacted(dump[name], mask, frozenset()), mask) for name in ("snapshot", "plan")}
    errors = {name: MASKED for name in ("error", "fault") if dump.get(name)}
    return {**dump, **masked, **errors, "redacted": True}


def mask_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """A record likewise: texts of the API server and of events may quote a whole pod."""
    conclusion = {**entry["conclusion"]}
    if conclusion.get("events"):
        conclusion["events"] = [MASKED] * len(conclusion["events"])
    if conclusion.get("retry"):
        conclusion["retry"] = MASKED
    troubles = [{**trouble, "error": MASKED} for trouble in entry["troubles"]]
    return {**entry, "troubles": troubles, "conclusion": conclusion, "error": MASKED if entry["error"] else ""}


def _stricter(value: Any, mask: Mask) -> Any:
    """Without messages about states of containers (they quote commands, and the container's own last words), and
    without what single steps of a JSON patch put into secret places."""
    if isinstance(value, list):
        return [_stricter(item, mask) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: _stricter(item, mask) for name, item in value.items()}
    for name in _STATES & found.keys():
        if isinstance(found[name], dict) and isinstance(found[name].get("message"), str):
            found[name] = {**found[name], "message": mask(found[name]["message"])}
    if isinstance(found.get("path"), str) and "value" in found:
        found["value"] = _stepped(found["path"].split("/"), found["value"], mask)
    return found


def _stepped(path: list[str], value: Any, mask: Mask) -> Any:
    """The value of a step of a JSON patch, masked as it would be where it goes."""
    if isinstance(value, str):
        within = set(path[:-1])
        *_, parent, name = ("", *path)
        if parent == "annotations":
            return _annotation(name.replace("~1", "/").replace("~0", "~"), value, mask, frozenset())
        return mask(value) if within & (_TEXTS | _NAMED_VALUES) and name != "name" else value
    return _field(path[-1], value, mask, frozenset())


def _masking(key: bytes) -> Mask:
    def mask(value: str) -> str:
        if not value:
            return value
        text = value.encode("utf-8", "surrogatepass")
        return _PREFIX + hashlib.blake2b(text, key=key, digest_size=8).hexdigest()

    return mask


def _redacted(value: Any, mask: Mask, kept: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_redacted(item, mask, kept) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _field(name, item, mask, kept) for name, item in value.items()}


def _field(name: str, value: Any, mask: Mask, kept: frozenset[str]) -> Any:
    if name in _TEXTS and isinstance(value, list):
        return [mask(item) if isinstance(item, str) else item for item in value]
    if name in _NAMED_VALUES and isinstance(value, list):
        return [_named_value(item, mask) for item in value]
    if name == "annotations" and isinstance(value, dict):
        return {key: _annotation(key, item, mask, kept) for key, item in value.items()}
    return _redacted(value, mask, kept)


def _named_value(item: Any, mask: Mask) -> Any:
    if isinstance(item, dict) and isinstance(item.get("value"), str):
        return {**item, "value": mask(item["value"])}
    return item


def _annotation(name: str, value: Any, mask: Mask, kept: frozenset[str]) -> Any:
    if not isinstance(value, str) or (name != LAST_APPLIED and (name in kept or _OWN.search(name))):
        return value
    return mask(value)


def _referenced(value: Any) -> Iterator[str]:
    """Annotations that environment variables are made from: nodes report hashes over their values."""
    if isinstance(value, list):
        for item in value:
            yield from _referenced(item)
    elif isinstance(value, dict):
        path = value.get("fieldPath")
        if isinstance(path, str) and (found := _REFERENCE.match(path)):
            yield found.group(1)
        for item in value.values():
            yield from _referenced(item)
