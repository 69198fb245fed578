"""A command at work: the cluster it talks to, the objects it reads and changes, and what it prints about them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.cli.clusters import chosen_cluster
from kruise.cli.flags import Connection, Where, Writing
from kruise.cli.plugins import print_problems
from kruise.faces.face import Face, History
from kruise.machinery import codec
from kruise.machinery.client.client import Client
from kruise.machinery.client.config import ClusterConfig, Impersonation, KubeconfigError
from kruise.machinery.client.errors import (
    ApiError,
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from kruise.machinery.client.exchanges import DEFAULT_TIMEOUT
from kruise.machinery.client.light import LightTransport
from kruise.machinery.client.requests import PatchType, Query, Request, Verb
from kruise.machinery.client.retry import RetryPolicy
from kruise.machinery.clock import Clock, RealClock
from kruise.machinery.documents import Json, name_of, patch_between, value_at, with_value
from kruise.machinery.times import TimeError, parse_go_duration
from kruise.verbs import lookup, targets
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.scaling import replicas_of
from kruise.verbs.targets import Selection, Target

if TYPE_CHECKING:
    from kruise.verbs.history import Revision

T = TypeVar("T")
Edit = Callable[[Json], Json]

NOT_FINISHED = 3
_ATTEMPTS = 5
_RETRY = RetryPolicy(attempts=3)
"""A person waits: a server that is not there is told of within half a second."""
_SUGGESTIONS_FROM = 500
_CONFIG_SUFFIXES = (".yaml", ".yml", ".json")


class NotFinishedError(click.ClickException):
    """Time was over before the work was."""

    exit_code = NOT_FINISHED


EVERYWHERE = "*"
"""All namespaces."""


class Session:
    """One command's access to a cluster. The client is made by `connected`, or given by tests."""

    def __init__(self, client: Client, *, namespace: str, is_chosen: bool = False, clock: Clock | None = None) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = clock or RealClock()
        self.is_chosen = is_chosen
        """The namespace was named on the command line."""

    # Reading

    async def get(self, target: Target) -> Json:
        request = Request(Verb.GET, target.kind.resource, self._namespace(target), target.name)
        try:
            return await self._read(request)
        except NotFoundError as error:
            raise VerbError(await self._missing(target, error)) from error

    async def find(self, target: Target) -> Json | None:
        """The object; None where the kind is served and there is no object of that name."""
        try:
            return await self._read(Request(Verb.GET, target.kind.resource, self._namespace(target), target.name))
        except NotFoundError as error:
            if error.status.details.name:
                return None
            raise VerbError(_not_served(target.kind)) from error

    async def items(
        self, resource: Resource[Any], *, namespace: str = "", selector: str = "", limit: int = 0
    ) -> list[Json]:
        query: Query = (("labelSelector", selector),) if selector else ()
        if limit:
            query += (("limit", str(limit)),)
        where = "" if namespace == EVERYWHERE else namespace or self.namespace
        found = await self._read(Request(Verb.LIST, resource, where, query=query))
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**kind, **item} for item in found.get("items") or ()]

    async def select(self, words: Sequence[str], where: Where) -> list[tuple[Target, Json]]:
        """The objects that a command is about, as they are now."""
        if where.filenames:
            if words:
                raise UsageError("name objects or give files with -f, not both")
            wanted = [target for target, _ in self._from_files(where)]
            return [(target, await self.get(target)) for target in wanted]
        selection = targets.parse(words, selector=where.selector, everything=where.everything)
        if selection.targets:
            return [(target, await self.get(target)) for target in selection.targets]
        return await self._by_selector(selection)

    async def present(self, words: Sequence[str], where: Where) -> tuple[list[tuple[Target, Json]], list[Face]]:
        """Those of a kind, or of all, that there are: none where there are none. And the kinds that may not be listed,
        where others may."""
        selection = targets.parse(words, selector=where.selector, everything=where.everything)
        refused: list[Face] = []
        return await self._listed(selection, refused), refused

    async def one(self, words: Sequence[str], where: Where, verb: str) -> tuple[Target, Json]:
        """The only object that a verb takes."""
        if where.filenames:
            named = [target for target, _ in self._from_files(where)]
        else:
            named = list(targets.parse(words, can_select=False).targets)
        target = targets.only(named, verb)
        return target, await self.get(target)

    def local(self, where: Where) -> list[tuple[Target, Json]]:
        """The objects of files, without a server."""
        return list(self._from_files(where))

    async def revisions(self, target: Target, document: Json) -> list[Revision]:
        """The earlier templates of a workload, oldest first."""
        kind = target.kind
        if kind.history is None:
            raise VerbError(f"{target} keeps no history")
        plural = kind.history.value
        name = "ReplicaSet" if kind.history is History.REPLICA_SETS else "ControllerRevision"
        resource = Resource("apps", "v1", plural, name, True, PartialObject)
        held = await self.items(resource, namespace=self._home(target), selector=revision_selector(kind, document))
        from kruise.verbs.history import revisions_of

        return revisions_of(kind, document, held)

    async def _by_selector(self, selection: Selection) -> list[tuple[Target, Json]]:
        found = await self._listed(selection)
        if not found:
            names = ", ".join(kind.resource.plural for kind in selection.kinds)
            raise VerbError(f'no {names} found in namespace "{self.namespace}"')
        return found

    async def _listed(self, selection: Selection, refused: list[Face] | None = None) -> list[tuple[Target, Json]]:
        """`refused` takes the kinds that may not be listed; without it, or where no kind may, that is an error."""
        found: list[tuple[Target, Json]] = []
        for kind in selection.kinds:
            try:
                items = await self.items(kind.resource, selector=selection.selector)
            except NotFoundError as error:
                if len(selection.kinds) > 1:
                    continue  # `all` means what the cluster has
                raise VerbError(_not_served(kind)) from error
            except ForbiddenError:
                if refused is None or len(refused) == len(selection.kinds) - 1:
                    raise
                refused.append(kind)
                continue
            found += [(Target(kind, name_of(item)), item) for item in items]
        return found

    def manifests(self, where: Where) -> Iterator[tuple[str, Json]]:
        """The objects of files as they are written, of whatever kind, each with where it stands."""
        if where.kustomize:
            if where.filenames:
                raise UsageError("give files with -f or a directory with -k, not both")
            from kruise.cli.kustomize import built

            for document in _documents(where.kustomize, built(where.kustomize)):
                yield where.kustomize, document
        for path in where.filenames:
            for origin, text in _texts(path, where.recursive):
                for document in _documents(origin, text):
                    yield origin, document

    def target_of(self, origin: str, document: Json) -> Target:
        """The object that a manifest is about."""
        chosen = self.namespace if self.is_chosen else ""
        return targets.from_manifest(document, namespace=chosen, origin=origin)

    def _from_files(self, where: Where) -> Iterator[tuple[Target, Json]]:
        for origin, document in self.manifests(where):
            yield self.target_of(origin, document), document

    async def _missing(self, target: Target, error: NotFoundError) -> str:
        """Say what is missing, the object or its kind, and which names are near."""
        if not error.status.details.name:
            return _not_served(target.kind)
        try:
            near = await self.items(target.kind.resource, namespace=self._namespace(target), limit=_SUGGESTIONS_FROM)
        except ClientError:
            near = []  # no right to list: then without a suggestion
        hint = targets.suggestion(target.name, map(name_of, near))
        for other in lookup.namesakes(target.kind):
            if await self._exists(dataclasses.replace(target, kind=other)):
                hint = f"; there is {other.named(target.name)}"
        where = f' in namespace "{self._namespace(target)}"' if target.kind.resource.namespaced else ""
        return f'{target.kind.resource.group_resource} "{target.name}" not found{where}{hint}'

    async def _exists(self, target: Target) -> bool:
        try:
            await self._read(Request(Verb.GET, target.kind.resource, self._namespace(target), target.name))
        except ClientError:
            return False
        return True

    def _namespace(self, target: Target) -> str:
        return target.namespace or self.namespace

    def _home(self, target: Target) -> str:
        """Where what belongs to an object is."""
        return self._namespace(target) if target.kind.resource.namespaced else EVERYWHERE

    async def _read(self, request: Request) -> Json:
        return codec.decode((await self.client.send(request)).body, dict)

    # Writing

    async def change(self, target: Target, document: Json, edit: Edit, writing: Writing) -> Json | None:
        """Change an object as `edit` says; None where nothing had to be changed. What others wrote meanwhile stays."""
        for _ in range(_ATTEMPTS):
            changed = self._recorded(edit(document), document, writing)
            patch = patch_between(document, changed)
            if not patch:
                return None
            if writing.dry_run == "client":
                return changed
            try:
                return await self._patch(target, patch, PatchType.JSON, writing)
            except (ConflictError, InvalidError) as error:
                if isinstance(error, InvalidError) and error.causes:
                    raise
            document = await self.get(target)
        raise VerbError(f"{target} is changed by somebody else all the time; try again")

    async def scale(
        self, target: Target, document: Json, edit: Edit, writing: Writing, *, guarded: bool = False
    ) -> Json | None:
        """Change the replicas, as `edit` says, by the subresource for it: the right to do that may be all there is.

        `guarded`: only while the object is as it was when `edit` looked at it.
        """
        for _ in range(_ATTEMPTS):
            changed = edit(document)
            if changed == document:
                return None
            if writing.dry_run == "client":
                return changed
            body: Json = {"spec": {"replicas": replicas_of(target.kind, changed)}}
            if guarded:
                body["metadata"] = {"resourceVersion": document["metadata"]["resourceVersion"]}
            try:
                await self._patch(target, body, PatchType.MERGE, writing, subresource="scale")
                return changed
            except ConflictError:
                document = await self.get(target)
        raise VerbError(f"{target} is changed by somebody else all the time; try again")

    async def _patch(
        self, target: Target, patch: Any, patch_type: PatchType, writing: Writing, *, subresource: str = ""
    ) -> Json:
        query: Query = (("fieldManager", writing.field_manager),)
        if writing.dry_run == "server":
            query += (("dryRun", "All"),)
        request = Request(
            Verb.PATCH,
            target.kind.resource,
            self._namespace(target),
            target.name,
            subresource,
            query,
            codec.encode(patch),
            patch_type.value,
        )
        return await self._read(request)

    async def create(self, resource: Resource[Any], document: Json, writing: Writing) -> Json:
        query: Query = (("fieldManager", writing.field_manager),)
        if writing.dry_run == "server":
            query += (("dryRun", "All"),)
        namespace = value_at(document, ("metadata", "namespace"), self.namespace)
        return await self._read(Request(Verb.CREATE, resource, namespace, query=query, body=codec.encode(document)))

    async def delete(self, target: Target, *, uid: str, propagation: str) -> None:
        """Delete this very object; `propagation` says what becomes of what it owns."""
        await self.client.delete(
            target.kind.resource, target.name, self._namespace(target), uid=uid, propagation=propagation
        )

    def _recorded(self, changed: Json, document: Json, writing: Writing) -> Json:
        if not writing.record or changed == document:
            return changed
        command = " ".join(["kruise", *sys.argv[1:]])
        from kruise.verbs.history import CHANGE_CAUSE

        return with_value(changed, ("metadata", "annotations", CHANGE_CAUSE), command)


