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
from kruise.machinery.journal import NO_CONTROLLER, NOT_ALLOWED, NOT_KEPT, NOT_KNOWN, TOKEN_HEADER, Journal
from kruise.manager.callers import Reviewer
from kruise.manager.endpoints import Endpoints, journal_app
from kruise.manager.reports import Reports
from tests.support.journalled import CONTROLLER, PLACES, SECRET, record, secrets_in
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
            "api-admin": "admin",
            "journal-account": "system:serviceaccount:ops:kruise-journal",
            "journal-namesake": "system:serviceaccount:show:kruise-journal",
            "journal-admin": "admin",
            "journal-nobody": "nobody",
            "journal-lead": "lead",
            "journal-viewer": "viewer",
            "journal-one": "one",
            "journal-elsewhere": "elsewhere",
            "journal-pods": "pods-only",
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
    reviewer = Reviewer(Client(api, retry=NEVER), clock=RealClock(), namespace="ops")
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
    [
        {},
        {"Authorization": "Bearer guessed"},
        {TOKEN_HEADER: "guessed"},
        {"Authorization": "Basic dDphZG1pbg=="},
        {"Authorization": "Bearer api-admin"},
        {TOKEN_HEADER: "api-admin"},
    ],
    ids=[
        "no token",
        "a wrong token",
        "a wrong token through a proxy",
        "a password",
        "an admin's token for the API server",
        "the same through a proxy",
    ],
)
async def test_who_is_not_known_gets_nothing(manager: Manager, path: str, headers: dict[str, str]) -> None:
    code, text = await manager.get(path, **headers)
    assert (code, decode(text, dict)["reason"]) == (401, NOT_KNOWN)
    assert "send a bearer token" in text
    assert "--audience=kruise-journal" in text
    assert "show" not in text.replace("shown", "")
    assert not any(body["kind"] == "SubjectAccessReview" for body in manager.api.asked)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["journal-nobody", "journal-elsewhere", "journal-pods", "journal-namesake"])
async def test_who_may_not_get_the_objects_gets_nothing(manager: Manager, path: str, token: str) -> None:
    """Whether there is such an object makes no difference."""
    said = await manager.refused(path, token)
    assert "may not get troupes.toy.pykruise.dev" in said
    assert "backstage" not in said
    assert said.replace("'none'", "'a'") == await manager.refused(path.replace("none", "a"), token)


@pytest.mark.parametrize("header", ["Authorization", TOKEN_HEADER])
@pytest.mark.parametrize("token", ["journal-admin", "journal-account"])
async def test_an_admin_and_the_journals_own_account_see_everything(manager: Manager, header: str, token: str) -> None:
    """The account has no rights in the cluster: nobody is asked about them."""
    value = f"Bearer {token}" if header == "Authorization" else token
    code, text = await manager.get("/journal", **{header: value})
    entries = decode(text, list)
    assert (code, {entry["key"]["namespace"] for entry in entries}) == (200, {"show", "backstage"})
    assert SECRET in entries[0]["error"]
    code, text = await manager.get(f"/journal/{CONTROLLER}/backstage/b", **{header: value})
    assert (code, secrets_in(text)) == (200, len(PLACES))
    assert await manager.found("/waiting", token) == WAITS
    about = {body["kind"] for body in manager.api.asked}
    assert about == ({"TokenReview"} if token == "journal-account" else {"TokenReview", "SubjectAccessReview"})


