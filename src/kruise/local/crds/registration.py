"""Definitions at work: the kinds that they define come, change and go with them.

It listens to the storage and acts within the write itself, so that a kind is served as soon as its definition was
answered. What several controllers do one after the other on a real server (accept the names, establish, clean up) is
done here in the same steps, each of them a write that watchers see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.local.apicore import deletion
from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.deletion import DeleteOptions, Fate
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.storage import CompactedError
from kruise.local.crds import naming
from kruise.local.crds.conversion_rules import is_usable_bundle
from kruise.local.crds.definition import CLEANUP, RESOURCE, definition_kind
from kruise.local.crds.description import Family
from kruise.machinery.patches.values import same

if TYPE_CHECKING:
    from collections.abc import Callable

    from kruise.local.webhooks.convert import ConversionCaller


class _Served:
    """A kind as it is served now."""

    def __init__(self, definition: Json, kind: KindDescription) -> None:
        self.definition = definition
        self.kind = kind
        self.resource = kind.group_resource

    def is_for(self, definition: Json) -> bool:
        mine, other = self.definition, definition
        return (
            mine["metadata"]["uid"] == other["metadata"]["uid"]
            and same(mine["spec"], other["spec"])
            and same(mine["status"]["acceptedNames"], other["status"]["acceptedNames"])
            and _is_terminating(mine) == _is_terminating(other)
        )


def _is_terminating(definition: Json) -> bool:
    return naming.is_true(definition, "Terminating")


class Definitions:
    """Serves the kinds of all definitions in a core's storage, from now on."""

    def __init__(self, core: ApiCore, *, conversion: ConversionCaller | None = None) -> None:
        """`conversion` calls the webhooks of kinds that convert by webhook."""
        self._core = core
        self._conversion = conversion
        self._served: dict[str, _Served] = {}
        self._waiting: dict[str, Callable[[], None]] = {}
        self._working = False
        self._cursor = core.storage.version
        resource = CUSTOM_RESOURCE_DEFINITIONS
        known = core.registry.find(resource.group, resource.version, resource.plural)
        core.registry.add(definition_kind(known))
        for definition in self._definitions():
            self._settle(definition["metadata"]["name"])
        self._end = core.storage.subscribe(RESOURCE, self._wake)

    def close(self) -> None:
        """Stop listening. Kinds that are served stay served."""
        self._end()
        for end in self._waiting.values():
            end()
        self._waiting.clear()

    def _definitions(self) -> list[Json]:
        storage = self._core.storage
        return [obj for _, obj in storage.scan(RESOURCE, "", "", storage.version)]

    def _wake(self) -> None:
        # Each step writes, and each write comes back here: the loop below sees it.
        if self._working:
            return
        self._working = True
        try:
            while True:
                names = self._changed()
                if not names:
                    return
                for name in names:
                    self._settle(name)
        finally:
            self._working = False

    def _changed(self) -> list[str]:
        storage = self._core.storage
        try:
            events = storage.since(RESOURCE, self._cursor)
        except CompactedError:
            self._cursor = storage.version
            return list({*self._served, *(obj["metadata"]["name"] for obj in self._definitions())})
        if events:
            self._cursor = events[-1].version
        return list(dict.fromkeys(event.key[1] for event in events))

    # One definition

    def _settle(self, name: str) -> None:
        definition = self._core.storage.get(RESOURCE, ("", name))
        if definition is None:
            self._forget(name)
            return
        definition = self._named(definition)
        if CLEANUP in definition["metadata"].get("finalizers", ()) and "deletionTimestamp" in definition["metadata"]:
            self._clean_up(definition)
            return
        if naming.is_true(definition, "NamesAccepted") or naming.is_true(definition, "Established"):
            self._serve(definition)
        if naming.is_true(definition, "NamesAccepted") and not naming.is_true(definition, "Established"):
            self._establish(definition)

    def _write(self, definition: Json) -> Json:
        key = ("", definition["metadata"]["name"])
        return self._core.storage.put(RESOURCE, key, definition).object

    def _named(self, definition: Json) -> Json:
        """With the names that are free, written if that changed something."""
        group, now = definition["spec"]["group"], self._core.clock.now()
        others = [
            other
            for other in self._definitions()
            if other["spec"]["group"] == group and other["metadata"]["name"] != definition["metadata"]["name"]
        ]
        named = naming.accepted(definition, others, now)
        named = naming.with_approval(named, now)
        if named is definition:
            return definition
        released = definition["status"].get("acceptedNames") != named["status"]["acceptedNames"]
        written = self._write(named)
        if released:
            self._settle_refused(group)
        return written

    def _settle_refused(self, group: str) -> None:
        """Names became free: those that were refused one may get it now."""
        for other in self._definitions():
            refused = naming.condition(other, "NamesAccepted")
            if other["spec"]["group"] == group and refused is not None and refused["status"] != "True":
                self._named(other)

    def _establish(self, definition: Json) -> None:
        webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
        bundle = (webhook.get("clientConfig") or {}).get("caBundle", "")
        status, reason, text = "True", "InitialNamesAccepted", "the initial names have been accepted"
        if not is_usable_bundle(bundle):
            status, reason, text = "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
        established = naming.with_condition(definition, "Established", status, reason, text, self._core.clock.now())
        if not same(established, definition):
            self._write(established)

    # Serving

    def _serve(self, definition: Json) -> None:
        name = definition["metadata"]["name"]
        known = self._served.get(name)
        if known is not None and known.is_for(definition):
            return
        resource = f"{definition['status']['acceptedNames']['plural']}.{definition['spec']['group']}"
        changed_at = 0 if self._is_empty(resource) else self._core.storage.version
        convert = None if self._conversion is None else self._conversion.convert
        kind = Family(definition, convert, changed_at).describe(terminating=_is_terminating(definition))
        self._core.registry.add(kind)
        self._served[name] = _Served(definition, kind)
        if known is not None and not same(known.definition["spec"], definition["spec"]):
            self._core.end_watches(known.resource)

    def _forget(self, name: str) -> None:
        served = self._served.pop(name, None)
        if served is None:
            return
        self._core.registry.remove(served.kind.group, served.kind.plural)
        self._core.end_watches(served.resource)
        self._settle_refused(served.kind.group)

    # Cleaning up

    def _clean_up(self, definition: Json) -> None:
        """Remove the objects of a deleted definition, and then itself."""
        now = self._core.clock.now()
        established = naming.is_true(definition, "Established")
        if established:
            text = "CustomResource deletion is in progress"
            current = naming.with_condition(definition, "Terminating", "True", "InstanceDeletionInProgress", text, now)
            if not same(current, definition):
                definition = self._write(current)
            self._serve(definition)
            if not self._remove_objects(definition):
                return
            reason, text = "InstanceDeletionCompleted", "removed all instances"
        else:
            reason, text = "NeverEstablished", "resource was never established"
        self._finish(naming.with_condition(definition, "Terminating", "False", reason, text, now))

    def _is_empty(self, resource: str) -> bool:
        storage = self._core.storage
        return next(iter(storage.scan(resource, "", "", storage.version)), None) is None

    def _remove_objects(self, definition: Json) -> bool:
        """Delete all objects; False while some of them still have finalizers."""
        name = definition["metadata"]["name"]
        served, storage = self._served[name], self._core.storage
        for key, obj in list(storage.scan(served.resource, "", "", storage.version)):
            if "deletionTimestamp" in obj["metadata"]:
                continue
            outcome = deletion.decide(served.kind, obj, DeleteOptions(), self._core.clock.now())
            if outcome.fate is Fate.MARK:
                storage.put(served.resource, key, outcome.object)
            else:
                storage.delete(served.resource, key)
        if self._is_empty(served.resource):
            return True
        if name not in self._waiting:
            self._waiting[name] = storage.subscribe(served.resource, lambda: self._look_again(name))
        return False

    def _look_again(self, name: str) -> None:
        """An object of a kind on its way out changed: perhaps it was the last."""
        served = self._served.get(name)
        if served is None or not self._is_empty(served.resource):
            return
        definition = self._core.storage.get(RESOURCE, ("", name))
        if definition is not None:
            self._clean_up(definition)

    def _finish(self, definition: Json) -> None:
        name = definition["metadata"]["name"]
        end = self._waiting.pop(name, None)
        if end is not None:
            end()
        about = dict(definition["metadata"])
        about["finalizers"] = [item for item in about["finalizers"] if item != CLEANUP]
        if about["finalizers"]:
            self._write({**definition, "metadata": about})
        else:
            self._core.storage.delete(RESOURCE, ("", name))
        self._wake()
