"""An API server that answers nothing but reviews, from tables of tokens and rights."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import decode, encode
from kruise.machinery.journal import AUDIENCE

Right = tuple[str, str, str]
"""Verb, resource and namespace; no namespace: in all of them. A resource may have a name behind a slash."""


class Reviews:
    """`tokens` are of users; those that begin with `journal-` are made for the journal's audience alone."""

    def __init__(self, tokens: dict[str, str], rights: dict[str, set[Right]]) -> None:
        self.tokens = tokens
        self.rights = rights
        self.asked: list[dict[str, Any]] = []
        self.failure: Exception | None = None
        self.seconds = 0.0
        """That an answer takes."""

    async def send(self, request: Request) -> Response:
        assert request.body is not None
        body = decode(request.body, dict)
        self.asked.append(body)
        await asyncio.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        status = self._token(body["spec"]) if body["kind"] == "TokenReview" else self._access(body["spec"])
        return Response(201, encode({**body, "status": status}))

    def _token(self, spec: dict[str, Any]) -> dict[str, Any]:
        user = self.tokens.get(spec["token"])
        audiences = [AUDIENCE] if spec["token"].startswith("journal-") else ["https://kubernetes.default.svc"]
        if user is None or not set(spec.get("audiences", audiences)) & set(audiences):
            return {"user": {}, "error": "invalid bearer token"}
        about = {"username": user, "uid": f"uid-of-{user}", "groups": ["system:authenticated"], "extra": {"a": ["b"]}}
        return {"authenticated": True, "user": about, "audiences": audiences}

    def _access(self, spec: dict[str, Any]) -> dict[str, Any]:
        assert (spec["uid"], spec["groups"], spec["extra"]) == (
            f"uid-of-{spec['user']}",
            ["system:authenticated"],
            {"a": ["b"]},
        ), "the API server hears the whole identity again"
        about = spec["resourceAttributes"]
        plain, named = about["resource"], f"{about['resource']}/{about['name']}"
        places = {"", about["namespace"]}
        held = self.rights.get(spec["user"], set())
        return {"allowed": any((about["verb"], what, where) in held for what in (plain, named) for where in places)}

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        raise AssertionError(f"nobody watches reviews: {request}")
        yield  # pragma: no cover

    async def close(self) -> None:
        pass
