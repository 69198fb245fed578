"""The way from a command to the manager's journal: by its address, or through the API server.

The journal lives in the memory of the manager that leads. Three ways lead there, tried in this order:

1. an address that the user gives (`--manager-url`, or KRUISE_MANAGER_URL);
2. the pod that holds the manager's lease, through the API server's proxy;
3. the service `kruise-manager` of a local cluster, whose manager is in the cluster's own process and has no pod.

The manager wants to know who asks. Nobody's own credentials are handed to it: many people have none that could be, and
the API server checks no certificate of a pod. Instead the API server is asked for a token of the account
`kruise-journal` that is good for the journal alone and for minutes. Who may have one is a matter of ordinary rights.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from kruise.api.meta import Key, PartialObject
from kruise.api.native.config import SERVICES
from kruise.api.native.events import LEASES, Lease
from kruise.api.native.extensions import VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.cli.session import Session
from kruise.machinery.client.client import Client
from kruise.machinery.client.config import CertificateError, ClusterConfig, Pem
from kruise.machinery.client.errors import (
    ApiError,
    BadAnswerError,
    ClientError,
    ForbiddenError,
    NotFoundError,
    TransportError,
)
from kruise.machinery.client.light import LightTransport
from kruise.machinery.client.requests import Query, Request, Verb
from kruise.machinery.codec import DecodeError, Struct, decode, encode
from kruise.verbs.errors import UsageError, VerbError

if TYPE_CHECKING:
    from kruise.machinery.causes import Meaning
    from kruise.reasons.dump import Dumped

ENVIRONMENT = "KRUISE_MANAGER_URL"
NAMESPACE = "kruise-system"
LEASE = "kruise-manager"
SERVICE = "kruise-manager"
ACCOUNT = "kruise-journal"
READER = "kruise-journal-reader"
"""The role that is installed for people who may read everything that the manager remembers."""
PORT = 8443
_PATIENCE = 10.0
_TOKEN_SECONDS = 600
"""The shortest life that an API server gives to a token."""
_SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True, PartialObject)
_CONFIGURATION = "kruise-validating-webhook-configuration"
_TOKENS: WeakKeyDictionary[Session, str] = WeakKeyDictionary()


def bounds() -> str:
    """How much there can be, for whoever finds nothing."""
    from kruise.machinery.journal import CAPACITY, SNAPSHOTS

    return (
        f"A manager remembers the last {CAPACITY} passes of each controller and the snapshots of its {SNAPSHOTS} "
        "objects that were busy last, and forgets them when it ends"
    )


class JournalUnavailable(VerbError):  # noqa: N818 - it tells a state of things, and reads so where it is caught
    """The journal cannot be read; the text says why and what to do."""


class NotKeptError(JournalUnavailable):
    """The manager answers, but it keeps nothing about the object."""


class NoControllerError(NotKeptError):
    """The manager answers, but it does not run the controller of the object's kind."""


class _TokenRefusedError(JournalUnavailable):
    """The manager does not know the token that it was shown."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """The snapshot of an object's latest pass and the plan that was made of it."""

    time: str
    body: bytes
    """As the manager wrote it: what `replay` takes."""
    source: str
    """Where it came from, in words."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Passes, the newest first, as `kruise.machinery.journal.Entry.to_data` gives them."""

    items: tuple[dict[str, Any], ...]
    source: str


class _Head(Struct):
    time: str


class _TokenStatus(Struct):
    token: str


class _TokenAnswer(Struct):
    status: _TokenStatus


async def latest_dump(session: Session, controller: str, key: Key, *, manager_url: str = "") -> Dump:
    """Raises `JournalUnavailable`, `NotKeptError` among them."""
    body, source = await _ask(session, _path(controller, key), (), manager_url)
    return Dump(time=_read(body, _Head, source).time, body=body, source=source)


async def latest_decision(
    session: Session, controller: str, key: Key, *, causes: Iterable[Meaning] = (), manager_url: str = ""
) -> tuple[Dumped, str]:
    """The same, read, and where it came from. `causes` are those that only the kind
    knows. Raises `JournalUnavailable`, `NotKeptError` among them."""
    from kruise.reasons import dump

    body, source = await _ask(session, _path(controller, key), dump.QUERY, manager_url)
    try:
        return dump.read(body, causes), source
    except DecodeError as error:
        raise _unreadable(source, error) from error


def _path(controller: str, key: Key) -> str:
    return "/".join(part for part in ("journal", controller, key.namespace, key.name) if part)


