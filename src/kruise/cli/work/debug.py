"""What `kruise debug` does."""

from __future__ import annotations

import asyncio
import math
import secrets
import sys
from collections.abc import Sequence

import click

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS, EphemeralJob
from kruise.api.core.images import reference_problem
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.cli.debug_following import Follower
from kruise.cli.flags import Connection, Writing
from kruise.cli.session import Session, duration, run, selector_text
from kruise.machinery.client.errors import ConflictError, NotFoundError
from kruise.machinery.codec import convert
from kruise.machinery.documents import Json, value_at
from kruise.machinery.selectors import Operator, SelectorError, parse
from kruise.machinery.wording import listed, namespace_flag, plural
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.lookup import UnknownKindError, find
from kruise.verbs.targets import Target
from kruise.workloads.ephemeraljob.pods import Obstacle, obstacle
from kruise.workloads.ephemeraljob.situation import Snapshot, situation_of

_EVERY = 0.3

_GOING = 5.0
"""Seconds that a job which is deleted has to go."""


def debug(
    whom: str,
    command: tuple[str, ...],
    image: str,
    name: str,
    container: str,
    target: str,
    replicas: int | None,
    parallelism: int | None,
    deadline: str,
    attach_hint: bool,
    wait: bool,
    timeout: str,
    remove: bool,
    connection: Connection,
) -> None:
    if reason := reference_problem(image):
        # No node could pull it, and the container would stay in the pods for good.
        raise click.BadParameter(f"{image!r} is no image: {reason}", param_hint="--image")

    async def work(session: Session) -> int:
        selector = await _selector(session, whom)
        seconds = duration(timeout, "--timeout")
        limit = _whole_seconds(deadline) if deadline else None
        job = _manifest(
            session,
            selector,
            name=name,
            container=container,
            image=image,
            command=command,
            target=target,
            deadline=limit,
        )
        matching = await _matching(session, selector)
        free = _free(matching, job)
        number = len(free) if replicas is None else min(len(free), replicas)
        if replicas is not None:
            job["spec"]["replicas"] = replicas + _in_the_way(session, matching, job, free, number)
        job["spec"]["parallelism"] = parallelism or number
        if remove and wait and not command and (parallelism or number) < number:
            raise UsageError(
                "--rm would delete the job while pods still wait for their shell: leave out --parallelism or --rm"
            )
        follower = Follower(session, selector, replicas=replicas, attach=attach_hint or not command)
        return await _carry_out(session, job, number, follower, wait=wait, seconds=seconds, remove=remove)

    if code := run(connection, work):
        sys.exit(code)


def _whole_seconds(deadline: str) -> int:
    """As a job has them; never sooner than it was said."""

    seconds = math.ceil(duration(deadline, "--deadline"))
    if seconds <= 0:
        raise UsageError(f"--deadline: {deadline} would end the job at once: give a time such as 5m, or leave it out")
    return seconds


def _manifest(
    session: Session,
    selector: str,
    *,
    name: str,
    container: str,
    image: str,
    command: Sequence[str],
    target: str,
    deadline: int | None,
) -> Json:
    chosen = name or f"debug-{secrets.token_hex(3)}"
    made: Json = {
        "name": container or chosen,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File",
    }
    if command:
        made["command"] = list(command)
    else:
        made |= {"stdin": True, "tty": True}
    if target:
        made["targetContainerName"] = target
    spec: Json = {"selector": _label_selector(selector), "template": {"ephemeralContainers": [made]}}
    if deadline is not None:
        spec["activeDeadlineSeconds"] = deadline
    return {
        "apiVersion": EPHEMERAL_JOBS.api_version,
        "kind": EPHEMERAL_JOBS.kind,
        "metadata": {"name": chosen, "namespace": session.namespace},
        "spec": spec,
    }


async def _selector(session: Session, whom: str) -> str:
    """The labels that choose the pods, of a workload or a pod where one is named."""

    word, slash, name = whom.partition("/")
    if not slash or any(sign in whom for sign in "=!,( "):
        return whom
    try:
        kind = find(word)
    except UnknownKindError:
        return whom  # a label may have a slash in its name
    target = Target(kind, name)
    if kind.resource.kind != "Pod" and kind.selector is None:
        raise UsageError(f"{target} does not tell the labels of its pods: name them, such as app=web")
    document = await session.get(target)
    if kind.resource.kind == "Pod":
        return await _labels_of(session, name, document)

    return selector_text(kind, document)


async def _labels_of(session: Session, name: str, document: Json) -> str:
    """Of a pod that no other pod has. Raises VerbError where others have them too."""

    labels = value_at(document, ("metadata", "labels"), {})
    text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    found = (await session.client.list(PODS, session.namespace, labels=text)).items if text else ()
    if not text or any(is_active(pod) and pod.metadata.name != name for pod in found):
        flags = namespace_flag(session.namespace)
        raise VerbError(
            f"pod/{name} has no labels of its own, and an EphemeralJob chooses pods by labels. For this pod alone: "
            f"kubectl debug {name}{flags} -it --image IMAGE; or name the labels of several: kruise debug app=web"
        )
    return text


