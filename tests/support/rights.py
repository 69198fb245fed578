"""RBAC for what runs in a test's process: requests are let through as an API server would let the account's through.

    transport = Guarded(inner, RoleBook(roles_with(features, gates)).of(MANAGER))

`Guarded` also holds clients to the admission plugin `OwnerReferencesPermissionEnforcement`, which many clusters run.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from kruise.feature import Feature
from kruise.machinery.client.errors import from_response
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Response, Transport
from kruise.manager.installation import rbac
from kruise.manager.installation.granting import Right, grants, is_granted
from kruise.manager.installation.grants import CHANGE, READ
from kruise.manager.installation.manifests import manifests

Manifest = Mapping[str, Any]

NAMESPACE = "kruise-system"
MANAGER, DAEMON = rbac.MANAGER, rbac.DAEMON
ROLES = ("ClusterRole", "Role")
BINDINGS = ("ClusterRoleBinding", "RoleBinding")
ALL = ""
"""The scope of a request that is not about one namespace."""


class Asked(NamedTuple):
    """A right, and where somebody wants to use it."""

    right: Right
    scope: str

    def __str__(self) -> str:
        group, resource, verb, name = self.right
        told = f"{verb} {resource}{f'.{group}' if group else ''}{f' {name}' if name else ''}"
        return f"{told} in {self.scope}" if self.scope else told


def user_of(account: str) -> str:
    return f"system:serviceaccount:{NAMESPACE}:{account}"


def groups_of(namespace: str = NAMESPACE) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")


def gates_text(gates: Mapping[str, bool]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())


def roles_with(features: Sequence[Feature], gates: str) -> list[dict[str, Any]]:
    """Accounts, roles and bindings of an installation whose manager and daemon run with these gates."""
    made = manifests(features, values={"featureGates": gates}, runs=("manager", "daemon"))
    return [manifest for manifest in made if manifest["kind"] in ("ServiceAccount", *ROLES, *BINDINGS)]


def path_of(role: Manifest) -> str:
    """Where an API server has a role, or a binding."""
    about = role["metadata"]
    place = f"namespaces/{about['namespace']}/" if about.get("namespace") else ""
    return f"/apis/rbac.authorization.k8s.io/v1/{place}{role['kind'].lower()}s/{about['name']}"


Grants = Callable[[str], Sequence[Manifest]]
"""By scope: the rules that count there."""


def grants_of(documents: Iterable[Manifest], account: str) -> Grants:
    """What these bindings give an account."""
    documents = list(documents)
    rules: dict[tuple[str, str, str], list[Any]] = {}
    for found in documents:
        if found["kind"] in ROLES:
            about = found["metadata"]
            rules[found["kind"], about.get("namespace", ""), about["name"]] = found.get("rules") or []
    by_scope: dict[str, list[Any]] = {ALL: []}
    for found in documents:
        if found["kind"] in BINDINGS and _binds(found, account):
            where = found["metadata"].get("namespace", "")
            role = found["roleRef"]
            key = (role["kind"], where if role["kind"] == "Role" else "", role["name"])
            by_scope.setdefault(where, []).extend(rules.get(key, ()))
    everywhere = by_scope[ALL]

    @functools.cache
    def granted(scope: str) -> Sequence[Manifest]:
        return (*everywhere, *(by_scope.get(scope, ()) if scope else ()))

    return granted


def grants_with(features: tuple[Feature, ...], account: str, gates: Mapping[str, bool]) -> Grants:
    """What an account has in an installation with these gates. Certificates are the manager's own."""
    return _grants_with(features, account, gates_text({**gates, "EnableExternalCerts": False}))


_made: dict[tuple[tuple[int, ...], str, str], tuple[Grants, tuple[Feature, ...]]] = {}
"""The features are kept, so that no other one gets their identity."""


def _grants_with(features: tuple[Feature, ...], account: str, gates: str) -> Grants:
    key = (tuple(map(id, features)), account, gates)
    if key not in _made:
        _made[key] = grants_of(roles_with(features, gates), account), features
    return _made[key][0]


def without(rules: Iterable[Manifest], taken: Right) -> list[Manifest]:
    """The same rules, but for one right. Verbs that give the same power go together."""
    return [kept for rule in rules for kept in _left_of(rule, taken)]


def _left_of(rule: Manifest, taken: Right) -> Iterator[Manifest]:
    if not any(grants(rule, right) for right in _same_power(taken, rule)):
        yield rule
    elif taken.resource in rule["resources"]:  # else it is meant by a star
        if others := [one for one in rule["resources"] if one != taken.resource]:
            yield {**rule, "resources": others}
        verbs = {right.verb for right in _same_power(taken, rule)}
        if kept := [verb for verb in rule["verbs"] if verb not in verbs]:
            yield {**rule, "resources": [taken.resource], "verbs": kept}