async def entries(
    session: Session,
    *,
    controller: str = "",
    key: Key | None = None,
    namespace: str = "",
    limit: int = 50,
    manager_url: str = "",
) -> Entries:
    """Raises `JournalUnavailable`. Without a controller: of all of them; without a key: of all objects, there or
    everywhere."""
    query: Query = (("limit", str(limit)),)
    if controller:
        query += (("controller", controller),)
    if key is not None:
        query += (("key", f"{key.namespace}/{key.name}"),)
    elif namespace:
        query += (("namespace", namespace),)
    body, source = await _ask(session, "journal", query, manager_url)
    return Entries(items=tuple(_read(body, list[dict[str, Any]], source)), source=source)


def _read(body: bytes, kind: Any, source: str) -> Any:
    try:
        return decode(body, kind)
    except DecodeError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: str, error: DecodeError) -> JournalUnavailable:
    return JournalUnavailable(f"{source} answers, but with no journal ({error}): is it a manager of this version?")


async def _ask(session: Session, path: str, query: Query, manager_url: str) -> tuple[bytes, str]:
    kept = session in _TOKENS
    try:
        return await _ask_once(session, path, query, manager_url)
    except _TokenRefusedError:
        # A command that follows may outlive its token.
        _TOKENS.pop(session, None)
        if not kept:
            raise
        return await _ask_once(session, path, query, manager_url)


async def _ask_once(session: Session, path: str, query: Query, manager_url: str) -> tuple[bytes, str]:
    address = manager_url or os.environ.get(ENVIRONMENT, "")
    if address:
        return await _by_address(session, address, path, query)
    lease = await manager_lease(session)
    if lease is None:
        return await _by_service(session, path, query)
    return await _by_pod(session, lease, path, query)


async def _token(session: Session, namespace: str) -> str:
    """Good for the journal and for nothing else; asked for once in a command."""
    known = _TOKENS.get(session)
    if known is not None:
        return known
    from kruise.machinery.journal import AUDIENCE

    spec = {"audiences": [AUDIENCE], "expirationSeconds": _TOKEN_SECONDS}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    request = Request(
        Verb.CREATE, _SERVICE_ACCOUNTS, namespace, ACCOUNT, "token", body=encode(asked), timeout=_PATIENCE
    )
    try:
        answer = await session.client.send(request)
        token = decode(answer.body, _TokenAnswer).status.token
    except ForbiddenError as error:
        raise JournalUnavailable(_rights(str(error), namespace)) from error
    except NotFoundError as error:
        text = f"there is no account {ACCOUNT} in namespace {namespace} to ask the manager with ({error.message})"
        raise JournalUnavailable(f"{text}: kruise install brings it") from error
    except (ClientError, DecodeError) as error:
        raise JournalUnavailable(f"the API server gives no token for the journal: {error}") from error
    _TOKENS[session] = token
    return token


async def _by_address(session: Session, address: str, path: str, query: Query) -> tuple[bytes, str]:
    if not address.startswith("https://"):
        raise UsageError(
            f"--manager-url {address}: write it as https://HOST:PORT, the address of the manager's --journal-addr "
            f"(port {PORT} by default). Over plain HTTP a manager shows nothing about objects"
        )
    source = f"the manager at {address}"
    try:
        lease = await manager_lease(session)
    except JournalUnavailable:
        lease = None
    namespace = lease.metadata.namespace if lease is not None else NAMESPACE
    config = ClusterConfig(server=address.rstrip("/"), token=await _token(session, namespace))
    authority = await _authority(session)
    if authority:
        # Of this installation alone. Its certificates name this machine besides the Service, whatever way leads there.
        config = dataclasses.replace(config, ca=Pem(data=authority), tls_server_name="localhost")
    client = Client(LightTransport(config, user_agent="kruise", timeout=_PATIENCE))
    try:
        answer = await client.send(Request(Verb.GET, None, raw_path=f"/{path}", query=query))
    except ApiError as error:
        _say_what_is_missing(error, source)
        raise JournalUnavailable(f"{source} has no journal: {error.message}") from error
    except CertificateError as error:
        raise JournalUnavailable(f"{source} is none that this cluster vouches for: {error}") from error
    except ClientError as error:
        text = f"{source} does not answer: {error}. Its address is that of --journal-addr (port {PORT} by default)"
        raise JournalUnavailable(text) from error
    finally:
        await client.close()
    return answer.body, source


async def _authority(session: Session) -> bytes:
    """Whoever signs the manager's certificates, as the API server trusts it; empty: ask those that everybody trusts."""
    try:
        found = await session.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, _CONFIGURATION)
    except ClientError:
        return b""
    bundles = (str((entry.get("clientConfig") or {}).get("caBundle") or "") for entry in found.webhooks)
    try:
        return base64.b64decode(next(filter(None, bundles), ""), validate=True)
    except binascii.Error:
        return b""


