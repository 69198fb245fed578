"""Admission of SidecarSets (SCS sections 4 to 6). Deletion protection does not cover them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from kruise.admission import launch_order
from kruise.admission.decisions import HandlerView, NeedsReads
from kruise.api.apps.conversion.sidecarset import convert
from kruise.api.apps.sidecarset import HOT_UPGRADE, NOT_UPDATE, SIDECAR_SETS, SidecarSetSpec, SidecarSetUpdateStrategy
from kruise.api.core import schema
from kruise.api.core.field_errors import FieldError, go_quote, invalid
from kruise.api.core.unknown_fields import unknown_fields
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.machinery.plan import Target
from kruise.machinery.watched import Kinds
from kruise.sidecars.sidecarset import keys, whitelist
from kruise.sidecars.sidecarset.amounts import pods_of
from kruise.sidecars.sidecarset.content import EXTRA_FIELDS
from kruise.sidecars.sidecarset.defaults import defaulted
from kruise.sidecars.sidecarset.facts import spelled_out
from kruise.sidecars.sidecarset.injecting import revision_for
from kruise.sidecars.sidecarset.matching import WATCHED_REVISIONS, WATCHED_SETS, base_of, names_namespace
from kruise.sidecars.sidecarset.validation import (
    SidecarCandidate,
    canary_problems,
    conflicts,
    labels_of,
    name_problems,
    patched_keys,
    reading_of,
    spec_problems,
)
from kruise.workloads.shared import advice, validation
from kruise.workloads.shared.admission import Admission, Judgement
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import SPEC, read_spec

_OPEN = {"containers": schema.CONTAINER, "initContainers": schema.CONTAINER, "volumes": "core.Volume"}
_PATCHES = SPEC.child("patchPodMetadata")


def admission_in(own_namespace: str) -> Admission[SidecarSetSpec]:
    """`own_namespace` is where revisions of SidecarSets and the configuration are."""
    return Admission(
        convert=convert,
        stored_spec=SidecarSetSpec,
        read=lambda document, version: read_spec(document, SidecarSetSpec),
        defaulted=defaulted,
        warnings=warnings_of,
        problems=functools.partial(_judged, own_namespace=own_namespace),
        is_judged_as_stored=True,
        is_protected=False,
        awaited=SIDECAR_SETS,
        needs=_needs,
    )


def _needs(gates: Mapping[str, bool]) -> Kinds:
    return WATCHED_SETS, WATCHED_REVISIONS


def _judged(asked: Judgement[SidecarSetSpec], *, own_namespace: str) -> tuple[FieldError, ...] | NeedsReads:
    new, old, view = asked.new, asked.old, asked.view
    patched = patched_keys(new.reading)
    configuration = Target(CONFIG_MAPS, own_namespace, keys.CONFIGURATION)
    if patched and not view.was_read(configuration):
        return NeedsReads(targets=(configuration,))
    judge = functools.partial(spec_problems, allow_privileged=asked.allow_privileged)
    found = validation.problems(new, old, judge, name=name_problems, is_namespaced=False)
    if patched and (old is None or patched != patched_keys(old.reading)):
        listed = view.live(configuration)
        found += tuple(
            whitelist.problems(
                _PATCHES,
                patched,
                labels_of(new),
                listed.data.get(keys.WHITELIST) if listed is not None else None,
                defaults_allowed=view.gates.get(whitelist.GATE, False),
            )
        )
    return found or tuple(_beside_others(new, old, view, own_namespace))


def _beside_others(
    new: SidecarCandidate, old: SidecarCandidate | None, view: HandlerView, own_namespace: str
) -> Iterator[FieldError]:
    if old is not None and new.spec == old.spec and new.annotations == old.annotations:
        return
    sidecar_set, sets = reading_of(new), view.store(SIDECAR_SETS)
    before = reading_of(old) if old is not None else None
    yield from canary_problems(sidecar_set, before, sets.get("", base_of(sidecar_set)))
    revision = sidecar_set.spec.injection_strategy.revision
    known = before.spec.injection_strategy.revision if before is not None else None
    if (
        revision is not None
        and (known is None or revision != known)
        and revision_for(sidecar_set, view.store(CONTROLLER_REVISIONS), own_namespace) is None
    ):
        wanted = revision.revision_name or revision.custom_version or ""
        name = sidecar_set.metadata.name
        yield invalid(
            SPEC.child("injectionStrategy", "revision"),
            wanted,
            f"Cannot find specific ControllerRevision of this SidecarSet: kruise rollout history sidecarset/{name} "
            "lists those that there are",
        )
    yield from conflicts(sidecar_set, sets.list())


def warnings_of(
    candidate: Candidate[SidecarSetSpec], annotations: Mapping[str, str], gates: Mapping[str, bool]
) -> Iterator[str]:
    """What is accepted although it will not do what its author may expect."""
    yield advice.of_failure_budget(annotations)
    if not gates.get("PodWebhook", True):
        yield "the feature gate PodWebhook is off: no pod gets the sidecars of any SidecarSet"
    # In v1alpha1 a namespace takes the place of the selector (SCS-1).
    only = candidate.spec.get("namespace")
    if (only == KUBE_SYSTEM) if only else names_namespace(candidate.reading.namespace_selector, KUBE_SYSTEM):
        yield f"nobody is asked about pods in {KUBE_SYSTEM}: they get no sidecars"
    strategy = candidate.reading.update_strategy
    if strategy.type not in ("", "RollingUpdate", NOT_UPDATE):
        yield (
            f'spec.updateStrategy.type: "{strategy.type}" is not known, and works like RollingUpdate: use '
            f"RollingUpdate or {NOT_UPDATE}"
        )
    yield from _of_amounts(strategy)
    yield from _misspelt(candidate)
    yield from _priorities(candidate)
    for kind in ("containers", "initContainers"):
        for position, container in enumerate(candidate.spec.get(kind) or ()):
            image = container.get("image") if isinstance(container, dict) else None
            if kind == "containers" and isinstance(image, str) and (spelling := spelled_out(image)):
                yield (
                    f"spec.containers[{position}].image: nodes spell out where an image comes from, and one that is "
                    f"named by its digest is compared to the letter: pods never count as ready unless it is {spelling}"
                )
            strategies = container.get("upgradeStrategy") if isinstance(container, dict) else None
            if not isinstance(strategies, dict) or strategies.get("upgradeType") != HOT_UPGRADE:
                continue
            if not strategies.get("hotUpgradeEmptyImage"):
                yield (
                    f"spec.{kind}[{position}].upgradeStrategy: {HOT_UPGRADE} needs hotUpgradeEmptyImage: without it "
                    "no pod can be created, since one of the two containers has no image"
                )


def _of_amounts(strategy: SidecarSetUpdateStrategy) -> Iterator[str]:
    """Amounts with which no pod that runs is ever updated."""
    given, most = strategy.partition, strategy.max_unavailable
    if isinstance(given, str) and given != "100%" and pods_of(given, 100, default=0) > 100:
        yield f"spec.updateStrategy.partition: {given} keeps every pod at its present content, as 100% does"
    if most is not None and pods_of(most, 100, default=1) == 0:
        yield f"spec.updateStrategy.maxUnavailable: {most} lets no pod that serves be updated: use 1 or more"


def _priorities(candidate: Candidate[SidecarSetSpec]) -> Iterator[str]:
    """CLP-5. A pod that asks for `Ordered` reads none of them, so nothing is refused here."""
    for position, container in enumerate(candidate.spec.get("containers") or ()):
        try:
            launch_order.asked_priority(container)
        except launch_order.PriorityError as error:
            yield f"spec.containers[{position}].{error}: pods that get it are refused"


def _misspelt(candidate: Candidate[SidecarSetSpec]) -> Iterator[str]:
    """Fields that no container or volume has: the definition leaves both open, so no API server complains."""
    for kind, wire_type in _OPEN.items():
        for position, item in enumerate(candidate.spec.get(kind) or ()):
            if not isinstance(item, dict):
                continue
            plain = {name: value for name, value in item.items() if name not in EXTRA_FIELDS}
            for place in unknown_fields(plain, wire_type, f"spec.{kind}[{position}]"):
                yield f"unknown field {go_quote(place)}"


ADMISSION = admission_in("kruise-system")
"""As in an installation under the usual name."""
