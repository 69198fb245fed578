"""The verbs of the API over any registered kind: the generic heart of the local cluster.

A write reads the object, makes the new one with pure functions, lets admission see it, and stores it if nobody stored
something else in the meantime; otherwise it starts again, as a real server does. Nothing gives way to other tasks
between that last look and the store, so no lock is needed.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import go_quote
from kruise.local.apicore import deletion, errors, metadata, owners, patching
from kruise.local.apicore.admitting import Admission, AdmissionRequest, Operation
from kruise.local.apicore.conversions import Conversions, Convert
from kruise.local.apicore.deletion import DeleteOptions, Fate
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import (
    ActionSubresource,
    KindDescription,
    ObjectSubresource,
    Registry,
    StreamSubresource,
    Subresource,
    ViewSubresource,
)
from kruise.local.apicore.listing import Filter, ListOptions, Page, list_page
from kruise.local.apicore.owners import FieldTracker
from kruise.local.apicore.patching import PatchReader
from kruise.local.apicore.proxying import MountedServices
from kruise.local.apicore.storage import Key, MemoryStorage, Storage
from kruise.local.apicore.strategy import changed, prepare_new, prepare_status
from kruise.local.apicore.watching import Watch
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import Clock
from kruise.machinery.names import NameSource
from kruise.machinery.patches.values import same

NAME_ATTEMPTS: Final = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who asks for what, after the request was understood."""

    kind: KindDescription
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    user: str = ""
    manager: str = ""
    """Who is noted as the owner of the fields that a write sets."""
    force: bool | None = None
    """Whether an apply takes fields from other managers; None where the request does not say."""

    @property
    def key(self) -> Key:
        return (self.namespace if self.kind.namespaced else "", self.name)


Track = Callable[[Any, Json, Json], Any]
"""(owners so far, object before, object as it was asked for) -> owners."""
Apply = Callable[[Json | None, Any, Convert], tuple[Json, Any]]
"""From the object (None: there is none), without its owners, and its owners to what they become."""
ApplyReader = Callable[[Call, bytes], Apply]


