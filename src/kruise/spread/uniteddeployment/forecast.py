"""What a forecast asks a UnitedDeployment beside its decisions. Its children are played by their own."""

from __future__ import annotations

from kruise.api.apps.shared import IN_PLACE_POLICIES
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS, UnitedDeployment
from kruise.api.native.apps import REPLICA_SETS
from kruise.api.native.pod import Pod
from kruise.faces.forecast import Around, ForecastFacts
from kruise.inplace import availability
from kruise.machinery.documents import Json, value_at
from kruise.machinery.plan import Plan
from kruise.machinery.revision_names import is_of
from kruise.machinery.wording import plural
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.children import KINDS, kind_of
from kruise.spread.uniteddeployment.memo import Memo
from kruise.spread.uniteddeployment.numbers import total_of
from kruise.spread.uniteddeployment.situation import template_of


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
    # The pods of a Deployment are made by its ReplicaSets.
    children=(*(kind.resource for kind in KINDS), REPLICA_SETS),
    parts=parts,
)
