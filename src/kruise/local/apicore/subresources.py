"""The subresources that do something: eviction, binding and scale, in their simple forms.

Eviction is a delete that admission sees as the creation of an Eviction, and not as a delete (checked on 1.34); what
else may refuse it is asked afterwards. Binding puts a pod on a node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kruise.api.core.field_errors import go_quote
from kruise.local.apicore import errors, metadata
from kruise.local.apicore.deletion import DeleteOptions, check_preconditions
from kruise.local.apicore.errors import Json
from kruise.machinery.selectors import from_label_selector

if TYPE_CHECKING:
    from kruise.local.apicore.core import ApiCore, Call


async def evict(core: ApiCore, call: Call, body: Json, ask: Callable[[Call, Json], None]) -> Json:
    """POST of a policy/v1 Eviction. `ask` raises where the pod may not go."""
    if (body.get("metadata") or {}).get("name") != call.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = DeleteOptions.parse(body.get("deleteOptions") or {}, ("All",) if call.dry_run else ())
    await core.admit_action(call, body)
    plain = dataclasses.replace(call, subresource="")
    pod = core.get(plain)
    check_preconditions(call.kind, pod, options)
    ask(dataclasses.replace(call, dry_run=options.dry_run), pod)
    if not options.dry_run:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        pod = core.rewrite(plain, lambda pod: _with_condition(core, pod, condition))
        if options.resource_version is not None:
            options = dataclasses.replace(options, resource_version=pod["metadata"]["resourceVersion"])
    await core.delete(plain, options, is_admitted=True)
    return errors.success(code=201)


async def bind(core: ApiCore, call: Call, body: Json) -> Json:
    """POST of a v1 Binding: the pod is put on the node, once."""
    about = body.get("metadata") or {}
    if about.get("name") != call.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    target = body.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        raise errors.plain_failure(
            f'target.kind: Unsupported value: {go_quote(target["kind"])}: supported values: "Node", "<empty>"'
        )
    if not target.get("name"):
        raise errors.plain_failure("target.name: Required value")
    await core.admit_action(call, body)
    plain = dataclasses.replace(call, subresource="")

    def bound(pod: Json) -> Json:
        for field, said in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if about.get(field) and about[field] != pod["metadata"][field]:
                raise core.failed_precondition(plain, said, about[field], pod["metadata"][field])
        refusal = _why_not(pod)
        if refusal:
            raise errors.conflict("", "pods/binding", call.name, refusal)
        merged = dict(pod["metadata"])
        for name in ("annotations", "labels"):
            if about.get(name):
                merged[name] = {**merged.get(name, {}), **about[name]}
        spec = {**(pod.get("spec") or {}), "nodeName": target["name"]}
        pod = {**pod, "metadata": merged, "spec": spec}
        return _with_condition(core, pod, {"type": "PodScheduled", "status": "True"})

    core.rewrite(plain, bound)
    return errors.success(code=201)


def _with_condition(core: ApiCore, pod: Json, condition: Json) -> Json:
    """The pod with a condition; its transition time stays while its status does."""
    status = pod.get("status") or {}
    conditions = list(status.get("conditions") or ())
    moment = metadata.timestamp(core.clock.now())
    position = next((at for at, item in enumerate(conditions) if item.get("type") == condition["type"]), None)
    if position is not None and conditions[position].get("status") == condition["status"]:
        moment = conditions[position].get("lastTransitionTime", moment)
    complete = {"lastProbeTime": None, "lastTransitionTime": moment, **condition}
    if position is None:
        conditions.append(complete)
    else:
        conditions[position] = complete
    return {**pod, "status": {**status, "conditions": conditions}}


def _why_not(pod: Json) -> str:
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f"pod {name} is already assigned to node {go_quote(spec['nodeName'])}"
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def read_scale(obj: Json) -> Json:
    """A workload as `autoscaling/v1` Scale."""
    about = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    shown: Json = {"replicas": status.get("replicas", 0)}
    selector = _selector_text(spec.get("selector"))
    if selector:
        shown["selector"] = selector
    replicas = spec.get("replicas", 0)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: about[name] for name in kept if name in about},
        "spec": {"replicas": replicas} if replicas else {},
        "status": shown,
    }


def write_scale(obj: Json, scale: Json) -> Json:
    """The workload with the size, and the guards, of a Scale."""
    about = {**obj["metadata"]}
    for name in ("uid", "resourceVersion"):
        given = (scale.get("metadata") or {}).get(name)
        if given:
            about[name] = given
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    return {**obj, "metadata": about, "spec": {**(obj.get("spec") or {}), "replicas": replicas}}


def _selector_text(selector: Any) -> str:
    """Label requirements as a query would say them."""
    if not isinstance(selector, dict):
        return ""
    return str(from_label_selector(selector))
