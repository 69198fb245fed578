"""`kruise plan delete KIND/NAME` and `kruise plan drain NODE`: what would go, what would refuse it, what stays.

Only `get` and `list`. Budgets that may not be listed are left out, and that is said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from kruise.api.native.apps import DAEMON_SETS
from kruise.api.native.nodes import KUBE_SYSTEM, NODES
from kruise.api.native.pod import PODS, Pod
from kruise.cli.plan_deletion import Deleting, guards_of, listed, nobody_answers, registered
from kruise.cli.session import Session
from kruise.foresight.learning import learn
from kruise.foresight.removal import draining
from kruise.foresight.removal.deleting import Deletion
from kruise.foresight.removal.draining import Drain, Scene
from kruise.foresight.removal.guards import Guards
from kruise.machinery.client.errors import ForbiddenError, NotFoundError
from kruise.machinery.codec import convert
from kruise.machinery.documents import Json, uid_of, value_at
from kruise.verbs.errors import UsageError, VerbError

_ENTRY = "vpodeviction.kb.io"
"""Whoever stands behind it is asked about every eviction."""


class Removal:
    def __init__(self, session: Session, gates: Mapping[str, bool]) -> None:
        self._session = session
        self._gates = gates
        self._notes: list[str] = []

    async def plan(self, words: Sequence[str]) -> Drain | Deletion:
        verb, *names = words
        if verb == "drain":
            if len(names) != 1:
                raise UsageError("name one node: kruise plan drain NODE")
            return await self._drain(names[0].removeprefix("node/").removeprefix("nodes/"))
        return await Deleting(self._session, self._gates).plan(names)

    # Draining

    async def _drain(self, name: str) -> Drain:
        nodes = (await self._session.client.list(NODES)).items
        if all(node.metadata.name != name for node in nodes):
            known = ", ".join(sorted(node.metadata.name for node in nodes)[:8])
            raise VerbError(f'node "{name}" not found; there are: {known}')
        documents = await listed(self._session, PODS, "", self._notes.append)
        pods = [convert(document, Pod) for document in documents]
        guards = await self._guards("")
        scene = Scene(
            node=name,
            nodes=nodes,
            pods=pods,
            guards=guards,
            times=learn(pods),
            local_data=frozenset(uid_of(one) for one in documents if _has_local_data(one)),
            daemon_sets=await self._daemon_sets(),
        )
        found = draining.drain(scene)
        if found.waves and _ENTRY in (await registered(self._session) or ()):
            await self._about_manager()
        return _with_notes(found, self._notes)

    async def _about_manager(self) -> None:
        if silence := await nobody_answers(self._session):
            self._notes.append(
                f"{silence}: until one answers, every eviction outside of {KUBE_SYSTEM} fails, and so does the drain"
            )

    async def _daemon_sets(self) -> frozenset[tuple[str, str]] | None:
        try:
            found = (await self._session.client.list(DAEMON_SETS)).items
        except (NotFoundError, ForbiddenError):
            return None
        return frozenset((one.metadata.namespace, one.metadata.name) for one in found)

    async def _guards(self, namespace: str) -> Guards:
        return await guards_of(self._session, namespace, self._gates, self._notes.append)


def _with_notes(found: Drain, notes: Sequence[str]) -> Drain:
    return dataclasses.replace(found, notes=(*found.notes, *notes))


def _has_local_data(pod: Json) -> bool:
    return any("emptyDir" in volume for volume in value_at(pod, ("spec", "volumes"), ()))
