"""Which webhooks a write is shown to, in what order, and what becomes of the write.

`Webhooks` stands in the admission chain of a core. Mutating webhooks are asked one after the other, each with what
those before it made; after a change the earlier ones that want it are asked once more. Validating webhooks are asked
all at once; of several refusals the first in their order is given.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
import uuid
from collections.abc import Callable, Sequence

from kruise.api.core.field_errors import go_quote
from kruise.local.apicore import errors, warnings
from kruise.local.apicore.admitting import AdmissionRequest, Operation
from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.webhooks import entries, reviews
from kruise.local.webhooks.calling import Caller, CallError, target_of
from kruise.local.webhooks.conditions import EvaluationError
from kruise.local.webhooks.entries import Entry
from kruise.local.webhooks.reviews import Answer, User
from kruise.machinery.patches import json_patch
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.patches.values import same

log = logging.getLogger(__name__)

WhoIs = Callable[[str], User]


class Webhooks:
    """Installs itself in the core's admission, behind what is there already.

    `seed` makes the uids of reviews repeatable. `who_is` tells more about a user than the name.
    """

    def __init__(self, core: ApiCore, caller: Caller, *, seed: int | None = None, who_is: WhoIs = User) -> None:
        self._core = core
        self._caller = caller
        self._who_is = who_is
        self._random = random.Random(seed) if seed is not None else random.SystemRandom()
        self._mutating = _Configurations(core, entries.MUTATING)
        self._validating = _Configurations(core, entries.VALIDATING)
        core.admission.mutating.append(self._mutate)
        core.admission.validating.append(self._validate)

    def close(self) -> None:
        """Leave the core's admission."""
        self._core.admission.mutating.remove(self._mutate)
        self._core.admission.validating.remove(self._validate)
        self._mutating.close()
        self._validating.close()

    # Mutating

    async def _mutate(self, request: AdmissionRequest) -> Json | None:
        if _is_exempt(request):
            return None
        interested = self._mutating.interested(request)
        if not interested:
            return None
        state = _Reinvocation()
        given = request.object
        for is_again in (False, True):
            for entry in interested:
                version = await self._wants(entry, request)
                if not version or (is_again and entry not in state.again):
                    continue
                changed = await self._ask_to_mutate(entry, request, version)
                if changed is not None:
                    request = dataclasses.replace(request, object=changed)
                    state.changed()
                if entry.is_reinvoked:
                    state.invoked.add(entry)
            if not state.is_needed:
                break
        return request.object if request.object is not given else None

    async def _ask_to_mutate(self, entry: Entry, request: AdmissionRequest, version: str) -> Json | None:
        """The changed object in the request's version; None where nothing changes."""
        shown = await self._shown(request, version)
        answer = await self._asked(entry, request, version, shown, mutating=True)
        if answer is None or not answer.patch:
            return None
        before = shown[0]
        if before is None:
            raise reviews.internal(
                f"admission webhook {go_quote(entry.name)} attempted to modify the object, which is not supported "
                "for this operation"
            )
        try:
            after = json_patch.apply(before, answer.patch)
        except PatchError as error:
            raise reviews.internal(str(error)) from error
        if not isinstance(after, dict) or same(after, before):
            return None
        kind = request.kind
        if not _is_of_kind(request, after):
            return after
        return kind.default(await self._core.converted(kind, after, request.version))

    # Validating

    async def _validate(self, request: AdmissionRequest) -> None:
        if _is_exempt(request):
            if request.object is not None and request.kind.kind.endswith("WebhookConfiguration"):
                for text in entries.unknown_conditions(request.object):
                    warnings.warn(text)
            return
        interested = self._validating.interested(request)
        if not interested:
            return
        asked = [(entry, version) for entry in interested if (version := await self._wants(entry, request))]
        if len(asked) == 1:
            refusals = [await self._ask_to_validate(*asked[0], request)]
        else:
            refusals = await asyncio.gather(*(self._ask_to_validate(*each, request) for each in asked))
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    async def _ask_to_validate(self, entry: Entry, version: str, request: AdmissionRequest) -> StatusError | None:
        try:
            shown = await self._shown(request, version)
            await self._asked(entry, request, version, shown, mutating=False)
        except StatusError as refusal:
            return refusal
        return None

    # Both

    async def _wants(self, entry: Entry, request: AdmissionRequest) -> str:
        """The version in which the entry wants to see the request; empty where it does not.

        Trouble with the namespace counts only for entries that are meant at all, as on a real server.
        """
        trouble: StatusError | None = None
        try:
            if not self._selects_namespace(entry, request):
                return ""
        except StatusError as error:
            trouble = error
        if not entries.selects_object(entry, request):
            return ""
        version = entries.matching_version(entry, request, request.kind.versions)
        if not version:
            return ""
        if trouble is not None:
            raise trouble
        if entry.conditions and not self._meets_conditions(
            entry, request, version, await self._shown(request, version)
        ):
            return ""
        return version

    def _selects_namespace(self, entry: Entry, request: AdmissionRequest) -> bool:
        namespace = reviews.namespace_of(request)
        is_namespace = request.kind.group_resource == "namespaces"
        if entry.namespaces.is_empty or not (namespace or is_namespace):
            return True
        if is_namespace and not request.subresource and request.object is not None:
            # What is written counts, not what is there.
            return entry.namespaces.matches(request.object["metadata"].get("labels") or {})
        found = self._core.storage.get("namespaces", ("", namespace))
        if found is not None:
            return entry.namespaces.matches(found["metadata"].get("labels") or {})
        if self._core.require_namespaces or is_namespace:
            raise errors.not_found("", "namespaces", namespace)
        return entry.namespaces.matches({"kubernetes.io/metadata.name": namespace})

    def _meets_conditions(
        self, entry: Entry, request: AdmissionRequest, version: str, shown: tuple[Json | None, Json | None]
    ) -> bool:
        asked = reviews.question(request, version, shown, self._who_is(request.user))
        about = {name: value for name, value in asked.items() if name not in ("object", "oldObject")}
        variables = {"object": shown[0], "oldObject": shown[1], "request": about}
        failures: list[str] = []
        for condition in entry.conditions:
            if condition.holds is None:
                continue
            try:
                if not condition.holds(variables):
                    return False
            except EvaluationError as error:
                failures.append(f"expression '{condition.expression}' resulted in error: {error}")
        if failures and entry.ignores_failures:
            return False
        if failures:
            text = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
            raise errors.forbidden(request.kind.group, request.kind.plural, request.name, text)
        return True

    async def _shown(self, request: AdmissionRequest, version: str) -> tuple[Json | None, Json | None]:
        """Object and old object in a version of the kind."""

        async def seen(obj: Json | None) -> Json | None:
            if obj is None or version == request.version or not _is_of_kind(request, obj):
                return obj
            return await self._core.converted(request.kind, obj, version)

        return await seen(request.object), await seen(request.old_object)

    async def _asked(
        self,
        entry: Entry,
        request: AdmissionRequest,
        version: str,
        shown: tuple[Json | None, Json | None],
        *,
        mutating: bool,
    ) -> Answer | None:
        """The webhook's consent; None where it could not be had and is not needed. Raises `StatusError`."""
        if request.dry_run and entry.side_effects not in ("None", "NoneOnDryRun"):
            raise reviews.no_dry_run(entry.name)
        try:
            review_version = reviews.review_version(entry.review_versions)
            uid = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            asked = reviews.question(request, version, shown, self._who_is(request.user))
            body = reviews.encoded(review_version, uid, asked)
            said = await self._caller.post(target_of(entry.client_config), body, entry.timeout)
            answer = reviews.read_answer(said, review_version, uid, mutating=mutating)
        except CallError as error:
            if not entry.ignores_failures:
                raise reviews.unanswered(entry.name, error) from error
            log.warning("webhook passed over", extra={"webhook": entry.name, "error": str(error)})
            return None
        for text in answer.warnings:
            warnings.warn(text)
        if not answer.allowed:
            raise reviews.denial(entry.name, answer.status)
        return answer


