"""Whether the cluster has the kinds of manifests, and what somebody may have meant where it has not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from kruise.cli.session import Session
from kruise.machinery.client.discovery import Discovery
from kruise.machinery.client.errors import ClientError
from kruise.machinery.documents import Json, value_at

_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")


class ServedKinds:
    """Asked once, and only when somebody wants to know."""

    def __init__(self, session: Session, documents: Iterable[Json]) -> None:
        self._session = session
        self._brought = {kind for one in documents for kind in _defined(one)}
        """Kinds that the files define themselves."""
        self._found: Discovery | None = None

    async def problem(self, document: Json) -> str:
        """Why an API server would not take an object of this kind at all; empty: it would, or nobody can tell."""
        version, kind = str(document["apiVersion"]), str(document["kind"])
        group = version.rpartition("/")[0]
        if (group, kind) in self._brought:
            return ""
        try:
            found = self._found = self._found or await self._session.client.discover()
        except ClientError:
            return ""  # no right to ask, for one: then it is only named as not looked at
        kinds = _by_version(found)
        if kind in kinds.get(version, ()) or version in found.unreachable:
            return ""
        return f"no such kind: the cluster serves no {kind} in {version}{_meant(version, kind, kinds)}"


def _by_version(found: Discovery) -> Mapping[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for one in found.resources:
        kinds.setdefault(one.resource.api_version, []).append(one.kind)
    return kinds


def _meant(version: str, kind: str, kinds: Mapping[str, list[str]]) -> str:
    by_lower = {one.lower(): one for one in kinds.get(version, ())}
    near = difflib.get_close_matches(kind.lower(), by_lower, n=1)
    if near:
        return f"; did you mean {by_lower[near[0]]}?"
    elsewhere = [other for other, there in kinds.items() if kind in there]
    return f"; did you mean apiVersion: {elsewhere[0]}?" if elsewhere else ""


def _defined(document: Json) -> Iterable[tuple[str, str]]:
    group = str(document.get("apiVersion", "")).rpartition("/")[0]
    if (group, document.get("kind")) == _DEFINITION:
        yield (
            str(value_at(document, ("spec", "group"), "")),
            str(value_at(document, ("spec", "names", "kind"), "")),
        )
