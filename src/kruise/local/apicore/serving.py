"""From a `Request` value to an answer in bytes: the part of an HTTP server that is not HTTP."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError
from kruise.local.apicore import errors, owners, patching, warnings
from kruise.local.apicore.core import ApiCore, Call
from kruise.local.apicore.deletion import DeleteOptions, dry_run_problems
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.apicore.listing import ListOptions, parse_bool
from kruise.local.apicore.patching import without_nulls
from kruise.local.apicore.proxying import address_of
from kruise.local.apicore.watching import Watch
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import DecodeError, decode, encode

MAX_BODY: Final = 3 * 1024 * 1024
LONGEST_MANAGER: Final = 128
_PROXY: Final = "proxy"
_JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json"}
_OPTIONS_KIND: Mapping[Verb, str] = {
    Verb.CREATE: "CreateOptions",
    Verb.UPDATE: "UpdateOptions",
    Verb.PATCH: "PatchOptions",
}

VERSION: Json = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.4",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}


class UnknownPathError(StatusError):
    """No handler for the path: a real server answers that with plain text unless the group is one of its own."""


async def respond(core: ApiCore, request: Request, *, with_owners: bool = True) -> Response:
    """The answer to anything but a watch. `with_owners`: objects come with `managedFields`."""
    with warnings.collect() as warned:
        try:
            if is_proxied(request):
                return await proxied(core, request)
            code, found = await answer(core, request, with_owners=with_owners)
        except UnknownPathError:
            return Response(404, b"404 page not found\n", {"content-type": "text/plain; charset=utf-8"})
        except StatusError as error:
            return _with_warnings(refusal(error), warned)
    return _with_warnings(Response(code, encode(found) if isinstance(found, dict) else found, _JSON_HEADERS), warned)


def is_proxied(request: Request) -> bool:
    """Whether it is about what is behind a Service, not about the Service."""
    resource = request.resource
    return resource is not None and resource.group_resource == "services" and request.subresource.startswith(_PROXY)


async def proxied(core: ApiCore, request: Request) -> Response:
    """What a mounted service says. Raises `StatusError` where there is none."""
    if request.verb is not Verb.GET:
        raise errors.method_not_allowed()
    address = address_of(request.namespace, request.name)
    if address not in core.services:
        core.get(_call(core, dataclasses.replace(request, name=address.service, subresource="")))
    return await core.services.answer(address, request.subresource.removeprefix(_PROXY) or "/", request.query)


def _with_warnings(response: Response, texts: list[str]) -> Response:
    """With one `warning` header: its values may stand together, separated by commas."""
    if not texts:
        return response
    combined = ", ".join(warnings.header_values(texts))
    return dataclasses.replace(response, headers={**response.headers, "warning": combined})


def refusal(error: StatusError) -> Response:
    headers = dict(_JSON_HEADERS)
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    return Response(error.code, encode(error.status), headers)


def open_watch(core: ApiCore, request: Request, *, with_owners: bool = True) -> Watch:
    """Raises `StatusError` where the watch is refused."""
    options = ListOptions.from_query(request.query, watch=True)
    return core.watch(_call(core, request), options, with_owners=with_owners)


async def answer(core: ApiCore, request: Request, *, with_owners: bool = True) -> tuple[int, Json | bytes]:
    """The code and the object of an answer, before it is written. Raises `StatusError`."""
    code, found = await _answer(core, request)
    if not isinstance(found, dict):
        return code, found
    if "items" in found and request.verb in (Verb.LIST, Verb.DELETE_COLLECTION):
        return code, {**found, "items": [owners.shown(item, owners=with_owners) for item in found["items"]]}
    return code, owners.shown(found, owners=with_owners)


async def _answer(core: ApiCore, request: Request) -> tuple[int, Json | bytes]:
    if request.resource is None:
        return _raw(request)
    if request.body is not None and len(request.body) > MAX_BODY:
        raise errors.too_large(MAX_BODY)
    call = _call(core, request)
    match request.verb:
        case Verb.GET:
            return 200, await core.read(call)
        case Verb.LIST:
            return 200, await core.read_list(call, ListOptions.from_query(request.query))
        case Verb.CREATE:
            return 201, await core.create(call, _body(call, request))
        case Verb.UPDATE:
            updated, created = await core.update(call, _body(call, request))
            return (201 if created else 200), updated
        case Verb.PATCH:
            patched, created = await core.patch(call, request.content_type, request.body or b"")
            return (201 if created else 200), patched
        case Verb.DELETE:
            return 200, await core.delete(call, _delete_options(request))
        case Verb.DELETE_COLLECTION:
            selection = ListOptions.from_query(request.query)
            return 200, await core.delete_collection(call, selection, _delete_options(request))
        case _:
            raise errors.method_not_allowed()


def _raw(request: Request) -> tuple[int, Json | bytes]:
    path = request.raw_path.rstrip("/")
    if path == "/version":
        return 200, VERSION
    if path in ("/healthz", "/livez", "/readyz"):
        return 200, b"ok"
    raise errors.no_such_resource()


def _call(core: ApiCore, request: Request) -> Call:
    resource = request.resource
    if resource is None:
        raise errors.no_such_resource()
    kind = core.registry.find(resource.group, resource.version, resource.plural)
    if kind is None:
        refused = errors.no_such_resource()
        if not core.registry.serves_natively(resource.group, resource.version):
            refused = UnknownPathError(refused.status)
        raise refused
    dry_run = tuple(value for name, value in request.query if name == "dryRun" and value)
    options = _OPTIONS_KIND.get(request.verb)
    if options is not None and (request.query or request.verb is Verb.PATCH):
        problems = [*_manager_problems(core, request), *dry_run_problems(dry_run)]
        if problems:
            raise errors.invalid_object("meta.k8s.io", options, "", problems)
    return Call(
        kind=kind,
        version=resource.version,
        namespace=request.namespace if kind.namespaced else "",
        name=request.name,
        subresource=request.subresource,
        dry_run=bool(dry_run),
        user=request.impersonate,
        manager=request.parameter("fieldManager") or _name_of(request.user_agent),
        force=parse_bool(request.parameter("force")) if request.parameter("force") else None,
    )


def _name_of(user_agent: str) -> str:
    """The first part of what a client calls itself, as far as it can be shown."""
    return "".join(sign for sign in user_agent.partition("/")[0] if sign.isprintable())[:LONGEST_MANAGER]


def _manager_problems(core: ApiCore, request: Request) -> list[FieldError]:
    manager = request.parameter("fieldManager")
    problems: list[FieldError] = []
    if request.verb is Verb.PATCH and patching.media_type(request.content_type) == PatchType.APPLY:
        if not manager and core.apply_reader is not None:
            problems.append(field_errors.required("fieldManager", "is required for apply patch"))
    elif request.verb is Verb.PATCH and request.parameter("force"):
        problems.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
    if len(manager.encode()) > LONGEST_MANAGER:
        problems.append(field_errors.too_long("fieldManager", LONGEST_MANAGER))
    for position, sign in enumerate(manager):
        if not sign.isprintable():
            text = f"invalid character U+{ord(sign):04X} (at position {position})"
            problems.append(field_errors.invalid("fieldManager", manager, text))
    return problems


def _body(call: Call, request: Request) -> Json:
    sent = _decoded(request.body or b"", call.kind.kind)
    return without_nulls(sent) if not call.kind.custom and b"null" in (request.body or b"") else sent


def _decoded(body: bytes, kind: str) -> Json:
    try:
        sent: Any = decode(body, object)
    except DecodeError as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(sent, dict):
        raise errors.bad_request(f"a JSON object is needed to describe a {kind}")
    return sent


def _delete_options(request: Request) -> DeleteOptions:
    if request.body:
        return DeleteOptions.parse(_decoded(request.body, "DeleteOptions"))
    options: Json = {}
    grace = request.parameter("gracePeriodSeconds")
    if grace:
        try:
            options["gracePeriodSeconds"] = int(grace)
        except ValueError:
            text = f"strconv.ParseInt: parsing {field_errors.go_quote(grace)}: invalid syntax"
            raise errors.bad_request(text) from None
    if request.parameter("propagationPolicy"):
        options["propagationPolicy"] = request.parameter("propagationPolicy")
    if request.parameter("orphanDependents"):
        options["orphanDependents"] = parse_bool(request.parameter("orphanDependents"))
    return DeleteOptions.parse(options, tuple(value for name, value in request.query if name == "dryRun" and value))
