"""What stands in a cluster that is to be taken over, as values. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from kruise.admission.inventory import CHART_LABEL
from kruise.api.native.events import Lease
from kruise.api.native.extensions import CustomResourceDefinition
from kruise.api.native.pod import Pod
from kruise.machinery.documents import value_at
from kruise.manager.installation.documents import Json, Named, Present, command, image_of
from kruise.manager.installation.manifests import Style
from kruise.manager.installation.takeover.note import Note, State

BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_ORIGINAL_NAMES = "kruise-"
"""How names of what OpenKruise brings begin."""
ORIGINAL_COMMANDS = ("/manager", "/kruise-daemon")
"""What the containers of OpenKruise run (MGR section 1). Ours run `kruise`, from whatever image."""
_VERSION = re.compile(r":v?(\d+)\.(\d+)")


def is_original(workload: Json | None) -> bool:
    """Whether a Deployment or DaemonSet is one of OpenKruise."""
    return workload is not None and command(workload)[:1] in {(one,) for one in ORIGINAL_COMMANDS}


def is_original_binding(binding: Json) -> bool:
    """Whether OpenKruise has brought it, of those that are none of ours."""
    names = (binding["metadata"]["name"], value_at(binding, ("roleRef", "name"), ""))
    return all(name.startswith(_ORIGINAL_NAMES) for name in names)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Present):
    now: datetime
    note: Note | None = None
    lease: Lease | None = None
    pods: Sequence[Pod] = ()
    """Those of manager and daemon."""
    bindings: Sequence[Json] = ()
    """Of the accounts of manager and daemon to roles that are none of ours."""
    foreign: Sequence[CustomResourceDefinition] = ()
    """Definitions of the groups that we do not have."""
    has_older_definitions: bool = False
    """Whether a definition lacks a version of ours."""
    objects: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """How many there are, by their kind."""
    under_way: int = 0
    """Pods that are being updated in place, or wait for a hook."""

    @property
    def has_original(self) -> bool:
        """Whether manager or daemon of OpenKruise are there."""
        return is_original(self.deployment) or is_original(self.daemon_set)

    @property
    def is_of_others(self) -> bool:
        """Whether there is something to take over: OpenKruise, or what it has left where nothing of ours runs."""
        if self.note is not None:
            return True
        ours = any(one is not None and not is_original(one) for one in (self.deployment, self.daemon_set))
        return self.has_original or (not ours and self.has_older_definitions)

    @property
    def is_taken_over(self) -> bool:
        return self.note is not None and self.note.state is State.DONE

    @property
    def original(self) -> str:
        """The image of the manager that is, or was, there."""
        if self.note is not None:
            return self.note.original
        return image_of(self.deployment) if is_original(self.deployment) and self.deployment else ""

    @property
    def original_version(self) -> tuple[int, int] | None:
        found = _VERSION.search(self.original)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def style(self) -> Style:
        """How the namespace escapes the webhooks that are registered now: ours must escape them in the same way, or
        their own pods would wait for them (MGR-40)."""
        namespace = self.live.get(Named("Namespace", "", self.namespace), {})
        label = value_at(namespace, ("metadata", "labels", "control-plane"), "")
        return Style.CHART if label == CHART_LABEL else Style.PLAIN


def stored_version(definition: Json) -> str:
    versions = value_at(definition, ("spec", "versions"), ())
    return next((str(version["name"]) for version in versions if version.get("storage")), "")


def stored_versions(definition: Json) -> tuple[str, ...]:
    """All in which objects may be stored."""
    return tuple(value_at(definition, ("status", "storedVersions"), ()))


def version_names(definition: Json) -> tuple[str, ...]:
    return tuple(str(version["name"]) for version in value_at(definition, ("spec", "versions"), ()))
