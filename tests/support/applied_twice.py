"""Applying what is there changes nothing: every manifest of the documents, in every version, by every way to apply it.

Others write the same objects in between, in every version: fields then have owners in several versions, as in a cluster
whose manager writes a status in a newer version than the user's. What the manifest says has to be stored all the time.

A way that changes something each time makes tools that keep clusters in step with files work for ever.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kruise.api.meta import PartialObject
from kruise.api.native.nodes import NODES
from kruise.api.resource import Resource
from kruise.feature import Feature
from kruise.machinery.client.errors import ConflictError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.manager.gates import FOR_TRYING_OUT
from tests.support.walkthroughs import ROOT
from tests.support.world import Json, World

FOUNDING = ROOT / "tests" / "data" / "founding_manifests.yaml"
WAYS = ("server-side apply", "merge patch", "replace", "server-side apply")
MANAGER = "drift"
GAP = "... ..."
_YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILLINGS: Mapping[str, Json] = {
    "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "filling"}, "data": {"a": "b"}},
    "targets": {"includedNamespaces": {"list": [{"name": "default"}]}},
}
GATES = ",".join(f"{name}=true" for name in FOR_TRYING_OUT)
"""As a local cluster has them: some kinds are refused without theirs."""


NOT_APPLIED = {
    "ContainerRecreateRequest": "about one pod that runs, and never changed; its own tests apply it again",
    "NodePodProbe": "its controller alone writes it",
}
"""Kinds that are not among the cases, with the reason."""
OF_NODES = {"NodeImage"}
"""Objects of these kinds are called after their nodes, and there before anybody applies one."""


@dataclasses.dataclass(frozen=True)
class Case:
    origin: str
    manifest: Json

    def __str__(self) -> str:
        return f"{self.manifest['apiVersion']} {self.manifest['kind']} of {self.origin}"

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


def served(features: Sequence[Feature]) -> dict[tuple[str, str], list[str]]:
    """The versions of every kind, by group and kind."""
    return {
        (str(spec["group"]), str(spec["names"]["kind"])): [str(one["name"]) for one in spec["versions"]]
        for feature in features
        for spec in (definition["spec"] for definition in feature.definitions)
    }


def cases(features: Sequence[Feature]) -> list[Case]:
    """Every manifest of a kind that these features define, once in each version that is served."""
    definitions = served(features)
    converters = {(one.group, one.kind): one.convert for feature in features for one in feature.conversions}
    found: list[Case] = []
    for origin, manifest in _manifests():
        group, _, _ = str(manifest["apiVersion"]).rpartition("/")
        kind = group, str(manifest["kind"])
        if kind[1] in NOT_APPLIED:
            continue
        for version in definitions.get(kind, ()):
            relabelled = {**manifest, "apiVersion": f"{group}/{version}"}
            converted = converters[kind](manifest, version) if kind in converters else relabelled
            name = f"{kind[1].lower()}-{len(found)}"
            found.append(Case(origin, _renamed(converted, name)))
    return found


def _renamed(manifest: Json, name: str) -> Json:
    """Under a name of its own, and about a workload of its own: two of a kind must not be about the same one."""
    renamed = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
    spec = manifest.get("spec") or {}
    target = spec.get("targetRef")
    if manifest["kind"] == "SidecarSet" and "matchLabels" in (spec.get("selector") or {}):
        # Two sets may not bring containers of one name to the same pods.
        selector = {**spec["selector"], "matchLabels": {**spec["selector"]["matchLabels"], "case": name}}
        renamed["spec"] = {**spec, "selector": selector}
    if target:
        renamed["spec"] = {**manifest["spec"], "targetRef": {**target, "name": f"{target['name']}-{name}"}}
    return renamed


def not_covered(features: Sequence[Feature]) -> list[str]:
    """Kinds and versions that are served, and that no manifest shows."""
    found = {(case.manifest["apiVersion"], case.manifest["kind"]) for case in cases(features)}
    return [
        f"{group}/{version} {kind}"
        for (group, kind), versions in served(features).items()
        for version in versions
        if (f"{group}/{version}", kind) not in found and kind not in NOT_APPLIED
    ]


def _texts() -> Iterator[tuple[str, str]]:
    """Everything that holds manifests."""
    docs = ROOT / "docs"
    for manifests in (*sorted((docs / "manifests").rglob("*.yaml")), FOUNDING):
        yield manifests.name, manifests.read_text()
    for document in (ROOT / "README.md", *sorted(docs.glob("*.md"))):
        for block in _YAML_BLOCK.findall(document.read_text()):
            yield document.name, block


def _manifests() -> Iterator[tuple[str, Json]]:
    for origin, text in _texts():
        for manifest in yaml.safe_load_all(text):
            if _is_object(manifest) and not _is_notation(manifest):
                manifest["metadata"].pop("namespace", None)
                # Names of pods are those of the day on which somebody wrote this.
                ((manifest.get("spec") or {}).get("scaleStrategy") or {}).pop("podsToDelete", None)
                # Shown with both, beside the words that only one of them may be set.
                selector = (manifest.get("spec") or {}).get("selector") or {}
                if selector.get("names"):
                    selector.pop("matchLabels", None)
                yield origin, _without_gaps(manifest)


def _is_object(manifest: Any) -> bool:
    """Documents show parts of objects, too."""
    return isinstance(manifest, dict) and {"apiVersion", "kind", "metadata"} <= manifest.keys()


def _is_notation(manifest: Json) -> bool:
    """An overview of fields, or a part of an object, that nobody can apply (SCS-W6)."""
    if "kind" not in manifest:
        return True  # what `kubectl patch --patch-file` takes
    spec = manifest.get("spec") or {}
    return manifest["kind"] == "SidecarSet" and ("disabled | enabled" in str(spec) or "containers" not in spec)


def _without_gaps(manifest: Json) -> Json:
    """Some of the founding documents leave out what they are not about."""
    spec = manifest.get("spec") or {}
    gaps = [name for name, value in spec.items() if value == GAP]
    return {**manifest, "spec": {**spec, **{name: FILLINGS[name] for name in gaps}}} if gaps else manifest


def resource_of(case: Case, features: Sequence[Feature]) -> Resource[Any]:
    group, _, version = str(case.manifest["apiVersion"]).rpartition("/")
    spec = next(
        definition["spec"]
        for feature in features
        for definition in feature.definitions
        if (definition["spec"]["group"], definition["spec"]["names"]["kind"]) == (group, case.manifest["kind"])
    )
    names, is_namespaced = spec["names"], spec["scope"] == "Namespaced"
    return Resource(group, version, names["plural"], names["kind"], is_namespaced, PartialObject)


async def create(world: World, resource: Resource[Any], case: Case) -> None:
    body = json.dumps(case.manifest).encode()
    await world.client.send(Request(Verb.CREATE, resource, world.place_of(resource), body=body))


async def apply(world: World, resource: Resource[Any], case: Case, way: str) -> Json:
    """The object as the server answers it."""
    while True:
        try:
            return await _apply(world, resource, case, way)
        except ConflictError:
            continue  # the manager wrote its status between our read and our write


async def _apply(world: World, resource: Resource[Any], case: Case, way: str) -> Json:
    body, verb, content, query = case.manifest, Verb.PATCH, str(PatchType.MERGE), (("fieldManager", MANAGER),)
    if way == "replace":
        live = await world.get(resource, case.name)
        metadata = {**body["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
        body, verb, content = {**body, "metadata": metadata}, Verb.UPDATE, "application/json"
    elif way == "server-side apply":
        content, query = str(PatchType.APPLY), (*query, ("force", "true"))
    request = Request(
        verb,
        resource,
        world.place_of(resource),
        case.name,
        query=query,
        content_type=content,
        body=json.dumps(body).encode(),
    )
    answered: Json = json.loads((await world.client.send(request)).body)
    return answered


def drift(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What a second write changed; empty: nothing."""
    generations = [one["metadata"]["generation"] for one in (before, after)]
    if generations[0] == generations[1] and after["spec"] == before["spec"]:
        return ""
    return f"generation {generations[0]} -> {generations[1]}, {before['spec']} -> {after['spec']}"


