"""Which pods an EphemeralJob will serve, and in which order: by its own decision. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.api.apps.ephemeraljob import EphemeralJob
from kruise.api.native.pod import PODS, Pod
from kruise.faces.outlook import Outlook, OutlookFacts, Seen
from kruise.machinery.codec import convert, evolve
from kruise.machinery.documents import Json
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.wording import listed, plural
from kruise.workloads.ephemeraljob.pods import OVER, obstacle
from kruise.workloads.ephemeraljob.pods import Seen as SeenPod
from kruise.workloads.ephemeraljob.situation import Situation, Snapshot, situation_of

_NOT_THERE_YET = "a job that does not exist yet"
"""Stands for its uid: no container in a pod can be of it."""
_HEADER = ("WAVE", "POD", "NODE", "WHAT")


def _outlook(document: Json, seen: Seen) -> Outlook:
    job = convert(document, EphemeralJob)
    if not job.metadata.uid:
        job = evolve(job, metadata=evolve(job.metadata, uid=_NOT_THERE_YET))
    pods = _selected(job, seen.objects.get(PODS, ()))
    situation = situation_of(Snapshot(job=job, pods=pods, now=seen.now))
    if job.status.completion_time is not None:
        return Outlook(facts=(("Summary", "it has ended, and serves no pod any more"),), header=_HEADER, rows=())
    limit = situation.parallelism
    rows = [("-", one.name, _node(one), _state_words(one)) for one in situation.targets if one.is_served]
    obstacles = [(one, obstacle(one.pod, situation.containers)) for one in situation.candidates]
    waiting = [one for one, stands in obstacles if stands is None]
    refused = [(one, stands) for one, stands in obstacles if stands is not None]
    may_serve = limit > 0 and bool(situation.containers) and not job.spec.paused
    for place, one in enumerate(waiting, start=len(situation.under_way)):
        wave = str(place // limit + 1) if may_serve and one.has_node else "-"
        gets = "gets the containers" if one.has_node else "gets the containers when it has a node"
        rows.append((wave, one.name, _node(one), gets if may_serve else "does not get them"))
    rows += [("-", one.name, _node(one), f"will be refused: {why.format(name)}") for one, (why, name) in refused]
    for name, clash in situation.taken.items():
        node = situation.pods[name].spec.node_name or "none"
        rows.append(("-", name, node, f"left out: it has another container called {listed(clash)}"))
    summary = _summary(situation, len(waiting) if may_serve else 0)
    notes = tuple(_notes(situation, len(refused)))
    return Outlook(facts=(("Summary", summary),), header=_HEADER, rows=tuple(rows), notes=notes)


OUTLOOK = OutlookFacts(reads=lambda document: (PODS,), is_selecting=True, outlook=_outlook)


def _selected(job: EphemeralJob, pods: Sequence[Pod]) -> tuple[Pod, ...]:
    try:
        selector = from_label_selector(job.spec.selector)
    except SelectorError:
        return ()
    if selector.selects_nothing:
        return ()
    return tuple(pod for pod in pods if selector.matches(pod.metadata.labels))


def _node(one: SeenPod) -> str:
    return one.pod.spec.node_name or "none"


def _state_words(one: SeenPod) -> str:
    if one.state in OVER:
        return f"has them: {one.state.value}, not served again"
    return f"has them: {one.state.value}"


def _summary(situation: Situation, count: int) -> str:
    names = listed([str(one["name"]) for one in situation.containers]) or "any container"
    if not count:
        return f"no pod gets {names}"
    at_once = min(situation.parallelism, count)
    return f"{plural(count, 'pod', 'gets', 'get')} {names}, {at_once} at a time"


def _notes(situation: Situation, refused: int) -> list[str]:
    job = situation.job
    found = []
    if job.spec.paused:
        found.append("it is paused: nothing happens until spec.paused is false")
    if not situation.containers:
        found.append("spec.template.ephemeralContainers has no containers")
    if situation.parallelism <= 0:
        found.append("spec.parallelism lets no pod be served")
    replicas = job.spec.replicas
    if replicas is not None and len(situation.targets) < replicas:
        found.append(f"spec.replicas is {replicas}: the job does not end before so many pods match")
    if refused:
        never = plural(refused, "pod", "is", "are")
        found.append(f"{never} never served, so the job does not end before its deadline: make one that suits them")
    if replicas == 0:
        found.append("spec.replicas is 0, so no pod is served")
    elif not situation.targets and not situation.taken:
        found.append("no running pod matches spec.selector; pods that come later are served")
    return found
