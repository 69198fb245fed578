"""What was recorded of a kind's admission, and where ours differs on purpose, for tests with and without a server.

A kind brings a folder of data, `tests/<room>/<kind>/data`, and no code: the recorded cases, and `differences.yaml`:

| key | what |
|---|---|
| `names` | what placeholders in the recording stand for |
| `codes` | recorded status code -> ours |
| `fields` | recorded field -> ours, where the original names it wrongly |
| `accepted` | case -> why it is accepted here |
| `refused` | case -> `causes` (field and reason of each) and `why`, where the original accepts |
| `causes` | the same, where both refuse and complain about other fields |
| `words` | case -> words of ours, where the recorded ones are Go syntax or say less |
| `warnings` | case -> why it is accepted with a warning |
| `defaults` | path -> why it is not compared in what was added |
| `conversion` | path -> why it is not compared in what the other version shows |
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kruise import kinds
from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.feature import Feature
from kruise.workloads.shared.admission import Admission
from tests.support.admission import Json
from tests.support.installed import DEFINITIONS

ROOT = Path(__file__).parents[1]
_REASONS = {
    "Required value": "FieldValueRequired",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
}
_COMPLAINT = re.compile(rf"(?:^|\[|, |: )\.?((?:spec|metadata)[\w.\[\]]*): ({'|'.join(_REASONS)})")
_REPEATED = re.compile(r"<(\d+) times a>")
_GO_VALUES = (
    (re.compile(r'intstr\.IntOrString\{Type:0, IntVal:(-?\d+), StrVal:""\}'), r"\1"),
    (re.compile(r'intstr\.IntOrString\{Type:1, IntVal:0, StrVal:("[^"]*")\}'), r"\1"),
    (re.compile(r"(?:map\[string\]string|v1\.LabelSelector)\{(MatchLabels:[^}]*)?\}"), "{}"),
    (re.compile(r"map\[string\]string\(nil\)"), "{}"),
    (re.compile(r"map\[string\]string(\{[^}]*\})"), r"\1"),
    (re.compile(r"\[\]v1\.PodReadinessGate\(nil\)"), "[]"),
)


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The recordings of one kind."""

    name: str
    """Of its folder."""
    room: str = "workloads"

    def __str__(self) -> str:
        return self.name

    def _load(self, name: str) -> Any:
        path = ROOT / self.room / self.name / "data" / f"{name}.yaml"
        return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None

    @functools.cached_property
    def admission(self) -> Admission[Any]:
        found: Admission[Any] = importlib.import_module(f"kruise.{self.room}.{self.name}.admission").ADMISSION
        return found

    @functools.cached_property
    def feature(self) -> Feature:
        """What the kind brings to the manager; before it has a controller, its admission and conversion."""
        group, kind = self.admission.convert.group, self.admission.convert.kind
        known = {(one["spec"]["group"], one["spec"]["names"]["kind"]): one for one in DEFINITIONS.values()}
        return kinds.feature_of(group, kind) or Feature(
            name=self.name,
            definitions=(known[group, kind],),
            webhooks=self.admission.webhooks,
            conversions=(self.admission.conversion,),
        )

    def resource(self, version: str) -> Resource[Any]:
        convert = self.admission.convert
        return Resource(convert.group, version, f"{self.name}s", convert.kind, True, PartialObject)

    @property
    def kind(self) -> str:
        return self.admission.convert.kind

    @functools.cached_property
    def differences(self) -> Mapping[str, Mapping[Any, Any]]:
        return self._load("differences") or {}

    def different(self, key: str) -> Mapping[Any, Any]:
        return self.differences.get(key) or {}

    @functools.cached_property
    def defaults(self) -> list[Json]:
        return self._load("defaults") or []

    @functools.cached_property
    def gated_defaults(self) -> list[Json]:
        return self._load("defaults-gated") or []

    @functools.cached_property
    def bases(self) -> Mapping[str, Json]:
        return self._load("validation")["bases"]

    @functools.cached_property
    def verdicts(self) -> list[Json]:
        return self._load("validation")["cases"]

    @functools.cached_property
    def subresources(self) -> list[Json]:
        return (self._load("validation-2") or {"cases": []})["cases"]

    @functools.cached_property
    def protection(self) -> list[Json]:
        return (self._load("validation-gated") or {"cases": []})["cases"]

    @functools.cached_property
    def conversions(self) -> list[Json]:
        return (self._load("conversion") or {"cases": []})["cases"]

    def head(self, version: str) -> Json:
        return {"apiVersion": f"{self.admission.convert.group}/{version}", "kind": self.kind}

    def base(self, name: str) -> Json:
        base = self.bases[name]
        return {**self.head(base["version"]), "metadata": base["metadata"], "spec": base["spec"]}

    def base_of(self, version: str) -> Json:
        """The first one of that version."""
        return self.base(next(name for name, base in self.bases.items() if base["version"] == version))

    def with_names(self, value: Any, names: Mapping[str, str] | None = None) -> Any:
        text = _REPEATED.sub(lambda found: "a" * int(found[1]), json.dumps(value))
        for placeholder, name in {**self.different("names"), **(names or {})}.items():
            text = text.replace(placeholder, name)
        return json.loads(text)

    def causes(self, case: Json) -> set[tuple[str, str]]:
        """Field and reason of everything that is to be complained about."""
        for key in ("refused", "causes"):
            if case["case"] in self.different(key):
                return {(field, reason) for field, reason in self.different(key)[case["case"]]["causes"]}
        fields = self.different("fields")
        found = _COMPLAINT.findall(case["message"])
        return {(fields.get(field, field), _REASONS[words]) for field, words in found}

    def words(self, case: Json, names: Mapping[str, str] | None = None) -> str:
        """What is to be said, without who says it; nothing where other fields are complained about."""
        if any(case["case"] in self.different(key) for key in ("refused", "causes")):
            return ""
        if case["case"] in self.different("words"):
            return str(self.with_names(self.different("words")[case["case"]], names))
        if "denied the request" not in case["message"]:
            return ""  # the API server itself said it
        text = str(self.with_names(recorded_words(case["message"]), names))
        for field, ours in self.different("fields").items():
            text = text.replace(field, ours)
        return text

    def is_accepted(self, case: Json) -> bool:
        name = case["case"]
        return bool(case["accepted"] and name not in self.different("refused")) or name in self.different("accepted")

    def code(self, case: Json) -> int:
        return (
            422
            if case["case"] in self.different("refused")
            else self.different("codes").get(case["code"], case["code"])
        )


