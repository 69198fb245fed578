"""What the API server refuses about webhook configurations. Match conditions are not compiled."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from typing import Final

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, duplicate, invalid, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct
from kruise.local.kinds import checks
from kruise.machinery.names import dns_1035_label_problems

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_URL_FORM: Final = "; desired format: https://host[/path]"


def configuration(new: Struct, old: Struct | None) -> Errors:
    seen: set[str] = set()
    for position, hook in enumerate(new.get("webhooks") or ()):
        path, name = Path("webhooks").at(position), hook["name"]
        yield from _webhook(path, hook)
        yield from _review_versions(path.child("admissionReviewVersions"), hook["admissionReviewVersions"] or ())
        if name and name in seen:
            yield duplicate(path.child("name"), name)
        seen.add(name)


def _webhook(path: Path, hook: Struct) -> Errors:
    yield from _full_name(path.child("name"), hook["name"])
    for position, rule in enumerate(hook.get("rules") or ()):
        yield from _rule(path.child("rules").at(position), rule)
    yield from checks.one_of(path.child("failurePolicy"), hook.get("failurePolicy"), ("Fail", "Ignore"))
    yield from checks.one_of(path.child("matchPolicy"), hook.get("matchPolicy"), ("Equivalent", "Exact"))
    effects = hook.get("sideEffects")
    if effects is None:
        yield required(path.child("sideEffects"), f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    else:
        yield from checks.one_of(path.child("sideEffects"), effects, _SIDE_EFFECTS)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        yield invalid(path.child("timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds")
    for name in ("namespaceSelector", "objectSelector"):
        yield from common.label_selector(path.child(name), hook.get(name))
    yield from checks.one_of(path.child("reinvocationPolicy"), hook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    yield from _client(path.child("clientConfig"), hook["clientConfig"])
    yield from _conditions(path.child("matchConditions"), hook.get("matchConditions") or ())


def _full_name(path: Path, name: str) -> Errors:
    if not name:
        yield required(path)
        return
    found = formats.dns_subdomain(name)
    if found:
        yield invalid(path, name, ",".join(found))
    elif len(name.split(".")) < 3:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _rule(path: Path, rule: Struct) -> Errors:
    operations = rule.get("operations") or ()
    if not operations:
        yield required(path.child("operations"))
    yield from _wildcard(path.child("operations"), operations, "operations")
    for position, operation in enumerate(operations):
        yield from checks.one_of(path.child("operations").at(position), operation, _OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        if not rule.get(name):
            yield required(path.child(name))
        yield from _wildcard(path.child(name), rule.get(name) or (), what)
    for position, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield required(path.child("apiVersions").at(position))
    yield from _resources(path.child("resources"), rule.get("resources") or ())
    yield from checks.one_of(path.child("scope"), rule.get("scope"), _SCOPES)


def _wildcard(path: Path, given: Sequence[str], what: str) -> Errors:
    if len(given) > 1 and "*" in given:
        yield invalid(path, list(given), f"if '*' is present, must not specify other {what}")


def _resources(path: Path, given: Sequence[str]) -> Errors:
    if not given:
        yield required(path)
    whole: set[str] = set()
    parts: set[str] = set()
    plain = False
    for position, name in enumerate(given):
        if not name:
            yield required(path.at(position))
            continue
        resource, slash, part = name.partition("/")
        if not slash:
            plain = name != "*"
            continue
        if resource in whole:
            yield invalid(path.at(position), name, f"if '{resource}/*' is present, must not specify {name}")
        if part in parts:
            yield invalid(path.at(position), name, f"if '*/{part}' is present, must not specify {name}")
        if part == "*":
            whole.add(resource)
        if resource == "*":
            parts.add(part)
    if len(given) > 1 and "*/*" in given:
        yield invalid(path, list(given), "if '*/*' is present, must not specify other resources")
    if "*" in given and plain:
        yield invalid(path, list(given), "if '*' is present, must not specify other resources without subresources")


def _client(path: Path, client: Struct) -> Errors:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(path.child("url"), url)
    else:
        assert service is not None
        yield from _service(path.child("service"), service)


def _url(path: Path, url: str) -> Errors:
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_URL_FORM}")
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    host = parts.netloc.rpartition("@")[2]
    if not host:
        yield invalid(path, host, f"host must be specified{_URL_FORM}")
    if "@" in parts.netloc:
        yield invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service(path: Path, service: Struct) -> Errors:
    # The API server mixes these two up, so that a missing namespace is reported as a missing name.
    if not service["namespace"]:
        yield required(path.child("name"))
    if not service["name"]:
        yield required(path.child("namespace"))
    port, where = service["port"], service.get("path")
    wrong = formats.port_number(port)
    if wrong:
        yield invalid(path.child("port"), port, f"port is not valid: {', '.join(wrong)}")
    if where is None or where in ("", "/"):
        return
    at = path.child("path")
    if where == "//":
        yield invalid(at, where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        yield invalid(at, where, "must start with a '/'")
    for position, step in enumerate(where[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(at, where, f"segment[{position}] may not be empty")
            continue
        for complaint in formats.dns_subdomain(step):
            yield invalid(at, where, f"segment[{position}]: {complaint}")


def _conditions(path: Path, conditions: Sequence[Struct]) -> Errors:
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        where, name = path.at(position), condition["name"]
        if not condition["expression"].strip():
            yield required(where.child("expression"))
        yield from common.required_and(where.child("name"), name, formats.qualified_name)
        if name and name in seen:
            yield duplicate(where.child("name"), name)
        seen.add(name)


def _review_versions(path: Path, versions: Sequence[str]) -> Errors:
    if not versions:
        yield required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield invalid(path.at(position), version, "duplicate version")
        else:
            yield from common.complaints(path.at(position), version, dns_1035_label_problems(version))
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield invalid(path, list(versions), f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
