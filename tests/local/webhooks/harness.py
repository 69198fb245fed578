"""A core whose writes pass webhooks that are functions of the test."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.api.resource import Resource
from kruise.local.webhooks import InProcessCaller, Webhooks
from tests.local.harness import Api

Json = dict[str, Any]
Decide = Callable[[Json], Json | None]
"""A review's request in, the fields of its response out; None allows."""


def handler(decide: Decide, seen: list[Json]) -> Callable[[bytes], Awaitable[bytes]]:
    async def answer(body: bytes) -> bytes:
        review = json.loads(body)
        seen.append(review)
        said = decide(review["request"]) or {}
        response = {"uid": review["request"]["uid"], "allowed": True, **said}
        return json.dumps(
            {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        ).encode()

    return answer


def patch(*operations: Json) -> Json:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


def entry(name: str, *, path: str = "", **more: Any) -> Json:
    """A webhook for config maps; `more` replaces fields, `rule` parts of its rule."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    rule.update(more.pop("rule", {}))
    return {
        "name": f"{name}.example.io",
        "clientConfig": {"service": {"namespace": "sys", "name": "hooks", "path": path or f"/{name}"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


class Site:
    """`site.seen` holds the reviews in the order in which they came."""

    def __init__(self, **options: Any) -> None:
        self.api = Api(**options)
        self.caller = InProcessCaller()
        self.webhooks = Webhooks(self.api.core, self.caller, seed=1)
        self.seen: list[Json] = []

    def hook(self, name: str, decide: Decide = lambda request: None) -> None:
        self.caller.mount(f"/{name}", handler(decide, self.seen))

    async def mutating(self, name: str, *entries: Json) -> None:
        await self._configure(MUTATING_WEBHOOK_CONFIGURATIONS, name, entries)

    async def validating(self, name: str, *entries: Json) -> None:
        await self._configure(VALIDATING_WEBHOOK_CONFIGURATIONS, name, entries)

    async def _configure(self, resource: Resource[Any], name: str, entries: tuple[Json, ...]) -> None:
        body = {"metadata": {"name": name}, "webhooks": list(entries)}
        code, answer = await self.api.create(resource, body, namespace="")
        assert code == 201, answer

    def change_unchecked(self, name: str, **fields: Any) -> None:
        """Change the entry of a validating configuration as an import brings it in: past validation."""
        storage, resource = self.api.core.storage, VALIDATING_WEBHOOK_CONFIGURATIONS.group_resource
        found = storage.get(resource, ("", name))
        assert found is not None
        storage.put(resource, ("", name), {**found, "webhooks": [{**found["webhooks"][0], **fields}]})

    @property
    def calls(self) -> list[str]:
        """Operation and name of each review."""
        return [f"{review['request']['operation']} {review['request'].get('name', '')}" for review in self.seen]
