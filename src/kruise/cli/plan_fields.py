"""The fields that a kind has: what a manifest or `--set` may name, and which of them hold text. Pure."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core import schema
from kruise.cli.plan_edits import Assignment, Segment
from kruise.local.apicore import errors
from kruise.local.apicore.kinds import KindDescription
from kruise.local.crds.description import Version
from kruise.local.openapi.fields import unknown_fields
from kruise.machinery.documents import Json, value_at
from kruise.verbs.errors import UsageError, VerbError

_TEMPLATE = ("spec", "template")
_POD_TEMPLATES = KindDescription(plural="podtemplates", kind="PodTemplate")
_METADATA = "meta.ObjectMeta"
_TEXT = "string"

Place = Mapping[str, Any] | str
"""A part of the definition's schema, or a type of the table of Kubernetes' own types."""


class Fields:
    """The fields of one version of a kind, by its CustomResourceDefinition. Pod templates in it are Kubernetes' own."""

    def __init__(self, definition: Mapping[str, Any], version: str) -> None:
        spec = definition["spec"]
        schemas = {one["name"]: one["schema"]["openAPIV3Schema"] for one in spec["versions"] if one["served"]}
        self.kind = str(spec["names"]["kind"])
        if version not in schemas:
            raise UsageError(
                f"{self.kind} has no version {spec['group']}/{version}; its versions are {', '.join(sorted(schemas))}"
            )
        self._definition = definition
        self._version = version
        self._root: Mapping[str, Any] = schemas[version]
        self._description = KindDescription(
            group=spec["group"],
            versions=tuple(schemas),
            plural=spec["names"]["plural"],
            kind=self.kind,
            custom=True,
            schema=schemas.get,
        )

    def check(self, document: Json) -> None:
        """Refuse fields that the kind does not have, with the words of an API server that kubectl asks to be strict."""
        unknown = unknown_fields(self._description, self._version, document)
        if unknown:
            complaints = ", ".join(f'unknown field "{path}"' for path in unknown)
            raise VerbError(
                f'{self.kind} in version "{self._version}" cannot be handled as a {self.kind}: '
                f"strict decoding error: {complaints}"
            )

    def refusal(self, name: str, document: Json, live: Json | None) -> str:
        """What an API server finds wrong with the object by the definition alone, in its words; empty: nothing."""
        [source] = [one for one in self._definition["spec"]["versions"] if one["name"] == self._version]
        version = Version(dict(self._definition), source)
        problems = version.validate(document, live)
        if not problems:
            return ""
        return str(errors.invalid_object(self._description.group, self.kind, name, problems).status["message"])

    def read(self, assignment: Assignment) -> Assignment:
        """The assignment with a value as the field takes it. Refuses a field that is not there."""
        self._check_path(assignment)
        is_scalar = isinstance(assignment.value, bool | int | float)
        if is_scalar and self._place(assignment.path) == _TEXT:
            return dataclasses.replace(assignment, value=assignment.text)
        return assignment

    def _check_path(self, assignment: Assignment) -> None:
        brought: Any = assignment.value
        for segment in reversed(assignment.path):
            brought = [brought] if isinstance(segment, int) else {segment: brought}
        unknown = unknown_fields(self._description, self._version, brought)
        template = value_at(brought, _TEMPLATE)
        if isinstance(template, dict):
            inside = unknown_fields(_POD_TEMPLATES, "v1", {"template": template})
            unknown += [f"spec.{path}" for path in inside]
        if not unknown:
            return
        wrong = unknown[0]
        written = "".join(f"[{segment}]" if isinstance(segment, int) else f".{segment}" for segment in assignment.path)
        *parents, name = wrong.replace("[0]", "").split(".")
        known = self._names(self._place(parents))
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known there: {', '.join(sorted(known))}" if known else ""
        # Where the wrong field ends what was written, that is named as it was: with the positions in lists.
        named = str(assignment) if written.endswith(f".{name}") else wrong
        raise UsageError(f"--set: there is no field {named}{hint}")

    def _place(self, path: Sequence[Segment]) -> Place | None:
        """What a path leads to; None where everything is allowed."""
        place: Place | None = self._root
        names = [segment for segment in path if isinstance(segment, str)]
        for depth, name in enumerate(names, 1):
            if tuple(names[:depth]) == _TEMPLATE:
                place = schema.POD_TEMPLATE_SPEC
            elif names[:depth] == ["metadata"]:
                place = _METADATA
            else:
                place = _below(place, name)
        if isinstance(place, Mapping):
            return _TEXT if place.get("type") == "string" else place
        return place

    @staticmethod
    def _names(place: Place | None) -> list[str]:
        if isinstance(place, Mapping):
            return list(place.get("properties") or ())
        if place is not None and schema.is_struct(place):
            return list(schema.struct_type(place).by_name)
        return []


def _below(place: Place | None, name: str) -> Place | None:
    if isinstance(place, Mapping):
        place = place.get("items") or place
        more = place.get("additionalProperties")
        found = (place.get("properties") or {}).get(name) or (more if isinstance(more, Mapping) else None)
        return found.get("items") or found if found is not None else None
    if place is None:
        return None
    if place.startswith(schema.MAP):
        return place.removeprefix(schema.MAP)
    if not schema.is_struct(place):
        return None
    field = schema.struct_type(place).by_name.get(name)
    return None if field is None else field.type.removeprefix(schema.LIST)
