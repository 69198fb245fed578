"""Who is let in, as whom, and what reviews answer."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.local.apicore.errors import StatusError
from kruise.local.server.access import ADMIN_USER, Access, ImpersonationError, is_open, user_of
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
