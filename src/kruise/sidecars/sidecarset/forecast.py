"""What a forecast asks a SidecarSet beside its decisions."""

from __future__ import annotations

from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.meta import LabelSelector
from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.api.native.pod import Pod, is_active
from kruise.faces.forecast import Amount, Around, ForecastFacts, Limits, amount_of
from kruise.inplace import availability
from kruise.machinery.wording import plural
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.content import content_of
from kruise.sidecars.sidecarset.face import revision_of
from kruise.sidecars.sidecarset.facts import injected_sets, is_managed, noted, recorded_hash
from kruise.sidecars.sidecarset.matching import is_empty, selects_pod
from kruise.sidecars.sidecarset.situation import limits_of

_STRATEGY = "spec.updateStrategy"


def _limits(sidecar_set: SidecarSet) -> Limits:
    """As numbers of the pods that the status last counted."""
    found = limits_of(sidecar_set, sidecar_set.status.matched_pods)
    strategy = sidecar_set.spec.update_strategy
    return Limits(
        unavailable=Amount(
            path=f"{_STRATEGY}.maxUnavailable",
            given=1 if strategy.max_unavailable is None else strategy.max_unavailable,
            pods=found.unavailable,
            is_given=strategy.max_unavailable is not None,
        ),
        partition=amount_of(f"{_STRATEGY}.partition", strategy.partition, found.partition),
        is_paused=found.is_paused,
        is_on_delete=not found.is_rolling,
    )


def _owns(sidecar_set: SidecarSet, pod: Pod) -> bool:
    return sidecar_set.metadata.name in injected_sets(pod)


def _wanted(sidecar_set: SidecarSet, around: Around) -> int:
    return sum(_owns(sidecar_set, pod) for pod in around.pods)


def _untouched(sidecar_set: SidecarSet, around: Around) -> str:
    """Pods that it selects and that run without its sidecars."""
    spec = sidecar_set.spec
    if is_empty(spec.selector):
        return ""
    content = content_of(sidecar_set)
    found = [
        pod
        for pod in around.pods
        if is_active(pod)
        and not _owns(sidecar_set, pod)
        and not (content.containers and is_managed(pod, content))  # its canary has put them there
        and selects_pod(spec.selector, pod.metadata.labels)
        and (spec.namespace_selector is None or _is_selected(spec.namespace_selector, pod, around))
    ]
    told = []
    if asked := sum(pod.metadata.namespace != KUBE_SYSTEM for pod in found):
        later = (
            "nor do new ones get any while spec.injectionStrategy.paused is true"
            if spec.injection_strategy.paused
            else "those that are made anew get the sidecars (kruise rollout restart of their workload)"
        )
        told.append(
            f"{plural(asked, 'pod', 'runs', 'run')} without its sidecars although it selects them: nothing happens to "
            f"pods that run; {later}"
        )
    if unasked := len(found) - asked:
        told.append(
            f"{plural(unasked, 'pod')} in {KUBE_SYSTEM} that it selects never {'gets' if unasked == 1 else 'get'} its "
            "sidecars: nobody is asked about pods there"
        )
    return "; ".join(told)


def _is_selected(selector: LabelSelector, pod: Pod, around: Around) -> bool:
    return selects_pod(selector, around.namespaces.get(pod.metadata.namespace, {}))


def _revision(sidecar_set: SidecarSet, pod: Pod) -> str:
    return revision_of(pod.metadata.annotations, sidecar_set.metadata.name)


def _is_current(sidecar_set: SidecarSet, pod: Pod) -> bool:
    """SCS-83."""
    return recorded_hash(noted(pod).hashes, sidecar_set.metadata.name) == content_of(sidecar_set).hash


FORECAST = ForecastFacts(
    resource=SIDECAR_SETS,
    wanted=_wanted,
    limits=_limits,
    serves=availability.is_available,
    owns=_owns,
    contributed=_revision,
    is_current=_is_current,
    untouched=_untouched,
    computed=(keys.HASH, keys.HASH_WITHOUT_IMAGE),
    policy=lambda sidecar_set: "InPlaceOnly",
    in_place_policies=frozenset({"InPlaceOnly"}),
    update_revision=lambda sidecar_set: sidecar_set.status.latest_revision,
    history_limit=lambda sidecar_set: sidecar_set.spec.revision_history_limit,
)
