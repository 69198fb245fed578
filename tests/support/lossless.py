"""A write through v1alpha1 loses nothing that only v1beta1 has: every way to write, on an API server."""

from __future__ import annotations

from typing import Any

from kruise.api.versions import KEPT, NEWER, OLDER
from kruise.machinery.client.requests import PatchType, Verb
from tests.support.admission import Json
from tests.support.admission_scenarios import Said, Stage

WAYS = ("merge patch", "JSON patch", "server-side apply", "read, change and write", "replace", "scale")


async def loses_nothing(stage: Stage, manifest: Json, way: str) -> None:
    """Create in v1beta1, write in v1alpha1, read in v1beta1: what was changed has changed, and nothing else."""
    name = str(manifest["metadata"]["name"])
    created = await stage.create(manifest)
    said = await _written(stage, name, way)
    assert said.code == 200, f"{way}: {said}"
    after = await stage.get(NEWER, name)
    assert KEPT not in after["metadata"].get("annotations", {})
    wanted = {**created["spec"], "replicas": 3} if way == "scale" else created["spec"]
    assert after["spec"] == wanted, way
    if way != "scale":
        assert after["metadata"]["labels"]["by"] == "v1alpha1"
        assert after["metadata"]["generation"] == 1, f"{way} changed nothing of the spec, and the generation rose"


async def _written(stage: Stage, name: str, way: str) -> Said:
    mark: Json = {"metadata": {"labels": {"by": "v1alpha1"}}}
    if way == "merge patch":
        return await stage.say(Verb.PATCH, OLDER, mark, name, dry_run=False)
    if way == "JSON patch":
        add = [{"op": "add", "path": "/metadata/labels", "value": mark["metadata"]["labels"]}]
        return await stage.say(Verb.PATCH, OLDER, add, name, dry_run=False, patch_type=PatchType.JSON)
    if way == "server-side apply":
        body = {**stage.kind.head(OLDER), "metadata": {"name": name, **mark["metadata"]}}
        return await stage.say(Verb.PATCH, OLDER, body, name, dry_run=False, patch_type=PatchType.APPLY)
    if way == "scale":
        scale: Any = {"spec": {"replicas": 3}}
        return await stage.say(Verb.PATCH, OLDER, scale, name, part="scale", dry_run=False)
    shown = await stage.get(OLDER, name)
    shown["metadata"]["labels"] = mark["metadata"]["labels"]
    if way == "replace":
        # As a manifest in a repository is, that knows of no such annotation.
        shown["metadata"].get("annotations", {}).pop(KEPT, None)
    return await stage.say(Verb.UPDATE, OLDER, shown, name, dry_run=False)
