"""Why nobody looks at a workload: no manager runs, or the local cluster has no controller for its kind."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.api.native.config import SERVICES
from kruise.cli.session import Session
from kruise.faces.face import Face
from kruise.machinery.client.errors import ClientError, ForbiddenError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.codec import DecodeError, decode, evolve
from kruise.machinery.documents import Json, value_at
from kruise.reasons.manager import UNANSWERED, WITHOUT_RIGHTS, Manager, manager_by
from kruise.verbs.targets import Target

_LOCAL_CLUSTER = ("kube-system", "http:local-cluster:80", "proxy/")


def is_unseen(document: Json) -> bool:
    """Whether its controller has not looked at the newest spec yet."""
    if value_at(document, ("status", "phase")):
        return False  # a job does not tell which spec it has seen
    generation = value_at(document, ("metadata", "generation"), 0)
    seen = value_at(document, ("status", "observedGeneration"), 0)
    return int(seen or 0) < int(generation or 0)


async def manager_of(session: Session) -> Manager:
    """What its lease says of the manager."""
    from kruise.cli.journal_access import JournalUnavailable, manager_lease

    try:
        return manager_by(await manager_lease(session), session.clock.now())
    except JournalUnavailable as error:
        return WITHOUT_RIGHTS if isinstance(error.__cause__, ForbiddenError) else UNANSWERED


async def who_acts(session: Session, kind: Face, manager: Manager) -> tuple[str, Manager]:
    """About a kind of which an object was not looked at: which controller the cluster lacks, in words, and the manager
    by all that is known."""
    missing = await missing_controller(session, kind)
    if not kind.is_ours:
        return missing or "", manager
    if missing:
        return "", evolve(manager, is_down=True, words=missing)
    # A local cluster knows its manager; elsewhere one without a lease would have looked at the object.
    return "", evolve(manager, is_down=True) if missing is None and manager.is_unknown else manager


async def missing_controller(session: Session, kind: Face) -> str | None:
    """In the words of a local cluster; empty where it has one; None on every other cluster, which does not say."""
    found = await _unattended(session)
    return None if found is None else found.get(kind.resource.group_resource, "")


async def _unattended(session: Session) -> dict[str, str] | None:
    """The kinds that nobody acts on, each with the reason; None where the cluster does not say."""
    namespace, name, path = _LOCAL_CLUSTER
    try:
        answer = await session.client.send(Request(Verb.GET, SERVICES, namespace, name, path))
        return decode(answer.body, dict[str, str])
    except (ClientError, DecodeError):
        return None


async def stored_only(session: Session, words: Sequence[str]) -> tuple[Target, str] | None:
    """An object that nobody acts on, of a kind that only the cluster knows, and why; None where that is not known."""
    kind, _, name = words[0].partition("/") if len(words) == 1 else (words[0], "", words[1] if len(words) == 2 else "")
    lacking = await _unattended(session)
    if not lacking or not name:
        return None
    served = (await session.client.discover()).find(kind)
    if served is None or (reason := lacking.get(served.resource.group_resource)) is None:
        return None
    face = Face(resource=served.resource, short_names=served.short_names, template=None, selector=None, replicas=None)
    target = Target(face, name)
    await session.get(target)
    return target, reason
