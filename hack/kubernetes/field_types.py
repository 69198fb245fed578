"""Write `src/kruise/local/fields/types.json`: the types that decide who owns which field of a native object.

    python hack/kubernetes/field_types.py DIRECTORY

DIRECTORY holds the OpenAPI v3 documents that a Kubernetes API server publishes under `/openapi/v3`, as Kubernetes'
own source has them in `api/openapi-spec/v3`. The same documents give the same file.

A type reference is a word: `n`, `s`, `b`, `u` are numbers, texts, booleans and scalars of any sort; `?` is a value that
is owned whole, `*` one whose type is seen from its content; `@name` is a type of the table and `@!name` the same, owned
whole; `[]T` is a list that is owned whole, `[=]T` a set and `[a,b]T` a list whose elements are known by their fields
`a` and `b`; `{}T` is a map and `{!}T` a map that is owned whole.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "src/kruise/local/fields/types.json"
KINDS = ROOT / "src/kruise/api/core/table.json"
PREFIXES = (
    ("io.k8s.api.", ""),
    ("io.k8s.apimachinery.pkg.apis.meta.", "meta."),
    ("io.k8s.apimachinery.pkg.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
)
WHOLE = {"io.k8s.apimachinery.pkg.api.resource.Quantity": "u", "io.k8s.apimachinery.pkg.runtime.RawExtension": "?"}
SCALARS = {"integer": "n", "number": "n", "boolean": "b"}


def short(name: str) -> str:
    for prefix, instead in PREFIXES:
        if name.startswith(prefix):
            return instead + name.removeprefix(prefix)
    return name


def reference(schema: dict[str, Any]) -> str:
    target = schema.get("$ref") or (schema["allOf"][0].get("$ref") if len(schema.get("allOf", ())) == 1 else None)
    if target:
        mark = "!" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        return f"@{mark}{short(target.rpartition('/')[2])}"
    kind = schema.get("type", "")
    if kind == "array":
        return list_mark(schema) + reference(schema["items"])
    if kind == "object":
        if schema.get("properties"):
            raise SystemExit("an object with properties stands inside another one: not known in native kinds")
        return map_mark(schema) + element(schema)
    if kind == "string":
        return "s" if schema.get("format", "") in ("", "byte") else "u"
    return SCALARS.get(kind, "*")


def list_mark(schema: dict[str, Any]) -> str:
    kind = schema.get("x-kubernetes-list-type")
    if kind is None and schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return f"[{key}]" if key else "[=]"
    if kind == "map":
        return f"[{','.join(schema['x-kubernetes-list-map-keys'])}]"
    return "[=]" if kind == "set" else "[]"


def map_mark(schema: dict[str, Any]) -> str:
    return "{!}" if schema.get("x-kubernetes-map-type") == "atomic" else "{}"


def element(schema: dict[str, Any]) -> str:
    more = schema.get("additionalProperties")
    return reference(more) if isinstance(more, dict) else "*"


def definition(name: str, schema: dict[str, Any]) -> Any:
    if name in WHOLE:
        return WHOLE[name]
    if not schema.get("properties"):
        return reference(schema)
    fields = {field: reference(value) for field, value in sorted(schema["properties"].items())}
    entry: dict[str, Any] = {"fields": fields}
    if schema.get("x-kubernetes-map-type") == "atomic":
        entry["whole"] = True
    given = {field: value["default"] for field, value in schema["properties"].items() if "default" in value}
    if given:
        entry["defaults"] = dict(sorted(given.items()))
    return entry


def keep_key_defaults(types: dict[str, Any]) -> None:
    """A default matters only where the field tells the elements of a list apart."""
    keys: dict[str, set[str]] = {}
    for entry in types.values():
        for text in entry["fields"].values() if isinstance(entry, dict) else [entry]:
            marks, _, name = text.partition("]@")
            keys.setdefault(name, set()).update(marks.rpartition("[")[2].split(","))
    for name, entry in types.items():
        if isinstance(entry, dict) and "defaults" in entry:
            kept = {field: value for field, value in entry.pop("defaults").items() if field in keys.get(name, ())}
            if kept:
                entry["defaults"] = kept


def used(entry: Any) -> set[str]:
    texts = entry["fields"].values() if isinstance(entry, dict) else [entry]
    return {text.partition("@")[2].removeprefix("!") for text in texts if "@" in text}


def main() -> None:
    wanted = json.loads(KINDS.read_text())["kinds"]
    schemas: dict[str, Any] = {}
    for document in sorted(Path(sys.argv[1]).glob("*_openapi.json")):
        schemas |= json.loads(document.read_text()).get("components", {}).get("schemas", {})
    everything = {short(name): definition(name, schema) for name, schema in schemas.items()}
    keep_key_defaults(everything)
    kinds: dict[str, str] = {}
    for name, schema in schemas.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            known = "/".join(part for part in (kind["group"], kind["version"], kind["kind"]) if part)
            if known in wanted and "metadata" in schema.get("properties", {}):
                kinds[known] = short(name)
    reached: set[str] = set()
    waiting = {*kinds.values(), "meta.v1.ObjectMeta"}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= used(everything[name]) - reached
    lines = [f"{json.dumps(name)}:{json.dumps(everything[name], separators=(',', ':'))}" for name in sorted(reached)]
    text = '{"kinds":' + json.dumps(kinds, sort_keys=True, indent=0) + ',\n"types":{\n' + ",\n".join(lines) + "}}\n"
    OUTPUT.write_text(text)


if __name__ == "__main__":
    main()
