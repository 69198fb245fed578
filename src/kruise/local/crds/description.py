"""From a definition to the descriptions by which the core serves its kind, one for each version."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from kruise.api.core.field_errors import FieldError, go_quote
from kruise.local.apicore import errors, owners, warnings
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import Check, KindDescription, ObjectSubresource, Subresource
from kruise.local.apicore.storage import Storage
from kruise.local.crds import jsonpath, versions
from kruise.local.crds.columns import columns
from kruise.local.crds.numbers import go_number, whole
from kruise.local.crds.scale import Scale
from kruise.local.crds.schema import schema_of

Converter = Callable[[Sequence[Json], str], Awaitable[list[Json]]]
Convert = Callable[[Json, Sequence[Json], str], Awaitable[list[Json]]]
"""(definition, objects, version) -> the objects in that version."""

_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


class Version:
    """One version of a kind: its schema and what else it has of its own."""

    def __init__(self, definition: Json, source: Json) -> None:
        self.name: str = source["name"]
        self.source: Mapping[str, Any] = (source.get("schema") or {}).get("openAPIV3Schema") or _ANYTHING
        self.schema = schema_of(self.source)
        parts = source.get("subresources") or {}
        self.has_status = parts.get("status") is not None
        self.scale = Scale(parts["scale"]) if parts.get("scale") is not None else None
        self.columns = columns(source.get("additionalPrinterColumns") or ())
        self.selectable = {
            field["jsonPath"].removeprefix("."): _reader(field["jsonPath"])
            for field in source.get("selectableFields") or ()
        }
        self._deprecation = _deprecation(definition, source)

    def default(self, obj: Json) -> Json:
        if self._deprecation:
            warnings.warn(self._deprecation)
        return self.schema.shape(obj)

    def validate(self, new: Json, old: Json | None) -> Sequence[FieldError]:
        if "finalizers" in new["metadata"]:
            _warn_of_finalizers(new, old)
        found = self.schema.problems(new, old)
        return found if self.scale is None else [*found, *self.scale.problems(new)]

    def validate_status(self, new: Json, old: Json | None) -> Sequence[FieldError]:
        found = self.schema.status_problems(new, old or {})
        return found if self.scale is None else [*found, *self.scale.problems(new, spec=False)]

    def subresources(self) -> dict[str, Subresource]:
        found: dict[str, Subresource] = {}
        if self.has_status:
            check: Check = self.validate_status
            found["status"] = ObjectSubresource(prepare=_with_status_of, validate=check)
        if self.scale is not None:
            found["scale"] = self.scale.view()
        return found


_ANYTHING: Final[Json] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _with_status_of(new: Json, old: Json) -> Json:
    """A write of the status changes nothing else, not even the metadata."""
    result = dict(old)
    if "status" in new:
        result["status"] = new["status"]
    else:
        result.pop("status", None)
    return result


def _reader(path: str) -> Callable[[Json], str]:
    find = jsonpath.parse(path)

    def read(obj: Json) -> str:
        found = find(obj)
        value = found[0] if found else None
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return go_number(value) if isinstance(value, int | float) else str(value)

    return read


def _deprecation(definition: Json, source: Json) -> str:
    if not source.get("deprecated"):
        return ""
    if source.get("deprecationWarning") is not None:
        return str(source["deprecationWarning"])
    spec = definition["spec"]
    group, kind, name = spec["group"], spec["names"]["kind"], source["name"]
    newer = versions.ordered(
        [
            other["name"]
            for other in spec["versions"]
            if other.get("served")
            and not other.get("deprecated")
            and versions.priority(other["name"]) > versions.priority(name)
        ]
    )
    advice = f"; use {group}/{newer[0]} {kind}" if newer else ""
    return f"{group}/{name} {kind} is deprecated{advice}"


def _warn_of_finalizers(new: Json, old: Json | None) -> None:
    known = old["metadata"].get("finalizers", ()) if old is not None else ()
    for name in sorted(set(new["metadata"]["finalizers"]) - set(known)):
        if "/" in name or name in _STANDARD_FINALIZERS:
            continue
        what = "finalizer name including a path (/)" if "." in name else "finalizer name"
        text = f"prefer a domain-qualified {what} to avoid accidental conflicts with other finalizer writers"
        warnings.warn(f"metadata.finalizers: {go_quote(name)}: {text}")


class Family:
    """All versions of a kind, and the ways between them."""

    def __init__(self, definition: Json, convert: Convert | None, changed_at: int) -> None:
        """`changed_at` is the storage version up to which objects may have been stored by another schema."""
        spec = definition["spec"]
        self._definition = definition
        self._group: str = spec["group"]
        self._versions = {source["name"]: Version(definition, source) for source in spec["versions"]}
        self._storage = next(source["name"] for source in spec["versions"] if source.get("storage"))
        self._served = versions.ordered([source["name"] for source in spec["versions"] if source.get("served")])
        self._convert = convert
        self._by_webhook = (spec.get("conversion") or {}).get("strategy") == "Webhook"
        self._changed_at = changed_at
        self._refreshed: dict[str, tuple[Json, Json]] = {}

    def describe(self, *, terminating: bool) -> KindDescription:
        """The kind as the registry has it."""
        names, spec = self._definition["status"]["acceptedNames"], self._definition["spec"]
        several = len(self._versions) > 1
        base = KindDescription(
            group=self._group,
            versions=self._served,
            storage_version=self._storage,
            unserved=tuple(name for name in self._versions if name not in self._served),
            plural=names["plural"],
            kind=names["kind"],
            singular=names.get("singular", ""),
            list_kind=names.get("listKind", ""),
            namespaced=spec["scope"] == "Namespaced",
            custom=True,
            convert=self._in_version,
            converter=self._converted if self._by_webhook and several else None,
            field_converter=self._fields_converted if several else None,
            refresh=self._refresh if self._changed_at else None,
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            schema=self._source,
            prepare_create=self._refuse if terminating else _same,
            complete=_as_stored,
        )
        variants = {name: self._variant(base, self._versions[name]) for name in self._served}
        preferred = self._served[0] if self._served else self._storage
        main = variants.get(preferred) or self._variant(base, self._versions[preferred])
        return dataclasses.replace(main, variants=variants) if len(variants) > 1 else main

    def _variant(self, base: KindDescription, version: Version) -> KindDescription:
        return dataclasses.replace(
            base,
            has_status=version.has_status,
            subresources=version.subresources(),
            default=version.default,
            validate=version.validate,
            selectable_fields=version.selectable,
            columns=version.columns,
        )

    def _source(self, version: str) -> Mapping[str, Any] | None:
        found = self._versions.get(version)
        return None if found is None else found.source

    def _refuse(self, obj: Json) -> Json:
        names = self._definition["status"]["acceptedNames"]
        text = "create not allowed while custom resource definition is terminating"
        raise errors.forbidden(self._group, names["plural"], obj["metadata"].get("name", ""), text)

    def _in_version(self, obj: Json, version: str) -> Json:
        """Without a webhook only the version's name changes, and what the version does not know goes."""
        return self._shaped({**obj, "apiVersion": f"{self._group}/{version}"}, version)

    def _shaped(self, obj: Json, version: str) -> Json:
        # What is stored gets the defaults of the storage version: a real server adds them when it reads.
        schema = self._versions[version].schema
        return schema.shape(obj) if version == self._storage else schema.prune(obj)

    def _refresh(self, obj: Json) -> Json:
        """An object from the time before the schema changed, as it would be stored now."""
        about = obj["metadata"]
        if int(about.get("resourceVersion", self._changed_at + 1)) > self._changed_at:
            return obj
        known = self._refreshed.get(about["uid"])
        if known is not None and known[0] is obj:
            return known[1]
        version = self._versions.get(obj["apiVersion"].rpartition("/")[2])
        fresh = obj if version is None else version.schema.shape(obj)
        if len(self._refreshed) >= _MAX_REFRESHED:
            self._refreshed.clear()
        self._refreshed[about["uid"]] = (obj, fresh)
        return fresh

    async def _converted(self, objects: Sequence[Json], version: str) -> list[Json]:
        wanted = f"{self._group}/{version}"
        ready = [self._refresh(obj) if self._changed_at else obj for obj in objects]
        others = [obj for obj in ready if obj["apiVersion"] != wanted]
        if not others:
            return ready
        answers = await self._asked(others, version)
        results = iter(
            owners.owned(self._shaped(answer, version), owners.held(obj))
            for obj, answer in zip(others, answers, strict=True)
        )
        return [obj if obj["apiVersion"] == wanted else next(results) for obj in ready]

    async def _fields_converted(self, objects: Sequence[Json], version: str) -> list[Json]:
        if self._by_webhook:
            answers = await self._asked(objects, version)
        else:
            answers = [{**obj, "apiVersion": f"{self._group}/{version}"} for obj in objects]
        return [self._versions[version].schema.prune(answer) for answer in answers]

    async def _asked(self, others: Sequence[Json], version: str) -> list[Json]:
        if self._convert is None:
            kind = f"{others[0]['apiVersion']}, Kind={others[0]['kind']}"
            raise errors.plain_failure(f"conversion webhook for {kind} failed: this server calls no webhooks")
        return await self._convert(self._definition, [owners.bare(obj) for obj in others], version)


_MAX_REFRESHED: Final = 50_000


def _same(obj: Json) -> Json:
    return obj


def _as_stored(storage: Storage, new: Json, old: Json | None, dry_run: bool) -> Json:
    made: Json = whole(new)
    return made
