"""`kruise plan delete KIND/NAME`: what goes with an object, what would refuse it, what stays.

Any kind that the cluster serves. Only `get` and `list`; what may not be listed is left out, and that is said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kruise.admission.configurations import VALIDATING_NAME
from kruise.admission.decisions import Failure, HandlerView, Listing, NeedsReads, Read
from kruise.api.meta import PartialObject, controller_of
from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.api.native.pod import Pod
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS
from kruise.api.policy.podunavailablebudget import DELETE, POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.cli.attending import manager_of
from kruise.cli.session import Session
from kruise.foresight.learning import learn
from kruise.foresight.removal import deleting
from kruise.foresight.removal.deleting import Deletion, Group, Refusal
from kruise.foresight.removal.guards import Guard, Guards
from kruise.kinds import faces
from kruise.machinery.client.discovery import ServedResource
from kruise.machinery.client.errors import ApiError, ClientError, ForbiddenError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.codec import convert, decode
from kruise.machinery.documents import Json, name_of, namespace_of, uid_of, value_at
from kruise.machinery.wording import listed as named
from kruise.machinery.wording import plural
from kruise.protection.deletion.rules import CASCADING_GATE, GATE
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.workloads import group_of
from kruise.verbs import lookup
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.lookup import UnknownKindError

_CHILDREN = (
    ("replicaset", "apps", "v1", "replicasets"),
    ("pod", "", "v1", "pods"),
    ("persistentvolumeclaim", "", "v1", "persistentvolumeclaims"),
    ("controllerrevision", "apps", "v1", "controllerrevisions"),
    ("job", "batch", "v1", "jobs"),
    ("configmap", "", "v1", "configmaps"),
)
_SECRETS = ("secret", "", "v1", "secrets")
"""Only looked at where something has copies of them."""
_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
    PartialObject,
)
_ENTRY = "vservice.kb.io"
"""Registered as long as the gate of deletion protection is on, and not otherwise (DP-11)."""
_UNINTERESTING = frozenset({"events", "endpoints", "endpointslices", "leases"})
"""What nobody would miss, of a namespace."""


class Deleting:
    def __init__(self, session: Session, gates: Mapping[str, bool]) -> None:
        self._session = session
        self._gates = gates
        self._notes: list[str] = []
        self._entries: frozenset[str] | None = None

    async def plan(self, words: Sequence[str]) -> Deletion:
        resource, name = await self._named(words)
        document = await self._read(resource, name)
        group = f".{resource.group}" if resource.group else ""
        shown = f"{resource.kind.lower()}{group}/{name}"
        refusal = await self._refusal(document)
        refusals = [refusal] if refusal is not None else []
        if deleting.is_labelled(document):
            await self._about_label(document)
        if (resource.group, resource.kind) == ("", "Pod"):
            return await self._pod(document, shown, refusals)
        if (resource.group, resource.kind) == ("", "Namespace"):
            objects = await self._of_namespace(name)
            goes = deleting.inside(objects)
            pods = objects.get("pod", ())
            stays: list[Group] = []
            if not refusals:
                await self._hangs(document, objects)
            self._held_up("it stays in Terminating", objects)
        elif resource.kind == "CustomResourceDefinition":
            objects, pods, stays = await self._of_definition(document), (), []
            goes = deleting.inside(objects, with_namespaces=True)
            self._held_up("it stays", objects)
        else:
            objects = await self._around(resource, namespace_of(document))
            goes = deleting.dependents(uid_of(document), objects, with_namespaces=not resource.namespaced)
            going = {one for group in goes if group.kind == "pod" for one in group.names}
            pods = [pod for pod in objects["pod"] if name_of(pod) in going]
            stays = self._left(document, goes, pods, objects)
            if (resource.group, resource.kind) == ("", "Node"):
                await self._of_node(name)
        if finalizers := value_at(document, ("metadata", "finalizers"), ()):
            self._notes.append(f"finalizers hold it until their owners have acted: {', '.join(finalizers)}")
        return Deletion(
            target=shown,
            namespace=namespace_of(document),
            refusals=tuple(refusals),
            goes=goes,
            stays=tuple(stays),
            seconds=learn([convert(pod, Pod) for pod in pods]).stop if pods else 0.0,
            notes=tuple(self._notes),
        )

    # What is meant

    async def _named(self, words: Sequence[str]) -> tuple[Resource[Any], str]:
        kind, slash, name = words[0].partition("/") if words else ("", "", "")
        if not slash and len(words) == 2:
            name = words[1]
        elif len(words) != 1:
            raise UsageError("name one object: kruise plan delete KIND/NAME")
        if not kind or not name or "/" in name:
            raise UsageError(f'"{" ".join(words)}" is no KIND/NAME: say for example cloneset/web or namespace/shop')
        try:
            return lookup.find(kind).resource, name
        except UnknownKindError:
            served = (await self._session.client.discover()).find(kind)
            if served is None:
                raise
            return served.resource, name

    async def _read(self, resource: Resource[Any], name: str) -> Json:
        namespace = self._session.namespace if resource.namespaced else ""
        try:
            answer = await self._session.client.send(Request(Verb.GET, resource, namespace, name))
        except ClientError as error:
            raise VerbError(str(error)) from error
        found: Json = decode(answer.body, dict)
        return found

    # What refuses it

    async def _refusal(self, document: Json) -> Refusal | None:
        """By deletion protection. Whether the manager has its gate on is seen by what it has registered."""
        if not deleting.is_labelled(document):
            return None
        is_on = await self._is_on()
        if is_on is False:
            return None
        refusal = await self._protection(document, {**self._gates, GATE: True, CASCADING_GATE: True})
        if refusal is None and not self._gates.get(CASCADING_GATE, False):
            refusal = await self._protection(document, {**self._gates, GATE: True})
            if refusal is not None:
                return dataclasses.replace(refusal, is_certain=False)
        return refusal if refusal is None or is_on else deleting.doubtful(refusal)

    async def _is_on(self) -> bool | None:
        """None: nobody may look."""
        if self._gates.get(GATE, False):
            return True
        if self._entries is None:
            self._entries = await registered(self._session)
        return None if self._entries is None else _ENTRY in self._entries

    async def _about_label(self, document: Json) -> None:
        is_on = await self._is_on()
        if said := deleting.idle_label(document, is_protecting=is_on is not False):
            self._notes.append(said)
        elif is_on and (silence := await nobody_answers(self._session)):
            self._notes.append(f"{silence}: until one answers, this deletion fails")

    async def _protection(self, document: Json, gates: Mapping[str, bool]) -> Refusal | None:
        view = HandlerView(now=self._session.clock.now(), seed=0, gates=gates)
        while isinstance(said := deleting.protection_of(document, view), NeedsReads):
            reads = {target: await self._looked_up(target) for target in said.targets}
            view = dataclasses.replace(view, reads={**view.reads, **reads})
        return said

    async def _looked_up(self, target: Read) -> Any:
        assert isinstance(target, Listing)
        try:
            return tuple((await self._session.client.list(target.resource, target.namespace)).items)
        except ApiError as error:
            return Failure(error.code, error.reason, str(error))
        except ClientError as error:
            raise VerbError(str(error)) from error

    # What goes, and what stays

    async def _around(self, resource: Resource[Any], namespace: str) -> dict[str, Sequence[Json]]:
        """What may belong to it: of its namespace, or of all."""
        objects: dict[str, Sequence[Json]] = {}
        for kind, group, version, name in (*_CHILDREN, *(() if resource.namespaced else (_SECRETS,))):
            objects[kind] = await self._listed(Resource(group, version, name, kind), namespace)
        for face in faces():
            if face.is_ours and face.resource.namespaced and face.group_kind != (resource.group, resource.kind):
                objects[face.singular] = await self._listed(face.resource, namespace)
        return objects

    def _left(
        self, document: Json, goes: Sequence[Group], pods: Sequence[Json], objects: Mapping[str, Sequence[Json]]
    ) -> list[Group]:
        claims = [name for group in goes if group.kind == "persistentvolumeclaim" for name in group.names]
        stays = [one for one in (deleting.claims_left(pods, objects["persistentvolumeclaim"], claims),) if one]
        if budgets := _over(document, objects.get("podunavailablebudget", ())):
            stays.append(
                Group(kind="podunavailablebudget", names=budgets, why="without its workload it guards nothing")
            )
        return stays

    async def _of_namespace(self, namespace: str) -> dict[str, Sequence[Json]]:
        served: dict[tuple[str, str], ServedResource] = {}
        for one in (await self._session.client.discover()).resources:
            if one.namespaced and "list" in one.verbs and one.plural not in _UNINTERESTING:
                served.setdefault((one.group, one.plural), one)
        found: dict[str, Sequence[Json]] = {}
        for one in served.values():
            kind = one.kind.lower()
            key = f"{kind}.{one.group}" if kind in found else kind
            # A list says of its kind what each of its items is.
            items = await self._listed(one.resource, namespace)
            head = {"apiVersion": one.resource.api_version, "kind": one.kind}
            found[key] = [{**head, **item} for item in items]
        return found

    async def _hangs(self, document: Json, objects: Mapping[str, Sequence[Json]]) -> None:
        """DP-51: what is protected inside keeps the namespace from going."""
        kept = []
        for kind, documents in objects.items():
            for one in documents:
                if await self._refusal(one) is not None:
                    kept.append(f"{kind}/{name_of(one)}")
        if kept:
            self._notes.append(f"it stays in Terminating while deletion protection is on what is inside: {named(kept)}")

    async def _of_node(self, node: str) -> None:
        """Nothing refuses the end of pods whose node is gone."""
        pods = await self._listed(Resource("", "v1", "pods", "Pod"), "")
        here = [name_of(pod) for pod in pods if value_at(pod, ("spec", "nodeName"), "") == node]
        if here:
            self._notes.append(
                f"{plural(len(here), 'pod', 'goes', 'go')} after it, and no budget is asked: {named(here)}"
            )
            self._notes.append(f"to have them asked: kubectl drain {node}; what comes of it: kruise plan drain {node}")

    def _held_up(self, what: str, objects: Mapping[str, Sequence[Json]]) -> None:
        if held := deleting.with_finalizers(objects):
            self._notes.append(f"{what} until the owners of finalizers inside have acted: {named(held)}")

    async def _of_definition(self, document: Json) -> dict[str, Sequence[Json]]:
        spec = document["spec"]
        stored = next((one["name"] for one in spec.get("versions", ()) if one.get("storage")), "v1")
        names = spec["names"]
        resource: Resource[Any] = Resource(
            spec["group"], stored, names["plural"], names["kind"], spec["scope"] == "Namespaced", PartialObject
        )
        return {names["kind"].lower(): await self._listed(resource, "")}

    async def _pod(self, document: Json, shown: str, refusals: list[Refusal]) -> Deletion:
        pod = convert(document, Pod)
        guards = await guards_of(self._session, pod.metadata.namespace, self._gates, self._notes.append)
        for guard in guards.against(pod, DELETE):
            if guard.allowed <= 0:
                refusals.append(
                    Refusal(
                        by=guard.name,
                        message=guard.needs,
                        remedy=_way_out(guard),
                    )
                )
            else:
                self._notes.append(f"{guard.name} lets it go: {guard.needs}, {guard.allowed} may go")
        is_asked = keys.budget_named_by(pod.metadata.annotations) and pod.metadata.namespace != KUBE_SYSTEM
        if is_asked and (silence := await nobody_answers(self._session)):
            self._notes.append(f"{silence}: until one answers, this deletion fails")
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
        return await listed(self._session, resource, namespace, self._notes.append)


async def listed(
    session: Session, resource: Resource[Any], namespace: str, note: Callable[[str], None]
) -> Sequence[Json]:
    """Whole objects; none of a kind that is not served, or that may not be listed, and then that is noted."""
    try:
        answer = await session.client.send(Request(Verb.LIST, resource, namespace))
    except NotFoundError:
        return ()
    except ForbiddenError:
        note(f"you may not list {resource.group_resource}: they are not looked at")
        return ()
    except ClientError as error:
        raise VerbError(str(error)) from error
    items: Sequence[Json] = decode(answer.body, dict)["items"] or ()
    return items


async def registered(session: Session) -> frozenset[str] | None:
    """The names of the validating entries; None: nobody may look."""
    try:
        answer = await session.client.send(Request(Verb.GET, _CONFIGURATIONS, "", VALIDATING_NAME))
    except NotFoundError:
        return frozenset()
    except ForbiddenError:
        return None
    except ClientError as error:
        raise VerbError(str(error)) from error
    return frozenset(str(hook.get("name")) for hook in decode(answer.body, dict).get("webhooks") or ())


async def nobody_answers(session: Session) -> str:
    """Why there is nobody whom the API server could ask; empty: there is, or nobody can tell."""
    manager = await manager_of(session)
    return manager.words if manager.is_down else ""


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


def _way_out(guard: Guard) -> str:
    if guard.is_never_free:
        return "change the budget, add replicas, or let this pod go by its annotation pub.kruise.io/no-protect=true"
    return f"wait until more pods are available: kruise why {guard.name}"


def _over(document: Json, budgets: Sequence[Json]) -> tuple[str, ...]:
    """The budgets that name this very object."""
    about = (group_of(str(document.get("apiVersion"))), document.get("kind"), name_of(document))
    found = []
    for budget in budgets:
        reference = value_at(budget, ("spec", "targetRef"), {})
        if (group_of(str(reference.get("apiVersion"))), reference.get("kind"), reference.get("name")) == about:
            found.append(name_of(budget))
    return tuple(sorted(found))