async def manager_lease(session: Session) -> Lease | None:
    """The lease of the manager, in whatever namespace it was installed."""
    try:
        return await session.client.get(LEASES, LEASE, NAMESPACE)
    except NotFoundError:
        pass
    except ForbiddenError as error:
        raise JournalUnavailable(_rights(str(error))) from error
    except ClientError as error:
        raise JournalUnavailable(f"the cluster does not answer: {error}") from error
    try:
        elsewhere = await session.client.list(LEASES, fields=f"metadata.name={LEASE}")
    except ClientError:
        return None  # no right to look everywhere: then only the usual place counts
    return next(iter(elsewhere.items), None)


async def _by_pod(session: Session, lease: Lease, path: str, query: Query) -> tuple[bytes, str]:
    namespace, holder = lease.metadata.namespace, lease.spec.holder_identity
    if not holder:
        text = "no manager leads at the moment, so nobody keeps a journal. Is one running?"
        raise JournalUnavailable(f"{text} kubectl -n {namespace} get pods")
    # The manager signs with its host name, which in a pod is the pod's own, and a random part.
    pod = holder.rpartition("_")[0] or holder
    source = f"the manager in pod {namespace}/{pod}"
    from kruise.machinery.journal import TOKEN_HEADER

    request = Request(
        Verb.GET,
        PODS,
        namespace,
        f"https:{pod}:{PORT}",
        f"proxy/{path}",
        query=query,
        timeout=_PATIENCE,
        headers=((TOKEN_HEADER, await _token(session, namespace)),),
    )
    try:
        return (await session.client.send(request)).body, source
    except ApiError as error:
        _say_what_is_missing(error, source)
        if isinstance(error, ForbiddenError):
            raise JournalUnavailable(_rights(str(error), namespace)) from error
        if isinstance(error, NotFoundError):
            raise JournalUnavailable(_outside(namespace, pod)) from error
        raise JournalUnavailable(_silent(source, error)) from error
    except (TransportError, BadAnswerError) as error:
        raise JournalUnavailable(_silent(source, error)) from error


async def _by_service(session: Session, path: str, query: Query) -> tuple[bytes, str]:
    """Only the local cluster has it: there is one manager, and no pod of it."""
    source = "the manager of the local cluster"
    name = f"https:{SERVICE}:{PORT}"
    request = Request(Verb.GET, SERVICES, NAMESPACE, name, f"proxy/{path}", query=query, timeout=_PATIENCE)
    try:
        return (await session.client.send(request)).body, source
    except ForbiddenError as error:
        raise JournalUnavailable(_rights(str(error))) from error
    except ApiError as error:
        _say_what_is_missing(error, source)
        text = "no manager has ever led in this cluster: there is no journal. Is PyKruise installed and running?"
        raise JournalUnavailable(text) from error
    except ClientError as error:
        raise JournalUnavailable(f"the cluster does not answer: {error}") from error


def _say_what_is_missing(error: ApiError, source: str) -> None:
    from kruise.machinery.journal import NO_CONTROLLER, NOT_ALLOWED, NOT_KEPT, NOT_KNOWN

    if error.reason == NOT_KNOWN:
        raise _TokenRefusedError(f"{source} does not take a token of the account {ACCOUNT}: {error.message}") from error
    if error.reason == NOT_ALLOWED:
        text = (
            f"{source} shows it not even to the account {ACCOUNT}: {error.message}. It takes that of its own namespace"
        )
        raise JournalUnavailable(text) from error
    if error.reason == NO_CONTROLLER:
        raise NoControllerError(f"{source} keeps no snapshot of it: {error.message}") from error
    if error.reason == NOT_KEPT:
        raise NotKeptError(f"{source} keeps no snapshot of it: {error.message}. {bounds()}") from error


def _rights(refusal: str, namespace: str = NAMESPACE) -> str:
    return (
        f"{refusal}. The journal shows decisions about all objects, so it takes the role {READER} in namespace "
        f"{namespace}: kubectl -n {namespace} create rolebinding NAME-reads-decisions --role={READER} --user=NAME"
    )


def _outside(namespace: str, pod: str) -> str:
    return (
        f"the manager that leads calls itself {pod}, and there is no such pod in namespace {namespace}: it runs "
        f"outside the cluster. Give its address with --manager-url https://HOST:{PORT}, or in {ENVIRONMENT}"
    )


def _silent(source: str, error: ClientError) -> str:
    return (
        f"{source} cannot be reached through the API server: {error}. It must listen on port {PORT} of all its "
        "addresses (--journal-addr); for another port use kubectl port-forward and --manager-url. Where it could not "
        "begin to serve its journal, its log says why"
    )
