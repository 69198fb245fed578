"""Who waits in an EphemeralJob, and what for: for `why`, the journal and `plan`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS, EphemeralJobStatus
from kruise.api.native.pod import PODS, ContainerStatus
from kruise.machinery.causes import Cause
from kruise.machinery.delays import seconds_left
from kruise.machinery.plan import Held, Target
from kruise.machinery.wording import listed, namespace_flag, plural
from kruise.workloads.ephemeraljob import causes
from kruise.workloads.ephemeraljob.pods import Seen, State, container_state
from kruise.workloads.ephemeraljob.situation import Situation
from kruise.workloads.ephemeraljob.status import ERROR, UNKNOWN
from kruise.workloads.shared.causes import PAUSED

_FOR_GOOD = "an ephemeral container can neither be changed nor taken out of a pod"


def held(situation: Situation, status: EphemeralJobStatus, chosen: Sequence[Seen]) -> tuple[Held, ...]:
    """Every pod that is not done and does not get its containers in this very plan, and the job itself where no pod
    tells why it does not end."""
    moving = {one.name for one in chosen}
    found = [*_of_the_job(situation, status), *_of_taken_names(situation)]
    for one in situation.targets:
        if one.name not in moving and (cause := _of_pod(situation, one)) is not None:
            found.append(Held(target=Target.of(PODS, one.pod), causes=(cause,)))
    return tuple(found)


def failures(situation: Situation) -> tuple[Held, ...]:
    """Of a job that has ended: which containers failed."""
    failed = (one for one in situation.targets if one.state is State.FAILED)
    return tuple(Held(target=Target.of(PODS, one.pod), causes=(_failed(situation, one),)) for one in failed)


def _of_the_job(situation: Situation, status: EphemeralJobStatus) -> Iterator[Held]:
    cause = _cause_of_the_job(situation, status)
    if cause is not None:
        yield Held(target=Target.of(EPHEMERAL_JOBS, situation.job), causes=(cause,))


def _cause_of_the_job(situation: Situation, status: EphemeralJobStatus) -> Cause | None:
    job = situation.job
    name, replicas = job.metadata.name, job.spec.replicas
    flags = namespace_flag(job.metadata.namespace)
    if status.phase == ERROR:
        remedy = f"name a container in spec.template.ephemeralContainers: kubectl edit ejob {name}{flags}"
        return causes.NO_TEMPLATE.cause("the template has no containers to inject", remedy=remedy)
    if status.match == 0:
        if replicas == 0:
            remedy = f"raise spec.replicas, or take it away to serve all pods: kubectl edit ejob {name}{flags}"
            return causes.NO_PODS.cause("replicas is 0, so no pod is served", remedy=remedy)
        if situation.taken:
            words = f"all pods that match have an ephemeral container of a name of the template: {_some(situation)}"
            return causes.NO_PODS.cause(words, remedy=_new_name(situation))
        remedy = (
            f"compare spec.selector with the labels of the pods (kubectl get pods --show-labels{flags}); "
            "pods that come later are served, too"
        )
        return causes.NO_PODS.cause("no running pod of the namespace matches spec.selector", remedy=remedy)
    over = status.succeeded + status.failed
    if replicas is not None and over == status.match < replicas:
        words = f"replicas is {replicas}, but only {plural(status.match, 'pod', 'matches', 'match')}"
        remedy = f"set spec.replicas to {status.match} (kubectl edit ejob {name}{flags}), or wait for more pods"
        return causes.TOO_FEW_PODS.cause(words, remedy=remedy)
    if status.phase == UNKNOWN and over == status.match and status.failed and status.succeeded:
        words = f"{status.succeeded} of {status.match} pods succeeded and {status.failed} failed; it does not end so"
        remedy = f"see what failed, then delete it: kubectl delete ejob {name}{flags}; a deadline would end it, too"
        return causes.MIXED_RESULTS.cause(words, remedy=remedy)
    return None


def _some(situation: Situation) -> str:
    return listed(sorted({name for names in situation.taken.values() for name in names}))


def _new_name(situation: Situation) -> str:
    return f"{_FOR_GOOD}: make a job whose containers have other names, or look at pods that were made anew"


def _of_taken_names(situation: Situation) -> Iterator[Held]:
    for name, clash in situation.taken.items():
        words = f"it has another ephemeral container called {listed(clash)}, so it is left out"
        cause = causes.NAME_TAKEN.cause(words, remedy=_new_name(situation))
        yield Held(target=Target.of(PODS, situation.pods[name]), causes=(cause,))


def _of_pod(situation: Situation, one: Seen) -> Cause | None:
    if one.state is State.SUCCEEDED:
        return None
    if one.state is State.FAILED:
        return _failed(situation, one)
    if one.is_served:
        return _under_way(situation, one)
    if not situation.containers:
        return None  # the job tells
    if situation.job.spec.paused:
        return PAUSED.cause("the job is paused")
    if (refusal := situation.refusals.get(one.pod.metadata.uid)) is not None:
        left = seconds_left(refusal.delay, situation.now)
        remedy = f"correct what the message names in a new job; it is tried again in {left:.0f} s"
        return causes.REFUSED.cause(f"the API server refuses the containers: {refusal.message}", remedy=remedy)
    if not one.has_node:
        return causes.NO_NODE.cause("it has no node yet, and gets the containers when it has one: nobody waits for it")
    limit = situation.parallelism
    if limit <= 0:
        remedy = "set spec.parallelism to 1 or more"
        return causes.NO_PARALLELISM.cause(f"parallelism is {limit}, so no pod is served", remedy=remedy)
    busy = [other.name for other in situation.under_way]
    words = f"parallelism {limit} is used up by {plural(len(busy), 'pod')}" if busy else f"parallelism is {limit}"
    return causes.PARALLELISM.cause(words, details={"limit": limit, "pods": busy})


def _under_way(situation: Situation, one: Seen) -> Cause:
    if (stuck := one.stuck) is not None and stuck.state.waiting is not None:
        waiting = stuck.state.waiting
        text = f": {waiting.message}" if waiting.message else ""
        words = f"container {stuck.name} ({_image(situation, stuck)}) cannot start: {waiting.reason}{text}"
        return causes.CANNOT_START.cause(words, remedy=_start_anew(situation))
    if one.state is State.RUNNING:
        name = next(status.name for status in one.statuses if status.state.running is not None)
        return causes.RUNNING.cause(f"container {name} runs", details={"container": name})
    if not one.statuses:
        who = f"node {one.pod.spec.node_name} has not" if one.has_node else "it has no node, so nobody has"
        return causes.NOT_REPORTED.cause(f"{who} reported the containers yet{_given_up(situation, one)}")
    return causes.STARTING.cause(f"container {one.own[0]} is on its way")


def _given_up(situation: Situation, one: Seen) -> str:
    return ", and others do not wait for it any more" if situation.is_stranded(one) else ""


def _image(situation: Situation, status: ContainerStatus) -> str:
    given = next((one.get("image") for one in situation.containers if one.get("name") == status.name), None)
    return f"image {given or status.image}"


def _start_anew(situation: Situation) -> str:
    metadata = situation.job.metadata
    return (
        f"{_FOR_GOOD}: delete the job (kubectl delete ejob {metadata.name}{namespace_flag(metadata.namespace)}), "
        "and make one with what is right and another container name"
    )


def _failed(situation: Situation, one: Seen) -> Cause:
    status = next(status for status in one.statuses if container_state(status) is State.FAILED)
    ended, waiting = status.state.terminated, status.state.waiting
    if ended is not None:
        text = f": {ended.message.strip()}" if ended.message.strip() else ""
        words = f"container {status.name} ended with exit code {ended.exit_code}{text}"
        flag = namespace_flag(situation.job.metadata.namespace)
        remedy = f"kubectl logs {one.name} -c {status.name}{flag} shows what it printed; a pod is served only once"
        return causes.CONTAINER_FAILED.cause(words, remedy=remedy)
    said = waiting.message if waiting is not None and waiting.message else "no reason is told"
    return causes.CONTAINER_FAILED.cause(
        f"container {status.name} could not be started: {said}", remedy=_start_anew(situation)
    )
