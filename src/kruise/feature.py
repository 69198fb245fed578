"""What a kind brings to the system, as one value that the manager, the installer and tests read.

A kind's folder ends in one `Feature`; nothing else has to know the kind.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from kruise.admission import misspelling
from kruise.admission.chain import Mutate, PodChain, PodStep
from kruise.admission.conversion import Convert, Converters
from kruise.admission.inventory import Entry
from kruise.admission.registry import Handler, MutatingHandler, Registry
from kruise.admission.validating_chain import JudgePod, PodOperation, PodValidationChain, PodValidationStep
from kruise.faces.face import Face
from kruise.flags import FeatureFlag
from kruise.machinery.spec import ControllerSpec
from kruise.machinery.watched import Kinds

T = TypeVar("T")


class Settings(Protocol):
    """What a feature may ask about how it is run."""

    @property
    def gates(self) -> Mapping[str, bool]: ...

    @property
    def allow_privileged(self) -> bool: ...

    @property
    def own_namespace(self) -> str: ...

    @property
    def daemon_namespace(self) -> str:
        """Where node daemons may read secrets."""

    def flag(self, declared: FeatureFlag[T]) -> T:
        """The value of a flag that the feature has declared."""

    def workers_of(self, name: str) -> int: ...

    def faces(self) -> Sequence[Face]:
        """Of every kind that is known, its own among them."""


class PodMutation(NamedTuple):
    """A step of the chain behind `/mutate-pod`."""

    step: PodStep
    mutate: Mutate
    needs: Kinds = ()


class PodValidation(NamedTuple):
    """A step of the chain behind `/validate-pod`."""

    step: PodValidationStep
    judge: JudgePod
    needs: Kinds = ()
    operations: Collection[PodOperation] | None = None
    """What it is asked about; None: all that its position can be asked about."""


class Conversion(NamedTuple):
    """How objects of a kind go from one version to another."""

    group: str
    kind: str
    convert: Convert


def _nothing(settings: Settings) -> tuple[()]:
    return ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    name: str
    flags: Sequence[FeatureFlag[Any]] = ()
    """Flags of the manager that only this feature reads."""
    definitions: Sequence[Mapping[str, Any]] = ()
    """CustomResourceDefinitions, as they are installed."""
    controllers: Callable[[Settings], Sequence[ControllerSpec[Any]]] = _nothing
    """Controllers that run under these settings; a gate that is off leaves them out."""
    mutating_entries: Sequence[Entry] = ()
    validating_entries: Sequence[Entry] = ()
    """Registrations of kinds that the inventory of PyKruise's own kinds does not list."""
    webhooks: Callable[[Settings], Sequence[Handler]] = _nothing
    """Admission handlers that are active under these settings."""
    pod_mutations: Callable[[Settings], Sequence[PodMutation]] = _nothing
    """Changes of new pods that are active under these settings."""
    pod_validations: Callable[[Settings], Sequence[PodValidation]] = _nothing
    """Checks of what is done to pods that are active under these settings."""
    conversions: Sequence[Conversion] = ()


def converters_of(features: Sequence[Feature]) -> Converters:
    """How objects go from version to version. Where a definition asks nobody to convert, only the version changes."""
    found, own = Converters(), {(one.group, one.kind) for feature in features for one in feature.conversions}
    for feature in features:
        for conversion in feature.conversions:
            found.register(*conversion)
        for spec in (definition["spec"] for definition in feature.definitions):
            if (kind := (spec["group"], spec["names"]["kind"])) not in own:
                found.register(*kind, lambda document, version: document)
    return found


def handlers_of(features: Sequence[Feature], settings: Settings) -> tuple[Handler, ...]:
    """Every admission handler that is active under these settings; the steps of a pod chain are one."""
    templates = {face.group_kind: face.template for face in settings.faces() if face.is_ours and face.template}
    handlers = [handler for feature in features for handler in _noticing(feature.webhooks(settings), templates)]
    changes, checks = PodChain(), PodValidationChain()
    for feature in features:
        for step, mutate, needs in feature.pod_mutations(settings):
            changes.register(step, mutate, needs=needs)
        for check, judge, needs, operations in feature.pod_validations(settings):
            checks.register(check, judge, needs=needs, operations=operations)
    if settings.gates.get("PodWebhook", True):
        handlers += [chain.handler() for chain in (changes, checks) if chain.steps]
    return tuple(handlers)


def _noticing(handlers: Sequence[Handler], templates: misspelling.Templates) -> Sequence[Handler]:
    """With the warnings about misspelt fields, which are to be seen before defaults are filled in: by the handlers that
    do this, or where there are none, by those that judge."""
    first = any(isinstance(handler, MutatingHandler) for handler in handlers)
    return [
        misspelling.with_warnings(handler, templates) if isinstance(handler, MutatingHandler) is first else handler
        for handler in handlers
    ]


class _Trial:
    """Settings under which everything runs: what gets along now does so under any."""

    gates: Mapping[str, bool] = collections.defaultdict(lambda: True)
    allow_privileged = True
    own_namespace = ""
    daemon_namespace = "kruise-daemon-config"

    def flag(self, declared: FeatureFlag[T]) -> T:
        return declared.default

    def workers_of(self, name: str) -> int:
        return 1

    def faces(self) -> Sequence[Face]:
        return ()


def check_beside(features: Sequence[Feature], new: Feature) -> None:
    """Whether a feature can run beside the others. Raises ValueError that says what stands in the way, or whatever the
    feature itself raises."""
    trial = _Trial()
    for what, taken, wanted in (
        ("feature", [feature.name for feature in features], [new.name]),
        ("flag", [flag.name for feature in features for flag in feature.flags], [flag.name for flag in new.flags]),
        ("controller", _controllers(features, trial), _controllers((new,), trial)),
    ):
        if both := sorted(set(taken).intersection(wanted)):
            raise ValueError(f"there is another {what} {both[0]!r}")
    Registry(*handlers_of((*features, new), trial))


def _controllers(features: Sequence[Feature], settings: Settings) -> list[str]:
    return [spec.name for feature in features for spec in feature.controllers(settings)]
