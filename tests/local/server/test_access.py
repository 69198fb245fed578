"""Who is let in, as whom, and what reviews answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.local.apicore.errors import StatusError
from kruise.local.server.access import ADMIN_USER, Access, ImpersonationError, is_open, user_of
from kruise.local.server.tokens import Tokens
from tests.local.server.harness import CMS, cm, identity, serving

CERTIFICATE: dict[str, Any] = {
    "subject": ((("organizationName", "system:masters"),), (("commonName", "jane"),)),
}


def test_a_certificate_names_a_user_and_groups() -> None:
    user = user_of(CERTIFICATE)
    assert (user.name, user.groups) == ("jane", ("system:masters", "system:authenticated"))


def test_a_token_wins_and_a_wrong_one_is_refused() -> None:
    access = Access("secret")
    assert access.user({"Authorization": "Bearer secret"}, CERTIFICATE) == ADMIN_USER
    for shown in ("Bearer wrong", "Bearer ", "Basic secret", "secret"):
        with pytest.raises(StatusError) as refused:
            access.user({"Authorization": shown}, CERTIFICATE)
        assert refused.value.code == 401
    assert access.user({}, None) is None


def test_impersonation() -> None:
    access = Access("secret")
    user = access.user({"Impersonate-User": "bob", "Impersonate-Group": "dev"}, CERTIFICATE)
    assert user is not None
    assert (user.name, user.groups) == ("bob", ("dev", "system:authenticated"))
    with pytest.raises(StatusError):
        access.user({"Impersonate-User": "bob"}, None)
    with pytest.raises(ImpersonationError):
        access.user({"Impersonate-Group": "dev"}, CERTIFICATE)


def test_open_paths() -> None:
    assert [is_open(path) for path in ("/version", "/healthz", "/readyz/ping", "/healthzz", "/api", "/")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


async def test_strangers_see_the_version_and_little_else() -> None:
    async with serving() as api:
        for path in ("/version", "/healthz", "/livez", "/readyz"):
            assert (await api.get(path, login=False)).code == 200
        for path in (CMS, "/api", "/apis", "/", "/openapi/v3"):
            refused = await api.get(path, login=False)
            assert (refused.code, refused.json["message"]) == (401, "Unauthorized")


async def test_the_token_logs_in() -> None:
    async with serving() as api:
        token = identity().token
        assert (await api.get(CMS, login=False, Authorization=f"Bearer {token}")).code == 200
        assert (await api.get("/version", login=False, Authorization="Bearer wrong")).code == 401


async def test_admission_sees_who_it_is() -> None:
    seen: list[str] = []

    async def note(request: Any) -> None:
        seen.append(request.user)

    async with serving() as api:
        api.core.admission.validating.append(note)
        await api.post(CMS, cm("a"))
        await api.post(CMS, cm("b"), Impersonate_User="jane")
        odd = await api.get(CMS, Impersonate_Group="dev")
    assert seen == ["kubernetes-admin", "jane"]
    assert (odd.code, odd.headers["Content-Type"]) == (500, "text/plain; charset=utf-8")


async def test_reviews_are_answered_at_once() -> None:
    async with serving() as api:
        root = "/apis/authorization.k8s.io/v1"
        asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        for path in (
            f"{root}/selfsubjectaccessreviews",
            f"{root}/subjectaccessreviews",
            f"{root}/namespaces/default/localsubjectaccessreviews",
        ):
            answer = await api.post(path, asked)
            assert (answer.code, answer.json["status"], answer.json["spec"]) == (201, {"allowed": True}, asked["spec"])
        rules = (await api.post(f"{root}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})).json
        assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]
        assert (await api.get(f"{root}/selfsubjectaccessreviews")).code == 405
        assert (await api.post(f"{root}/selfsubjectaccessreviews", b"{")).code == 400


async def test_reviews_of_who_one_is() -> None:
    async with serving() as api:
        root = "/apis/authentication.k8s.io/v1"
        mine = (await api.post(f"{root}/selfsubjectreviews", {}, Impersonate_User="jane")).json
        assert mine["status"]["userInfo"] == {"username": "jane", "groups": ["system:authenticated"]}
        known = (await api.post(f"{root}/tokenreviews", {"spec": {"token": identity().token}})).json
        assert known["status"]["authenticated"] is True
        unknown = (await api.post(f"{root}/tokenreviews", {"spec": {"token": "x"}})).json
        assert unknown["status"] == {"user": {}, "error": "invalid bearer token"}


ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def test_a_token_of_a_service_account_is_for_its_audience_and_its_time() -> None:
    async with serving() as api:
        await api.post(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})

        async def asked(**spec: Any) -> str:
            made = await api.post(f"{ACCOUNTS}/reader/token", {"spec": spec})
            assert made.code == 201, made.json
            assert made.json["metadata"]["name"] == "reader"
            return str(made.json["status"]["token"])

        async def review(token: str, *audiences: str) -> dict[str, Any]:
            spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
            reviewed = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": spec})
            found: dict[str, Any] = reviewed.json["status"]
            return found

        own, narrow = await asked(), await asked(audiences=["journal"], expirationSeconds=600)
        assert (await api.get(CMS, login=False, Authorization=f"Bearer {own}")).code == 200
        assert (await api.get(CMS, login=False, Authorization=f"Bearer {narrow}")).code == 401
        assert (await review(own))["user"]["username"] == "system:serviceaccount:default:reader"
        assert "system:serviceaccounts:default" in (await review(own))["user"]["groups"]
        assert (await review(narrow)).get("authenticated") is None
        assert (await review(narrow, "journal", "other"))["audiences"] == ["journal"]
        assert (await review(identity().token, "journal")).get("authenticated") is None


async def test_what_is_no_token_request() -> None:
    async with serving() as api:
        await api.post(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
        assert (await api.post(f"{ACCOUNTS}/nobody/token", {"spec": {}})).code == 404
        short = await api.post(f"{ACCOUNTS}/reader/token", {"spec": {"expirationSeconds": 10}})
        assert (short.code, short.json["details"]["causes"][0]["field"]) == (422, "spec.expirationSeconds")
        assert (await api.get(f"{ACCOUNTS}/reader/token")).code == 405


def test_a_token_ends() -> None:
    tokens, now = Tokens(), datetime(2030, 1, 1, tzinfo=UTC)
    account = {"metadata": {"name": "reader", "namespace": "default"}}
    token = tokens.request(account, {"spec": {"audiences": ["a"]}}, now)["status"]["token"]
    assert tokens.find(token, ("a",), now + timedelta(seconds=3599)) is not None
    assert tokens.find(token, ("a",), now + timedelta(seconds=3600)) is None
