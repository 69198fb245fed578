"""What a BroadcastJob will do: which nodes, in which order."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.broadcastjob import BroadcastJob
from kruise.api.native.daemon_pods import target_node
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.faces.outlook import Outlook, OutlookFacts, Seen
from kruise.machinery import codec
from kruise.machinery.documents import Json
from kruise.machinery.wording import plural
from kruise.workloads.broadcastjob.situation import (
    Situation,
    Snapshot,
    is_over,
    is_paused_by_failure,
    names,
    situation_of,
    wants_no_nodes,
)


def _outlook(document: Json, seen: Seen) -> Outlook:
    job = codec.convert(document, BroadcastJob)
    nodes, pods = tuple(seen.objects.get(NODES, ())), tuple(seen.objects.get(PODS, ()))
    situation = situation_of(Snapshot(job=job, pods=pods, nodes=nodes, now=seen.now))
    limit, is_over_for_good = situation.limit, wants_no_nodes(job)
    rows = [(name, "-", _state(situation, name), "") for name in situation.served]
    room = max(limit.pods - len(situation.active), 0)
    for place, name in enumerate(situation.rest):
        turn = "never" if limit.pods <= 0 else str(1 if place < room else 2 + (place - room) // limit.pods)
        rows.append((name, "never" if is_over_for_good else turn, "to come", ""))
    left_out = dict(situation.against) | {target_node(pod): why for pod, why in situation.unfit}
    rows += ((name, "-", "left out", why) for name, why in sorted(left_out.items()))
    at_a_time = limit.problem or ("no limit" if limit.pods >= situation.desired else f"{limit.pods} at a time")
    facts = (
        ("Nodes", f"{situation.desired} of {len(nodes)}"),
        ("Parallelism", at_a_time),
        ("Pods", f"{plural(len(situation.rest), 'pod')} to come, {len(situation.active)} active"),
        ("When a pod fails", job.spec.failure_policy.type or "FailFast"),
    )
    header = ("NODE", "TURN", "STATE", "WHY")
    return Outlook(facts=facts, header=header, rows=tuple(rows), notes=tuple(_notes(situation)))


def _notes(situation: Situation) -> Iterator[str]:
    job = situation.job
    if wants_no_nodes(job):
        yield f"it is {job.status.phase}: no more pods are made"
        return
    if job.spec.paused:
        yield "it is paused: no pods are made until it goes on"
    elif is_paused_by_failure(situation):
        yield f"a failed pod pauses it ({names(situation.failed)[0]}): no pods are made until it is deleted"
    if not situation.desired:
        yield "it suits no node, and waits for one that does"


def _state(situation: Situation, node: str) -> str:
    pod = situation.served[node]
    if pod.metadata.deletion_timestamp is not None:
        return "terminating"
    return pod.status.phase.lower() if is_over(pod) else "active"


OUTLOOK = OutlookFacts(reads=lambda document: (NODES, PODS), outlook=_outlook)