async def test_what_an_admin_may_ask(manager: Manager) -> None:
    [entry] = await manager.found(f"/journal?controller={CONTROLLER}&key=show/a&limit=5", "journal-admin")
    assert entry["reconcile_id"] == "id-a"
    assert [one["reconcile_id"] for one in await manager.found("/journal?namespace=backstage", "journal-admin")] == [
        "id-b"
    ]
    assert len(await manager.found("/journal?limit=1", "journal-admin")) == 1
    assert await manager.found("/journal?key=show/none", "journal-admin") == []
    assert await manager.found("/waiting?namespace=show", "journal-admin") == WAITS[:1]
    dump = await manager.found(f"/journal/{CONTROLLER}/show/a", "journal-admin")
    assert dump["snapshot"]["troupe"]["metadata"]["name"] == "a"
    assert "causes" not in dump["plan"]
    assert "causes" in (await manager.found(f"/journal/{CONTROLLER}/show/a?causes=once", "journal-admin"))["plan"]
    for path, code, reason, words in (
        ("/journal?limit=x", 400, "BadRequest", "limit=x: not a number"),
        (f"/journal?limit={'9' * 5000}", 400, "BadRequest", "limit=999999999...: not a number of at most 9 digits"),
        (f"/journal/{CONTROLLER}/show/none", 404, NOT_KEPT, "no snapshot of show/none is kept"),
        ("/journal/other/show/a", 404, NO_CONTROLLER, f"no controller is called 'other'; there are {CONTROLLER}"),
        ("/nothing", 404, "NotFound", "try /journal"),
    ):
        found, text = await manager.get(path, "journal-admin")
        assert (found, decode(text, dict)["reason"]) == (code, reason)
        assert words in text


async def test_rights_in_one_namespace_show_that_namespace(manager: Manager) -> None:
    [entry] = await manager.found("/journal", "journal-lead")
    assert (entry["reconcile_id"], SECRET in entry["error"]) == ("id-a", True)
    assert await manager.found("/waiting", "journal-lead") == WAITS[:1]
    assert SECRET in str(await manager.found(f"/journal/{CONTROLLER}/show/a", "journal-lead"))
    for path in ("/journal?key=backstage/b", "/journal?namespace=backstage", f"/journal/{CONTROLLER}/backstage/b"):
        await manager.refused(path, "journal-lead")


async def test_values_are_masked_unless_the_pods_may_be_read(manager: Manager) -> None:
    code, text = await manager.get("/journal", "journal-viewer")
    [entry] = decode(text, list)
    assert code == 200
    assert SECRET not in text
    assert "right to get and list pods" in entry["error"]
    assert entry["plan"]["counts"] == {"create pods": 1, "patch pods": 1}
    code, text = await manager.get(f"/journal/{CONTROLLER}/show/a", "journal-viewer")
    dump = decode(text, dict)
    assert code == 200
    assert secrets_in(text) == 0
    assert dump["redacted"] is True
    [variable] = dump["snapshot"]["pods"][0]["spec"]["containers"][0]["env"]
    assert variable["name"] == "TOKEN"
    assert variable["value"].startswith("redacted-")
    again = decode((await manager.get(f"/journal/{CONTROLLER}/show/a", "journal-viewer"))[1], dict)
    other = again["snapshot"]["pods"][0]["spec"]["containers"][0]["env"][0]["value"]
    assert other != variable["value"], "who can have values of their own masked must not learn those of others"


async def test_rights_to_one_object_by_its_name(manager: Manager) -> None:
    [entry] = await manager.found("/journal?key=show/a", "journal-one")
    assert SECRET not in str(entry)
    assert SECRET not in str(await manager.found(f"/journal/{CONTROLLER}/show/a", "journal-one"))
    await manager.refused("/journal?key=show/other", "journal-one")
    await manager.refused("/journal", "journal-one")


async def test_an_api_server_that_does_not_answer_lets_nobody_in(manager: Manager) -> None:
    manager.api.failure = TransportError("torn", sent=True)
    code, text = await manager.get("/journal", "journal-admin")
    assert (code, decode(text, dict)["reason"]) == (503, "ServiceUnavailable")
    assert "id-a" not in text


async def test_only_reading(manager: Manager) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{manager._address}/journal", ssl=manager._context, headers={TOKEN_HEADER: "journal-admin"}
        ) as answer,
    ):
        assert answer.status == 405
