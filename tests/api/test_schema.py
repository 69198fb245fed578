"""How structs become schemas."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pytest

from kruise.api.meta import LabelSelector, ObjectMeta
from kruise.api.schema import About, Int32, Int64, SchemaError, object_schema
from kruise.machinery.codec import Raw, Struct, decode, field


class Part(Struct):
    """A part."""

    name: Annotated[str, About("Its name.")]
    count: Annotated[Int64, About("How many.", required=True)] = 0


class Narrow(Struct):
    """A narrow part."""

    name: Annotated[str, About("Its name.")] = ""


class Thing(Struct):
    """A thing."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    limit: Annotated[int | str | None, About("A number or a share.")] = None
    on_off: Annotated[bool, About("A switch.", default=False)] = field(default=False, name="onOFF")
    size: Annotated[Int32 | None, About("A size.")] = None
    when: Annotated[datetime | None, About("A time.")] = None
    open: Annotated[Raw, About("Anything.")] = Raw(b"{}")
    open_list: Annotated[tuple[Raw, ...], About("Any things.")] = ()
    names: Annotated[tuple[str, ...], About("Names.")] = ()
    labels: Annotated[dict[str, str], About("Labels.")] = field(default_factory=dict)
    parts: Annotated[tuple[Part, ...], About("Parts.")] = ()
    narrow: Annotated[Part | None, About("Less.", shape=Narrow)] = None
    selector: Annotated[LabelSelector, About("Which.")] = LabelSelector()


def test_types_and_marks_become_schema() -> None:
    schema = object_schema(Thing)
    assert schema["description"] == "A thing."
    assert list(schema["properties"])[:3] == ["apiVersion", "kind", "metadata"]
    found = schema["properties"]
    assert found["limit"] == {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "description": "A number or a share.",
    }
    assert found["onOFF"] == {"type": "boolean", "default": False, "description": "A switch."}
    assert found["size"] == {"type": "integer", "format": "int32", "description": "A size."}
    assert found["when"] == {"type": "string", "format": "date-time", "description": "A time."}
    assert found["open"] == {"x-kubernetes-preserve-unknown-fields": True, "description": "Anything."}
    assert found["openList"] == {"x-kubernetes-preserve-unknown-fields": True, "description": "Any things."}
    assert found["names"] == {"type": "array", "items": {"type": "string"}, "description": "Names."}
    assert found["labels"]["additionalProperties"] == {"type": "string"}
    assert found["parts"]["items"] == {
        "description": "A part.",
        "type": "object",
        "properties": {
            "count": {"type": "integer", "format": "int64", "description": "How many."},
            "name": {"type": "string", "description": "Its name."},
        },
        "required": ["count", "name"],
    }
    assert list(found["narrow"]["properties"]) == ["name"]
    assert found["narrow"]["description"] == "Less."
    assert found["selector"]["x-kubernetes-map-type"] == "atomic"


def test_schemas_share_no_parts() -> None:
    """Whoever changes one definition changes no other, and YAML needs no anchors."""
    one, two = object_schema(Thing), object_schema(Thing)
    one["properties"]["selector"]["properties"].clear()
    one["properties"]["limit"]["anyOf"].clear()
    one["properties"]["kind"].clear()
    assert two == object_schema(Thing)
    assert two["properties"]["kind"]


def test_marks_do_not_change_how_objects_are_read() -> None:
    """Also not on the slower way, on which nulls count as absent."""
    data = b'{"limit":"5%","size":3,"open":{"a":null},"parts":[{"name":"a"},null],"labels":null,"other":1}'
    thing = decode(data, Thing)
    assert (thing.limit, thing.size, thing.labels) == ("5%", 3, {})
    assert thing.parts == (Part(name="a"),)
    assert bytes(thing.open) == b'{"a":null}'


def _broken(hint: Any) -> type:
    annotations = {"part": hint}
    return type("Broken", (Struct,), {"__annotations__": annotations, "part": None})


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (str | None, r"Broken\.part has no description"),
        (Annotated[str | None, "words"], r"Broken\.part has no description"),
        (Annotated[int | None, About("x")], r"Broken\.part is a number without a format: say Int32 or Int64"),
        (Annotated[bytes | None, About("x")], r"Broken\.part has a type without a form in a schema: .*bytes"),
        (Annotated[Any, About("x")], r"Broken\.part has a type without a form"),
        (Annotated[bool | str | None, About("x")], r"Broken\.part may be several things"),
    ],
)
def test_what_cannot_be_described_is_refused(hint: Any, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        object_schema(_broken(hint))
