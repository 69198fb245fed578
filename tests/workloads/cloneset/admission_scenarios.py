"""The recorded requests about CloneSets, sent to a whole API server with the manager behind it (dry run).

Runs on the local cluster and on a real one. The API server itself is part of the answer here: its schema, its own
checks, and the way through the stored version and back.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.patches import merge
from tests.support.world import World
from tests.workloads.cloneset.admission_cases import (
    ACCEPTED_HERE,
    DEFAULTS,
    OTHER_CAUSES,
    OTHER_WORDS,
    PROTECTION,
    SUBRESOURCES,
    VALIDATION,
    V,
    base_of,
    case_id,
    changes,
    recorded_words,
    with_names,
)
from tests.workloads.cloneset.admission_model import Json, recorded_causes

ALPHA = dataclasses.replace(CLONE_SETS, version=V)
PROTECTION_LABEL = "policy.kruise.io/delete-protection"
_DRY_RUN = (("dryRun", "All"),)


@dataclasses.dataclass(frozen=True)
class Said:
    """An answer of the API server."""

    code: int
    message: str = ""
    causes: frozenset[tuple[str, str]] = frozenset()
    body: Mapping[str, Any] = dataclasses.field(default_factory=dict)


async def say(world: World, verb: Verb, body: Any = None, name: str = "", *, part: str = "", version: str = V) -> Said:
    resource = dataclasses.replace(CLONE_SETS, version=version)
    kind = PatchType.MERGE.value if verb is Verb.PATCH else "application/json"
    content = None if body is None else json.dumps(body).encode()
    query = () if verb is Verb.GET else _DRY_RUN
    request = Request(verb, resource, world.namespace, name, part, query, content, kind)
    try:
        answer = await world.client.send(request)
    except ApiError as error:
        causes = frozenset((cause.field.removeprefix("."), cause.reason) for cause in error.status.details.causes)
        return Said(error.code, error.message, causes)
    return Said(answer.status, body=json.loads(answer.body))


async def stage(world: World) -> dict[str, str]:
    """The objects that the recorded requests are about; gives the names of pods by their placeholders."""
    for base in VALIDATION["bases"]:
        await world.create(base_of(base))
    spec = {"containers": [{"name": "main", "image": "nginx:1.25"}, {"name": "side", "image": "x"}]}
    await world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}, "spec": spec})

    async def pod_of(name: str) -> str:
        pods = await world.list(PODS, f"app={name}")
        assert pods, f"no pod of {name} yet"
        return str(pods[0]["metadata"]["name"])

    own = await world.until(lambda: pod_of("cs"))
    other = await world.until(lambda: pod_of("cs-ipo"))
    return {"$OWNPOD": own, "$OTHERPOD": other}


async def recorded_verdicts(world: World) -> None:
    """CS-40 to CS-50: every recorded create and update gets the recorded verdict."""
    names = await stage(world)
    await _collect(_verdict(world, case, names) for case in VALIDATION["cases"])


async def _collect(checks: Iterable[Any]) -> None:
    """Run all, and report all that failed."""
    failed = []
    for check in checks:
        try:
            await check
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, "\n".join(failed)


async def _verdict(world: World, case: Json, names: Mapping[str, str]) -> None:
    base = base_of(case["sent"]["base"])
    patch = with_names(case["sent"]["patch"], names)
    if case["op"] == "create":
        said = await say(world, Verb.CREATE, merge.apply({**base, "metadata": {"name": "cs-n"}}, patch))
    else:
        said = await say(world, Verb.PATCH, patch, base["metadata"]["name"])
    name, shown = case["case"], f"{case_id(case)}: {said}"
    if case["accepted"] or name in ACCEPTED_HERE:
        assert said.code < 300, shown
        return
    assert said.code == case["code"], shown
    if name in OTHER_CAUSES:
        assert said.causes == OTHER_CAUSES[name][0], shown
        return
    assert said.causes == recorded_causes(case["message"]), shown
    # What the API server refuses by itself, it refuses in the recorded words.
    words = recorded_words(case["message"])
    assert any(with_names(text, names) in said.message for text in (words, OTHER_WORDS.get(name, words))), shown


async def recorded_defaults(world: World) -> None:
    """CS-30 to CS-33: what an author reads again, after the way through the stored version."""
    created = [case for case in DEFAULTS if case.get("op") != "update"]
    await _collect(_defaults(world, case, f"d{number}") for number, case in enumerate(created))


async def _defaults(world: World, case: Json, name: str) -> None:
    sent = {"apiVersion": f"apps.kruise.io/{V}", "kind": "CloneSet", **case["sent"], "metadata": {"name": name}}
    await world.create(sent)
    read = await world.get(ALPHA, name)
    await world.delete(ALPHA, name)
    got, wanted = changes(sent, {"spec": read["spec"]}), json.loads(json.dumps(case["returned"]))
    assert got == wanted, f"{case_id(case)}: {got} instead of {wanted}"


async def subresources(world: World) -> None:
    """Scale and status, as recorded: the API server's own checks, no webhook."""
    await stage(world)
    for case in SUBRESOURCES:
        if case["op"] == "delete":
            continue
        body = case["sent"].get("patch") or {
            key: case["sent"][key] for key in ("spec", "status") if key in case["sent"]
        }
        verb, part = (Verb.PATCH, "scale") if case["op"] == "scale" else (Verb.PATCH, "status")
        said = await say(world, verb if body else Verb.GET, body or None, "cs", part=part)
        assert said.code == case["code"], f"{case_id(case)}: {said}"
        if "replicas" in case.get("returned", {}).get("spec", {}):
            assert said.body["spec"]["replicas"] == case["returned"]["spec"]["replicas"]
        if not case["accepted"]:
            assert said.causes == {("spec.replicas", "FieldValueInvalid")}