def _same_power(taken: Right, rule: Manifest) -> Iterator[Right]:
    for verb in next((verbs for verbs in (CHANGE, READ) if taken.verb in verbs), (taken.verb,)):
        for name in rule.get("resourceNames") or ("",):
            yield taken._replace(verb=verb, name=name)


def with_more(granted: Grants, *rules: Manifest) -> Grants:
    """What somebody adds for kinds of others."""
    return lambda scope: (*granted(scope), *rules)


def _binds(binding: Manifest, account: str) -> bool:
    wanted = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}
    return any(wanted.items() <= subject.items() for subject in binding.get("subjects") or ())


def asked_by(request: Request) -> Iterator[Asked]:
    """What an API server asks its authorizer for the sake of a request. What is outside of all resources is open."""
    resource = request.resource
    if resource is None:
        return
    plural = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
    scope = request.namespace if resource.namespaced else ALL
    name = request.name
    if request.verb is Verb.CREATE and not request.subresource:
        name = ""
    elif request.verb in (Verb.LIST, Verb.WATCH, Verb.DELETE_COLLECTION):
        name = _selected_name(request)
    yield Asked(Right(resource.group, plural, str(request.verb), name), scope)
    is_applied = request.content_type == PatchType.APPLY and not request.subresource
    if is_applied:
        # Whoever may apply what is not there yet may create it.
        yield Asked(Right(resource.group, plural, "create"), scope)
    if request.verb.writes and request.body and b"ownerReferences" in request.body and request.subresource != "status":
        yield from _for_owners(request, scope, is_new=is_applied or request.verb is Verb.CREATE)


def _for_owners(request: Request, scope: str, *, is_new: bool) -> Iterator[Asked]:
    """Who changes the owners of an object must be allowed to delete it; who keeps an owner from going, to set the
    finalizers of that owner."""
    resource = request.resource
    assert resource is not None
    assert request.body is not None
    if not is_new:
        yield Asked(Right(resource.group, resource.plural, "delete", request.name), scope)
    for owner in _owners_in(json.loads(request.body)):
        if owner.get("blockOwnerDeletion"):
            group = owner["apiVersion"].rpartition("/")[0]
            plural = f"{_plural(owner['kind'])}/finalizers"
            yield Asked(Right(group, plural, "update", owner["name"]), scope)


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"


def _owners_in(part: Any) -> Iterator[Any]:
    if isinstance(part, list):
        for item in part:
            yield from _owners_in(item)
    elif isinstance(part, dict):
        if {"apiVersion", "kind", "name", "uid"} <= part.keys():
            yield part
        for item in part.values():
            yield from _owners_in(item)


def _selected_name(request: Request) -> str:
    for term in request.parameter("fieldSelector").split(","):
        key, _, value = term.partition("=")
        if key == "metadata.name":
            return value.lstrip("=")
    return ""


class Guarded:
    """A `Transport` of somebody who may do what `grants` says, and no more."""

    def __init__(self, inner: Transport, grants: Callable[[], Grants], user: str) -> None:
        self._inner = inner
        self._grants = grants
        self._user = user
        self.used: dict[Asked, int] = {}
        self.denied: dict[Asked, int] = {}

    async def send(self, request: Request) -> Response:
        refused = self._refusal(request)
        return refused if refused is not None else await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(request)

    @contextlib.asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        if (refused := self._refusal(request)) is not None:
            raise from_response(refused.status, refused.body, refused.headers)
        async with self._inner.stream(request) as lines:
            yield lines

    async def close(self) -> None:
        await self._inner.close()

    def _refusal(self, request: Request) -> Response | None:
        for asked in asked_by(request):
            if not is_granted(asked.right, self._grants()(asked.scope)):
                self.denied[asked] = self.denied.get(asked, 0) + 1
                return _forbidden(asked, self._user)
            self.used[asked] = self.used.get(asked, 0) + 1
        return None


def _forbidden(asked: Asked, user: str) -> Response:
    """In the words of an API server."""
    group, resource, verb, name = asked.right
    plural = resource.partition("/")[0]
    what = f"{plural}{f'.{group}' if group else ''}{f' {json.dumps(name)}' if name else ''}"
    where = f"in the namespace {json.dumps(asked.scope)}" if asked.scope else "at the cluster scope"
    message = f'{what} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "details": {"name": name, "group": group, "kind": plural},
        "code": 403,
    }
    return Response(403, json.dumps(body).encode(), {"content-type": "application/json"})