def lost(said: Any, stored: Any, at: str = "spec") -> Iterator[str]:
    """What a manifest says and the stored object does not. Defaults may be added, but to no list."""
    if isinstance(said, Mapping) and isinstance(stored, Mapping):
        for name, value in said.items():
            if value is not None:
                yield from lost(value, stored.get(name), f"{at}.{name}")
    elif isinstance(said, list) and isinstance(stored, list) and len(said) == len(stored):
        for index, pair in enumerate(zip(said, stored, strict=True)):
            yield from lost(*pair, f"{at}[{index}]")
    elif said != stored:
        yield f"{at}: {said} was applied, {stored} is stored"


async def applied_twice(world: World, features: Sequence[Feature], *, pause: float = 0.0) -> int:
    """Everything in every way. A `pause`, on virtual time, shows defaults that are moments. The number of manifests."""
    # Those of nodes first: whatever pulls images by the clock would write into theirs, too.
    found, wrong = sorted(cases(features), key=lambda case: case.manifest["kind"] not in OF_NODES), list[str]()
    for case in found:
        resource = resource_of(case, features)
        versions = served(features)[resource.group, resource.kind]
        if resource.kind in OF_NODES:
            await world.client.create(NODES, {"metadata": {"name": case.name}})
            await apply(world, resource, case, WAYS[0])
        else:
            await create(world, resource, case)
            if len(versions) > 1:
                await world.until(functools.partial(_has_status, world, resource, case))
        for way in WAYS:
            before = await world.get(resource, case.name)
            await world.sleep(pause)
            for version in versions:
                other = dataclasses.replace(resource, version=version)
                await world.patch(other, case.name, {"metadata": {"labels": {f"seen-in-{version}": "yes"}}})
            for turn in ("first", "again"):
                after = await apply(world, resource, case, way)
                problems = [*lost(case.manifest["spec"], after["spec"]), drift(before, after)]
                wrong += [f"{case}, {way}, {turn}: {what}" for what in problems if what]
        # Two of them that concern the same pods, or the same target, would get into each other's way, and the pods of
        # all of them make everything slow.
        await world.delete(resource, case.name)
        if resource.kind in OF_NODES:
            await world.client.delete(NODES, case.name)
    assert not wrong, "\n".join(wrong)
    return len(found)


async def _has_status(world: World, resource: Resource[Any], case: Case) -> None:
    assert (await world.get(resource, case.name)).get("status")


def write_manifests(features: Sequence[Feature], path: Path) -> int:
    """All of them in a file for kubectl, but for those that need a node. Their number."""
    found = [case for case in cases(features) if case.manifest["kind"] not in OF_NODES]
    path.write_text(yaml.safe_dump_all([case.manifest for case in found]))
    return len(found)