class ApiCore:
    """An API server without a network. Objects that it returns are shared with its storage: never change one."""

    def __init__(
        self,
        registry: Registry,
        *,
        clock: Clock,
        storage: Storage | None = None,
        seed: int | None = None,
        require_namespaces: bool = False,
        patch_readers: Mapping[str, PatchReader] = patching.READERS,
        bookmark_interval: float | None = 60.0,
        watch_max_lag: int = 10_000,
    ) -> None:
        """`seed` makes uids and generated names the same each time; without one they are random."""
        self.registry = registry
        self.clock = clock
        # Not 0, even while it is empty: clients take version 0 for "any".
        self.storage: Storage = MemoryStorage(start_version=1) if storage is None else storage
        self.admission = Admission()
        self.services = MountedServices()
        self.require_namespaces = require_namespaces
        self.patch_readers = patch_readers
        self.field_tracker: FieldTracker | None = None
        self.apply_reader: ApplyReader | None = None
        self._names = NameSource(random.SystemRandom().getrandbits(128) if seed is None else seed)
        self._bookmark_interval = bookmark_interval
        self._watch_max_lag = watch_max_lag
        self._watches: dict[Watch, str] = {}

    # Reading

    async def read(self, call: Call) -> Json:
        """`get`, also for kinds whose conversion takes a webhook."""
        if call.kind.converter is None:
            return self.get(call)
        return self._seen(call, await self.converted(call.kind, self._existing(call), call.version))

    def get(self, call: Call) -> Json:
        return self._seen(call, call.kind.in_version(self._existing(call), call.version))

    def _seen(self, call: Call, seen: Json) -> Json:
        view = self._subresource(call)
        if isinstance(view, ViewSubresource):
            return view.read(seen)
        if isinstance(view, ActionSubresource | StreamSubresource):
            raise errors.method_not_allowed()
        return seen

    async def converted(self, kind: KindDescription, obj: Json, version: str) -> Json:
        """The object in a version, also where that takes a webhook."""
        if kind.converter is None or obj.get("apiVersion") == kind.api_version(version):
            return kind.in_version(obj, version)
        return (await kind.converter([obj], version))[0]

    async def read_list(self, call: Call, options: ListOptions) -> Json:
        """`list`, also for kinds whose conversion takes a webhook."""
        if call.kind.converter is None:
            return self.list(call, options)
        page = self._page(call, options)
        return self._listed(call, page, await call.kind.converter(page.items, call.version))

    def list(self, call: Call, options: ListOptions) -> Json:
        page = self._page(call, options)
        return self._listed(call, page, [call.kind.in_version(obj, call.version) for obj in page.items])

    def _page(self, call: Call, options: ListOptions) -> Page:
        selected = Filter(call.kind, call.namespace, options.labels, options.fields)
        return list_page(self.storage, call.kind, selected, options)

    def _listed(self, call: Call, page: Page, items: Sequence[Json]) -> Json:
        kind = call.kind
        if not kind.custom:
            items = [{name: value for name, value in item.items() if name not in _TYPE} for item in items]
        about: Json = {"resourceVersion": str(page.version)}
        if page.continue_token or kind.custom:
            about["continue"] = page.continue_token
        if page.remaining is not None:
            about["remainingItemCount"] = page.remaining
        api_version = kind.api_version(call.version)
        return {"kind": kind.listed_as, "apiVersion": api_version, "metadata": about, "items": items}

    def watch(self, call: Call, options: ListOptions, *, with_owners: bool = False) -> Watch:
        """`with_owners`: objects come with `managedFields`."""
        fields = options.fields
        if call.name:
            fields = f"metadata.name={call.name}" + (f",{fields}" if fields else "")
        selected = Filter(call.kind, call.namespace, options.labels, fields)
        watch = Watch(
            self.storage,
            call.kind,
            call.version,
            selected,
            options,
            bookmark_interval=self._bookmark_interval,
            max_lag=self._watch_max_lag,
            with_owners=with_owners,
            on_close=self._forget_watch,
        )
        self._watches[watch] = call.kind.group_resource
        return watch

    def _forget_watch(self, watch: Watch) -> None:
        self._watches.pop(watch, None)

    def end_watches(self, resource: str) -> None:
        """End the open watches of a kind that is not served any more as it was when they began."""
        for watch in [watch for watch, watched in self._watches.items() if watched == resource]:
            watch.finish()

    def _existing(self, call: Call) -> Json:
        obj = self.storage.get(call.kind.group_resource, call.key)
        if obj is None:
            raise errors.not_found(call.kind.group, call.kind.plural, call.name)
        return obj

    def _subresource(self, call: Call) -> Subresource | None:
        if not call.subresource:
            return None
        known = call.kind.subresources.get(call.subresource)
        if known is None and call.subresource == "status" and call.kind.has_status:
            return ObjectSubresource(prepare=lambda new, old: prepare_status(call.kind, new, old))
        if known is None:
            if call.kind.custom:
                raise errors.not_found(call.kind.group, call.kind.plural, call.name)
            raise errors.no_such_resource()
        return known

    # Creating

    async def create(self, call: Call, obj: Json) -> Json:
        action = self._subresource(call)
        if isinstance(action, ActionSubresource):
            return await action.create(self, call, obj)
        if action is not None:
            raise errors.method_not_allowed()
        asked = owners.asked(obj)
        obj = self._understood(call, obj)
        held = None if self.field_tracker is None else self.field_tracker.created(call, obj, asked)
        return await self._create(call, obj, await self._settled(held, Conversions(call.kind)))

    async def _create(self, call: Call, obj: Json, held: Any) -> Json:
        obj = metadata.for_create(obj)
        self._check_namespace(call)
        obj = await self._mutated(call, Operation.CREATE, obj, None)
        generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        attempts = NAME_ATTEMPTS if generated else 1
        while True:
            attempts -= 1
            try:
                return await self._create_once(call, obj, generated, held)
            except errors.StatusError as error:
                if error.reason != "AlreadyExists" or not attempts:
                    raise

    async def _create_once(self, call: Call, obj: Json, generated: bool, held: Any) -> Json:
        kind = call.kind
        about = obj["metadata"]
        if generated:
            about = {**about, "name": self._names.generate(about["generateName"])}
        moment = metadata.timestamp(self.clock.now())
        new = {**obj, "metadata": {**about, "uid": self._names.uid(), "creationTimestamp": moment}}
        new = prepare_new(kind, new)
        name = about.get("name", "")
        problems = [*metadata.problems_on_create(kind, new), *kind.validate(new, None)]
        if problems:
            raise errors.invalid_object(kind.group, kind.kind, name, problems)
        await self._validated(dataclasses.replace(call, name=name), Operation.CREATE, new, None)
        if "resourceVersion" in about:
            raise errors.plain_failure("resourceVersion should not be set on objects to be created")
        # A webhook's conversion gives way to other tasks, so it comes before the last look.
        converted = None if kind.converter is None else await self.converted(kind, new, kind.stored_version)
        key = (call.key[0], name)
        taken = self.storage.get(kind.group_resource, key)
        if taken is not None:
            deleting = "deletionTimestamp" in taken["metadata"]
            raise errors.already_exists(kind.group, kind.plural, name, generated=generated, deleting=deleting)
        if kind.complete is not None:
            new = kind.complete(self.storage, new, None, call.dry_run)
        if call.dry_run:
            return owners.owned(new, held)
        if converted is None:
            converted = kind.in_version(new, kind.stored_version)
        stored = self.storage.put(kind.group_resource, key, owners.owned(converted, held))
        return await self.converted(kind, stored.object, call.version)

    def _understood(self, call: Call, obj: Json) -> Json:
        """The object as it was sent: of this kind and version, with well-formed metadata and defaults.

        What it says of its owners is left out: whoever wants that reads it before.
        """
        kind, obj = call.kind, owners.bare(obj)
        expected = kind.api_version(call.version)
        if obj.get("apiVersion", expected) != expected or obj.get("kind", kind.kind) != kind.kind:
            raise _of_another_kind(kind, expected, obj)
        if "apiVersion" not in obj or "kind" not in obj:
            obj = {"kind": kind.kind, "apiVersion": expected, **obj}
        return kind.default(metadata.checked(kind, obj, call.namespace))

    def _check_namespace(self, call: Call) -> None:
        """New objects need a namespace that is there to stay."""
        if not self.require_namespaces or not call.kind.namespaced:
            return
        namespace = self.storage.get("namespaces", ("", call.namespace))
        if namespace is None:
            raise errors.not_found("", "namespaces", call.namespace)
        if "deletionTimestamp" in namespace["metadata"]:
            raise _namespace_goes(call)

    # Changing

    async def update(self, call: Call, obj: Json) -> tuple[Json, bool]:
        """Replace an object; returns it and whether it was created."""
        part = self._subresource(call)
        if isinstance(part, ActionSubresource | StreamSubresource):
            raise errors.method_not_allowed()
        if isinstance(part, ViewSubresource):
            return await self._write_view(call, part, lambda _: obj)
        asked = owners.asked(obj)
        sent = self._understood(call, obj)
        self._check_name(call, sent)
        uid = sent["metadata"].get("uid", "")

        def replaced(old: Json) -> Json:
            if uid and uid != old["metadata"]["uid"]:
                raise self.failed_precondition(call, "UID", uid, old["metadata"]["uid"])
            return sent

        if call.kind.creates_on_update and self.storage.get(call.kind.group_resource, call.key) is None:
            return await self.create(dataclasses.replace(call, subresource=""), obj), True
        return await self._change(call, part, replaced, track=self._tracking(call, lambda: asked)), False

    def _tracking(self, call: Call, asked: Callable[[], Sequence[Any] | None]) -> Track | None:
        tracker = self.field_tracker
        if tracker is None:
            return None
        return lambda held, old, made: tracker.changed(call, held, old, made, asked())

    async def patch(self, call: Call, content_type: str, body: bytes) -> tuple[Json, bool]:
        """Patch an object; returns it and whether it was created."""
        part = self._subresource(call)
        if isinstance(part, ActionSubresource | StreamSubresource):
            raise errors.method_not_allowed()
        if self.apply_reader is not None and patching.media_type(content_type) == PatchType.APPLY:
            if isinstance(part, ViewSubresource):
                raise errors.unsupported_media_type([name for name in self.patch_readers if name != PatchType.APPLY])
            return await self._apply(call, part, self.apply_reader(call, body))
        applies = self.apply_reader is not None
        apply = patching.read(call.kind, call.version, content_type, body, self.patch_readers, applies=applies)
        if isinstance(part, ViewSubresource):
            return await self._write_view(call, part, lambda obj: apply(part.read(obj)))
        asked: Sequence[Any] | None = None
        about_owners = owners.FIELD.encode() in body

        def patched(old: Json) -> Json:
            nonlocal asked
            if about_owners:
                old = owners.plain(owners.owned(old, owners.held(self._existing(call))))
            result = apply(old)
            if not isinstance(result, dict):
                raise errors.unprocessable()
            asked = owners.asked(result) if about_owners else None
            result = self._understood(call, result)
            self._check_name(call, result)
            return result

        return await self._change(call, part, patched, track=self._tracking(call, lambda: asked)), False

    async def _apply(
        self,
        call: Call,
        part: ObjectSubresource | None,
        apply: Apply,
    ) -> tuple[Json, bool]:
        """Merge what a manager wants into the object, or create it from that."""
        made_owners: Any = None
        conversions = Conversions(call.kind)

        def applied(old: Json | None) -> Json:
            nonlocal made_owners
            held = None if old is None else owners.held(self._existing(call))
            result, made_owners = apply(old, held, conversions.convert)
            uid = (result.get("metadata") or {}).get("uid")
            if old is None and uid:
                text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise errors.conflict(call.kind.group, call.kind.plural, call.name, text)
            understood = self._understood(call, result if call.kind.custom else patching.without_nulls(result))
            self._check_name(call, understood)
            # An apply is not read again as a request is: nulls in custom objects stay, to be judged by the schema.
            return patching.with_nulls_of(result, understood) if call.kind.custom else understood

        def owned(held: Any, old: Json, made: Json) -> Any:
            return made_owners

        while True:
            if part is not None or self.storage.get(call.kind.group_resource, call.key) is not None:
                return await self._change(call, part, applied, track=owned, conversions=conversions), False
            try:
                new = await conversions.run(lambda: applied(None))
                return await self._create(call, new, made_owners), True
            except errors.StatusError as error:
                # Somebody else created it in the meantime: there is something to merge into now.
                if error.reason != "AlreadyExists" or call.dry_run:
                    raise

    async def _write_view(self, call: Call, part: ViewSubresource, change: Callable[[Json], Json]) -> tuple[Json, bool]:
        def merged(old: Json) -> Json:
            return part.write(old, change(old))

        track = self._tracking(call, lambda: None)
        return part.read(await self._change(call, None, merged, part, track=track)), False

    def _check_name(self, call: Call, obj: Json) -> None:
        name = obj["metadata"].get("name", "")
        if not name:
            raise errors.bad_request(
                f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
            )
        if name != call.name:
            raise errors.bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({call.name})"
            )

    async def _change(
        self,
        call: Call,
        part: ObjectSubresource | None,
        make: Callable[[Json], Json],
        view: ViewSubresource | None = None,
        *,
        track: Track | None,
        conversions: Conversions | None = None,
    ) -> Json:
        """Store what `make` makes of the object; begins again when another write comes in between.

        Where the object is written through a `view`, admission sees the view. `track` tells the owners of the result.
        `conversions` are those that `make` asks for.
        """
        kind, resource = call.kind, call.kind.group_resource
        conversions = conversions or Conversions(kind)
        while True:
            existing = self._existing(call)
            held, unowned = owners.held(existing), owners.bare(existing)
            old = await self.converted(kind, unowned, call.version)
            made = await conversions.run(functools.partial(make, old))
            now_held = held if track is None else await self._settled(track(held, old, made), conversions)
            new = await self._mutated_update(call, made, old, view)
            self._check_version(call, new, old)
            new = changed(kind, part, new, old)
            problems = metadata.problems_on_update(kind, new, old)
            problems.extend(kind.validate(new, old) if part is None else part.validate(new, old))
            if problems:
                raise errors.invalid_object(kind.group, kind.kind, call.name, problems)
            if view is None:
                await self._validated(call, Operation.UPDATE, new, old)
            else:
                await self._validated(call, Operation.UPDATE, view.read(new), view.read(old))
            converted = None if kind.converter is None else await self.converted(kind, new, kind.stored_version)
            if self.storage.get(resource, call.key) is not existing:
                continue
            if kind.complete is not None and part is None:
                new = kind.complete(self.storage, new, old, call.dry_run)
            if deletion.is_over(kind, new, old):
                if not call.dry_run:
                    self.storage.delete(resource, call.key)
                return owners.owned(new, now_held)
            stored = kind.in_version(new, kind.stored_version) if converted is None else converted
            if same(stored, unowned) and self._agree(held, now_held):
                return owners.owned(new, held)
            if call.dry_run:
                return owners.owned(new, now_held)
            stored = owners.owned(stored, now_held)
            return await self.converted(kind, self.storage.put(resource, call.key, stored).object, call.version)

    async def _settled(self, held: Any, conversions: Conversions) -> Any:
        """The owners, worked out at once where conversions take time: whoever reads them does not wait."""
        tracker = self.field_tracker
        if tracker is None or not conversions.take_time:
            return held
        await conversions.run(lambda: tracker.settle(held, conversions.convert))
        return held

    def _agree(self, held: Any, other: Any) -> bool:
        return held is other or self.field_tracker is None or self.field_tracker.agree(held, other)

    def _check_version(self, call: Call, new: Json, old: Json) -> None:
        kind = call.kind
        given = new["metadata"].get("resourceVersion", "")
        if given and not (given.isascii() and given.isdecimal()):
            raise errors.plain_failure(f"strconv.ParseUint: parsing {go_quote(given)}: invalid syntax")
        if not given or given == "0":
            if kind.custom or not kind.allows_unconditional_update:
                problem = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise errors.invalid_object(kind.group, kind.plural, call.name, [problem])
        elif given != old["metadata"]["resourceVersion"]:
            raise errors.conflict(kind.group, kind.plural, call.name, errors.OPTIMISTIC_LOCK)

    # Deleting

    async def delete(self, call: Call, options: DeleteOptions, *, is_admitted: bool = False) -> Json:
        """Returns the object while it stays, and a Status (or, for some kinds, the object) when it is gone."""
        kind, resource = call.kind, call.kind.group_resource
        dry_run = options.dry_run or call.dry_run
        while True:
            existing = self._existing(call)
            deletion.check_preconditions(kind, existing, options)
            outcome = deletion.decide(kind, existing, options, self.clock.now())
            if outcome.fate is Fate.PENDING:
                return self._farewell(call, existing)
            old = await self.converted(kind, existing, call.version)
            review = _review(dataclasses.replace(call, dry_run=dry_run), Operation.DELETE, None, old, options.as_json())
            if not is_admitted:
                await self.admission.mutate(review)
                await self.admission.validate(review)
            if self.storage.get(resource, call.key) is not existing:
                continue
            final = outcome.object
            if not dry_run and not same(final, existing):
                final = self.storage.put(resource, call.key, final).object
            if outcome.fate is Fate.MARK:
                return await self.converted(kind, final, call.version)
            if not dry_run:
                final = self.storage.delete(resource, call.key).object
            return self._farewell(call, final)

    def _farewell(self, call: Call, obj: Json) -> Json:
        kind = call.kind
        if kind.returns_deleted_object:
            return kind.in_version(obj, call.version)
        about = obj["metadata"]
        return errors.success(errors.details_of(about["name"], kind.group, kind.plural, uid=about["uid"]))

    async def delete_collection(self, call: Call, selection: ListOptions, options: DeleteOptions) -> Json:
        """Delete what a list selects, one by one; returns that list."""
        found = await self.read_list(call, selection)
        for item in found["items"]:
            about = item["metadata"]
            each = dataclasses.replace(call, namespace=about.get("namespace", ""), name=about["name"])
            try:
                await self.delete(each, options)
            except errors.StatusError as error:
                if error.code != 404:
                    raise
        return found

    # For subresources

    def failed_precondition(self, call: Call, what: str, given: str, found: str) -> errors.StatusError:
        """A real server lets its storage speak here."""
        place = "/".join(part for part in (call.kind.storage_prefix, *call.key) if part)
        text = (
            f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: {what} in precondition: {given}, {what} in object meta: {found}"
        )
        return errors.conflict(call.kind.group, call.kind.plural, call.name, text)

    async def admit_action(self, call: Call, body: Json) -> None:
        """Show the body of a subresource's POST to admission."""
        review = _review(call, Operation.CREATE, body, None)
        await self.admission.validate(await self.admission.mutate(review))

    def rewrite(self, call: Call, make: Callable[[Json], Json]) -> Json:
        """Store what `make` makes of the object, by the server's own right: no rule of updates holds it back."""
        obj = call.kind.in_version(self._existing(call), call.version)
        new = make(obj)
        if call.dry_run or same(new, obj):
            return new
        stored = call.kind.in_version(new, call.kind.stored_version)
        return call.kind.in_version(self.storage.put(call.kind.group_resource, call.key, stored).object, call.version)

    # Admission

    async def _mutated(self, call: Call, operation: Operation, new: Json | None, old: Json | None) -> Json:
        if self.admission.mutating:
            request = await self.admission.mutate(_review(call, operation, new, old))
            if request.object is not None and request.object is not new:
                return metadata.checked(call.kind, request.object, call.namespace)
        return {} if new is None else new

    async def _mutated_update(self, call: Call, new: Json, old: Json, view: ViewSubresource | None) -> Json:
        if view is None:
            return await self._mutated(call, Operation.UPDATE, new, old)
        if not self.admission.mutating:
            return new
        shown = view.read(new)
        request = await self.admission.mutate(_review(call, Operation.UPDATE, shown, view.read(old)))
        return new if request.object is None or request.object is shown else view.write(new, request.object)

    async def _validated(self, call: Call, operation: Operation, new: Json | None, old: Json | None) -> None:
        if self.admission.validating:
            await self.admission.validate(_review(call, operation, new, old))


