"""A core with definitions at work, and short words for requests."""

from __future__ import annotations

from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.resource import Resource
from kruise.local.crds import Definitions
from kruise.machinery.client.requests import PatchType, Verb
from tests.local.crds.cases import GROUP
from tests.local.harness import Api

__all__ = ["CUSTOM_RESOURCE_DEFINITIONS", "CrdApi", "custom"]


def custom(plural: str, kind: str, version: str = "v1", *, namespaced: bool = True) -> Resource[Any]:
    return Resource(GROUP, version, plural, kind, namespaced, PartialObject)


class CrdApi(Api):
    def __init__(self, *, conversion: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.definitions = Definitions(self.core, conversion=conversion)

    async def define(self, body: Any) -> Any:
        code, answer = await self.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        assert code == 201, answer
        return answer

    async def definition(self, plural: str) -> Any:
        return (await self.get(CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.{GROUP}"))[1]

    async def redefine(self, plural: str, spec: Any) -> Any:
        name, more = f"{plural}.{GROUP}", {"content_type": PatchType.MERGE}
        code, answer = await self.send(Verb.PATCH, CUSTOM_RESOURCE_DEFINITIONS, name, {"spec": spec}, **more)
        assert code == 200, answer
        return answer

    async def undefine(self, plural: str) -> Any:
        return await self.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.{GROUP}")
