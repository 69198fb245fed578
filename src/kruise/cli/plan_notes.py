"""What a template relies on beside room on nodes: objects that must be there, and rules that a plan does not know."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.api.resource import Resource
from kruise.cli.session import Session
from kruise.faces.face import Face
from kruise.foresight.forecast import Forecast, How
from kruise.machinery.client.errors import ClientError, ForbiddenError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.protection.podunavailablebudget.keys import UPDATE_GATE
from kruise.protection.podunavailablebudget.workloads import group_of
from kruise.verbs.lookup import pod_spec

_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True, PartialObject)
_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, PartialObject)
_PREFERRED = "ScheduleAnyway"
_REFUSED = "every new pod is refused until it is there"
_HOMELESS = "no new pod finds a node until it is there"


@dataclasses.dataclass(frozen=True, slots=True)
class Reliance:
    """An object that pods must find."""

    resource: Resource[Any]
    name: str
    without: str
    """What happens without it."""

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"


async def notes_of(
    session: Session, kind: Face, changed: Json, forecast: Forecast, *, namespace: str, brought: Collection[str]
) -> tuple[str, ...]:
    """What to say of a plan that makes pods. `brought` are the other objects of the files, as kubectl names them."""
    if kind.template_of(changed) is None:
        return ()
    found = [note async for note in _of_budgets(session, kind, changed, forecast, namespace)]
    if not any(move.how in (How.CREATE, How.RECREATE) for move in forecast.moves):
        return tuple(found)
    spec = value_at(changed, pod_spec(kind, changed), {}) or {}
    own = {name_of(claim) for claim in value_at(changed, ("spec", "volumeClaimTemplates"), ()) or ()}
    for reliance in reliances(spec, own):
        if _as_kubectl_says(reliance) not in brought and (note := await _note(session, reliance, namespace)):
            found.append(note)
    return tuple(found)


async def _of_budgets(
    session: Session, kind: Face, changed: Json, forecast: Forecast, namespace: str
) -> AsyncIterator[str]:
    """A plan asks the budgets as they are now. What others take from them meanwhile makes a rollout slower."""
    if not any(move.how is not How.CREATE for move in forecast.moves):
        return
    try:
        budgets = (await session.client.list(POD_UNAVAILABLE_BUDGETS, namespace)).items
    except NotFoundError:
        return
    except ForbiddenError:
        yield f"you may not list {POD_UNAVAILABLE_BUDGETS.group_resource}: whether one slows this down is not known"
        return
    labels = value_at(changed, (*(kind.template_of(changed) or ()), "metadata", "labels"), {}) or {}
    for budget in budgets:
        if _is_over(budget, kind, name_of(changed), labels):
            limit = budget.spec.max_unavailable
            said = f"maxUnavailable {limit}" if limit is not None else f"minAvailable {budget.spec.min_available}"
            yield (
                f"podunavailablebudget/{budget.metadata.name} ({said}) is over these pods: deletions wait for it, and"
                f" updates in place where the gate {UPDATE_GATE} is on; what others take from it is not told here"
            )


def _is_over(budget: PodUnavailableBudget, kind: Face, name: str, labels: Mapping[str, str]) -> bool:
    reference = budget.spec.target_ref
    if reference is not None:
        return (group_of(reference.api_version), reference.kind, reference.name) == (*kind.group_kind, name)
    try:
        selector = from_label_selector(budget.spec.selector)
    except SelectorError:
        return False
    return not selector.is_empty and selector.matches(labels)


def reliances(spec: Json, own_claims: Collection[str]) -> Iterator[Reliance]:
    """`own_claims`: volumes for which the workload makes claims itself."""
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        yield Reliance(_ACCOUNTS, str(account), _REFUSED)
    if name := spec.get("priorityClassName"):
        yield Reliance(_CLASSES, str(name), _REFUSED)
    for claim in dict.fromkeys(_claims(spec.get("volumes") or (), own_claims)):
        yield Reliance(PERSISTENT_VOLUME_CLAIMS, claim, _HOMELESS)


def _claims(volumes: Iterable[Json], own: Collection[str]) -> Iterator[str]:
    for volume in volumes:
        name = value_at(volume, ("persistentVolumeClaim", "claimName"), "")
        if name and volume.get("name") not in own:
            yield str(name)


def _as_kubectl_says(reliance: Reliance) -> str:
    group = reliance.resource.group
    return f"{reliance.resource.kind.lower()}{'.' if group else ''}{group}/{reliance.name}"


async def _note(session: Session, reliance: Reliance, namespace: str) -> str:
    place = namespace if reliance.resource.namespaced else ""
    try:
        await session.client.send(Request(Verb.GET, reliance.resource, place, reliance.name))
    except NotFoundError as error:
        if error.status.details.name:
            where = f" in namespace {place}" if place else ""
            return f"there is no {reliance}{where}, which the template names: {reliance.without}"
        return f"{reliance} was not looked at: the cluster does not serve its kind"
    except ClientError as error:
        return f"{reliance}, which the template names, was not looked at: {error}"
    return ""
