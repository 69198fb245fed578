"""What a server serves: its version, its groups and resources.

Aggregated discovery (two requests) where the server offers it, else one request for each group and version. A group
whose own server is down does not hide the others: it is listed as unreachable.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError, BadAnswerError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import DecodeError, Struct, decode

Send = Callable[[Request], Awaitable[Response]]

AGGREGATED = ",".join(
    (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    )
)
_AT_ONCE = 8
_NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclasses.dataclass(frozen=True, slots=True)
class ServerVersion:
    """`v1.29.3-gke.100` is 1.29.3: what vendors add says nothing about the API (MGR-72)."""

    major: int
    minor: int
    patch: int = 0
    git_version: str = ""

    def at_least(self, major: int, minor: int) -> bool:
        return (self.major, self.minor) >= (major, minor)

    def __str__(self) -> str:
        return self.git_version or f"v{self.major}.{self.minor}.{self.patch}"


def parse_version(git_version: str, major: str = "", minor: str = "") -> ServerVersion:
    """From `/version`. The full version counts; the two short numbers (`29+`) are for servers that hide it."""
    found = _NUMBERS.match(git_version)
    if found:
        return ServerVersion(int(found[1]), int(found[2]), int(found[3] or 0), git_version)
    short = _NUMBERS.match(f"{major}.{minor}")
    if short:
        return ServerVersion(int(short[1]), int(short[2]), 0, git_version)
    raise ValueError(f"no Kubernetes version: {git_version!r}, {major!r}.{minor!r}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServedResource:
    """One resource in one version, as the server describes it."""

    group: str
    version: str
    plural: str
    singular: str = ""
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def resource(self) -> Resource[PartialObject]:
        return Resource(self.group, self.version, self.plural, self.kind, self.namespaced, PartialObject)


@dataclasses.dataclass(frozen=True, slots=True)
class Discovery:
    """Resources in the server's order of preference: the core group first, each group's preferred version first."""

    resources: tuple[ServedResource, ...]
    unreachable: tuple[str, ...] = ()
    """Groups and versions that are announced but could not be asked."""

    def find(self, word: str) -> ServedResource | None:
        """What people call a resource: `deploy`, `Deployment`, `deployments.apps`, `deployments.v1.apps`."""
        name, _, rest = word.partition(".")
        candidates = [found for found in self.resources if _in_group(found, rest)] if rest else self.resources
        for matches in (_has_name, _has_short_name):
            for found in candidates:
                if matches(found, name.lower()):
                    return found
        return None

    def is_served(self, resource: Resource[Any], subresource: str = "") -> bool:
        return any(
            (found.group, found.version, found.plural) == (resource.group, resource.version, resource.plural)
            and (not subresource or subresource in found.subresources)
            for found in self.resources
        )

    def versions(self, group: str) -> tuple[str, ...]:
        """Versions of a group, the preferred one first."""
        return tuple(dict.fromkeys(found.version for found in self.resources if found.group == group))


def _in_group(found: ServedResource, rest: str) -> bool:
    # kubectl writes the core group as nothing behind a dot: `pods.v1.`
    return rest.rstrip(".") in (found.group, f"{found.version}.{found.group}".rstrip("."))


def _has_name(found: ServedResource, name: str) -> bool:
    return name in (found.plural, found.singular, found.kind.lower())


def _has_short_name(found: ServedResource, name: str) -> bool:
    return name in found.short_names


async def server_version(send: Send) -> ServerVersion:
    answer = await _get(send, "/version", _Version)
    try:
        return parse_version(answer.git_version, answer.major, answer.minor)
    except ValueError as error:
        raise BadAnswerError(f"get /version: {error}") from error


async def discover(send: Send) -> Discovery:
    """Ask the server for all that it serves."""
    found: list[ServedResource] = []
    unreachable: list[str] = []
    wanted: list[tuple[str, str]] = []
    for root in ("/api", "/apis"):
        try:
            answer = await _get(send, root, _Root, accept=AGGREGATED)
        except NotFoundError:
            continue  # a server of custom resources alone has no /api
        if answer.kind == "APIGroupDiscoveryList":
            for group in answer.items:
                _aggregated(group, found, unreachable)
        elif answer.kind == "APIVersions":
            wanted += [("", version) for version in answer.versions]
        else:
            wanted += [(group.name, version) for group in answer.groups for version in group.ordered()]
    found += await _classic(send, wanted, unreachable)
    return Discovery(tuple(found), tuple(unreachable))


async def _classic(send: Send, wanted: list[tuple[str, str]], unreachable: list[str]) -> list[ServedResource]:
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def ask(group: str, version: str) -> list[ServedResource]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        async with at_once:
            try:
                answer = await _get(send, path, _ResourceList)
            except (ApiError, BadAnswerError):
                unreachable.append(path.removeprefix("/apis/").removeprefix("/api/"))
                return []
        return _flat(group, version, answer.resources)

    async with asyncio.TaskGroup() as group_of_tasks:
        tasks = [group_of_tasks.create_task(ask(*pair)) for pair in wanted]
    unreachable.sort()
    return [resource for task in tasks for resource in task.result()]


def _flat(group: str, version: str, listed: tuple[_Resource, ...]) -> list[ServedResource]:
    """Classic lists name subresources as `pods/status`, beside their resource."""
    below: dict[str, list[str]] = {}
    for entry in listed:
        plural, slash, subresource = entry.name.partition("/")
        if slash:
            below.setdefault(plural, []).append(subresource)
    return [
        ServedResource(
            group=group,
            version=version,
            plural=entry.name,
            singular=entry.singular_name or entry.kind.lower(),
            kind=entry.kind,
            namespaced=entry.namespaced,
            short_names=entry.short_names,
            categories=entry.categories,
            verbs=entry.verbs,
            subresources=tuple(sorted(below.get(entry.name, ()))),
        )
        for entry in listed
        if "/" not in entry.name
    ]


def _aggregated(group: _DiscoveredGroup, found: list[ServedResource], unreachable: list[str]) -> None:
    name = group.metadata.name
    for version in group.versions:
        if version.freshness == "Stale":
            unreachable.append(f"{name}/{version.version}" if name else version.version)
        found += [
            ServedResource(
                group=name,
                version=version.version,
                plural=entry.resource,
                singular=entry.singular_resource or entry.response_kind.kind.lower(),
                kind=entry.response_kind.kind,
                namespaced=entry.scope == "Namespaced",
                short_names=entry.short_names,
                categories=entry.categories,
                verbs=entry.verbs,
                subresources=tuple(sorted(below.subresource for below in entry.subresources)),
            )
            for entry in version.resources
        ]


async def _get(send: Send, path: str, kind: type[Any], *, accept: str = "application/json") -> Any:
    request = Request(Verb.GET, None, raw_path=path, accept=accept)
    answer = await send(request)
    try:
        return decode(answer.body, kind)
    except DecodeError as error:
        raise BadAnswerError(f"{request}: the answer is no discovery document ({error})") from error


class _Version(Struct):
    git_version: str = ""
    major: str = ""
    minor: str = ""


class _Resource(Struct):
    name: str
    singular_name: str = ""
    kind: str = ""
    namespaced: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class _ResourceList(Struct):
    resources: tuple[_Resource, ...] = ()


class _GroupVersion(Struct):
    version: str = ""


class _Group(Struct):
    name: str = ""
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion = _GroupVersion()

    def ordered(self) -> list[str]:
        listed = [entry.version for entry in self.versions]
        return sorted(listed, key=lambda version: version != self.preferred_version.version)


class _ResponseKind(Struct):
    kind: str = ""


class _Subresource(Struct):
    subresource: str = ""


class _DiscoveredResource(Struct):
    resource: str = ""
    response_kind: _ResponseKind = _ResponseKind()
    scope: str = ""
    singular_resource: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[_Subresource, ...] = ()


class _DiscoveredVersion(Struct):
    version: str = ""
    freshness: str = ""
    resources: tuple[_DiscoveredResource, ...] = ()


class _Named(Struct):
    name: str = ""


class _DiscoveredGroup(Struct):
    metadata: _Named = _Named()
    versions: tuple[_DiscoveredVersion, ...] = ()


class _Root(Struct):
    """Any of the three answers that `/api` and `/apis` give, by `kind`."""

    kind: str = ""
    items: tuple[_DiscoveredGroup, ...] = ()
    groups: tuple[_Group, ...] = ()
    versions: tuple[str, ...] = ()