def revision_selector(kind: Face, document: Json) -> str:
    """What the revisions of an object are found by."""
    if kind.contribution is not None:
        return f"{kind.contribution.revision_label}={name_of(document)}"
    return selector_text(kind, document)


def selector_text(kind: Face, document: Json) -> str:
    """The selector of a workload as a query takes it."""
    from kruise.machinery.selectors import from_label_selector

    if kind.selector is None:
        return ""  # whoever asks has to look at the owners
    return str(from_label_selector(value_at(document, kind.selector, {})))


def _not_served(kind: Face) -> str:
    if kind.is_ours:
        return f"this cluster does not know {kind}s: install PyKruise first: kruise install"
    return f"the server does not serve {kind.resource.group_resource}"


def _texts(path: str, recursive: bool) -> Iterator[tuple[str, str]]:
    if path == "-":
        # As files, whatever the characters of the terminal are: manifests are UTF-8.
        yield "standard input", _text(path, sys.stdin.buffer.read())
        return
    if "://" in path:
        raise UsageError(f"{path}: addresses are not read; fetch it first: curl -fsSL {path} | kruise ... -f -")
    place = Path(path)
    try:
        if not place.is_dir():
            yield path, _text(path, place.read_bytes())
            return
        inside = place.rglob("*") if recursive else place.glob("*")
        for file in sorted(one for one in inside if one.suffix in _CONFIG_SUFFIXES):
            yield str(file), _text(str(file), file.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def _text(origin: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{origin} cannot be read: {error}. Write it in UTF-8.") from error


def _documents(origin: str, text: str) -> Iterable[Json]:
    import yaml

    try:
        parsed = list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise UsageError(f"{origin} is no valid YAML: {' '.join(str(error).split())}") from error
    return targets.flattened(parsed, origin)


# Running


def run(connection: Connection, work: Callable[[Session], Awaitable[T]], *, online: bool = True) -> T:
    """Carry out a command; errors end it with a text and an exit code (1: refused, 2: usage, 3: not finished)."""
    # What the watches have to say goes to the screen in words of the command.
    logging.getLogger("kruise").addHandler(logging.NullHandler())

    async def main() -> T:
        async with connected(connection, online=online) as session:
            return await work(session)

    try:
        return asyncio.run(main())
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except (VerbError, ClientError) as error:
        raise click.ClickException(explained(error)) from error
    finally:
        print_problems()


def explained(error: Exception) -> str:
    if isinstance(error, ForbiddenError) and "admission webhook" not in str(error):  # they say themselves what to do
        return f"{error}. Ask for the right, or use another user with --context or --as."
    if isinstance(error, NotFoundError) and not error.status.details.name:
        return f"the server does not know what was asked for ({error}). Is PyKruise installed? kruise install"
    if isinstance(error, ApiError) and error.reason:
        return f"({error.reason}): {error}"
    return str(error)


@contextlib.asynccontextmanager
async def connected(connection: Connection, *, online: bool = True) -> AsyncIterator[Session]:
    config = _config(connection) if online else ClusterConfig(server="http://localhost")
    transport = LightTransport(config, user_agent="kruise", timeout=request_timeout(connection.request_timeout))
    client = Client(transport, retry=_RETRY)
    try:
        yield Session(client, namespace=connection.namespace or config.namespace, is_chosen=bool(connection.namespace))
    finally:
        await client.close()


def _config(connection: Connection) -> ClusterConfig:
    try:
        config = chosen_cluster(connection.kubeconfig, connection.context, server=connection.server)
    except KubeconfigError:
        if not connection.server or connection.kubeconfig or connection.context:
            raise
        config = ClusterConfig(server=connection.server)
    changes: dict[str, Any] = {}
    if connection.server:
        changes |= {"server": connection.server, "is_local_cluster": False}
    if connection.token:
        changes["token"] = connection.token
    if connection.as_user:
        changes["impersonation"] = Impersonation(user=connection.as_user, groups=connection.as_group)
    elif connection.as_group:
        raise UsageError("--as-group needs --as: say which user is in the group")
    return dataclasses.replace(config, **changes)


def request_timeout(text: str) -> float:
    return duration(text, "--request-timeout") or DEFAULT_TIMEOUT


def duration(text: str, flag: str) -> float:
    """Seconds of a duration such as 90s, 5m or 1h30m; a bare number means seconds."""
    try:
        return float(text) if text.replace(".", "", 1).isdecimal() else parse_go_duration(text)
    except TimeError as error:
        raise UsageError(f"{flag}: {error}") from error
