"""What a forecast asks a UnitedDeployment beside its decisions. Its children are played by their own."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.shared import IN_PLACE_POLICIES
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS, UnitedDeployment, UnitedDeploymentSpec
from kruise.api.native.pod import Pod
from kruise.faces.forecast import Around, ForecastFacts
from kruise.inplace import availability
from kruise.machinery import codec
from kruise.machinery.documents import Json, value_at
from kruise.machinery.plan import Plan
from kruise.machinery.revision_names import is_of
from kruise.machinery.wording import plural
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.children import ADVANCED, CLONES, KINDS, kind_of
from kruise.spread.uniteddeployment.memo import Memo
from kruise.spread.uniteddeployment.numbers import SizeError, allocated, total_of
from kruise.spread.uniteddeployment.situation import template_of

_OURS = (CLONES, ADVANCED)


def _owns(united: UnitedDeployment, pod: Pod) -> bool:
    return is_of(pod.metadata.labels.get(keys.REVISION, ""), united.metadata.name)


def _wanted(united: UnitedDeployment, around: Around) -> int:
    return total_of(united.spec)


def _child(united: UnitedDeployment) -> Json:
    template = template_of(united)
    kind = kind_of(template)
    found: Json = value_at(template, (kind.member, "spec"), {}) if kind is not None else {}
    return found


def _min_ready(united: UnitedDeployment) -> int:
    child = _child(united)
    given = child.get("minReadySeconds") or value_at(child, ("updateStrategy", "rollingUpdate", "minReadySeconds"), 0)
    return int(given or 0)


def _policy(united: UnitedDeployment) -> str:
    return str(value_at(_child(united), ("updateStrategy", "rollingUpdate", "podUpdatePolicy"), "") or "ReCreate")


def parts(plan: Plan) -> tuple[str, ...]:
    """Which subset gets how many, and why."""
    memo = plan.memo if isinstance(plan.memo, Memo) else Memo()
    return tuple(
        f"{part.name}: {plural(part.pods, 'pod')} ({part.why})"
        + (f", {part.partition} kept at the old template" if part.partition else "")
        for part in memo.parts
    )


def _refusal(document: Json) -> str:
    template: Any = value_at(document, ("spec", "template"), {})
    kind = kind_of(template) if isinstance(template, dict) else None
    if kind is None or kind in _OURS:
        return ""
    known = " and ".join(one.member for one in KINDS if one in _OURS)
    text = f"Kubernetes itself decides about the {kind.word}s of its subsets, so that their pods cannot be foreseen"
    return f"{text}. {_sizes(document)}. Plans are for {known}"


def _sizes(document: Json) -> str:
    """What is decided here all the same: how many pods each subset gets, and why."""
    try:
        spec = codec.convert(value_at(document, ("spec",), {}), UnitedDeploymentSpec)
        shares = allocated(spec, {})
    except (codec.DecodeError, SizeError) as error:
        return f"The sizes of the subsets: {error}"
    told = "; ".join(f"{name}: {plural(share.pods, 'pod')} ({share.why})" for name, share in shares.items())
    return f"The subsets get, if all their pods are new: {told}"


FORECAST = ForecastFacts(
    resource=UNITED_DEPLOYMENTS,
    wanted=_wanted,
    serves=availability.is_available,
    owns=_owns,
    min_ready_seconds=_min_ready,
    policy=_policy,
    in_place_policies=frozenset(IN_PLACE_POLICIES),
    update_revision=lambda united: united.status.updated_revision,
    history_limit=lambda united: united.spec.revision_history_limit,
    revision_label=keys.REVISION,
    children=tuple(kind.resource for kind in _OURS),
    parts=parts,
    refusal=_refusal,
)
