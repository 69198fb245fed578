"""What documents show: their manifests work, and their console blocks are read as they are meant."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.storage import STORAGE_CLASSES
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.manager.gates import GATES
from tests.support.distributions import TOY
from tests.support.installed import DEFINITIONS
from tests.support.transcripts import Step, matches, steps
from tests.support.world import World, run_local

DOCUMENTS = Path(__file__).parents[1] / "docs"
FILES = sorted((DOCUMENTS / "manifests").glob("*.yaml"))
MANIFESTS = [path.name for path in FILES if "kind: CloneSet" in path.read_text()]
"""Those of other kinds are used by the commands of documents."""
NAMES_A_POD = "cs-demo-scale-down.yaml"


def cloneset_of(manifest: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((DOCUMENTS / "manifests" / manifest).read_text())
    [found] = [document for document in documents if document["kind"] == "CloneSet"]
    assert isinstance(found, dict)
    # The local world has one namespace.
    found["metadata"].pop("namespace", None)
    return found


async def until_available(world: World, name: str, count: int) -> None:
    async def check() -> None:
        status = (await world.cloneset(name)).get("status", {})
        assert (status.get("replicas"), status.get("availableReplicas")) == (count, count)

    await world.until(check)


@pytest.mark.parametrize("manifest", [name for name in MANIFESTS if name != NAMES_A_POD])
def test_the_pods_of_a_manifest_become_available(manifest: str) -> None:
    async def scenario(world: World) -> None:
        await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
        body = cloneset_of(manifest)
        await world.create(body)
        await until_available(world, body["metadata"]["name"], body["spec"]["replicas"])

    run_local(scenario)


def test_the_manifest_that_names_a_pod_deletes_that_pod() -> None:
    """It can only follow another one: in v1alpha1 the names of pods cannot be given at creation (CS-47)."""

    async def scenario(world: World) -> None:
        await world.create(cloneset_of("cs-demo-scale-up.yaml"))
        await until_available(world, "cs-demo", 5)
        names = {pod["metadata"]["name"] for pod in await world.pods()}
        chosen = sorted(names)[2]
        spec = cloneset_of(NAMES_A_POD)["spec"]
        assert spec["scaleStrategy"]["podsToDelete"] == ["POD"]
        spec["scaleStrategy"]["podsToDelete"] = [chosen]
        await world.patch(dataclasses.replace(CLONE_SETS, version="v1alpha1"), "cs-demo", {"spec": spec})
        await until_available(world, "cs-demo", 4)
        assert {pod["metadata"]["name"] for pod in await world.pods()} == names - {chosen}

    run_local(scenario)


def test_every_manifest_is_in_a_document() -> None:
    documents = [DOCUMENTS.parent / "README.md", *DOCUMENTS.glob("*.md")]
    text = "".join(path.read_text() for path in documents)
    assert [path.name for path in FILES if f"docs/manifests/{path.name}" not in text] == []


# How documents are read


def test_steps_have_commands_output_and_the_heading_above_them(tmp_path: Path) -> None:
    document = tmp_path / "x.md"
    document.write_text(
        "# Title\n\n```sh\n$ not for us\n```\n\n## One (local cluster only)\n\n"
        "```console\n$ a |\\\n    b\nfirst\n...\n$ c\n```\n\n### Two\n\n```console\n$ d\nlast\n```\n"
    )
    assert steps(document) == [
        Step("a | b", ("first", "..."), "One (local cluster only)"),
        Step("c", (), "One (local cluster only)"),
        Step("d", ("last",), "Two"),
    ]


SHOWN = (
    "NAME            READY   RESTARTS      AGE   HASH",
    "cs-demo-2sfzz   1/1     1 (11m ago)   47m   cs-demo-7cb9c88699",
    "cs-demo-jfx5s   1/1     2 (99s ago)   52m   cs-demo-7c4d79f5bc",
)


@pytest.mark.parametrize(
    ("output", "is_right"),
    [
        pytest.param("\n".join(SHOWN), True, id="the same"),
        pytest.param(
            "NAME READY RESTARTS AGE HASH\ncs-demo-bcdfg 1/1 2 (1s ago) 3s cs-demo-7c4d79f5bc\n"
            "cs-demo-zzzzz 1/1 1 (1s ago) 3s cs-demo-7cb9c88699\n",
            True,
            id="other names, ages and order",
        ),
        pytest.param("\n".join(SHOWN[:2]), False, id="a row is missing"),
        pytest.param("\n".join((*SHOWN, SHOWN[2])), False, id="a row more"),
        pytest.param("\n".join(SHOWN).replace("7c4d79f5bc", "7cb9c88699"), False, id="another revision"),
        pytest.param("\n".join(SHOWN).replace("2 (99s", "1 (99s"), False, id="another number of restarts"),
        pytest.param("\n".join((*SHOWN[1:], SHOWN[0])), False, id="the header is not a row"),
    ],
)
def test_output_is_compared_without_what_is_random(output: str, is_right: bool) -> None:
    assert matches(SHOWN, output) is is_right


def test_older_kubectls_do_not_say_where_something_was() -> None:
    shown = ('pod "web-1" deleted from default namespace',)
    assert matches(shown, 'pod "web-1" deleted\n')
    assert not matches(shown, 'pod "web-2" deleted\n')


def test_three_dots_stand_for_any_lines() -> None:
    assert matches(("a", "...", "d"), "a\nb\nc\nd\n")
    assert matches(("a", "...", "d"), "a\nd\n")
    assert not matches(("a", "...", "d"), "a\nb\n")


# What a document takes from files

SHOWN_FILE = re.compile(r"^```python\n# troupe/(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_kind_of_your_own_is_the_toy() -> None:
    """Its parts stand in the document as they stand in the files."""
    shown = SHOWN_FILE.findall((DOCUMENTS / "your-own-kind.md").read_text())
    assert {file for file, _ in shown} == {path.name for path in TOY.glob("*.py")} - {"__init__.py"}
    for file, text in shown:
        assert text in (TOY / file).read_text(), f"docs/your-own-kind.md shows another {file}"


# What the references say


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_the_reference_knows_every_field(definition: dict[str, Any]) -> None:
    """The page of a kind is called after it."""
    document = f"{definition['spec']['names']['singular']}.md"
    text = (DOCUMENTS / document).read_text()
    for version in definition["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        missing = [name for name in field_names(schema) if name not in text and name not in OF_KUBERNETES]
        assert missing == [], f"fields of {version['name']} that docs/{document} does not name"


OF_KUBERNETES = {"matchLabels", "matchExpressions", "key", "operator", "values"}


def field_names(schema: dict[str, Any]) -> list[str]:
    inner = schema.get("items", schema).get("properties", {})
    return [name for field, below in inner.items() for name in (field, *field_names(below))]


def test_the_reference_knows_the_defaults_of_the_gates() -> None:
    text = (DOCUMENTS / "cloneset.md").read_text()
    table = text.partition("## Gates")[2]
    told = dict(re.findall(r"^\| `(\w+)` \| (on|off) \|", table, re.MULTILINE))
    assert len(told) > 10
    assert told == {name: "on" if GATES[name].default else "off" for name in told}
