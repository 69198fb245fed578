"""Why an ImagePullJob is not done, in causes. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from kruise.api.apps.images import ImagePullJob
from kruise.api.core.images import ImageReference, reference_problem
from kruise.machinery.causes import Cause
from kruise.machinery.wording import listed, plural, without_middle
from kruise.operations.images import causes as pulls
from kruise.operations.images.pulljob import causes

_LONGEST = 300


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a job sees of its nodes."""

    job: ImagePullJob
    image: ImageReference | None = None
    parallelism: int = 1
    desired: int | None = None
    """None: nobody has counted."""
    not_synced: tuple[str, ...] = ()
    begun: frozenset[str] = frozenset()
    """Those of them that get their task now."""
    full: frozenset[str] = frozenset()
    active: tuple[tuple[str, str], ...] = ()
    """With what the node says of it; empty: it says nothing."""
    failed: tuple[tuple[str, str], ...] = ()
    """With what went wrong."""
    awaited_secrets: tuple[str, ...] = ()
    missing_secrets: tuple[str, ...] = ()
    missing_exchange: str = ""


def causes_of(sight: Sight) -> Iterator[Cause]:
    if sight.image is None:
        reason = reference_problem(sight.job.spec.image)
        yield causes.BAD_IMAGE.cause(f"invalid image {sight.job.spec.image}: {reason}", remedy="correct spec.image")
        return
    yield from _failures(sight)
    yield from _secrets(sight)
    if sight.desired == 0:
        yield causes.NO_NODE.cause(
            "it selects no node that has a NodeImage",
            remedy="see which nodes there are with kubectl get nodeimages --show-labels, and correct the selector",
        )
    yield from _under_way(sight)
    yield from _in_line(sight)


def _failures(sight: Sight) -> Iterator[Cause]:
    by_message: dict[str, list[str]] = {}
    for node, message in sight.failed:
        by_message.setdefault(message, []).append(node)
    for message, nodes in sorted(by_message.items(), key=lambda item: item[1]):
        said = f": {without_middle(message, _LONGEST)}" if message else ""
        yield pulls.PULL_FAILED.cause(
            f"{plural(len(nodes), 'node')} could not pull {sight.image}: {listed(nodes)}{said}",
            details={"nodes": nodes, "message": message},
            remedy=_remedy(message, nodes[0]),
        )


def _remedy(message: str, node: str) -> str:
    return f"{pulls.remedy(message, node)}; then make the job anew, or have nodes pull again with another job"


def _secrets(sight: Sight) -> Iterator[Cause]:
    if sight.missing_secrets:
        names = listed(sight.missing_secrets)
        namespace = sight.job.metadata.namespace
        yield causes.SECRET_MISSING.cause(
            f"pull secrets that do not exist in namespace {namespace}: {names}; nodes pull without them",
            details={"secrets": list(sight.missing_secrets)},
            remedy=f"create them in namespace {namespace}: nodes get them as soon as they are there",
        )
    if sight.missing_exchange:
        yield causes.NO_EXCHANGE.cause(
            f"namespace {sight.missing_exchange}, in which nodes read pull secrets, does not exist: "
            f"{listed(sight.awaited_secrets)} cannot be brought there",
            details={"namespace": sight.missing_exchange, "secrets": list(sight.awaited_secrets)},
            remedy=f"kubectl create namespace {sight.missing_exchange}, or kruise install, which makes it with the "
            "rights of the daemon",
        )
    elif sight.awaited_secrets:
        yield causes.SECRET_COPY.cause(
            f"pull secrets are being brought to where nodes read them: {listed(sight.awaited_secrets)}"
        )


def _under_way(sight: Sight) -> Iterator[Cause]:
    heard = [f"{node} ({said})" if said else node for node, said in sight.active if said]
    silent = [node for node, said in sight.active if not said]
    if heard:
        yield pulls.PULLING.cause(
            f"{plural(len(heard), 'node', 'pulls', 'pull')} {sight.image}: {listed(heard)}",
            details={"nodes": [node for node, said in sight.active if said]},
        )
    if silent:
        yield pulls.NO_DAEMON.cause(
            f"{plural(len(silent), 'node', 'has', 'have')} the task and no answer yet: {listed(silent)}",
            details={"nodes": silent},
            remedy=f"see whether kruise-daemon runs there (kubectl describe node {silent[0]}); "
            "after ten minutes they count as failed",
        )


def _in_line(sight: Sight) -> Iterator[Cause]:
    if sight.full:
        nodes = sorted(sight.full)
        yield causes.NODE_FULL.cause(
            f"{plural(len(nodes), 'node', 'has', 'have')} as many images to pull as a NodeImage can hold: "
            f"{listed(nodes)}",
            details={"nodes": nodes},
            remedy="delete jobs that are over, so that their tasks leave",
        )
    waiting = [node for node in sight.not_synced if node not in sight.begun and node not in sight.full]
    if not waiting or sight.awaited_secrets:
        return
    if sight.parallelism == 0:
        yield causes.HELD.cause(
            f"parallelism is 0: {plural(len(waiting), 'node', 'does', 'do')} not begin: {listed(waiting)}",
            details={"nodes": waiting},
            remedy="raise spec.parallelism when they are to begin",
        )
    else:
        yield causes.PARALLELISM.cause(
            f"{plural(len(waiting), 'node', 'waits', 'wait')} for a turn, {sight.parallelism} at a time: "
            f"{listed(waiting)}",
            details={"nodes": waiting},
            remedy="raise spec.parallelism for more at a time",
        )
