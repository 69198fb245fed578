"""`kruise plan delete KIND/NAME` and `kruise plan drain NODE`: what would go, what would refuse it, what stays.

Only `get` and `list`. Budgets that may not be listed are left out, and that is said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kruise.api.meta import controller_of
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS
from kruise.api.policy.podunavailablebudget import DELETE, POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.cli.session import Session
from kruise.foresight.learning import learn
from kruise.foresight.removal import deleting, draining
from kruise.foresight.removal.deleting import Deletion, Group, Refusal
from kruise.foresight.removal.draining import Drain, Scene
from kruise.foresight.removal.guards import Guards
from kruise.kinds import faces
from kruise.machinery.client.errors import ClientError, ForbiddenError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.codec import convert, decode
from kruise.machinery.documents import Json, name_of, namespace_of, uid_of, value_at
from kruise.protection.podunavailablebudget.workloads import group_of
from kruise.verbs import targets
from kruise.verbs.errors import UsageError, VerbError

_CHILDREN = (
    ("replicaset", "apps", "v1", "replicasets"),
    ("pod", "", "v1", "pods"),
    ("persistentvolumeclaim", "", "v1", "persistentvolumeclaims"),
    ("controllerrevision", "apps", "v1", "controllerrevisions"),
    ("job", "batch", "v1", "jobs"),
    ("configmap", "", "v1", "configmaps"),
)


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
        if not names:
            raise UsageError("name an object: kruise plan delete KIND/NAME")
        return await self._delete(names)

    # Draining

    async def _drain(self, name: str) -> Drain:
        nodes = (await self._session.client.list(NODES)).items
        if all(node.metadata.name != name for node in nodes):
            known = ", ".join(sorted(node.metadata.name for node in nodes)[:8])
            raise VerbError(f'node "{name}" not found; there are: {known}')
        documents = await self._listed(PODS, "")
        pods = [convert(document, Pod) for document in documents]
        guards = await self._guards("")
        scene = Scene(
            node=name,
            nodes=nodes,
            pods=pods,
            guards=guards,
            times=learn(pods),
            local_data=frozenset(uid_of(one) for one in documents if _has_local_data(one)),
        )
        found = draining.drain(scene)
        return _with_notes(found, self._notes)

    async def _guards(self, namespace: str) -> Guards:
        return await guards_of(self._session, namespace, self._gates, self._notes.append)

    # Deleting

    async def _delete(self, names: Sequence[str]) -> Deletion:
        [target] = targets.parse(tuple(names), can_select=False).targets[:1] or [None]
        if target is None:
            raise UsageError("name an object: kruise plan delete KIND/NAME")
        document = await self._session.get(target)
        namespace = namespace_of(document)
        shown = f"{target.kind.label}/{name_of(document)}"
        refusals = [one for one in (deleting.protection_of(document),) if one is not None]
        if target.kind.resource.kind == "Pod":
            return await self._delete_pod(document, shown, refusals)
        objects: dict[str, Sequence[Json]] = {}
        for kind, group, version, plural in _CHILDREN:
            objects[kind] = await self._listed(Resource(group, version, plural, kind), namespace)
        for face in faces():
            if face.is_ours and face.resource.namespaced and face.group_kind != target.kind.group_kind:
                objects[face.singular] = await self._listed(face.resource, namespace)
        goes = deleting.dependents(uid_of(document), objects)
        going = {name for group in goes if group.kind == "pod" for name in group.names}
        pods = [pod for pod in objects["pod"] if name_of(pod) in going]
        claims = [name for group in goes if group.kind == "persistentvolumeclaim" for name in group.names]
        stays = [one for one in (deleting.claims_left(pods, objects["persistentvolumeclaim"], claims),) if one]
        budgets = _over(document, objects.get("podunavailablebudget", ()))
        if budgets:
            stays.append(
                Group(kind="podunavailablebudget", names=budgets, why="without its workload it guards nothing")
            )
        finalizers = value_at(document, ("metadata", "finalizers"), ())
        if finalizers:
            self._notes.append(f"finalizers hold it until their owners have acted: {', '.join(finalizers)}")
        times = learn([convert(pod, Pod) for pod in pods])
        return Deletion(
            target=shown,
            namespace=namespace,
            refusals=tuple(refusals),
            goes=goes,
            stays=tuple(stays),
            seconds=times.stop if pods else 0.0,
            notes=tuple(self._notes),
        )

    async def _delete_pod(self, document: Json, shown: str, refusals: list[Refusal]) -> Deletion:
        pod = convert(document, Pod)
        guards = await self._guards(pod.metadata.namespace)
        for guard in guards.against(pod, DELETE):
            if guard.allowed <= 0:
                refusals.append(
                    Refusal(
                        by=guard.name,
                        message=guard.needs,
                        remedy=f"wait until more pods are available: kruise why {guard.name}",
                    )
                )
            else:
                self._notes.append(f"{guard.name} lets it go: {guard.needs}, {guard.allowed} may go")
        owner = controller_of(pod)
        stays: list[Group] = []
        claims = await self._listed(
            Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"), namespace_of(document)
        )
        if (left := deleting.claims_left([document], claims, ())) is not None:
            stays.append(left)
        self._notes.append(
            f"{owner.kind} {owner.name} makes another pod in its place"
            if owner is not None
            else "nobody makes another pod in its place"
        )
        return Deletion(
            target=shown,
            namespace=namespace_of(document),
            refusals=tuple(refusals),
            stays=tuple(stays),
            seconds=learn([pod]).stop,
            notes=tuple(self._notes),
        )

    async def _listed(self, resource: Resource[Any], namespace: str) -> Sequence[Json]:
        try:
            answer = await self._session.client.send(Request(Verb.LIST, resource, namespace))
        except NotFoundError:
            return ()
        except ForbiddenError:
            self._notes.append(f"you may not list {resource.group_resource}: they are not looked at")
            return ()
        except ClientError as error:
            raise VerbError(str(error)) from error
        items: Sequence[Json] = decode(answer.body, dict)["items"] or ()
        return items


async def guards_of(session: Session, namespace: str, gates: Mapping[str, bool], note: Callable[[str], None]) -> Guards:
    """The budgets of a namespace, or of all."""
    found: dict[str, Sequence[Any]] = {}
    for what, resource in (("ours", POD_UNAVAILABLE_BUDGETS), ("natives", POD_DISRUPTION_BUDGETS)):
        try:
            found[what] = (await session.client.list(resource, namespace)).items
        except NotFoundError:
            found[what] = ()
        except ForbiddenError:
            found[what] = ()
            note(f"you may not list {resource.group_resource}: what they refuse is not told here")
    return Guards(found["ours"], found["natives"], gates=gates, now=session.clock.now())


def _with_notes(found: Drain, notes: Sequence[str]) -> Drain:
    return dataclasses.replace(found, notes=(*found.notes, *notes))


def _has_local_data(pod: Json) -> bool:
    return any("emptyDir" in volume for volume in value_at(pod, ("spec", "volumes"), ()))


def _over(document: Json, budgets: Sequence[Json]) -> tuple[str, ...]:
    """The budgets that name this very object."""
    about = (group_of(str(document.get("apiVersion"))), document.get("kind"), name_of(document))
    found = []
    for budget in budgets:
        reference = value_at(budget, ("spec", "targetRef"), {})
        if (group_of(str(reference.get("apiVersion"))), reference.get("kind"), reference.get("name")) == about:
            found.append(name_of(budget))
    return tuple(sorted(found))
