"""The log subresource of pods: what a request asks for, and where the text comes from.

Which container is meant is settled here, with a real server's words; the text itself is the node's, behind `LogSource`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, go_quote
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.listing import parse_bool
from kruise.machinery.client.requests import Query
from kruise.machinery.times import parse_time

_CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")


class LogSource(Protocol):
    """Where the logs of containers are. Refusals (a container that never ran) are raised as `StatusError`."""

    async def read(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        timestamps: bool = False,
    ) -> bytes:
        """The last `tail` lines since a moment, cut to `limit` bytes; `timestamps` puts the time before each line."""

    def follow(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        """The same, and then what comes, until the container ends."""


class NoLogs:
    """The source of a cluster without nodes: nothing was ever written."""

    async def read(self, namespace: str, pod: str, container: str, **options: Any) -> bytes:
        return b""

    async def follow(self, namespace: str, pod: str, container: str, **options: Any) -> AsyncIterator[bytes]:
        nothing: tuple[bytes, ...] = ()
        for piece in nothing:
            yield piece


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The query of a log request."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    limit: int | None = None
    since_seconds: int | None = None
    since_time: datetime | None = None

    @classmethod
    def from_query(cls, query: Query, pod: str) -> LogOptions:
        """Raises `StatusError` for values that Kubernetes refuses."""
        values = dict(reversed(query))
        options = cls(
            container=values.get("container", ""),
            follow=parse_bool(values.get("follow", "false")),
            previous=parse_bool(values.get("previous", "false")),
            timestamps=parse_bool(values.get("timestamps", "false")),
            tail=_number(values.get("tailLines")),
            limit=_number(values.get("limitBytes")),
            since_seconds=_number(values.get("sinceSeconds")),
            since_time=_moment(values.get("sinceTime")),
        )
        problems = options._problems()
        if problems:
            raise errors.invalid_object("", "PodLogOptions", pod, problems)
        return options

    def _problems(self) -> list[FieldError]:
        problems: list[FieldError] = []
        if self.tail is not None and self.tail < 0:
            problems.append(field_errors.invalid("tailLines", self.tail, "must be greater than or equal to 0"))
        if self.limit is not None and self.limit < 1:
            problems.append(field_errors.invalid("limitBytes", self.limit, "must be greater than 0"))
        if self.since_seconds is not None and self.since_time is not None:
            text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
            problems.append(field_errors.forbidden("", text))
        elif self.since_seconds is not None and self.since_seconds < 1:
            problems.append(field_errors.invalid("sinceSeconds", self.since_seconds, "must be greater than 0"))
        return problems

    def since(self, now: datetime) -> datetime | None:
        if self.since_seconds is not None:
            return now - timedelta(seconds=self.since_seconds)
        return self.since_time

    def arguments(self, now: datetime) -> dict[str, Any]:
        """What both ways of a `LogSource` take."""
        return {
            "previous": self.previous,
            "tail": self.tail,
            "since": self.since(now),
            "limit": self.limit,
            "timestamps": self.timestamps,
        }


def _number(text: str | None) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise errors.bad_request(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax") from None


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise errors.bad_request(str(error)) from error


def chosen_container(pod: Json, asked: str) -> str:
    """The container whose log is meant; raises `StatusError` where that is not clear."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    names = {place: [item["name"] for item in spec.get(place) or ()] for place in _CONTAINER_LISTS}
    if asked:
        if not any(asked in listed for listed in names.values()):
            raise errors.bad_request(f"container {asked} is not valid for pod {name}")
        chosen = asked
    elif len(names["containers"]) == 1:
        chosen = names["containers"][0]
    elif not names["containers"]:
        raise errors.bad_request(f"a container name must be specified for pod {name}")
    else:
        text = f"a container name must be specified for pod {name}, choose one of: {_go_list(names['containers'])}"
        if names["initContainers"]:
            text += f" or one of the init containers: {_go_list(names['initContainers'])}"
        if names["ephemeralContainers"]:
            text += f" or one of the ephemeral containers: {_go_list(names['ephemeralContainers'])}"
        raise errors.bad_request(text)
    return chosen


def _go_list(names: list[str]) -> str:
    return "[" + " ".join(names) + "]"
