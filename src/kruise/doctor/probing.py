"""Asks webhooks as the API server asks them: by requests that pass them and change nothing (`dryRun=All`).

Whether a webhook answers is a matter between the API server and the manager: networks, certificates and addresses that
nobody else uses. So nothing but a request through the API server tells. Entries that look at deletions alone cannot be
asked without an object that may go, nor can those that let through what nobody answers; they are at the same address as
the others.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.doctor.findings import Json
from kruise.doctor.snapshot import Asked
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import (
    ApiError,
    ClientError,
    ForbiddenError,
    InvalidError,
    RequestTimeoutError,
)
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import Clock
from kruise.machinery.codec import encode
from kruise.machinery.documents import value_at

_PATIENCE: Final = 10.0
_UNANSWERED: Final = re.compile(r'failed calling webhook "([^"]+)": (.*)', re.DOTALL)
_NOT_CONVERTED: Final = re.compile(r"conversion webhook for .*? failed: (.*)", re.DOTALL)
_DENIED: Final = "admission webhook "
_PODS: Final = Resource("", "v1", "pods", "Pod", True, PartialObject)
_POD: Final[Json] = {"containers": [{"name": "main", "image": "kruise-doctor"}]}
_TEMPLATE: Final[Json] = {"metadata": {"labels": {"app": "kruise-doctor"}}, "spec": _POD}
_WORKLOAD: Final[Json] = {
    "replicas": 0,
    "selector": {"matchLabels": {"app": "kruise-doctor"}},
    "template": _TEMPLATE,
}
_SPECS: Final[Mapping[str, Json]] = {
    "Pod": _POD,
    "CloneSet": _WORKLOAD,
    "StatefulSet": _WORKLOAD,
    "DaemonSet": {key: value for key, value in _WORKLOAD.items() if key != "replicas"},
}
"""Specs that a schema takes, so that the request gets as far as the validating webhook. Of other kinds an empty one
does, which passes the mutating webhook."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Question:
    resource: Resource[PartialObject]
    entries: tuple[Json, ...]
    """That the request passes, in this order."""
    converts: str = ""
    """What else it passes."""


async def ask(
    client: Client, entries: Sequence[Json], definitions: Sequence[Json], *, namespace: str, clock: Clock
) -> tuple[list[Asked], list[str]]:
    """What became of a request for each entry that can be asked, and why others could not be. Nobody is asked twice who
    does not answer: each time may take as long as the API server has patience."""
    answers: list[Asked] = []
    problems: list[str] = []
    silent: set[str] = set()
    for question in _questions(entries, definitions):
        if any(_backend(entry) in silent for entry in question.entries):
            continue
        began = clock.monotonic()
        try:
            await _send(client, question, namespace)
            error: ClientError | None = None
        except ClientError as raised:
            error = raised
        seconds = clock.monotonic() - began
        found = _read(question, error, seconds)
        if not found and error is not None and not isinstance(error, InvalidError):
            problems.append(f"webhooks of {question.resource.group_resource}: {error}")
        answers += found
        if any(asked.error for asked in found):
            silent |= {_backend(entry) for entry in question.entries}
    return answers, problems


def _backend(entry: Json) -> str:
    """Who answers an entry: those at one address stand and fall together."""
    client = entry.get("clientConfig") or {}
    service = client.get("service")
    if service:
        return f"{service.get('namespace')}/{service.get('name')}:{service.get('port', 443)}"
    return urlsplit(str(client.get("url", ""))).netloc


def _questions(entries: Sequence[Json], definitions: Sequence[Json]) -> Iterator[_Question]:
    for resource, conversion in _kinds(definitions):
        passed = tuple(entry for entry in entries if _is_asked(entry, resource))
        if passed:
            yield _Question(resource, passed, conversion)


def _kinds(definitions: Sequence[Json]) -> Iterator[tuple[Resource[PartialObject], str]]:
    yield _PODS, ""
    has_conversion = False
    for definition in definitions:
        spec = definition["spec"]
        names = spec["names"]
        served = [version for version in spec["versions"] if version.get("served")]
        stored = [version["name"] for version in served if version.get("storage")]
        others = [version["name"] for version in served if not version.get("storage")]

        def of(version: str, spec: Json = spec, names: Json = names) -> Resource[PartialObject]:
            namespaced = spec.get("scope") == "Namespaced"
            return Resource(spec["group"], version, names["plural"], names["kind"], namespaced, PartialObject)

        if stored:
            yield of(stored[0]), ""
        converts = value_at(spec, ("conversion", "strategy")) == "Webhook"
        if others and converts and not has_conversion and names["kind"] in _SPECS:
            has_conversion = True  # one for all: they are converted at the same place
            yield of(others[0]), f"conversion of {names['plural']}.{spec['group']}"


def _is_asked(entry: Json, resource: Resource[Any]) -> bool:
    """Not where it does not matter whether anybody answers: that a request is let through tells nothing then."""

    def matches(values: Iterable[str], wanted: str) -> bool:
        return wanted in values or "*" in values

    return entry.get("failurePolicy") != "Ignore" and any(
        "CREATE" in rule.get("operations", ())
        and matches(rule.get("apiGroups", ()), resource.group)
        and matches(rule.get("apiVersions", ()), resource.version)
        and matches(rule.get("resources", ()), resource.plural)
        for rule in entry.get("rules") or ()
    )


async def _send(client: Client, question: _Question, namespace: str) -> None:
    resource = question.resource
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"generateName": "kruise-doctor-"},
        "spec": _SPECS.get(resource.kind, {}),
    }
    where = namespace if resource.namespaced else ""
    query = (("dryRun", "All"),)
    await client.send(Request(Verb.CREATE, resource, where, query=query, body=encode(body), timeout=_PATIENCE))


def _read(question: _Question, error: ClientError | None, seconds: float) -> list[Asked]:
    names = [str(entry["name"]) for entry in question.entries]
    converted = [Asked(question.converts, seconds=seconds)] if question.converts else []
    if error is None:
        return [Asked(name, seconds=seconds) for name in names] + converted
    message = str(error)
    if unanswered := _UNANSWERED.search(message):
        name, why = unanswered.groups()
        return [Asked(name, why, seconds)] if name in names else []  # of somebody else
    if question.converts and (failed := _NOT_CONVERTED.search(message)):
        return [Asked(question.converts, failed[1], seconds)]
    if isinstance(error, RequestTimeoutError):
        return [Asked(names[0], f"no answer within {_PATIENCE:g} s", seconds)]
    if not isinstance(error, ApiError):
        return []  # the API server itself did not answer
    if isinstance(error, ForbiddenError) and _DENIED not in message:
        return []  # the API server asked nobody
    if error.code >= 500 or error.code in (404, 405, 429):
        return []
    # Refused for what it says: then at least those were asked that may still change it.
    mutating = [str(entry["name"]) for entry in question.entries if "reinvocationPolicy" in entry]
    denying = [name for name in names if f'{_DENIED}"{name}"' in message]
    return [Asked(name, seconds=seconds) for name in dict.fromkeys((*mutating, *denying))]
