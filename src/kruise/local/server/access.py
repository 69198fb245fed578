"""Who asks, and what they are told about it: logins, impersonation, and the reviews that clients ask about themselves.

There are no rules about who may do what: whoever is known may do everything. Who is not known gets 401, but for the
few paths that a load balancer or a curious client may read.
"""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.server.identity import ADMIN, ADMIN_GROUP
from kruise.local.server.tokens import OWN_AUDIENCE, Issued, Tokens

AUTHENTICATED: Final = "system:authenticated"
ANONYMOUS: Final = "system:anonymous"
OPEN_PATHS: Final = ("/version", "/healthz", "/livez", "/readyz")


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    def info(self) -> Json:
        about: Json = {"username": self.name}
        if self.uid:
            about["uid"] = self.uid
        if self.groups:
            about["groups"] = list(self.groups)
        return about


ADMIN_USER: Final = User(ADMIN, (ADMIN_GROUP, AUTHENTICATED))
NOBODY: Final = User(ANONYMOUS, ("system:unauthenticated",))


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewKind:
    """A kind that is only ever created, and answered at once."""

    group: str
    plural: str
    kind: str
    namespaced: bool = False
    version: str = "v1"


_AUTHENTICATION: Final = "authentication.k8s.io"
_AUTHORIZATION: Final = "authorization.k8s.io"
REVIEWS: Final = (
    ReviewKind(_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    ReviewKind(_AUTHENTICATION, "tokenreviews", "TokenReview"),
    ReviewKind(_AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    ReviewKind(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ReviewKind(_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ReviewKind(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
)


def unauthorized() -> StatusError:
    return errors.failure(401, "Unauthorized", "Unauthorized")


class ImpersonationError(Exception):
    """The headers do not fit together; answered in plain text."""


class Access:
    """Recognises users by the certificate of their connection or by the token."""

    def __init__(self, token: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._token = token
        self._now = now
        self.tokens = Tokens()
        """Those of service accounts."""

    def user(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> User | None:
        """None for someone who shows nothing. Raises `StatusError` for a wrong token and for impersonation by nobody,
        `ImpersonationError` for impersonation of nobody."""
        user = self._known(headers, certificate)
        asked = headers.get("Impersonate-User", "")
        if not asked:
            if "Impersonate-Group" in headers or "Impersonate-Uid" in headers:
                raise ImpersonationError("impersonation of a group or uid was asked for without a user")
            return user
        if user is None:
            raise unauthorized()
        groups = _all(headers, "Impersonate-Group")
        if AUTHENTICATED not in groups and asked != ANONYMOUS:
            groups = (*groups, AUTHENTICATED)
        return User(asked, groups, headers.get("Impersonate-Uid", ""))

    def _known(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> User | None:
        shown = headers.get("Authorization", "")
        if shown:
            scheme, _, token = shown.partition(" ")
            found = self._owner(token.strip(), (OWN_AUDIENCE,)) if scheme.lower() == "bearer" else None
            if found is None:
                raise unauthorized()
            return found
        return None if not certificate else user_of(certificate)

    def _owner(self, token: str, audiences: tuple[str, ...]) -> User | None:
        """Of a token that is good for one of the audiences. The admin's is good for the API server alone."""
        if OWN_AUDIENCE in audiences and hmac.compare_digest(token.encode(), self._token.encode()):
            return ADMIN_USER
        issued = self.tokens.find(token, audiences, self._now())
        return account_user(issued) if issued is not None else None

    def review(self, kind: ReviewKind, body: Json, user: User, created: str) -> Json:
        """The answer to a review, written into it."""
        answer = {"kind": kind.kind, "apiVersion": f"{kind.group}/{kind.version}", "metadata": {}, **body}
        spec = body.get("spec") or {}
        match kind.kind:
            case "SelfSubjectReview":
                answer["metadata"] = {"creationTimestamp": created}
                answer["status"] = {"userInfo": user.info()}
            case "TokenReview":
                audiences = tuple(str(one) for one in spec.get("audiences") or (OWN_AUDIENCE,))
                shown = [(one, self._owner(str(spec.get("token", "")), (one,))) for one in audiences]
                good = [(one, owner) for one, owner in shown if owner is not None]
                answer["status"] = (
                    {"authenticated": True, "user": good[0][1].info(), "audiences": [one for one, _ in good]}
                    if good
                    else {"user": {}, "error": "invalid bearer token"}
                )
            case "SelfSubjectRulesReview":
                answer["spec"] = {}
                answer["status"] = {
                    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                    "incomplete": False,
                }
            case _:
                answer["status"] = {"allowed": True}
        return answer


def is_open(path: str) -> bool:
    return any(path == known or path.startswith(f"{known}/") for known in OPEN_PATHS)


def account_user(issued: Issued) -> User:
    """As whom a service account acts."""
    accounts = "system:serviceaccounts"
    return User(
        f"system:serviceaccount:{issued.namespace}:{issued.name}",
        (accounts, f"{accounts}:{issued.namespace}", AUTHENTICATED),
        issued.uid,
    )


def user_of(certificate: Mapping[str, Any]) -> User:
    """The user that a client certificate names, as `ssl` shows it."""
    name, groups = "", []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, (*groups, AUTHENTICATED))


def _all(headers: Mapping[str, str], name: str) -> tuple[str, ...]:
    read = getattr(headers, "getall", None)
    if read is None:
        return (headers[name],) if name in headers else ()
    return tuple(read(name, ()))