_TYPE = frozenset({"kind", "apiVersion"})


def _of_another_kind(kind: KindDescription, expected: str, obj: Json) -> errors.StatusError:
    sent_version, sent_kind = obj.get("apiVersion", expected), obj.get("kind", kind.kind)
    if kind.custom:
        if sent_kind == kind.kind:
            return errors.bad_request(
                f"the API version in the data ({sent_version}) does not match the expected API version ({expected})"
            )
        problem = field_errors.invalid("kind", sent_kind, f"must be {kind.kind}")
        name = (obj.get("metadata") or {}).get("name", "")
        return errors.invalid_object(kind.group, sent_kind, name, [problem])
    short = str(sent_version).rpartition("/")[2]
    if sent_version == expected:
        why = f"converting ({short}.{sent_kind}) to ({kind.group or 'core'}.{kind.kind}): unknown conversion"
    else:
        scheme = '"pkg/runtime/scheme.go:110"'
        why = f"no kind {go_quote(sent_kind)} is registered for version {go_quote(sent_version)} in scheme {scheme}"
    return errors.bad_request(f"{sent_kind} in version {go_quote(short)} cannot be handled as a {kind.kind}: {why}")


_OPTIONS_KIND = {Operation.CREATE: "CreateOptions", Operation.UPDATE: "UpdateOptions"}


def _review(
    call: Call, operation: Operation, new: Json | None, old: Json | None, options: Json | None = None
) -> AdmissionRequest:
    if options is None:
        options = {"kind": _OPTIONS_KIND[operation], "apiVersion": "meta.k8s.io/v1"}
        if call.dry_run:
            options["dryRun"] = ["All"]
        if call.manager:
            options["fieldManager"] = call.manager
    name = call.name or ((new or {}).get("metadata") or {}).get("name", "")
    return AdmissionRequest(
        operation=operation,
        kind=call.kind,
        version=call.version,
        namespace=call.namespace,
        name=name,
        subresource=call.subresource,
        object=new,
        old_object=old,
        dry_run=call.dry_run,
        user=call.user,
        options=options,
    )


def _namespace_goes(call: Call) -> errors.StatusError:
    """Made here, so that it has no name where it is raised: its traceback knows that frame, and a frame that knew it by
    a name would be a cycle."""
    text = f"unable to create new content in namespace {call.namespace} because it is being terminated"
    refusal = errors.forbidden(call.kind.group, call.kind.plural, call.name, text)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {call.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refusal.status["details"]["causes"] = [cause]
    return refusal