class _Reinvocation:
    """Which webhooks have to see the object again, because another one changed it after them."""

    def __init__(self) -> None:
        self.is_needed = False
        self.invoked: set[Entry] = set()
        self.again: set[Entry] = set()

    def changed(self) -> None:
        self.is_needed = True
        self.again |= self.invoked
        self.invoked = set()


class _Configurations:
    """The entries of one kind of configuration, read again after a change, sorted by what they are about."""

    def __init__(self, core: ApiCore, resource: str) -> None:
        self._core = core
        self._resource = resource
        self._entries: tuple[Entry, ...] | None = None
        self._interested: dict[tuple[str, str, str, Operation], tuple[Entry, ...]] = {}
        self.close = core.storage.subscribe(resource, self._forget)

    def _forget(self) -> None:
        self._entries = None

    def interested(self, request: AdmissionRequest) -> Sequence[Entry]:
        """The entries whose rules name the resource and the operation, in any version."""
        if self._entries is None:
            storage = self._core.storage
            found = storage.scan(self._resource, "", "", storage.version)
            self._entries = entries.compile_configurations(obj for _, obj in found)
            self._interested.clear()
        if not self._entries:
            return ()
        kind = request.kind
        key = (kind.group, kind.plural, request.subresource, request.operation)
        known = self._interested.get(key)
        if known is None:
            known = self._interested[key] = tuple(
                entry
                for entry in self._entries
                if any(
                    rule.covers(kind.group, kind.plural, request.subresource, request.operation, kind.namespaced)
                    for rule in entry.rules
                )
            )
        return known


def _is_exempt(request: AdmissionRequest) -> bool:
    """Configurations are never shown to webhooks: a bad one could not be repaired."""
    return request.kind.group == entries.EXEMPT_GROUP and request.kind.kind in entries.EXEMPT_KINDS


def _is_of_kind(request: AdmissionRequest, obj: Json) -> bool:
    """Whether the object is of the resource's own kind, and not the body of a subresource's."""
    return not request.subresource or obj.get("kind", request.kind.kind) == request.kind.kind
