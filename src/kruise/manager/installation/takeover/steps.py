"""What is done to take over, and to go back, in which order. Pure: what stands there in, steps out.

Nothing of OpenKruise's works on the objects any more when ours begin, nor the other way round: two managers would
write against each other. In between webhooks answer nobody, and what passes them waits: it is better that a pod is made
some seconds later than without what belongs into it.

Objects stay stored in the version in which OpenKruise has stored them, so that they can be read after the way back
even where ours does not start. `kruise install` changes that later.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.machinery.documents import value_at
from kruise.machinery.wording import listed, plural
from kruise.manager.installation import daemon, manager
from kruise.manager.installation.documents import Json, Named, daemon_in, manager_in, named
from kruise.manager.installation.takeover.note import NAME, Note, State, as_it_was
from kruise.manager.installation.takeover.standing import (
    BINDINGS,
    Standing,
    is_original,
    is_original_binding,
    stored_version,
    stored_versions,
    version_names,
)

_STAY = frozenset({"Namespace", "Secret", "CustomResourceDefinition"})
"""Kinds of which nothing is deleted on the way back: what is in them, or of them, may be somebody's."""
_NOT_PUT_BACK = frozenset({"Namespace", "Secret", "Deployment", "DaemonSet"})


# What a step is about. `kruise.manager.installation.takeover.carrying` carries them out.


@dataclasses.dataclass(frozen=True, slots=True)
class Keep:
    """The note is written: before anything else."""

    note: Note


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """How far it has come, in the note."""

    state: State


@dataclasses.dataclass(frozen=True, slots=True)
class Stop:
    """A Deployment is scaled to 0, and its pods are gone."""

    name: Named


@dataclasses.dataclass(frozen=True, slots=True)
class Remove:
    """An object goes, and with it the pods that have these labels."""

    name: Named
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Bring:
    """Objects of our installation are applied."""

    manifests: Sequence[Mapping[str, Any]]
    news: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Ready:
    """A Deployment has a pod that is ready."""

    name: Named


@dataclasses.dataclass(frozen=True, slots=True)
class Store:
    """The objects of a kind are written again in another version, unchanged."""

    definition: str
    version: str


@dataclasses.dataclass(frozen=True, slots=True)
class Readdress:
    """What objects own names them in a version that is still served afterwards: the garbage collector asks for it."""

    versions: Mapping[tuple[str, str], str]
    """Group and kind of owners, and the version that stays."""


@dataclasses.dataclass(frozen=True, slots=True)
class PutBack:
    """Objects are as they were."""

    documents: Sequence[Json]


@dataclasses.dataclass(frozen=True, slots=True)
class Forget:
    """The note goes."""


Step = Keep | Mark | Stop | Remove | Bring | Ready | Store | Readdress | PutBack | Forget


def in_words(step: Step) -> str:
    match step:
        case Keep(note):
            return f"keeps what is there in configmap/{NAME}: {plural(len(note.documents), 'object')}"
        case Mark(state):
            return f"notes in configmap/{NAME}: {state.value}"
        case Stop(name):
            return f"scales {name} to 0, and waits until its pods are gone"
        case Remove(name, labels):
            return f"takes {name} away" + (", and waits until its pods are gone" if labels else "")
        case Bring(manifests, news):
            return f"applies {_counted(manifests)}" + (f"; new: {listed(news, 30)}" if news else "")
        case Ready(name):
            return f"waits until {name} answers"
        case Store(definition, version):
            return f"stores {definition} in {version} again"
        case Readdress(versions):
            kinds = sorted(f"{kind} in {version}" for (_, kind), version in versions.items())
            return f"names owners as OpenKruise names them: {listed(kinds, 20)}"
        case PutBack([document]):
            return f"puts {named(document)} back"
        case PutBack(documents):
            return f"puts {plural(len(documents), 'object')} back as they were"
        case Forget():
            return f"deletes configmap/{NAME}"


_NOUNS = {
    "Namespace": "namespace",
    "CustomResourceDefinition": "definition",
    "Role": "role",
    "ClusterRole": "role",
    "RoleBinding": "binding",
    "ClusterRoleBinding": "binding",
    "MutatingWebhookConfiguration": "webhook configuration",
    "ValidatingWebhookConfiguration": "webhook configuration",
}
_OTHER = "other object"