async def protected(world: World) -> None:
    """CS-52 and DP-42, with the gate on, in both versions."""
    for number, case in enumerate(case for case in PROTECTION if case["op"] == "delete" and "labels" in case["sent"]):
        if "terminating" in case["case"]:
            continue
        name = f"dp-{number}"
        base = base_of("cs")
        spec = {**base["spec"], "replicas": case["sent"]["replicas"]}
        await world.create({**base, "metadata": {"name": name, "labels": case["sent"]["labels"]}, "spec": spec})
        for version in (V, CLONE_SETS.version):
            said = await say(world, Verb.DELETE, None, name, version=version)
            assert said.code == case["code"], f"{case_id(case)}: {said}"
            assert said.message == case.get("message", "")


async def both_versions(world: World) -> None:
    """CS-2, CS-30: one object, created bare through v1beta1, reads alike through both, and v1alpha1 may change it."""
    bare = {**base_of("cs"), "apiVersion": CLONE_SETS.api_version, "metadata": {"name": "both"}}
    created = await world.create(bare)
    assert created["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0},
    }
    flat = await world.get(ALPHA, "both")
    assert flat["spec"]["updateStrategy"] == {
        "type": "ReCreate",
        "partition": 0,
        "maxUnavailable": "20%",
        "maxSurge": 0,
    }
    assert flat["spec"]["template"] == created["spec"]["template"]
    said = await say(world, Verb.PATCH, {"spec": {"updateStrategy": {"partition": "x"}}}, "both")
    assert (said.code, said.causes) == (422, {("spec.updateStrategy.partition", "FieldValueInvalid")})
    rolling = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": "x"}}}}
    said = await say(world, Verb.PATCH, rolling, "both", version=CLONE_SETS.version)
    assert (said.code, said.causes) == (422, {("spec.updateStrategy.rollingUpdate.partition", "FieldValueInvalid")})
    await world.patch(ALPHA, "both", {"spec": {"updateStrategy": {"type": "OnDelete"}}})  # CS-43
    assert (await world.get(ALPHA, "both"))["spec"]["updateStrategy"] == {"type": "OnDelete"}  # CS-20
