"""What was seen of a cluster, as values: all that rules look at. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kruise.admission.configurations import MUTATING_NAME, VALIDATING_NAME
from kruise.admission.inventory import REMOVAL
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.api.native.policy import PodDisruptionBudget
from kruise.api.policy.podunavailablebudget import PodUnavailableBudget
from kruise.doctor.findings import Json
from kruise.machinery.documents import value_at
from kruise.manager.installation.documents import Named, Present, image_of
from kruise.reasons.links import Answer
from kruise.reasons.manager import UNKNOWN, Manager

CONVERSION = ("spec", "conversion", "webhook", "clientConfig")


class Asked(NamedTuple):
    """What became of a request that passes a webhook and changes nothing."""

    entry: str
    """Of the configuration, or `conversion of ...`."""
    error: str = ""
    """Why the API server got no answer, in its words; empty: it got one."""
    seconds: float = 0.0
    """How long the request took."""


class Refusal(NamedTuple):
    """An object of the installation that the API server would not take."""

    about: str
    reason: str
    message: str


class Leaving(NamedTuple):
    """An object that is to go and is still there."""

    about: str
    since: datetime
    finalizers: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Present):
    """`live` holds `kruise-configuration`, too."""

    now: datetime
    version: str
    """Of this very PyKruise."""
    kubernetes: tuple[int, int, str] | None = None
    """Major and minor version of the API server, and how it calls itself."""
    wanted: Sequence[Json] = ()
    """What this version would install, with the gates that are on; without what cannot be compared."""
    hidden: frozenset[Named] = frozenset()
    """What may not be read: nobody knows whether it is there."""
    is_installed: bool = True
    original: str = ""
    """The image of OpenKruise, where that is installed."""
    runs_inside: bool = False
    """A local cluster whose manager and daemons are in its own process."""
    refusals: Sequence[Refusal] = ()
    manager: Manager = UNKNOWN
    pods: Sequence[Pod] | None = ()
    """Those of manager and daemon; None: they may not be read."""
    nodes: Sequence[Node] = ()
    secret: Mapping[str, bytes] | None = None
    """The certificates; None: there is no such Secret, or it may not be read."""
    asked: Sequence[Asked] = ()
    leaving: Sequence[Leaving] = ()
    budgets: Sequence[PodUnavailableBudget] = ()
    disruption_budgets: Sequence[PodDisruptionBudget] = ()
    waits: Sequence[Answer] = ()
    workloads: int = 0
    """How many were looked at."""
    unseen: Sequence[str] = ()
    """What could not be looked at, in words."""

    @property
    def has_manager(self) -> bool:
        """Whether one is at work, as far as its lease tells. One that is alone may have none, and answers."""
        if self.runs_inside or (self.manager.is_unknown and self.is_answered):
            return True
        return not (self.manager.is_down or self.manager.is_unknown or self.manager.is_hidden)

    @property
    def is_answered(self) -> bool:
        """Whether the API server got an answer from some webhook. Managers that wait for the lease answer, too."""
        return any(not asked.error for asked in self.asked)

    @property
    def is_other_version(self) -> bool:
        """Whether the manager is of another version than this very PyKruise, as far as its image tells."""
        image = image_of(self.deployment) if self.deployment is not None else ""
        tag = image.rpartition("/")[2].partition(":")[2]
        return bool(tag) and "@" not in image and tag != self.version

    @property
    def is_here(self) -> bool:
        """Whether there is an installation, and in the namespace that was named."""
        return self.is_installed and not self.elsewhere

    @property
    def elsewhere(self) -> str:
        """The namespace that what belongs to no namespace is for, where nothing is in the named one; else empty."""
        if any(where.namespace == self.namespace for where in self.live):
            return ""
        services = (client.get("service") or {} for _, client in self.addresses)
        accounts = (
            subject
            for where, document in self.live.items()
            if where.kind == "ClusterRoleBinding"
            for subject in document.get("subjects") or ()
        )
        found = {str(one.get("namespace", "")) for one in (*services, *accounts)} - {""}
        return "" if self.namespace in found else next(iter(sorted(found)), "")

    @property
    def is_being_removed(self) -> bool:
        namespace = self.live.get(Named("Namespace", "", self.namespace), {})
        return bool(value_at(namespace, ("metadata", "annotations", REMOVAL)))

    @property
    def configurations(self) -> Iterator[tuple[Named, Json]]:
        for kind, name in (
            ("MutatingWebhookConfiguration", MUTATING_NAME),
            ("ValidatingWebhookConfiguration", VALIDATING_NAME),
        ):
            where = Named(kind, "", name)
            if where in self.live:
                yield where, self.live[where]

    @property
    def entries(self) -> Iterator[tuple[Named, Json]]:
        """The webhooks that the API server asks."""
        for where, configuration in self.configurations:
            for entry in configuration.get("webhooks") or ():
                yield where, entry

    @property
    def addresses(self) -> Iterator[tuple[str, Json]]:
        """Where the API server asks, and about what: the webhooks, and the conversions of definitions."""
        for _, entry in self.entries:
            yield str(entry["name"]), entry.get("clientConfig") or {}
        for where, document in self.definitions:
            if client := value_at(document, CONVERSION):
                yield f"the conversion of {where.name}", client