def _label_selector(text: str) -> Json:
    """What a command line says, as a manifest says it."""

    try:
        requirements = parse(text).requirements
    except SelectorError as error:
        raise UsageError(f"{text!r} is no label selector: {error}") from error
    if not requirements:
        raise UsageError("name the labels of the pods, such as app=web: a selector of all pods is left to a manifest")
    operators = {
        Operator.EQUALS: "In",
        Operator.DOUBLE_EQUALS: "In",
        Operator.IN: "In",
        Operator.NOT_EQUALS: "NotIn",
        Operator.NOT_IN: "NotIn",
        Operator.EXISTS: "Exists",
        Operator.DOES_NOT_EXIST: "DoesNotExist",
    }
    labels: dict[str, str] = {}
    expressions: list[Json] = []
    for one in requirements:
        operator = operators.get(one.operator)
        if operator is None:
            raise UsageError(f"{one} compares numbers, which the selector of an object cannot")
        values = list(one.values)
        if operator == "In" and len(values) == 1 and one.key not in labels:
            labels[one.key] = values[0]
        else:
            expressions.append({"key": one.key, "operator": operator, **({"values": values} if values else {})})
    return {**({"matchLabels": labels} if labels else {}), **({"matchExpressions": expressions} if expressions else {})}


async def _matching(session: Session, selector: str) -> tuple[Pod, ...]:
    """The running pods; where there are none, nothing is made and nobody waits."""

    listed = await session.client.list(PODS, session.namespace, labels=selector)
    found = tuple(pod for pod in listed.items if is_active(pod))
    if not found:
        flags = namespace_flag(session.namespace)
        ended = f" ({len(listed.items)} have ended)" if listed.items else ""
        raise VerbError(
            f"no running pod in namespace {session.namespace} has the labels {selector}{ended}: nothing was made. "
            f"See kubectl get pods --show-labels{flags}"
        )
    return found


def _free(pods: Sequence[Pod], job: Json) -> tuple[Pod, ...]:
    """The pods that can get the container: two of one name cannot be in a pod, and an ephemeral one stays for good."""

    made = job["spec"]["template"]["ephemeralContainers"]
    found = [(pod, obstacle(pod, made)) for pod in pods]
    free = tuple(pod for pod, stands in found if stands is None)
    for (what, name), pods_so in _grouped(found).items():
        if what is Obstacle.NAME:
            each, there = (
                f"each pod has a container called {name} already",
                f"a container is called {name} there already",
            )
            remedy = "choose another name with --container"
        else:
            each, there = f"no pod has a container called {name}", f"no container is called {name} there"
            remedy = "choose another one with --target"
        if len(pods_so) == len(pods):
            raise VerbError(f"{each}: nothing was made; {remedy}")
        some = listed(pods_so[:3]) + (" and others" if len(pods_so) > 3 else "")
        click.echo(f"left out, since {there}: {some}; {remedy}", err=True)
    if not free:
        raise VerbError("no pod is left that could get the container: nothing was made")
    return free


def _in_the_way(session: Session, pods: Sequence[Pod], job: Json, free: Sequence[Pod], number: int) -> int:
    """How many pods that are left out come before the last of so many that are not: a job counts them among its
    replicas, too, unless it leaves them out itself."""

    names = {pod.metadata.name for pod in free}
    asked = Snapshot(job=convert(job, EphemeralJob), pods=tuple(pods), now=session.clock.now())
    places = [place for place, one in enumerate(situation_of(asked).targets, start=1) if one.name in names]
    return places[number - 1] - number


def _grouped(found: Sequence[tuple[Pod, tuple[Obstacle, str] | None]]) -> dict[tuple[Obstacle, str], list[str]]:
    """The pods by what stands in the way."""
    groups: dict[tuple[Obstacle, str], list[str]] = {}
    for pod, stands in found:
        if stands is not None:
            groups.setdefault(stands, []).append(f"pod/{pod.metadata.name}")
    return groups


async def _carry_out(
    session: Session, job: Json, number: int, follower: Follower, *, wait: bool, seconds: float, remove: bool
) -> int:
    name = job["metadata"]["name"]
    made = await session.create(EPHEMERAL_JOBS, job, Writing())
    click.echo(f"ephemeraljob.apps.kruise.io/{name} created for {plural(number, 'pod')}")
    if not wait:
        return 0
    try:
        return await follower.run(made, seconds)
    finally:
        if remove:
            state = "deleted" if await _removed(session, name, made["metadata"]["uid"]) else "is being deleted"
            click.echo(f"ephemeraljob.apps.kruise.io/{name} {state}; its containers stay in the pods")


async def _removed(session: Session, name: str, uid: str) -> bool:
    """Whether it is gone within seconds: the manager has a finalizer on it, and the name is free only then. Somebody
    may have deleted it meanwhile, and even made another one of that name."""

    try:
        await session.client.delete(EPHEMERAL_JOBS, name, session.namespace, uid=uid)
        deadline = session.clock.monotonic() + _GOING
        while session.clock.monotonic() < deadline:
            if (await session.client.get(EPHEMERAL_JOBS, name, session.namespace)).metadata.uid != uid:
                return True
            await asyncio.sleep(_EVERY)
    except (NotFoundError, ConflictError):
        return True
    return False
