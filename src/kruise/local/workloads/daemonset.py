"""DaemonSet: one pod on every node that suits it (decisions).

The rules are kube-controller-manager's. Which nodes suit is `kruise.api.native.daemon_pods`' business, which get a pod
now and which pods go is `daemon_rollout`'s. Pods name their node by affinity, and the scheduler puts them there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.daemon_pods import GENERATION_LABEL, bound_for, template_generation, with_tolerations
from kruise.api.native.nodes import Node
from kruise.api.native.pod import PODS, Pod
from kruise.inplace.keys import REVISION_LABEL
from kruise.local.workloads import daemon_history, daemon_rollout, templates
from kruise.local.workloads.daemon_nodes import (
    DaemonNode,
    DaemonPod,
    survey,
)
from kruise.local.workloads.objects import DAEMON_SETS, DaemonSet, DaemonSetStatus
from kruise.local.workloads.pods import selector_of
from kruise.local.workloads.replicaset import pod_events
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Struct, evolve, field, to_builtins
from kruise.machinery.delays import Delay
from kruise.machinery.names import choose_names
from kruise.machinery.ownership import Owner, adoption, claim, release
from kruise.machinery.plan import (
    Action,
    Chain,
    Conclusion,
    EventNote,
    EventType,
    OnError,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    Wake,
    single,
)
from kruise.machinery.revisions import in_order

BURST = 250
"""How many pods one pass creates, and how many it deletes, at most."""
_REVISION, _CREATE, _DELETE = "revision", "create", "delete"


class Snapshot(Struct):
    now: datetime
    seed: int
    daemon_set: DaemonSet
    pods: tuple[Pod, ...]
    """Those that it controls."""
    orphans: tuple[Pod, ...]
    """Those that nobody controls and that its selector matches."""
    nodes: tuple[Node, ...]
    revisions: tuple[ControllerRevision, ...]
    """Those of its namespace."""
    deleted: tuple[str, ...] = ()
    """Uids of the pods that are being deleted."""
    delays: dict[str, Delay] = field(default_factory=dict)
    """How long failed pods stay, by node."""


class Memo(Struct):
    """What a plan leaves to its conclusion."""

    status: DaemonSetStatus
    """Without the pods that the pass makes."""
    empty: tuple[str, ...]
    """Nodes that should run a pod and have none."""
    made_for: dict[str, str] = field(default_factory=dict)
    """The nodes of the pods that are to be made, by name."""
    next_check: float | None = None
    """Seconds until the next ready pod has been so for long enough."""
    next_try: float | None = None
    """Seconds until failed pods are looked at again."""
    failed: tuple[str, ...] = ()
    """What is said about pods that failed, and about those that ended well."""
    succeeded: tuple[str, ...] = ()
    delays: dict[str, Delay] = field(default_factory=dict)
    """New ones, by node."""


def decide(snapshot: Snapshot) -> Plan:
    daemon_set = snapshot.daemon_set
    owner = Owner.of(DAEMON_SETS, daemon_set)
    if owner.is_deleted:
        # Its revisions may be gone already, so nobody could tell new pods from old ones.
        return Plan()
    selector = selector_of(daemon_set.spec.selector)
    claimed = claim(owner, (*snapshot.pods, *snapshot.orphans), selector)
    known = claim(owner, snapshot.revisions, selector)
    pods = (*claimed.owned, *claimed.to_adopt)
    phases: list[Phase] = []
    chains: list[Chain] = [adoption(owner, CONTROLLER_REVISIONS, item) for item in known.to_adopt]
    chains += [adoption(owner, PODS, pod) for pod in claimed.to_adopt]
    chains += [(release(CONTROLLER_REVISIONS, item, owner),) for item in known.to_release]
    chains += [(release(PODS, pod, owner),) for pod in claimed.to_release]
    if chains:
        phases.append(Phase(name="claim", chains=tuple(chains), on_error=OnError.STOP_PLAN))
    ours = in_order((*known.owned, *known.to_adopt))
    history = daemon_history.construct(owner, daemon_set, ours, snapshot.revisions, pods)
    if history.actions:
        phases.append(Phase(name=_REVISION, chains=(tuple(history.actions),)))
    nodes = survey(daemon_set, snapshot.nodes, pods, history.hash, snapshot.deleted, snapshot.now)
    work = daemon_rollout.tend(daemon_set, nodes, snapshot.delays, snapshot.now)
    moves = daemon_rollout.roll(daemon_set, nodes) if work.is_nothing else work
    creates = _creations(snapshot, owner, moves.nodes[:BURST], history.hash)
    if creates:
        # A quota that refuses new pods must not keep those that have to go.
        phases.append(single(_CREATE, *creates.values(), on_error=OnError.STOP_PHASE, slow_start=True))
    if moves.pods:
        deletes = [_deletion(item) for item in moves.pods[:BURST]]
        phases.append(single(_DELETE, *deletes, on_error=OnError.CONTINUE))
    superfluous = daemon_history.superfluous(history, pods, daemon_set.spec.revision_history_limit)
    if superfluous:
        phases.append(single("history", *superfluous, on_error=OnError.CONTINUE))
    memo = Memo(
        status=_counted(daemon_set, nodes, history.collision_count),
        empty=tuple(node.name for node in nodes if node.verdict.should_run and not node.pods),
        made_for={action.target.name: node for node, action in creates.items()},
        next_check=min((left for node in nodes for item in node.pods if (left := item.available_in)), default=None),
        next_try=work.next_try,
        failed=tuple(work.failed),
        succeeded=tuple(work.succeeded),
        delays=work.delays,
    )
    return Plan(phases=tuple(phases), memo=memo)


def _creations(snapshot: Snapshot, owner: Owner, nodes: list[str], revision: str) -> dict[str, Action]:
    """A pod for each of the nodes."""
    if not nodes:
        return {}
    template = templates.parse(snapshot.daemon_set.spec.template)
    spec = with_tolerations(template.get("spec") or {})
    labels = {REVISION_LABEL: revision}
    generation = template_generation(snapshot.daemon_set.metadata)
    if generation:
        labels[GENERATION_LABEL] = generation
    prefix = f"{owner.name}-"
    taken = [pod.metadata.name for pod in snapshot.pods]
    names = choose_names(prefix, len(nodes), owner_uid=owner.uid, seed=snapshot.seed, taken=taken)
    return {
        node: plans.create(
            PODS,
            templates.new_pod(
                {**template, "spec": bound_for(spec, node)},
                name=name,
                namespace=owner.namespace,
                generate_name=prefix,
                owner=owner.reference(),
                more_labels=labels,
            ),
            reason=f"node {node} should have a pod of this revision",
            owner_uid=owner.uid,
        )
        for node, name in zip(nodes, names, strict=True)
    }


def _deletion(item: DaemonPod) -> Action:
    reason = "it ended, is one too many, has another revision, or is on a node that should have none"
    return plans.delete(Target.of(PODS, item.pod), uid=item.pod.metadata.uid, reason=reason)


# After the writes


def _counted(daemon_set: DaemonSet, nodes: list[DaemonNode], collision_count: int | None) -> DaemonSetStatus:
    """The oldest pod stands for its node."""
    wanted = [node for node in nodes if node.verdict.should_run]
    first = [node.pods[0] for node in wanted if node.pods]
    available = sum(item.is_available for item in first)
    return DaemonSetStatus(
        desired_number_scheduled=len(wanted),
        current_number_scheduled=len(first),
        number_misscheduled=sum(node.exists and bool(node.pods) for node in nodes if not node.verdict.should_run),
        number_ready=sum(item.is_ready for item in first),
        number_available=available,
        number_unavailable=len(wanted) - available,
        updated_number_scheduled=sum(item.is_new for item in first),
        observed_generation=daemon_set.metadata.generation,
        collision_count=collision_count,
    )


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    daemon_set, memo = snapshot.daemon_set, plan.memo_as(Memo)
    if any(item.result is not Result.DONE for item in outcomes.within(_REVISION)):
        return Conclusion()
    status = _with_new_pods(memo, outcomes)
    write = None
    if status != daemon_set.status:
        target = Target.of(DAEMON_SETS, daemon_set)
        write = plans.status_patch(target, _json(status), uid=daemon_set.metadata.uid, reason="the status changed")
    wakes: list[Wake] = []
    if memo.next_check is not None:
        wakes.append(Wake(after=memo.next_check, reason="a pod will have been ready for minReadySeconds"))
    if memo.next_try is not None:
        wakes.append(Wake(after=memo.next_try, reason="a failed pod may be replaced then"))
    notes = [EventNote(reason="FailedDaemonPod", message=text, type=EventType.WARNING) for text in memo.failed]
    notes += [EventNote(reason="SucceededDaemonPod", message=text) for text in memo.succeeded]
    return Conclusion(status=write, events=(*notes, *pod_events(outcomes)), wakes=tuple(wakes))


def _with_new_pods(memo: Memo, outcomes: Outcomes) -> DaemonSetStatus:
    status = memo.status
    made = [item.action for item in outcomes.within(_CREATE) if item.result is Result.DONE]
    added = sum(memo.made_for[action.target.name] in memo.empty for action in made if action.verb is Verb.CREATE)
    return evolve(
        status,
        current_number_scheduled=status.current_number_scheduled + added,
        updated_number_scheduled=status.updated_number_scheduled + added,
    )


def _json(status: DaemonSetStatus) -> dict[str, Any]:
    """As Go writes it: these are there when they are zero."""
    always = {
        "currentNumberScheduled": status.current_number_scheduled,
        "numberMisscheduled": status.number_misscheduled,
        "desiredNumberScheduled": status.desired_number_scheduled,
        "numberReady": status.number_ready,
    }
    return {**to_builtins(status), **always}
