"""Containers of a template, chosen by a name that may hold wildcards. Init containers count, behind the others."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

from kruise.faces.face import Face
from kruise.machinery import documents
from kruise.machinery.documents import Json, name_of, value_at
from kruise.verbs.errors import VerbError
from kruise.verbs.lookup import pod_spec

EVERY = "*"
_FIELDS = ("containers", "initContainers")


def listed(spec: Json) -> list[Json]:
    return [container for field in _FIELDS for container in spec.get(field) or ()]


def names(kind: Face, document: Json) -> list[str]:
    spec: dict[str, Any] = value_at(document, pod_spec(kind, document), {})
    return [str(container.get("name")) for container in listed(spec)]


def chosen(kind: Face, document: Json, pattern: str) -> list[str]:
    """The names that a pattern matches; an error that lists the containers where it matches none."""
    known = names(kind, document)
    found = [name for name in known if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise VerbError(
            f'unable to find container named "{pattern}" in {kind.named(name_of(document))}; '
            f"its containers are {', '.join(known) or 'none'}"
        )
    return found


def edited(kind: Face, document: Json, pattern: str, edit: Callable[[Json], None]) -> Json:
    """A copy in which `edit` has changed each of the chosen containers."""
    wanted = set(chosen(kind, document, pattern))

    def each(spec: Json) -> None:
        for container in listed(spec):
            if container.get("name") in wanted:
                edit(container)

    return documents.edited(document, pod_spec(kind, document), each)
