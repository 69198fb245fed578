"""The recorded requests about a kind, sent to a whole API server with the manager behind it (dry run).

Runs on the local cluster and on a real one. The API server itself is part of the answer here: its schema, its own
checks, and the way through the stored version and back.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.versions import NEWER, OLDER
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.patches import merge
from tests.support.admission import Json
from tests.support.recorded_admission import Recorded, case_id, changes, recorded_words, without
from tests.support.world import World

_DRY_RUN = (("dryRun", "All"),)


@dataclasses.dataclass(frozen=True)
class Said:
    """An answer of the API server."""

    code: int
    message: str = ""
    causes: frozenset[tuple[str, str]] = frozenset()
    body: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Stage:
    """A world with the objects that the recorded requests are about."""

    world: World
    kind: Recorded
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What placeholders stand for here."""

    async def say(
        self,
        verb: Verb,
        version: str,
        body: Any = None,
        name: str = "",
        *,
        part: str = "",
        dry_run: bool = True,
        patch_type: PatchType = PatchType.MERGE,
    ) -> Said:
        kind = patch_type.value if verb is Verb.PATCH else "application/json"
        content = None if body is None else json.dumps(body).encode()
        query = _DRY_RUN if dry_run and verb is not Verb.GET else ()
        if patch_type is PatchType.APPLY and verb is Verb.PATCH:
            query += (("fieldManager", "author"), ("force", "true"))
        request = Request(verb, self.kind.resource(version), self.world.namespace, name, part, query, content, kind)
        try:
            answer = await self.world.client.send(request)
        except ApiError as error:
            causes = frozenset((cause.field.removeprefix("."), cause.reason) for cause in error.status.details.causes)
            return Said(error.code, error.message, causes)
        return Said(answer.status, body=json.loads(answer.body))

    async def create(self, manifest: Json) -> Json:
        version = manifest["apiVersion"].rpartition("/")[2]
        said = await self.say(Verb.CREATE, version, manifest, dry_run=False)
        assert said.code == 201, f"{manifest}: {said}"
        return dict(said.body)

    async def get(self, version: str, name: str) -> Json:
        said = await self.say(Verb.GET, version, name=name)
        assert said.code == 200, said
        return dict(said.body)

    async def create_bases(self) -> None:
        for name in self.kind.bases:
            await self.create(self.kind.base(name))

    async def verdicts(self) -> None:
        """Every recorded create and update gets the recorded verdict."""
        await _collect(self._verdict(case) for case in self.kind.verdicts)

    async def _verdict(self, case: Json) -> None:
        kind, version, base = self.kind, case["version"], self.kind.base(case["sent"]["base"])
        patch, name = kind.with_names(case["sent"]["patch"], self.names), base["metadata"]["name"]
        if case["op"] == "create":
            unused = {**base, "metadata": {"name": f"{name}-n"}}
            said = await self.say(Verb.CREATE, version, merge.apply(unused, patch))
        else:
            said = await self.say(Verb.PATCH, version, patch, name)
        shown = f"{case_id(case)}: {said}"
        if kind.is_accepted(case):
            assert said.code < 300, shown
            return
        assert said.code == kind.code(case), shown
        assert said.causes == kind.causes(case), shown
        # What the API server refuses by itself, it refuses in the recorded words.
        recorded = kind.with_names(recorded_words(case.get("message", "")), self.names)
        texts = [text.lower() for text in (kind.words(case, self.names), recorded)]
        assert any(text in said.message.lower() for text in texts), shown

    async def defaults(self) -> None:
        """What an author reads again, after the way through the stored version."""
        created = [case for case in self.kind.defaults if case.get("op") != "update"]
        await _collect(self._defaults(case, f"d{number}") for number, case in enumerate(created))

    async def _defaults(self, case: Json, name: str) -> None:
        version = case["version"]
        sent = {**self.kind.head(version), **case["sent"]}
        await self.create({**sent, "metadata": {**sent["metadata"], "name": name}})
        read = await self.get(version, name)
        await self.say(Verb.DELETE, version, name=name, dry_run=False)
        left_out = self.kind.different("defaults")
        got = without(changes(sent, {"spec": read["spec"]}), left_out)
        assert got == without(case["returned"], left_out), f"{case_id(case)}: {got} instead of {case['returned']}"

    async def subresources(self) -> None:
        """Scale and status, as recorded: the API server's own checks, no webhook."""
        for case in self.kind.subresources:
            if case["op"] == "delete":
                continue
            body = case["sent"].get("patch") or {
                key: case["sent"][key] for key in ("spec", "status") if key in case["sent"]
            }
            part = "scale" if case["op"] == "scale" else "status"
            name = self.kind.base_of(case["version"])["metadata"]["name"]
            verb = Verb.PATCH if body else Verb.GET
            said = await self.say(verb, case["version"], body or None, name, part=part)
            assert said.code == case["code"], f"{case_id(case)}: {said}"
            if "replicas" in case.get("returned", {}).get("spec", {}):
                assert said.body["spec"]["replicas"] == case["returned"]["spec"]["replicas"]
            if said.code == 422:
                assert said.causes == {("spec.replicas", "FieldValueInvalid")}

    async def protected(self) -> None:
        """CS-52, ST-34 and DP-42, with the gate on, in both versions."""
        cases = [
            case
            for case in self.kind.protection
            if case["op"] == "delete" and {"labels", "replicas"} <= set(case["sent"])
        ]
        for number, case in enumerate(case for case in cases if "terminating" not in case["case"]):
            name, base = f"dp-{number}", self.kind.base_of(case["version"])
            spec = {**base["spec"], "replicas": case["sent"]["replicas"]}
            await self.create({**base, "metadata": {"name": name, "labels": case["sent"]["labels"]}, "spec": spec})
            for version in (OLDER, NEWER):
                said = await self.say(Verb.DELETE, version, name=name)
                assert said.code == case["code"], f"{case_id(case)}: {said}"
                # What follows the recorded words says how to go on.
                assert said.message.partition("; ")[0] == case.get("message", "")


async def _collect(checks: Iterable[Any]) -> None:
    """Run all, and report all that failed."""
    failed = []
    for check in checks:
        try:
            await check
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, "\n".join(failed)