KINDS = [
    Recorded(path.parents[1].name, path.parents[2].name) for path in sorted(ROOT.glob("*/*/data/differences.yaml"))
]


def case_id(case: Json) -> str:
    return f"{case.get('version', case.get('created', ''))} {case.get('op', 'create')}: {case['case']}"


def recorded_words(message: str) -> str:
    """The complaints in a recorded message, without who makes them and without Go syntax."""
    words = message.partition("denied the request: ")[2] or message.partition("is invalid: ")[2]
    words = words.strip("[]").removeprefix(".")
    for pattern, plain in _GO_VALUES:
        words = pattern.sub(plain, words)
    return words


def changes(before: Any, after: Any) -> Any:
    """What was added or changed, in the form of the recording; None if nothing."""
    if isinstance(before, dict) and isinstance(after, dict):
        new = {name: value for name, value in after.items() if name not in before}
        inner = {name: changes(before[name], value) for name, value in after.items() if name in before}
        return {**{name: part for name, part in inner.items() if part is not None}, **new} or None
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        parts = {f"[{i}]": changes(one, other) for i, (one, other) in enumerate(zip(before, after, strict=True))}
        return {place: part for place, part in parts.items() if part is not None} or None
    return None if before == after else after


def missing(before: Any, after: Any, path: str = "") -> list[str]:
    """Paths of what is there before and not after."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    found = []
    for name, value in before.items():
        where = f"{path}.{name}" if path else name
        found += missing(value, after[name], where) if name in after else [where]
    return sorted(found)


def without(document: Any, paths: Mapping[str, str]) -> Any:
    """The document less some paths; parts that are empty then are gone, too. None if nothing is left."""
    result = json.loads(json.dumps(document))
    for path in paths:
        _drop(result, path.split("."))
    return result or None


def _drop(holder: Any, path: list[str]) -> None:
    name = next(
        (name for name in ((".").join(path[:n]) for n in range(len(path), 0, -1)) if name in (holder or {})), ""
    )
    if not name:
        return
    rest = path[name.count(".") + 1 :]
    if rest:
        _drop(holder[name], rest)
        if not holder[name]:
            del holder[name]
    else:
        del holder[name]
