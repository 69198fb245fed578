"""The admission plugins that every API server has switched on and that users meet.

Namespaces that must stay, service accounts and their tokens in pods, tolerations of nodes that are away for a short
time, priorities, default storage classes, and finalizers that keep volumes which are in use. They run before any
webhook.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kruise.api.core import quantities
from kruise.local.apicore import errors
from kruise.local.apicore.admitting import AdmissionRequest, Operation
from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.errors import Json
from kruise.local.kinds.storage import requested_storage
from kruise.machinery.names import NameSource

PROTECTED_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)

_MIRROR: Final = "kubernetes.io/config.mirror"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_TOKEN_VOLUME: Final = "kube-api-access-"
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_AWAY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_AWAY_SECONDS: Final = 300
_ACCOUNT_ATTEMPTS: Final = 10
_ACCOUNT_INTERVAL: Final = 0.15
_PREEMPTION: Final = "PreemptLowerPriority"

Step = Callable[[AdmissionRequest, Json], Awaitable[Json | None]]


def install(
    core: ApiCore,
    *,
    seed: int | None = None,
    require_service_accounts: bool = True,
    taint_new_nodes: bool = False,
) -> Plugins:
    """Put the plugins in front of a core's admission chain.

    Token volumes have names that come from `seed`. Without `require_service_accounts` a pod may name an account that
    does not exist, for cores in which no controller makes the default accounts. `taint_new_nodes` keeps pods off new
    nodes until a controller takes the taint away, which is for clusters that have such a controller.
    """
    plugins = Plugins(
        core, seed=seed, require_service_accounts=require_service_accounts, taint_new_nodes=taint_new_nodes
    )
    core.admission.mutating.insert(0, plugins.mutate)
    core.admission.validating.insert(0, plugins.validate)
    return plugins


class Plugins:
    """The built-in admission of one core."""

    def __init__(
        self, core: ApiCore, *, seed: int | None, require_service_accounts: bool, taint_new_nodes: bool
    ) -> None:
        self._core = core
        self._require_accounts = require_service_accounts
        self._names = NameSource(random.SystemRandom().getrandbits(128) if seed is None else seed)
        self._on_create: dict[str, Step] = {
            "pods": self._new_pod,
            "persistentvolumeclaims": self._new_claim,
            "persistentvolumes": self._new_volume,
        }
        if taint_new_nodes:
            self._on_create["nodes"] = _tainted_node

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        obj, resource = request.object, request.kind.group_resource
        if request.subresource or obj is None:
            return None
        if request.operation is Operation.CREATE:
            step = self._on_create.get(resource)
            return None if step is None else await step(request, obj)
        if resource == "pods" and request.old_object is not None:
            return _tolerant(_with_kept_priority(obj, request.old_object))
        return None

    async def validate(self, request: AdmissionRequest) -> None:
        resource = request.kind.group_resource
        if request.operation is Operation.DELETE:
            if resource == "namespaces" and request.name in PROTECTED_NAMESPACES:
                raise _forbidden(request, "this namespace may not be deleted")
        elif resource == "priorityclasses.scheduling.k8s.io" and (request.object or {}).get("globalDefault"):
            self._check_single_default(request)
        elif resource == "persistentvolumeclaims" and request.old_object is not None and not request.subresource:
            self._check_growth(request, request.object or {}, request.old_object)

    # Pods

    async def _new_pod(self, request: AdmissionRequest, pod: Json) -> Json:
        if _MIRROR not in (pod["metadata"].get("annotations") or {}):
            pod = await self._with_account(request, pod)
        return _tolerant(self._with_priority(request, pod))

    async def _with_account(self, request: AdmissionRequest, pod: Json) -> Json:
        spec = dict(pod["spec"])
        name = spec.get("serviceAccountName") or "default"
        account = await self._account(request, name)
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        automount = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
        if automount is not False:
            self._mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]
        return {**pod, "spec": spec}

    async def _account(self, request: AdmissionRequest, name: str) -> Json:
        key = (request.namespace, name)
        # A controller makes the default account of a new namespace; a pod that comes first waits a little for it.
        attempts = _ACCOUNT_ATTEMPTS if name == "default" and self._require_accounts else 1
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(_ACCOUNT_INTERVAL)
            found = self._core.storage.get("serviceaccounts", key)
            if found is not None:
                return found
        if not self._require_accounts:
            return {}
        missing = f'serviceaccount "{name}" not found'
        raise _forbidden(request, f"error looking up service account {request.namespace}/{name}: {missing}")

    def _mount_token(self, spec: Json) -> None:
        volumes = list(spec.get("volumes") or ())
        known = next((volume["name"] for volume in volumes if volume["name"].startswith(_TOKEN_VOLUME)), "")
        name = known or self._names.generate(_TOKEN_VOLUME)
        mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
        mounted = False
        for kind in ("initContainers", "containers"):
            if not spec.get(kind):
                continue
            containers = []
            for container in spec[kind]:
                mounts = container.get("volumeMounts") or []
                if not any(one.get("mountPath") == _TOKEN_PATH for one in mounts):
                    container = {**container, "volumeMounts": [*mounts, mount]}
                    mounted = True
                containers.append(container)
            spec[kind] = containers
        if mounted and not known:
            spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]

    def _with_priority(self, request: AdmissionRequest, pod: Json) -> Json:
        spec = dict(pod["spec"])
        name = spec.get("priorityClassName", "")
        found = self._default_priority() if not name else self._class("priorityclasses.scheduling.k8s.io", name)
        if found is None and name:
            raise _forbidden(request, f"no PriorityClass with name {name} was found")
        priority, policy = 0, _PREEMPTION
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
            priority, policy = found["value"], found.get("preemptionPolicy", _PREEMPTION)
        computed = (("priority", "integer value of priority", priority),)
        for field, words, value in (*computed, ("preemptionPolicy", "string value of PreemptionPolicy", policy)):
            if spec.get(field, value) != value:
                text = (
                    f"the {words} ({spec[field]}) must not be provided in pod spec; priority admission controller "
                    f"computed {value} from the given PriorityClass name"
                )
                raise _forbidden(request, text)
            spec[field] = value
        return {**pod, "spec": spec}

    def _default_priority(self) -> Json | None:
        classes = [one for one in self._all("priorityclasses.scheduling.k8s.io") if one.get("globalDefault")]
        return min(classes, key=lambda one: int(one["value"]), default=None)

    def _check_single_default(self, request: AdmissionRequest) -> None:
        known = self._default_priority()
        if known is None:
            return
        name = known["metadata"]["name"]
        if request.operation is Operation.CREATE or name != request.name:
            raise _forbidden(request, f"PriorityClass {name} is already marked as default. Only one default can exist")

    # Volumes

    async def _new_claim(self, request: AdmissionRequest, claim: Json) -> Json:
        spec, annotations = claim["spec"], claim["metadata"].get("annotations") or {}
        if spec.get("storageClassName") is None and _BETA_CLASS not in annotations:
            default = self._default_storage_class()
            if default is not None:
                spec = {**spec, "storageClassName": default["metadata"]["name"]}
        return _with_finalizer({**claim, "spec": spec}, CLAIM_FINALIZER)

    async def _new_volume(self, request: AdmissionRequest, volume: Json) -> Json:
        return _with_finalizer(volume, VOLUME_FINALIZER)

    def _check_growth(self, request: AdmissionRequest, claim: Json, before: Json) -> None:
        """Of a bound claim: validation keeps others as they are."""
        if quantities.compare(requested_storage(claim), requested_storage(before)) <= 0:
            return
        name = claim["spec"].get("storageClassName") or ""
        found = self._class("storageclasses.storage.k8s.io", name) if name else None
        if found is None or not found.get("allowVolumeExpansion"):
            text = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"
            raise _forbidden(request, f"{text} support resize")

    def _default_storage_class(self) -> Json | None:
        """The newest of those that say so; the first by name where two are equally new."""
        chosen: Json | None = None
        for one in self._all("storageclasses.storage.k8s.io"):
            about = one["metadata"]
            if not any((about.get("annotations") or {}).get(key) == "true" for key in DEFAULT_CLASS):
                continue
            if chosen is None or about["creationTimestamp"] > chosen["metadata"]["creationTimestamp"]:
                chosen = one
        return chosen

    def _class(self, resource: str, name: str) -> Json | None:
        return self._core.storage.get(resource, ("", name))

    def _all(self, resource: str) -> list[Json]:
        storage = self._core.storage
        return [obj for _, obj in storage.scan(resource, "", "", storage.version)]


async def _tainted_node(request: AdmissionRequest, node: Json) -> Json:
    taint = {"key": _AWAY[0], "effect": "NoSchedule"}
    taints = node["spec"].get("taints") or []
    if any(one["key"] == taint["key"] and one["effect"] == taint["effect"] for one in taints):
        return node
    return {**node, "spec": {**node["spec"], "taints": [*taints, taint]}}


def _token_source() -> Json:
    """A token that is renewed, the cluster's CA and the name of the namespace, in one directory."""
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 420,
    }


def _with_kept_priority(new: Json, old: Json) -> Json:
    spec: dict[str, Any] = new["spec"]
    for name in ("priority", "preemptionPolicy"):
        if name not in spec and name in old["spec"]:
            spec = {**spec, name: old["spec"][name]}
    return new if spec is new["spec"] else {**new, "spec": spec}


def _tolerant(pod: Json) -> Json:
    """Pods stay for five minutes on a node that is away, unless they say otherwise."""
    tolerations = pod["spec"].get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _AWAY_SECONDS}
        for key in _AWAY
        if not any(_tolerates(one, key) for one in tolerations)
    ]
    if not added:
        return pod
    return {**pod, "spec": {**pod["spec"], "tolerations": [*tolerations, *added]}}


def _tolerates(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def _with_finalizer(obj: Json, finalizer: str) -> Json:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "finalizers": [*finalizers, finalizer]}}


def _forbidden(request: AdmissionRequest, text: str) -> errors.StatusError:
    return errors.forbidden(request.kind.group, request.kind.plural, request.name, text)