def _counted(manifests: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(_NOUNS.get(manifest["kind"], _OTHER) for manifest in manifests)
    nouns = sorted(counts, key=lambda noun: noun == _OTHER)
    return ", ".join(plural(counts[noun], noun) for noun in nouns)


# Taking over


def forward(standing: Standing, manifests: Sequence[Mapping[str, Any]], *, since: str) -> list[Step]:
    """`manifests`: our installation, with manager and daemon where they are to run in the cluster."""
    found: list[Step] = []
    if standing.note is None:
        besides = {named(one): one for one in standing.bindings if is_original_binding(one)}
        documents = {name: as_it_was(document) for name, document in {**standing.live, **besides}.items()}
        found.append(Keep(Note(State.UNDER_WAY, since, standing.original, documents)))
    elif standing.note.state is not State.UNDER_WAY:
        found.append(Mark(State.UNDER_WAY))
    found += _without(standing, are_original=True)
    found += [Remove(name) for name in (*_bound_otherwise(standing, manifests), *_bound_besides(standing))]
    kept = [_stored_as_now(manifest, standing) for manifest in manifests]
    found.append(Bring(kept, tuple(_news(standing, kept))))
    if any(manifest["kind"] == "Deployment" for manifest in manifests):
        found.append(Ready(manager_in(standing.namespace)))
    found.append(Mark(State.DONE))
    return found


def _without(standing: Standing, *, are_original: bool) -> Iterator[Step]:
    """Manager and daemon stop, the manager first: it gives orders to the others."""
    deployment = manager_in(standing.namespace)
    daemon_set = daemon_in(standing.namespace)
    stops = standing.deployment is not None and is_original(standing.deployment) is are_original
    if stops:
        yield Stop(deployment)
    if standing.daemon_set is not None and is_original(standing.daemon_set) is are_original:
        yield Remove(daemon_set, daemon.LABELS)
    if stops:
        # Its selector cannot be changed, and what ours does not mention would stay in it.
        yield Remove(deployment, manager.LABELS)


def _bound_otherwise(standing: Standing, manifests: Sequence[Mapping[str, Any]]) -> Iterator[Named]:
    """Bindings to another role: that cannot be changed."""
    for manifest in manifests:
        live = standing.live.get(named(manifest))
        if manifest["kind"] in BINDINGS and live is not None and live.get("roleRef") != manifest["roleRef"]:
            yield named(manifest)


def _bound_besides(standing: Standing) -> Iterator[Named]:
    """Bindings that OpenKruise has beside those of the same names: with them, ours could do more than their roles say.
    What the note does not have stays, since it could not come back."""
    for binding in standing.bindings:
        name = named(binding)
        if is_original_binding(binding) and (standing.note is None or name in standing.note.documents):
            yield name


def _stored_as_now(manifest: Mapping[str, Any], standing: Standing) -> Mapping[str, Any]:
    live = standing.live.get(named(manifest))
    if manifest["kind"] != "CustomResourceDefinition" or live is None:
        return manifest
    stored = stored_version(live)
    return manifest if stored not in version_names(manifest) else stored_in(manifest, stored)


def stored_in(definition: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A definition with another storage version."""
    spec = definition["spec"]
    versions = [{**one, "storage": one["name"] == version} for one in spec["versions"]]
    return {**definition, "spec": {**spec, "versions": versions}}


def _news(standing: Standing, manifests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for manifest in manifests:
        if manifest["kind"] == "CustomResourceDefinition":
            live = standing.live.get(named(manifest))
            plurals = str(manifest["spec"]["names"]["plural"])
            if live is None:
                yield plurals
            elif added := [name for name in version_names(manifest) if name not in version_names(live)]:
                yield f"{plurals} {', '.join(added)}"


# The way back


def back(standing: Standing, manifests: Sequence[Mapping[str, Any]]) -> list[Step]:
    """`manifests`: all that our installation may have brought."""
    note = standing.note
    if note is None:
        raise ValueError("there is no note of what was there")
    found: list[Step] = []
    if note.state is not State.GOING_BACK:
        found.append(Mark(State.GOING_BACK))
    found += _stored_as_before(standing, note)
    older = _owners(standing, note)
    if older:
        found.append(Readdress(older))
    found += _without(standing, are_original=False)
    found += [
        Remove(named(manifest))
        for manifest in reversed(manifests)
        if named(manifest) in standing.live
        and named(manifest) not in note.documents
        and manifest["kind"] not in _STAY | {"Deployment", "DaemonSet"}
    ]
    found.append(PutBack([document for name, document in note.documents.items() if name.kind not in _NOT_PUT_BACK]))
    workloads = [document for name, document in note.documents.items() if name.kind in ("Deployment", "DaemonSet")]
    for document in workloads:
        found.append(PutBack([document]))
    for document in workloads:
        if document["kind"] == "Deployment" and value_at(document, ("spec", "replicas"), 1):
            found.append(Ready(named(document)))
    if older:
        found.append(Readdress(older))  # what was made meanwhile
    found.append(Forget())
    return found


def _stored_as_before(standing: Standing, note: Note) -> Iterator[Step]:
    """Where somebody has let objects be stored in a version that OpenKruise's definition does not have."""
    for name, live in standing.definitions:
        before = note.documents.get(name)
        if before is not None and set(stored_versions(live)) - set(version_names(before)):
            yield Store(name.name, stored_version(before))


def _owners(standing: Standing, note: Note) -> dict[tuple[str, str], str]:
    """Kinds that lose a version in which ours names owners."""
    found = {}
    for name, live in standing.definitions:
        before = note.documents.get(name)
        if before is not None and set(version_names(live)) - set(version_names(before)):
            spec = before["spec"]
            found[str(spec["group"]), str(spec["names"]["kind"])] = stored_version(before)
    return found
