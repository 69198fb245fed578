"""Tokens of service accounts, as `serviceaccounts/NAME/token` gives them: for an audience and a while.

They mean nothing by themselves (a real server signs them); this process remembers them, and forgets them when it ends.
"""

from __future__ import annotations

import dataclasses
import secrets
from datetime import datetime, timedelta
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.metadata import timestamp

GROUP: Final = "authentication.k8s.io"
OWN_AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
"""That of the API server itself."""
_SHORTEST: Final = 600
_LONGEST: Final = 1 << 32
_USUAL: Final = 3600


@dataclasses.dataclass(frozen=True, slots=True)
class Issued:
    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    until: datetime


class Tokens:
    def __init__(self) -> None:
        self._issued: dict[str, Issued] = {}

    def request(self, account: Json, asked: Json, now: datetime) -> Json:
        """The answer to a TokenRequest about an account. Raises `StatusError`."""
        metadata, spec = account["metadata"], asked.get("spec") or {}
        seconds = _seconds(spec.get("expirationSeconds", _USUAL))
        audiences = tuple(str(one) for one in spec.get("audiences") or (OWN_AUDIENCE,))
        self._issued = {token: one for token, one in self._issued.items() if one.until > now}
        token, until = secrets.token_urlsafe(32), now + timedelta(seconds=seconds)
        self._issued[token] = Issued(
            metadata["namespace"], metadata["name"], str(metadata.get("uid", "")), audiences, until
        )
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "creationTimestamp": timestamp(now),
            },
            "spec": {"audiences": list(audiences), "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": token, "expirationTimestamp": timestamp(until)},
        }

    def find(self, token: str, audiences: tuple[str, ...], now: datetime) -> Issued | None:
        """Whose token it is, where it is made for one of the audiences and its time is not over."""
        found = self._issued.get(token)
        if found is None or found.until <= now or not set(audiences) & set(found.audiences):
            return None
        return found


def _seconds(asked: Any) -> int:
    problems = []
    if not isinstance(asked, int):
        raise errors.bad_request("spec.expirationSeconds: a whole number is needed")
    if asked < _SHORTEST:
        text = "may not specify a duration less than 10 minutes"
        problems.append(field_errors.invalid("spec.expirationSeconds", asked, text))
    if asked > _LONGEST:
        text = "may not specify a duration larger than 2^32 seconds"
        problems.append(field_errors.invalid("spec.expirationSeconds", asked, text))
    if problems:
        raise errors.invalid_object(GROUP, "TokenRequest", "", problems)
    return asked
