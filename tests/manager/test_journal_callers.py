"""Who may read the journal: strangers get nothing, others what their own rights cover, admins everything."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from kruise.admission.certificates import issue
from kruise.admission.tls import ServingCertificate
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import TransportError
from kruise.machinery.client.retry import NEVER
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import decode
from kruise.machinery.journal import NOT_ALLOWED, NOT_KEPT, NOT_KNOWN, TOKEN_HEADER, Journal
from kruise.manager.callers import Reviewer
from kruise.manager.endpoints import Endpoints, journal_app
from kruise.manager.reports import Reports
from tests.support.journalled import CONTROLLER, PLACES, SECRET, record
from tests.support.reviews import Reviews
from tests.toy.api import TROUPES

GET = ("get", "troupes")
PODS_OF_SHOW = {("get", "pods", "show"), ("list", "pods", "show")}
WAITS = [
    {"controller": CONTROLLER, "key": "show/a", "seconds": 3.0, "reason": "minReadySeconds"},
    {"controller": CONTROLLER, "key": "backstage/b", "seconds": 3.0, "reason": "minReadySeconds"},
]


def reviews() -> Reviews:
    return Reviews(
        tokens={
            "t-admin": "admin",
            "journal-admin": "admin",
            "t-nobody": "nobody",
            "t-lead": "lead",
            "t-viewer": "viewer",
            "t-one": "one",
            "t-elsewhere": "elsewhere",
            "t-pods": "pods-only",
        },
        rights={
            "admin": {(*GET, ""), ("get", "pods", ""), ("list", "pods", "")},
            "lead": {(*GET, "show"), *PODS_OF_SHOW},
            "viewer": {(*GET, "show"), ("get", "pods", "show")},
            "one": {("get", "troupes/a", "show")},
            "elsewhere": {(*GET, "bar"), ("get", "pods", "bar"), ("list", "pods", "bar")},
            "pods-only": PODS_OF_SHOW,
        },
    )


class Manager:
    """Asks as callers do."""

    def __init__(self, port: int, context: ssl.SSLContext, api: Reviews) -> None:
        self._address = f"https://localhost:{port}"
        self._context = context
        self.api = api

    async def get(self, path: str, token: str = "", **headers: str) -> tuple[int, str]:
        if token:
            headers["Authorization"] = f"Bearer {token}"
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self._address}{path}", ssl=self._context, headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    async def found(self, path: str, token: str) -> Any:
        code, text = await self.get(path, token)
        assert code == 200, text
        return decode(text, object)

    async def refused(self, path: str, token: str) -> str:
        code, text = await self.get(path, token)
        status = decode(text, dict)
        assert (code, status["kind"], status["reason"]) == (403, "Status", NOT_ALLOWED), text
        return str(status["message"])


@pytest.fixture
async def manager() -> AsyncIterator[Manager]:
    journal = Journal()
    record(journal, "show", "a")
    record(journal, "backstage", "b")
    api = reviews()
    reviewer = Reviewer(Client(api, retry=NEVER), clock=RealClock())
    certificate, material = ServingCertificate(), issue("localhost", datetime.now(UTC))
    certificate.use(material)
    endpoints = Endpoints()
    reports = Reports(journal, lambda: {CONTROLLER: TROUPES}, lambda: WAITS)
    port = await endpoints.serve(journal_app(reports, reviewer), "127.0.0.1:0", certificate.context)
    yield Manager(port, ssl.create_default_context(cadata=material.ca_cert.decode()), api)
    await endpoints.close()


PATHS = [
    "/journal",
    "/journal?key=show/a",
    "/journal?key=show/none",
    "/journal?namespace=show",
    f"/journal?controller={CONTROLLER}",
    f"/journal/{CONTROLLER}/show/a",
    f"/journal/{CONTROLLER}/show/none",
    "/waiting",
]


@pytest.mark.parametrize("path", [*PATHS, "/", "/metrics", "/debug"])
@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer guessed"}, {TOKEN_HEADER: "guessed"}, {"Authorization": "Basic dDphZG1pbg=="}],
    ids=["no token", "a wrong token", "a wrong token through a proxy", "a password"],
)
async def test_who_is_not_known_gets_nothing(manager: Manager, path: str, headers: dict[str, str]) -> None:
    code, text = await manager.get(path, **headers)
    assert (code, decode(text, dict)["reason"]) == (401, NOT_KNOWN)
    assert "send a bearer token" in text
    assert "show" not in text.replace("shown", "")
    assert not any(body["kind"] == "SubjectAccessReview" for body in manager.api.asked)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["t-nobody", "t-elsewhere", "t-pods"])
async def test_who_may_not_get_the_objects_gets_nothing(manager: Manager, path: str, token: str) -> None:
    """Whether there is such an object makes no difference."""
    said = await manager.refused(path, token)
    assert "may not get troupes.toy.pykruise.dev" in said
    assert "backstage" not in said
    assert said.replace("'none'", "'a'") == await manager.refused(path.replace("none", "a"), token)


@pytest.mark.parametrize("header", ["Authorization", TOKEN_HEADER])
@pytest.mark.parametrize("token", ["t-admin", "journal-admin"])
async def test_an_admin_sees_everything(manager: Manager, header: str, token: str) -> None:
    value = f"Bearer {token}" if header == "Authorization" else token
    code, text = await manager.get("/journal", **{header: value})
    entries = decode(text, list)
    assert (code, {entry["key"]["namespace"] for entry in entries}) == (200, {"show", "backstage"})
    assert SECRET in entries[0]["error"]
    code, text = await manager.get(f"/journal/{CONTROLLER}/backstage/b", **{header: value})
    assert (code, text.count(SECRET)) == (200, len(PLACES))
    assert await manager.found("/waiting", token) == WAITS


async def test_what_an_admin_may_ask(manager: Manager) -> None:
    [entry] = await manager.found(f"/journal?controller={CONTROLLER}&key=show/a&limit=5", "t-admin")
    assert entry["reconcile_id"] == "id-a"
    assert [one["reconcile_id"] for one in await manager.found("/journal?namespace=backstage", "t-admin")] == ["id-b"]
    assert len(await manager.found("/journal?limit=1", "t-admin")) == 1
    assert await manager.found("/journal?key=show/none", "t-admin") == []
    assert await manager.found("/waiting?namespace=show", "t-admin") == WAITS[:1]
    dump = await manager.found(f"/journal/{CONTROLLER}/show/a", "t-admin")
    assert dump["snapshot"]["troupe"]["metadata"]["name"] == "a"
    assert "causes" not in dump["plan"]
    assert "causes" in (await manager.found(f"/journal/{CONTROLLER}/show/a?causes=once", "t-admin"))["plan"]
    for path, code, reason, words in (
        ("/journal?limit=x", 400, "BadRequest", "limit=x: not a number"),
        (f"/journal/{CONTROLLER}/show/none", 404, NOT_KEPT, "no snapshot of show/none is kept"),
        ("/journal/other/show/a", 404, "NotFound", f"no controller is called 'other'; there are {CONTROLLER}"),
        ("/nothing", 404, "NotFound", "try /journal"),
    ):
        found, text = await manager.get(path, "t-admin")
        assert (found, decode(text, dict)["reason"]) == (code, reason)
        assert words in text


async def test_rights_in_one_namespace_show_that_namespace(manager: Manager) -> None:
    [entry] = await manager.found("/journal", "t-lead")
    assert (entry["reconcile_id"], SECRET in entry["error"]) == ("id-a", True)
    assert await manager.found("/waiting", "t-lead") == WAITS[:1]
    assert SECRET in str(await manager.found(f"/journal/{CONTROLLER}/show/a", "t-lead"))
    for path in ("/journal?key=backstage/b", "/journal?namespace=backstage", f"/journal/{CONTROLLER}/backstage/b"):
        await manager.refused(path, "t-lead")


async def test_values_are_masked_unless_the_pods_may_be_read(manager: Manager) -> None:
    code, text = await manager.get("/journal", "t-viewer")
    [entry] = decode(text, list)
    assert code == 200
    assert SECRET not in text
    assert "right to get and list pods" in entry["error"]
    assert entry["plan"]["counts"] == {"create pods": 1, "patch pods": 1}
    code, text = await manager.get(f"/journal/{CONTROLLER}/show/a", "t-viewer")
    dump = decode(text, dict)
    assert code == 200
    assert SECRET not in text
    assert dump["redacted"] is True
    [variable] = dump["snapshot"]["pods"][0]["spec"]["containers"][0]["env"]
    assert variable["name"] == "TOKEN"
    assert variable["value"].startswith("redacted-")
    again = decode((await manager.get(f"/journal/{CONTROLLER}/show/a", "t-viewer"))[1], dict)
    other = again["snapshot"]["pods"][0]["spec"]["containers"][0]["env"][0]["value"]
    assert other != variable["value"], "who can have values of their own masked must not learn those of others"


async def test_rights_to_one_object_by_its_name(manager: Manager) -> None:
    [entry] = await manager.found("/journal?key=show/a", "t-one")
    assert SECRET not in str(entry)
    assert SECRET not in str(await manager.found(f"/journal/{CONTROLLER}/show/a", "t-one"))
    await manager.refused("/journal?key=show/other", "t-one")
    await manager.refused("/journal", "t-one")


async def test_an_api_server_that_does_not_answer_lets_nobody_in(manager: Manager) -> None:
    manager.api.failure = TransportError("torn", sent=True)
    code, text = await manager.get("/journal", "t-admin")
    assert (code, decode(text, dict)["reason"]) == (503, "ServiceUnavailable")
    assert "id-a" not in text


async def test_only_reading(manager: Manager) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{manager._address}/journal", ssl=manager._context, headers={TOKEN_HEADER: "t-admin"}) as answer,
    ):
        assert answer.status == 405
