"""The kinds of a cluster, for services that look after objects of every kind.

Where they come from is a parameter: from discovery over the API, or straight from the registry of a core in the same
process. They are asked for again and again, because kinds come and go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from kruise.local.apicore.kinds import Registry
from kruise.machinery.client.discovery import Discovery, ServedResource

Discover = Callable[[], Awaitable[Discovery]]
"""`Client.discover`, or `of_registry`."""

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def of_registry(registry: Registry) -> Discover:
    """What a core in this process serves, without a request."""

    async def discover() -> Discovery:
        return Discovery(
            tuple(
                ServedResource(
                    group=kind.group,
                    version=version,
                    plural=kind.plural,
                    singular=kind.singular or kind.kind.lower(),
                    kind=kind.kind,
                    namespaced=kind.namespaced,
                    verbs=_VERBS,
                )
                for kind in registry
                for version in kind.versions
            )
        )

    return discover


def preferred(discovery: Discovery, *verbs: str) -> list[ServedResource]:
    """Each kind once, in the version that the server prefers, if it has these verbs."""
    found: dict[tuple[str, str], ServedResource] = {}
    for served in discovery.resources:
        if all(verb in served.verbs for verb in verbs):
            found.setdefault((served.group, served.plural), served)
    return list(found.values())


def by_kind(resources: Iterable[ServedResource]) -> dict[tuple[str, str], ServedResource]:
    """As owner references name kinds: by apiVersion and kind."""
    found: dict[tuple[str, str], ServedResource] = {}
    for served in resources:
        found.setdefault((served.resource.api_version, served.kind), served)
    return found
