"""Definitions and custom objects, good and bad. Local tests use them, and a real server answers the same requests."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]

GROUP = "crds.kruise.io"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
RULES = "x-kubernetes-validations"


def definition(
    plural: str, kind: str, *versions: Json, scope: str = "Namespaced", names: Json | None = None, **spec: Any
) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **(names or {})},
            "versions": list(versions),
            **spec,
        },
    }


def version(schema: Json, name: str = "v1", *, storage: bool = True, served: bool = True, **more: Any) -> Json:
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def with_spec(properties: Json, **more: Any) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **more}}}


STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}
OBJECT: Json = {"type": "object"}
ANYTHING: Json = {"type": "object", PRESERVE: True}

# A kind that has everything in it.
RICH_SCHEMA: Json = {
    "type": "object",
    "description": "Everything that a schema can say.",
    "required": ["spec"],
    "properties": {
        "apiVersion": STRING,
        "kind": STRING,
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 100},
                "defaulted": {"type": "integer", "default": 3},
                "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "maximum": 1.5},
                "step": {"type": "integer", "multipleOf": 5},
                "quarter": {"type": "number", "multipleOf": 0.25},
                "below": {"type": "integer", "maximum": 10, "exclusiveMaximum": True},
                "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
                "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
                "level": {"type": "integer", "enum": [1, 2, 3]},
                "flag": {"type": "boolean"},
                "nullable": {"type": "string", "nullable": True},
                "nullableDefault": {"type": "string", "nullable": True, "default": "x"},
                "plainDefault": {"type": "string", "default": "y"},
                "when": {"type": "string", "format": "date-time"},
                "day": {"type": "string", "format": "date"},
                "wait": {"type": "string", "format": "duration"},
                "secret": {"type": "string", "format": "byte"},
                "address": {"type": "string", "format": "ipv4"},
                "address6": {"type": "string", "format": "ipv6"},
                "range": {"type": "string", "format": "cidr"},
                "id": {"type": "string", "format": "uuid"},
                "mail": {"type": "string", "format": "email"},
                "host": {"type": "string", "format": "hostname"},
                "link": {"type": "string", "format": "uri"},
                "mac": {"type": "string", "format": "mac"},
                "short": {"type": "string", "format": "k8s-short-name"},
                "odd": {"type": "string", "format": "never-heard-of"},
                "partition": {INT_OR_STRING: True, "anyOf": [INTEGER, STRING], "default": 0},
                "limit": {INT_OR_STRING: True, "pattern": "^[0-9]+%?$", "anyOf": [INTEGER, STRING]},
                "plainEither": {INT_OR_STRING: True},
                "tags": {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3, LIST_TYPE: "set"},
                "atoms": {"type": "array", "items": INTEGER, LIST_TYPE: "atomic"},
                "ports": {
                    "type": "array",
                    LIST_TYPE: "map",
                    LIST_KEYS: ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer", "minimum": 1},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": STRING,
                        },
                    },
                },
                "containers": {
                    "type": "array",
                    LIST_TYPE: "map",
                    LIST_KEYS: ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string", "minLength": 1}, "image": STRING},
                    },
                },
                "labels": {"type": "object", "additionalProperties": STRING, "maxProperties": 2, "minProperties": 1},
                "counts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
                "nested": {
                    "type": "object",
                    "default": {},
                    "properties": {
                        "inner": {"type": "string", "default": "deep"},
                        "more": {"type": "object", "properties": {"leaf": {"type": "boolean", "default": True}}},
                    },
                },
                "free": {"type": "object", PRESERVE: True, "properties": {"known": {"type": "integer"}}},
                "anything": {PRESERVE: True},
                "template": {"type": "object", PRESERVE: True},
                "embedded": {"type": "object", EMBEDDED: True, PRESERVE: True},
                "shaped": {
                    "type": "object",
                    EMBEDDED: True,
                    "properties": {
                        "spec": {"type": "object", "properties": {"a": INTEGER}},
                        "metadata": {"type": "object"},
                    },
                },
                "either": {
                    "type": "object",
                    "properties": {"a": STRING, "b": STRING},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
                "some": {
                    "type": "object",
                    "properties": {"a": INTEGER, "b": INTEGER},
                    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
                "every": {"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 4}]},
                "unlike": {"type": "string", "not": {"pattern": "^bad"}},
                "atomic": {"type": "object", MAP_TYPE: "atomic", "properties": {"a": STRING}},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "minimum": 0},
                "selector": STRING,
                "phase": {"type": "string", "enum": ["Up", "Down"]},
                "conditions": {
                    "type": "array",
                    LIST_TYPE: "map",
                    LIST_KEYS: ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type", "status"],
                        "properties": {"type": STRING, "status": STRING, "at": {"type": "string"}},
                    },
                },
            },
        },
    },
}

COLUMNS: list[Json] = [
    {"name": "Size", "type": "integer", "format": "int32", "jsonPath": ".spec.size", "description": "How many"},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
    {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio"},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
    {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.crr\\.apps\\.kruise\\.io/node-name"},
    {"name": "First", "type": "string", "jsonPath": ".spec.containers[0].name"},
    {"name": "All", "type": "string", "jsonPath": ".spec.containers[*].name"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Labels", "type": "string", "jsonPath": ".spec.labels"},
    {"name": "Missing", "type": "string", "jsonPath": ".spec.nothing.at.all"},
    {"name": "Wrong", "type": "integer", "jsonPath": ".spec.mode"},
    {"name": "Partition", "type": "string", "jsonPath": ".spec.partition", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]

RICH = definition(
    "riches",
    "Rich",
    version(
        RICH_SCHEMA,
        subresources={
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        additionalPrinterColumns=COLUMNS,
        selectableFields=[{"jsonPath": ".spec.mode"}, {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.flag"}],
    ),
    names={"shortNames": ["ri"], "categories": ["all"]},
)

PLAIN = definition("plains", "Plain", version(with_spec({"a": STRING, "b": {"type": "integer", "default": 1}})))


def rich(spec: Any = None, *, name: str = "a", **more: Any) -> Json:
    body: Json = {"apiVersion": f"{GROUP}/v1", "kind": "Rich", "metadata": {"name": name}}
    if spec is not None:
        body["spec"] = {"size": 1, **spec} if isinstance(spec, dict) else spec
    return {**body, **more}


# Objects: the title and the spec. All of them are created; those that are refused say so.
OBJECTS: dict[str, Any] = {
    "the least": {},
    "unknown fields": {"strange": 1, "nested": {"odd": True, "more": {"x": 1}}},
    "nulls": {"defaulted": None, "nullable": None, "nullableDefault": None, "plainDefault": None, "flag": None},
    "null in a list": {"containers": [None]},
    "null in a map": {"counts": {"a": None, "b": 1}},
    "null object": {"nested": None},
    "nested defaults": {"nested": {"more": {}}},
    "size as text": {"size": "3"},
    "size as float": {"size": 2.0},
    "size with a fraction": {"size": 2.5},
    "size too small": {"size": 0},
    "size too large": {"size": 101},
    "size is null": {"size": None},
    "size is a list": {"size": [1]},
    "size is an object": {"size": {"a": 1}},
    "size is a flag": {"size": True},
    "ratio at the excluded bound": {"ratio": 0},
    "ratio fine": {"ratio": 0.5},
    "ratio whole": {"ratio": 1},
    "ratio too large": {"ratio": 1.75},
    "ratio as text": {"ratio": "0.5"},
    "not a multiple": {"step": 7},
    "a multiple": {"step": 15},
    "not a quarter": {"quarter": 0.3},
    "three quarters": {"quarter": 0.75},
    "at an excluded maximum": {"below": 10},
    "text too short": {"name": "a"},
    "text too long": {"name": "abcdef"},
    "text of umlauts": {"name": "äöü"},
    "text against the pattern": {"name": "AB"},
    "text is a number": {"name": 5},
    "not in the enum": {"mode": "Medium"},
    "number not in the enum": {"level": 7},
    "number in the enum": {"level": 2},
    "enum of the wrong type": {"mode": 1},
    "flag as text": {"flag": "true"},
    "not null": {"name": None},
    "date-time": {"when": "2020-02-03T04:05:06Z"},
    "date-time with a zone": {"when": "2020-02-03T04:05:06.789+01:00"},
    "no date-time": {"when": "yesterday"},
    "date-time as number": {"when": 5},
    "date-time as flag": {"when": True},
    "date-time as list": {"when": ["2020-02-03T04:05:06Z"]},
    "date": {"day": "2020-02-29"},
    "no date": {"day": "2021-02-29"},
    "duration": {"wait": "1h30m"},
    "duration in words": {"wait": "3 days"},
    "no duration": {"wait": "soon"},
    "base64": {"secret": "aGVsbG8="},
    "no base64": {"secret": "hello!"},
    "empty base64": {"secret": ""},
    "ipv4": {"address": "10.0.0.1"},
    "no ipv4": {"address": "10.0.0.256"},
    "ipv6": {"address6": "fe80::1"},
    "no ipv6": {"address6": "10.0.0.1"},
    "cidr": {"range": "10.0.0.0/8"},
    "no cidr": {"range": "10.0.0.0"},
    "uuid": {"id": "123e4567-E89B-12d3-a456-426614174000"},
    "no uuid": {"id": "123"},
    "email": {"mail": "a@example.com"},
    "no email": {"mail": "nobody"},
    "hostname": {"host": "example.com"},
    "no hostname": {"host": "-example"},
    "uri": {"link": "https://example.com/a?b=c"},
    "no uri": {"link": "example"},
    "mac": {"mac": "01:23:45:67:89:ab"},
    "no mac": {"mac": "01:23"},
    "short name": {"short": "my-name"},
    "no short name": {"short": "My.Name"},
    "a format that nobody checks": {"odd": "whatever"},
    "partition as percentage": {"partition": "50%"},
    "partition as number": {"partition": 3},
    "partition as flag": {"partition": True},
    "partition as fraction": {"partition": 0.5},
    "partition as object": {"partition": {"a": 1}},
    "limit as percentage": {"limit": "20%"},
    "limit as number": {"limit": 20},
    "limit as a word": {"limit": "many"},
    "either of two types": {"plainEither": "a"},
    "neither of two types": {"plainEither": [1]},
    "tags": {"tags": ["a", "b"]},
    "a tag twice": {"tags": ["a", "b", "a"]},
    "a tag three times": {"tags": ["a", "a", "a"]},
    "no tags": {"tags": []},
    "too many tags": {"tags": ["a", "b", "c", "d"]},
    "a tag is a number": {"tags": ["a", 1]},
    "tags are an object": {"tags": {"a": 1}},
    "atoms twice": {"atoms": [1, 1]},
    "ports": {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP", "strange": 1}]},
    "a port twice": {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]},
    "a port without its key": {"ports": [{"name": "x"}]},
    "a port that is none": {"ports": ["http"]},
    "a port too small": {"ports": [{"port": 0}]},
    "containers": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
    "a container twice": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
    "containers without names": {"containers": [{}, {}]},
    "labels": {"labels": {"a": "1", "b": "2"}},
    "too many labels": {"labels": {"a": "1", "b": "2", "c": "3"}},
    "too few labels": {"labels": {}},
    "a label is a number": {"labels": {"a": 1}},
    "a count below zero": {"counts": {"a": -1}},
    "free": {"free": {"known": 1, "unknown": {"deep": [1, None]}}},
    "free but wrong": {"free": {"known": "x", "unknown": 1}},
    "anything: a list": {"anything": [1, {"a": None}]},
    "anything: a text": {"anything": "x"},
    "a template": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x"}]}}},
    "an embedded object": {
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}}
    },
    "an embedded object without a kind": {"embedded": {"apiVersion": "v1"}},
    "an embedded object without anything": {"embedded": {}},
    "an embedded object with an odd kind": {"embedded": {"apiVersion": "v1", "kind": "no kind"}},
    "an embedded object with an empty kind": {"embedded": {"apiVersion": "", "kind": ""}},
    "an embedded object with an odd version": {"embedded": {"apiVersion": "a/b/c", "kind": "Pod"}},
    "embedded metadata": {
        "embedded": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"labels": {"a": "b"}, "strange": 1, "creationTimestamp": None, "finalizers": []},
        }
    },
    "embedded metadata with a bad label": {
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}
    },
    "embedded metadata with a bad name": {"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}},
    "embedded metadata of the wrong type": {
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}
    },
    "an embedded kind of the wrong type": {"embedded": {"apiVersion": "v1", "kind": 7}},
    "an embedded object with a shape": {
        "shaped": {"apiVersion": "v1", "kind": "X", "spec": {"a": 1, "b": 2}, "other": 1, "metadata": {"name": "n"}}
    },
    "one of two": {"either": {"a": "x"}},
    "both of two": {"either": {"a": "x", "b": "y"}},
    "none of two": {"either": {}},
    "some": {"some": {"a": 1}},
    "not even one": {"some": {}},
    "every": {"every": 3},
    "not every": {"every": 1},
    "like what it must not be": {"unlike": "bad one"},
    "unlike": {"unlike": "good one"},
    "an atomic map": {"atomic": {"a": "b", "c": "d"}},
    "several faults": {"size": 0, "mode": "X", "flag": 1, "name": "A", "ports": [{}]},
    "no spec at all": None,
    "spec is a list": [],
    "spec is null": "null",
}


def object_body(title: str, name: str) -> Json:
    spec = OBJECTS[title]
    if spec == "null":
        return rich(name=name, spec=None) | {"spec": None}
    return rich(spec, name=name)


# Definitions: the title and what is wrong or special about it.


def _changed(base: Json, *path: Any, value: Any) -> Json:
    """A copy with another value at a path; `...` takes it away."""
    made = copy.deepcopy(base)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return made


def _spec(*path: Any, value: Any) -> Json:
    return _changed(PLAIN, "spec", *path, value=value)


def _schema(schema: Json, **version_parts: Any) -> Json:
    return definition("plains", "Plain", version(schema, **version_parts))


def _field(schema: Json) -> Json:
    return _schema(with_spec({"x": schema}))


_WEBHOOK: Json = {"clientConfig": {"url": "https://example.com/convert"}, "conversionReviewVersions": ["v1"]}


def _converting(**changes: Any) -> Json:
    webhook = {name: value for name, value in {**_WEBHOOK, **changes}.items() if value is not None}
    return _spec("conversion", value={"strategy": "Webhook", "webhook": webhook})


def _scaled(**changes: Any) -> Json:
    scale = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b", **changes}
    scale = {name: value for name, value in scale.items() if value is not None}
    return _schema(with_spec({"a": INTEGER}), subresources={"scale": scale, "status": {}})


def _column(**column: Any) -> Json:
    return _schema(with_spec({"a": STRING}), additionalPrinterColumns=[column])


def _selectable(*paths: str, schema: Json | None = None) -> Json:
    source = schema or with_spec({"a": STRING, "b": ANYTHING, "c": {"type": "array", "items": STRING}})
    return _schema(source, selectableFields=[{"jsonPath": path} for path in paths])


_TWO = with_spec({"a": STRING}), with_spec({"a": INTEGER})

DEFINITIONS: dict[str, Json] = {
    "plain": PLAIN,
    "rich": RICH,
    "all names": _spec(
        "names",
        value={
            "plural": "plains",
            "singular": "plain",
            "kind": "Plain",
            "listKind": "Plains",
            "shortNames": ["pl", "pln"],
            "categories": ["all", "kruise"],
        },
    ),
    "no group": _spec("group", value=...),
    "group without a dot": _changed(_spec("group", value="nodots"), "metadata", "name", value="plains.nodots"),
    "bad group": _changed(_spec("group", value="Bad_Group.io"), "metadata", "name", value="plains.bad"),
    "name of something else": _changed(PLAIN, "metadata", "name", value=f"others.{GROUP}"),
    "no scope": _spec("scope", value=...),
    "odd scope": _spec("scope", value="Galaxy"),
    "cluster scope": _spec("scope", value="Cluster"),
    "no plural": _spec("names", "plural", value=...),
    "upper case plural": _changed(
        _spec("names", "plural", value="Plains"), "metadata", "name", value=f"Plains.{GROUP}"
    ),
    "no kind": _spec("names", "kind", value=...),
    "odd kind": _spec("names", "kind", value="no kind"),
    "kind and list kind alike": _spec("names", "listKind", value="Plain"),
    "odd short name": _spec("names", "shortNames", value=["ok", "Not_ok"]),
    "odd category": _spec("names", "categories", value=["Not ok"]),
    "odd singular": _spec("names", "singular", value="Plain"),
    "no versions": _spec("versions", value=[]),
    "no storage version": _spec("versions", 0, "storage", value=False),
    "two storage versions": definition("plains", "Plain", version(_TWO[0]), version(_TWO[1], "v2")),
    "a version twice": definition("plains", "Plain", version(_TWO[0]), version(_TWO[1], storage=False)),
    "odd version name": _spec("versions", 0, "name", value="V1"),
    "storage version not served": _spec("versions", 0, "served", value=False),
    "two versions": definition("plains", "Plain", version(_TWO[0]), version(_TWO[1], "v1beta1", storage=False)),
    "two versions of the same": definition(
        "plains", "Plain", version(_TWO[0]), version(_TWO[0], "v1beta1", storage=False)
    ),
    "no schema": _spec("versions", 0, "schema", value=...),
    "deprecated": _schema(_TWO[0], deprecated=True, deprecationWarning="use something else"),
    "a warning without deprecation": _schema(_TWO[0], deprecationWarning="use something else"),
    "an empty deprecation warning": _schema(_TWO[0], deprecated=True, deprecationWarning=""),
    "unknown fields": _changed(PLAIN, "spec", "strange", value=1),
    "unknown fields in the schema": _field({"type": "string", "strange": 1}),
    "unknown fields deep in the schema": _field({"type": "array", "items": {"type": "string", "strange": 1}}),
    "status given": _changed(PLAIN, "status", value={"storedVersions": ["v9"], "acceptedNames": {"plural": "x"}}),
    "preserveUnknownFields": _spec("preserveUnknownFields", value=True),
    "preserveUnknownFields false": _spec("preserveUnknownFields", value=False),
    # Schemas
    "no type at the root": _schema({"properties": {"spec": OBJECT}}),
    "list at the root": _schema({"type": "array", "items": STRING}),
    "no type of a field": _field({"description": "what?"}),
    "unknown type": _field({"type": "text"}),
    "null as type": _field({"type": "null"}),
    "array without items": _field({"type": "array"}),
    "items without a type": _field({"type": "array", "items": {}}),
    "items as a list": _field({"type": "array", "items": [STRING]}),
    "nullable root": _schema({"type": "object", "nullable": True}),
    "additional properties at the root": _schema({"type": "object", "additionalProperties": STRING}),
    "additional properties beside properties": _field(
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING}
    ),
    "additional properties": _field({"type": "object", "additionalProperties": {"type": "array", "items": STRING}}),
    "additional properties true": _field({"type": "object", "additionalProperties": True}),
    "additional properties without a type": _field({"type": "object", "additionalProperties": {}}),
    "id": _field({"type": "string", "id": "x"}),
    "ref": _field({"type": "string", "$ref": "#/x"}),
    "definitions": _field({"type": "object", "definitions": {"x": STRING}}),
    "pattern properties": _field({"type": "object", "patternProperties": {"x": STRING}}),
    "dependencies": _field({"type": "object", "dependencies": {"x": ["y"]}}),
    "additional items": _field({"type": "array", "items": STRING, "additionalItems": STRING}),
    "unique items": _field({"type": "array", "items": STRING, "uniqueItems": True}),
    "type in anyOf": _field({"type": "string", "anyOf": [{"type": "string"}]}),
    "description in allOf": _field({"type": "string", "allOf": [{"description": "x", "minLength": 1}]}),
    "default in oneOf": _field({"type": "string", "oneOf": [{"default": "x"}]}),
    "nullable in not": _field({"type": "string", "not": {"nullable": True}}),
    "extension in allOf": _field({"type": "object", "allOf": [{PRESERVE: True}]}),
    "unknown field in anyOf": _field({"type": "object", "properties": {"a": STRING}, "anyOf": [{"required": ["b"]}]}),
    "unknown property in anyOf": _schema(
        {"type": "object", "properties": {"a": STRING}, "anyOf": [{"properties": {"b": {"minLength": 1}}}]}
    ),
    "additional properties in allOf": _field(
        {"type": "object", "additionalProperties": STRING, "allOf": [{"additionalProperties": {"minLength": 1}}]}
    ),
    "metadata in allOf": _schema({"type": "object", "allOf": [{"properties": {"metadata": {"required": ["labels"]}}}]}),
    "bad pattern": _field({"type": "string", "pattern": "(?=x)y"}),
    "kind of another type": _schema({"type": "object", "properties": {"kind": INTEGER}}),
    "metadata of another type": _schema({"type": "object", "properties": {"metadata": STRING}}),
    "metadata with labels": _schema(
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": OBJECT}}}}
    ),
    "metadata with a name": _schema(
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": STRING}}}}
    ),
    "default in metadata": _schema(
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}},
        }
    ),
    "int or string": _field({INT_OR_STRING: True}),
    "int or string with a type": _field({INT_OR_STRING: True, "type": "string"}),
    "int or string that preserves": _field({INT_OR_STRING: True, PRESERVE: True}),
    "int or string in allOf": _field({INT_OR_STRING: True, "allOf": [{"anyOf": [INTEGER, STRING]}, {"pattern": "x"}]}),
    "preserve false": _field({"type": "object", PRESERVE: False}),
    "embedded without preserve": _field({"type": "object", EMBEDDED: True}),
    "embedded string": _field({"type": "string", EMBEDDED: True, PRESERVE: True}),
    "embedded with additional properties": _field(
        {"type": "object", EMBEDDED: True, PRESERVE: True, "additionalProperties": STRING}
    ),
    "list type of an object": _field({"type": "object", LIST_TYPE: "set"}),
    "odd list type": _field({"type": "array", "items": STRING, LIST_TYPE: "bag"}),
    "map without keys": _field({"type": "array", "items": OBJECT, LIST_TYPE: "map"}),
    "map of strings": _field({"type": "array", "items": STRING, LIST_TYPE: "map", LIST_KEYS: ["a"]}),
    "map with an unknown key": _field({"type": "array", "items": OBJECT, LIST_TYPE: "map", LIST_KEYS: ["a"]}),
    "map with an optional key": _field(
        {
            "type": "array",
            "items": {"type": "object", "properties": {"a": STRING}},
            LIST_TYPE: "map",
            LIST_KEYS: ["a"],
        }
    ),
    "map with an object as key": _field(
        {
            "type": "array",
            "items": {"type": "object", "required": ["a"], "properties": {"a": OBJECT}},
            LIST_TYPE: "map",
            LIST_KEYS: ["a"],
        }
    ),
    "map with a key twice": _field(
        {
            "type": "array",
            "items": {"type": "object", "required": ["a"], "properties": {"a": STRING}},
            LIST_TYPE: "map",
            LIST_KEYS: ["a", "a"],
        }
    ),
    "map with nullable things": _field(
        {
            "type": "array",
            "items": {
                "type": "object",
                "nullable": True,
                "required": ["a"],
                "properties": {"a": {"type": "string", "nullable": True}},
            },
            LIST_TYPE: "map",
            LIST_KEYS: ["a"],
        }
    ),
    "keys without a map": _field({"type": "array", "items": OBJECT, LIST_KEYS: ["a"]}),
    "set of objects": _field({"type": "array", "items": OBJECT, LIST_TYPE: "set"}),
    "set of atomic objects": _field(
        {"type": "array", "items": {"type": "object", MAP_TYPE: "atomic"}, LIST_TYPE: "set"}
    ),
    "set of nullables": _field({"type": "array", "items": {"type": "string", "nullable": True}, LIST_TYPE: "set"}),
    "map type of a string": _field({"type": "string", MAP_TYPE: "atomic"}),
    "odd map type": _field({"type": "object", MAP_TYPE: "loose"}),
    "default of the wrong type": _field({"type": "integer", "default": "x"}),
    "default against the pattern": _field({"type": "string", "pattern": "^a", "default": "b"}),
    "default with unknown fields": _field({"type": "object", "properties": {"a": STRING}, "default": {"b": 1}}),
    "default not in the enum": _field({"type": "string", "enum": ["a"], "default": "b"}),
    "null as default": _field({"type": "string", "default": None}),
    "embedded default": _field(
        {"type": "object", EMBEDDED: True, PRESERVE: True, "default": {"apiVersion": "v1", "kind": "Pod"}}
    ),
    "bad embedded default": _field({"type": "object", EMBEDDED: True, PRESERVE: True, "default": {"kind": "Pod"}}),
    "rule without text": _field({"type": "object", RULES: [{"rule": " "}]}),
    "rule in allOf": _field({"type": "object", "allOf": [{RULES: [{"rule": "true"}]}]}),
    "rule with an odd reason": _field({"type": "object", RULES: [{"rule": "true", "reason": "No"}]}),
    # Subresources, columns, selectable fields
    "scale": _scaled(labelSelectorPath=".status.s"),
    "scale without paths": _scaled(specReplicasPath=None, statusReplicasPath=None),
    "scale paths elsewhere": _scaled(specReplicasPath=".status.a", statusReplicasPath=".spec.b"),
    "scale path without a dot": _scaled(specReplicasPath="spec.a", labelSelectorPath="x"),
    "scale selector elsewhere": _scaled(labelSelectorPath=".metadata.labels"),
    "required at the root beside a status": _schema(
        {"type": "object", "required": ["spec"], "properties": {"spec": OBJECT}}, subresources={"status": {}}
    ),
    "column": _column(name="A", type="string", jsonPath=".spec.a", format="byte", priority=1, description="x"),
    "column without anything": _column(),
    "column of an odd type": _column(name="A", type="text", jsonPath=".spec.a", format="odd"),
    "column with an odd path": _column(name="A", type="string", jsonPath="spec.a"),
    "selectable fields": _selectable(".spec.a"),
    "selectable field that is not there": _selectable(".spec.z"),
    "selectable field of an odd type": _selectable(".spec.b"),
    "selectable field twice": _selectable(".spec.a", ".spec.a"),
    "selectable field in a list": _selectable(".spec.c[0]"),
    "selectable field without a path": _selectable(""),
    "too many selectable fields": _selectable(
        *(f".spec.a{number}" for number in range(9)), schema=with_spec({f"a{number}": STRING for number in range(9)})
    ),
    # Conversion
    "webhook": _converting(),
    "odd strategy": _spec("conversion", value={"strategy": "Magic"}),
    "webhook without a stanza": _spec("conversion", value={"strategy": "Webhook"}),
    "webhook without a client": _converting(clientConfig=None),
    "webhook without review versions": _converting(conversionReviewVersions=None),
    "webhook with odd review versions": _converting(conversionReviewVersions=["v2", "v2"]),
    "webhook over http": _converting(clientConfig={"url": "http://example.com"}),
    "webhook with too much in its url": _converting(clientConfig={"url": "https://u@example.com/x?y=z#f"}),
    "webhook by service": _converting(clientConfig={"service": {"name": "s", "namespace": "n", "path": "/convert"}}),
    "webhook by half a service": _converting(clientConfig={"service": {"name": "s", "port": 0, "path": "x//Y"}}),
    "webhook with url and service": _converting(
        clientConfig={"url": "https://example.com", "service": {"name": "s", "namespace": "n"}}
    ),
    "webhook stanza without the strategy": _spec("conversion", value={"strategy": "None", "webhook": _WEBHOOK}),
    # Groups of Kubernetes
    "protected group": _changed(_spec("group", value="x.k8s.io"), "metadata", "name", value="plains.x.k8s.io"),
    "protected group, approved": _changed(
        _spec("group", value="x.k8s.io"),
        "metadata",
        value={
            "name": "plains.x.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"},
        },
    ),
    "protected group, oddly approved": _changed(
        _spec("group", value="x.k8s.io"),
        "metadata",
        value={"name": "plains.x.k8s.io", "annotations": {"api-approved.kubernetes.io": "yes"}},
    ),
}

# A real server shows its internal form of what is wrong here; only reason and field can be the same.
WITHOUT_TEXT = {
    "two storage versions",
    "no storage version",
    "no versions",
    "a version twice",
    "list at the root",
    "metadata in allOf",
    "nullable root",
    "additional properties at the root",
    "bad pattern",
}
