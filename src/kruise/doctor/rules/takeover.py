"""What is in the way of taking over from OpenKruise, and what is worth knowing before. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.doctor.findings import (
    ARGUMENTS_STAY_BEHIND,
    BOUND_BESIDES,
    EXTERNAL_CERTIFICATES,
    MANAGED_ELSEWHERE,
    NO_WAY_TO_START,
    NOTHING_TO_TAKE_OVER,
    PODS_UNDER_WAY,
    SECOND_MANAGER,
    TAKEN_OVER,
    TAKEOVER_BROKEN_OFF,
    UNKNOWN_GATES,
    UNKNOWN_KIND,
    UNKNOWN_STORED_VERSION,
    UNTRIED_VERSION,
    Finding,
)
from kruise.machinery.documents import value_at
from kruise.machinery.wording import listed, plural
from kruise.manager import gates
from kruise.manager.installation.documents import Named, gates_text, named
from kruise.manager.installation.takeover.inheritance import Inheritance
from kruise.manager.installation.takeover.note import NAME, State
from kruise.manager.installation.takeover.standing import (
    Standing,
    is_original,
    is_original_binding,
    stored_versions,
    version_names,
)
from kruise.reasons.manager import manager_by

FIRST, LAST = (1, 5), (1, 9)
"""Versions of OpenKruise whose objects are known."""
_TOOLS = {
    "app.kubernetes.io/managed-by": "Helm",
    "argocd.argoproj.io/instance": "Argo CD",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
}
"""Labels and annotations of those who bring back what they have brought."""


def rules(standing: Standing, inheritance: Inheritance, known: dict[Named, tuple[str, ...]]) -> Iterator[Finding]:
    """`known`: the versions of our definitions."""
    if not standing.is_of_others:
        yield NOTHING_TO_TAKE_OVER.found(
            "the cluster", "nothing of OpenKruise is in it", "kruise install --image IMAGE (docs/install.md)"
        )
        return
    yield from _state(standing)
    if not standing.is_taken_over:
        yield from _versions(standing)
        yield from _others_at_work(standing)
        yield from _namespace(standing)
        yield from _definitions(standing, known)
        yield from _certificates(standing)
        yield from _tools(standing)
        yield from _settings(inheritance)
        yield from _rights(standing)
        yield from _pods(standing)


def _state(standing: Standing) -> Iterator[Finding]:
    note = standing.note
    if note is None:
        return
    where = str(Named("ConfigMap", standing.namespace, NAME))
    if note.state is State.DONE:
        yield TAKEN_OVER.found(
            where,
            f"taken over since {note.since}; what was there is kept",
            "kruise install --takeover --undo goes back; to stay, kubectl delete "
            f"configmap -n {standing.namespace} {NAME}, then kruise install with the values of now",
        )
    else:
        what = "a takeover" if note.state is State.UNDER_WAY else "the way back"
        again = "" if note.state is State.UNDER_WAY else " --undo"
        yield TAKEOVER_BROKEN_OFF.found(
            where, f"{what} has begun and not come to its end", f"kruise install --takeover{again} goes on with it"
        )


def _versions(standing: Standing) -> Iterator[Finding]:
    version = standing.original_version
    if standing.original and (version is None or not FIRST <= version <= LAST):
        told = "its image does not tell its version" if version is None else "its version was not tried"
        yield UNTRIED_VERSION.found(
            f"OpenKruise {standing.original}",
            f"{told}: known are {_text(FIRST)} to {_text(LAST)}",
            "try it on a copy of this cluster; objects and revisions of another version may be others",
        )


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _others_at_work(standing: Standing) -> Iterator[Finding]:
    """Managers that nobody finds who scales the Deployment down. Once that has begun, the lease tells of those that are
    gone until it has run out."""
    lease = standing.lease
    state = manager_by(lease, standing.now)
    if lease is None or state.is_down or state.is_unknown or standing.note is not None:
        return
    holder = lease.spec.holder_identity
    # In the network of its node, a pod is called like the node.
    hosts = {host for pod in standing.pods for host in (pod.metadata.name, pod.spec.node_name) if host}
    if holder.rpartition("_")[0] not in hosts:
        yield SECOND_MANAGER.found(
            "the manager",
            f"{holder} holds the lease {standing.namespace}/{lease.metadata.name} and is no pod of this namespace: "
            "stopping the Deployment would not stop it, and two managers write against each other",
            "stop it where it runs; its lease runs out by itself",
        )


def _namespace(standing: Standing) -> Iterator[Finding]:
    where = Named("Namespace", "", standing.namespace)
    live = standing.live.get(where)
    if live is not None and not value_at(live, ("metadata", "labels", "control-plane")):
        yield NO_WAY_TO_START.found(
            str(where),
            "it lacks the label control-plane: once the manager of OpenKruise is stopped, the webhook of pods would "
            "hold up our own, and nobody could answer it",
            f"kubectl label namespace {where.name} control-plane=controller-manager",
        )


def _definitions(standing: Standing, known: dict[Named, tuple[str, ...]]) -> Iterator[Finding]:
    for name, live in standing.definitions:
        served = set(version_names(live))
        if older := sorted(set(stored_versions(live)) - set(known.get(name, ()))):
            can = served & set(known.get(name, ()))
            yield UNKNOWN_STORED_VERSION.found(
                str(name),
                f"objects may be stored in {listed(older)}, which ours does not have",
                f"write them again in {listed(sorted(can)) or 'a version of ours'}, then take the older one out of "
                "status.storedVersions",
            )
    for definition in standing.foreign:
        yield UNKNOWN_KIND.found(
            f"customresourcedefinition/{definition.metadata.name}",
            "we do not have this kind: nobody would look after its objects",
            "its definition and its objects stay as they are",
        )


def _certificates(standing: Standing) -> Iterator[Finding]:
    deployment = standing.deployment
    if deployment is None or not is_original(deployment):
        return
    try:
        chosen = gates.resolve(gates.parse(gates_text(deployment)))
    except gates.FeatureGateError:
        return  # told as such
    if chosen["EnableExternalCerts"]:
        yield EXTERNAL_CERTIFICATES.found(
            "the certificates",
            "they come from outside (EnableExternalCerts): whoever puts the CA into the configurations knows only the "
            "entries of OpenKruise",
            "turn the gate off in OpenKruise for the takeover, and on again afterwards with kruise install --set "
            "featureGates=EnableExternalCerts=true (docs/install.md)",
        )


def _tools(standing: Standing) -> Iterator[Finding]:
    found: dict[str, list[str]] = {}
    for name, document in standing.live.items():
        marks = {
            **(value_at(document, ("metadata", "labels"), {})),
            **(value_at(document, ("metadata", "annotations"), {})),
        }
        for mark, tool in _TOOLS.items():
            if mark in marks and (tool != "Helm" or marks[mark] == tool):
                found.setdefault(tool, []).append(str(name))
    for tool, names in found.items():
        yield MANAGED_ELSEWHERE.found(
            tool,
            f"it has brought {plural(len(set(names)), 'object')} ({listed(sorted(set(names)), 2)}), and may bring them "
            "back as they were, or delete them with all objects of their kinds",
            _ADVICE[tool],
        )


_ADVICE = {
    "Helm": "do not run helm upgrade or uninstall with that release any more. Once you stay: kubectl delete secret -l "
    "owner=helm,name=RELEASE makes Helm forget it, and nothing else",
    "Argo CD": "stop its automatic sync before, and take the installation out of its application, without pruning",
    "Flux": "suspend its reconciliation before, and take the installation out of its source, without pruning",
}


def _settings(inheritance: Inheritance) -> Iterator[Finding]:
    if inheritance.unknown_gates:
        yield UNKNOWN_GATES.found(
            "feature gates",
            f"we do not have {listed(inheritance.unknown_gates)}; the others are taken over",
            "see docs/manager.md for those that we have",
        )
    if inheritance.left:
        yield ARGUMENTS_STAY_BEHIND.found(
            "arguments", f"ours start without {listed(inheritance.left)}", "kruise install --takeover --set PATH=VALUE"
        )


def _rights(standing: Standing) -> Iterator[Finding]:
    for binding in standing.bindings:
        if not is_original_binding(binding):
            role = value_at(binding, ("roleRef", "name"), "")
            yield BOUND_BESIDES.found(
                str(named(binding)),
                f"it gives role {role} to the accounts of OpenKruise, which are ours afterwards; it stays",
                "delete it if nothing needs it any more; docs/rights.md has what ours need",
            )


def _pods(standing: Standing) -> Iterator[Finding]:
    if standing.under_way:
        told = plural(standing.under_way, "pod", "is", "are")
        yield PODS_UNDER_WAY.found(
            "updates",
            f"{told} being updated in place, or wait for a hook: ours goes on where OpenKruise has stopped",
            "a takeover between rollouts is easier to follow",
        )
