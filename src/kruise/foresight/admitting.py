"""The way in: what admission makes of a changed object, or why it refuses it; and what it makes of new pods.

The kind's own handlers are asked, in the version in which the object was written, as an API server asks them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.admission.conversion import ConversionError
from kruise.admission.decisions import (
    Allow,
    Change,
    Deny,
    HandlerView,
    Invalid,
    Listing,
    NeedsBooking,
    NeedsReads,
    NeedsWrites,
    Read,
    Trial,
)
from kruise.admission.inventory import MUTATING, VALIDATING, Entry
from kruise.admission.registry import Handler, MutatingHandler
from kruise.admission.review import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    UndecodableError,
    invalid_status,
)
from kruise.api.meta import Key
from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.api.resource import Resource
from kruise.feature import Feature, Settings, converters_of, handlers_of
from kruise.foresight.errors import RefusedError
from kruise.machinery import codec
from kruise.machinery.codec import Raw
from kruise.machinery.plan import Action, Outcome, Result
from kruise.machinery.watched import watched
from kruise.model.world import RefusedWriteError, World

_ROUNDS = 8
_UID = "00000000-0000-4000-8000-00000000f0e5"


class Gatekeeper:
    """Asks the admission handlers of the features."""

    def __init__(self, features: Sequence[Feature], settings: Settings) -> None:
        self._settings = settings
        self._handlers = {handler.path: handler for handler in handlers_of(features, settings)}
        own = [entry for feature in features for entry in (*feature.mutating_entries, *feature.validating_entries)]
        self._entries: tuple[Entry, ...] = (*MUTATING, *VALIDATING, *own)
        self._converters = converters_of(features)
        self.warnings: dict[str, None] = {}
        """What was said about the changed object beside the answer, in order."""

    def enter(self, world: World) -> None:
        """Find objects in this world as the handlers look for them. That does not fill the stores: what was not read
        is not known."""
        for handler in self._handlers.values():
            for kind in map(watched, handler.needs):
                world.store(kind.resource).add_indexes(kind)

    def in_version(self, document: Mapping[str, Any], api_version: str) -> dict[str, Any]:
        """The document in another version of its kind. Raises RefusedError where nobody can convert it."""
        if document.get("apiVersion") == api_version:
            return dict(document)
        try:
            raw = self._converters.convert(Raw(codec.encode(document)), api_version)
        except ConversionError as error:
            raise RefusedError(str(error), code=400) from error
        return codec.decode(raw, dict[str, Any])

    def admitted(
        self,
        subject: Resource[Any],
        key: Key,
        document: Mapping[str, Any],
        live: Mapping[str, Any] | None,
        *,
        world: World,
    ) -> dict[str, Any]:
        """The object as it would be stored. Raises RefusedError."""
        version = str(document.get("apiVersion", subject.api_version)).rpartition("/")[2]
        asked = dataclasses.replace(subject, version=version)
        old = None if live is None else self.in_version(live, asked.api_version)
        request = _request(asked, key, document, old)
        for entry, handler in self._concerned(asked, request.operation):
            said = self._ask(handler, request, world)
            self.warnings.update(dict.fromkeys(said.warnings))
            if isinstance(said, Deny | Invalid):
                raise _refusal(entry, request, said)
            if isinstance(said, Change):
                request = _request(asked, key, said.object, old)
        return self.in_version(request.body(), subject.api_version)

    def _concerned(self, resource: Resource[Any], operation: str) -> list[tuple[Entry, Handler]]:
        """The handlers of a kind, mutating ones first."""
        found = [
            (entry, self._handlers[entry.path])
            for entry in self._entries
            if entry.path in self._handlers
            and (entry.group, entry.resource) == (resource.group, resource.plural)
            and resource.version in entry.versions
            and operation in entry.operations
        ]
        return sorted(found, key=lambda pair: not isinstance(pair[1], MutatingHandler))

    def _ask(self, handler: Handler, request: AdmissionRequest, world: World) -> Allow | Change | Deny | Invalid:
        view = HandlerView(now=world.now, seed=0, gates=self._settings.gates, stores=world.store)
        for _ in range(_ROUNDS):
            try:
                said = handler.decide(request, view)
            except UndecodableError as error:
                return Deny(message=str(error), code=400, reason="BadRequest")
            match said:
                case NeedsReads():
                    reads = {target: _read(world, target) for target in said.targets}
                    view = dataclasses.replace(view, reads={**view.reads, **reads})
                case NeedsWrites():
                    view = dataclasses.replace(view, outcomes=_written(world, view.outcomes, said.actions))
                case NeedsBooking():
                    view = dataclasses.replace(view, bookings={**view.bookings, said.target: _booked(world, said)})
                case _:
                    return said
        return Deny(message=f"{request}: no decision after {_ROUNDS} rounds", code=500, reason="InternalError")

    def new_object(self, action: Action, world: World) -> Mapping[str, Any]:
        """The body of a planned create after admission. Nobody is asked about pods of the control plane (PW-43)."""
        resource = action.target.resource
        is_unasked = action.target.namespace == KUBE_SYSTEM
        asked = self._concerned(resource, "CREATE")
        handlers = [pair for pair in asked if not (is_unasked and pair[0].is_pod)]
        if not handlers:
            body: Mapping[str, Any] = action.body
            return body
        request = _request(resource, action.target.key, action.body, None)
        changed: Mapping[str, Any] = action.body
        for entry, handler in handlers:
            said = self._ask(handler, request, world)
            if isinstance(said, Deny | Invalid):
                raise RefusedWriteError(str(_refusal(entry, request, said)))
            if isinstance(said, Change):
                changed = said.object
                request = _request(resource, action.target.key, changed, None)
        return changed


def _read(world: World, target: Read) -> Any:
    match target:
        case Trial():
            return None  # the definition of the kind has judged it
        case Listing():
            found = world.store(target.resource).list()
            return tuple(one for one in found if target.namespace in ("", one.metadata.namespace))
        case _:
            return world.store(target.resource).get(target.namespace, target.name)


def _written(world: World, before: Sequence[Outcome], actions: Sequence[Action]) -> tuple[Outcome, ...]:
    outcomes: list[Outcome] = [*before]
    stopped = False
    for action in actions:
        outcome = Outcome(action=action, result=Result.SKIPPED) if stopped else world.write(action)
        stopped = outcome.result is not Result.DONE
        outcomes.append(outcome)
    return tuple(outcomes)


def _booked(world: World, needs: NeedsBooking) -> Any:
    """Nobody else is here to be faster."""
    target = needs.target
    before = world.store(target.resource).get(target.namespace, target.name)
    booking = needs.book(before, world.now)
    if booking.object is not before:
        world.write(needs.write(before, booking.object))
    return booking.result


def _request(
    resource: Resource[Any], key: Key, document: Mapping[str, Any], old: Mapping[str, Any] | None
) -> AdmissionRequest:
    return AdmissionRequest(
        uid=_UID,
        kind=GroupVersionKind(group=resource.group, version=resource.version, kind=resource.kind),
        resource=GroupVersionResource(group=resource.group, version=resource.version, resource=resource.plural),
        name=key.name,
        namespace=key.namespace,
        operation="CREATE" if old is None else "UPDATE",
        object=Raw(codec.encode(document)),
        old_object=Raw(b"null") if old is None else Raw(codec.encode(old)),
        dry_run=False,
    )


def _refusal(entry: Entry, request: AdmissionRequest, said: Deny | Invalid) -> RefusedError:
    """In the words of an API server."""
    if isinstance(said, Invalid):
        status = invalid_status(request, said.causes)
        texts = tuple(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in said.causes)
        message, code = str(status["message"]), int(status["code"])
    else:
        message, code, texts = said.message, said.code, (said.message,)
    return RefusedError(f'admission webhook "{entry.name}" denied the request: {message}', messages=texts, code=code)
