"""Dumps without the values that people keep secret, which still decide the same. Pure.

Values are replaced by a keyed fingerprint: equal values stay equal and others stay different, so that templates compare
as before, and nobody without the key (which is thrown away) can find out by trying what a value was.

Replaced: values of environment variables, commands and arguments of containers and hooks, paths of HTTP probes and
hooks, values of their headers, and annotations that are neither ours nor Kubernetes' own; in our own that hold JSON,
the same. Kept is what decisions are about: names, labels, images, resources, states and times, and annotations that
environment variables are made from.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kruise.api.core.go_json import go_escaped
from kruise.machinery.codec import DecodeError, decode, encode
from kruise.machinery.journal import Decider, ReplayError, replay
from kruise.machinery.plan_difference import differences

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PREFIX = "redacted-"
_OWN = re.compile(r"(^|\.)(kruise\.io|kubernetes\.io|k8s\.io)/|^inplace-update-(state|grace)$")
_REFERENCE = re.compile(r"^metadata\.annotations\['(.+)'\]$")
_TEXTS = frozenset({"args", "command"})
_NAMED_VALUES = frozenset({"env", "httpHeaders"})
_STATES = frozenset({"waiting", "terminated"})
_ENCODED = frozenset({"metaDataPatch"})
"""JSON in base64."""
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
    hidden: dict[str, Any] = _Hiding(_masking(key), kept=frozenset(_referenced(document))).value(document)
    return hidden


def mask_dump(dump: dict[str, Any], *, key: bytes) -> dict[str, Any]:
    """For a reader who may see the object but not its pods. Stricter than `redacted`: annotations that variables are
    made from or that hold JSON go, too, and what containers said last, so that it need not decide the same."""
    hiding = _Hiding(_masking(key), strict=True)
    masked = {name: hiding.value(dump[name]) for name in ("snapshot", "plan")}
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


@dataclasses.dataclass(frozen=True, slots=True)
class _Hiding:
    """How one document is rid of its secrets: wherever they are in it, in the steps of JSON patches, and in annotations
    that hold JSON themselves."""

    mask: Mask
    kept: frozenset[str] = frozenset()
    """Annotations that are not looked into."""
    strict: bool = False
    """For readers who do not decide over it again: without JSON in annotations, and without messages about states of
    containers (they quote commands, and the container's own last words)."""

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        found = {name: self._field(name, item) for name, item in value.items()}
        if isinstance(value.get("path"), str) and "value" in value:
            found["value"] = self._stepped(value["path"].split("/"), value["value"])
        return found

    def _field(self, name: str, value: Any) -> Any:
        match value:
            case list() if name in _TEXTS:
                return [self._text(item) for item in value]
            case list() if name in _NAMED_VALUES:
                return [self._named_value(item) for item in value]
            case dict() if name == "annotations":
                return {key: self._annotation(key, item) for key, item in value.items()}
            case {"path": str(path)} if name == "httpGet":
                return {**self.value(value), "path": self._url_path(path)}
            case {"message": str(message)} if name in _STATES and self.strict:
                return {**self.value(value), "message": self.mask(message)}
            case str() if name in _ENCODED:
                return self._encoded(value)
            case _:
                return self.value(value)

    def _stepped(self, path: list[str], value: Any) -> Any:
        """The value of a step of a JSON patch, hidden as it would be where it goes."""
        *_, above, parent, name = ("", "", *path)
        if parent == "annotations":
            return self._annotation(name.replace("~1", "/").replace("~0", "~"), value)
        if parent in _TEXTS or (above in _NAMED_VALUES and name == "value"):
            return self._text(value)
        if parent in _NAMED_VALUES:
            return self._named_value(value)
        if parent == "httpGet" and name == "path" and isinstance(value, str):
            return self._url_path(value)
        return self._field(name, value)

    def _text(self, value: Any) -> Any:
        return self.mask(value) if isinstance(value, str) else value

    def _named_value(self, item: Any) -> Any:
        return {**item, "value": self._text(item["value"])} if isinstance(item, dict) and "value" in item else item

    def _url_path(self, path: str) -> str:
        """All but the slash in front: a path of that alone is the default, and means the same as none."""
        return "/" + self.mask(path[1:]) if path.startswith("/") else self.mask(path)

    def _annotation(self, name: str, value: Any) -> Any:
        if not isinstance(value, str) or (name in self.kept and name != LAST_APPLIED):
            return value
        if name == LAST_APPLIED or not _OWN.search(name):
            return self.mask(value)
        if not value.lstrip().startswith(("{", "[")):
            return value
        hidden = None if self.strict else self._inside(value.encode("utf-8", "surrogatepass"))
        return self.mask(value) if hidden is None else hidden.decode("utf-8", "surrogatepass")

    def _encoded(self, text: str) -> str:
        try:
            hidden = self._inside(base64.b64decode(text, validate=True))
        except ValueError:
            hidden = None
        return self.mask(text) if hidden is None else base64.b64encode(hidden).decode()

    def _inside(self, document: bytes) -> bytes | None:
        """JSON, likewise: as the engine writes it, and byte for byte as it was where nothing had to be hidden. None: it
        is none."""
        try:
            found = decode(document, object)
        except DecodeError:
            return None
        hidden = self.value(found)
        return document if hidden == found else go_escaped(encode(hidden))


def _masking(key: bytes) -> Mask:
    def mask(value: str) -> str:
        if not value:
            return value
        text = value.encode("utf-8", "surrogatepass")
        return _PREFIX + hashlib.blake2b(text, key=key, digest_size=8).hexdigest()

    return mask


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
