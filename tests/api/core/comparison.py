"""What our model says about a template, in the shape in which a real API server's answers are recorded.

An answer is `{"stored": value}` or `{"refused": [[reason, field, message], ...]}`. A wrong type, which the server finds
while decoding, is `{"undecodable": field}` without positions, because the server's message has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.core import creation, defaults, subresources, validation
from kruise.api.core.field_errors import FieldError, TemplateTypeError

Answer = dict[str, Any]

NAMESPACE = "recorded"
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def pod_of(template: Mapping[str, Any], namespace: str = NAMESPACE) -> dict[str, Any]:
    """A pod made from a template. It takes no token, so that the server mounts none."""
    meta = template.get("metadata") or {}
    kept = {name: meta[name] for name in ("labels", "annotations") if name in meta}
    spec = template.get("spec")
    if isinstance(spec, Mapping):
        spec = {**spec, "automountServiceAccountToken": False}
    return {"metadata": {**kept, "name": "p", "namespace": namespace}, "spec": spec}


def template_answer(template: Any) -> Answer:
    """As if the template were sent in a PodTemplate."""
    try:
        stored = defaults.stored_template(template)
    except TemplateTypeError as error:
        return _undecodable(error.error, "template.")
    errors = validation.validate_pod_template(stored)
    return refusal(errors) if errors else {"stored": stored}


def pod_answer(template: Any) -> Answer:
    """As if a pod made from the template were sent. The usual admission plugins act between defaults and validation."""
    try:
        pod = defaults.default_pod(pod_of(template))
    except TemplateTypeError as error:
        return _undecodable(error.error, "")
    _admit(pod["spec"])
    pod = creation.prepare_new_pod(pod, now="2024-01-01T00:00:00Z")
    errors = validation.validate_pod(pod)
    return refusal(errors) if errors else {"stored": _kept(pod)}


def _kept(pod: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of a pod: not its identity, not the time."""
    meta = {name: pod["metadata"][name] for name in ("labels", "annotations", "generation") if name in pod["metadata"]}
    status = {
        **pod["status"],
        "conditions": [{**one, "lastTransitionTime": "then"} for one in pod["status"].get("conditions") or ()],
    }
    return {"metadata": meta, "spec": pod["spec"], "status": status}


def _admit(spec: dict[str, Any]) -> None:
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.get("tolerations") or []
    for taint in _TOLERATED_TAINTS:
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            added = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations = [*tolerations, added]
    spec["tolerations"] = tolerations


def _tolerates(toleration: Mapping[str, Any], taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def _undecodable(error: FieldError, prefix: str) -> Answer:
    return {"undecodable": re.sub(r"\[[^]]*\]", "", prefix + error.path)}


def refusal(errors: tuple[FieldError, ...]) -> Answer:
    """Errors as an answer."""
    return {"refused": _listed((error.type, str(error.path), error.message) for error in errors)}


def _listed(causes: Iterable[tuple[str, str, str]]) -> list[list[str]]:
    """The server goes through maps in random order and looks at some things twice."""
    return [list(cause) for cause in sorted(set(causes))]


def server_answer(status: int, body: Any, part: str) -> Answer:
    """The answer of a real server to a dry run. `part` is the member of the object that holds the template, if any."""
    if status in (200, 201):
        if part:
            return {"stored": body[part]}
        return {"stored": _kept(body)}
    if status == 422:
        causes = body["details"].get("causes") or ()
        return {"refused": _listed((cause["reason"], cause["field"], cause["message"]) for cause in causes)}
    if status == 400:
        found = re.search(r"Go struct field [A-Za-z0-9]+\.([A-Za-z0-9.]+) of type", body["message"])
        return {"undecodable": found[1] if found else body["message"]}
    return {"other": [status, body["message"]]}


def difference(ours: Answer, theirs: Answer) -> str:
    """Empty where the answers agree: the same object, or the same reasons at the same fields."""
    if ours.keys() != theirs.keys():
        return f"ours: {ours}\n  theirs: {theirs}"
    if "refused" in ours:
        mine = {(reason, field) for reason, field, _ in ours["refused"]}
        other = {(reason, field) for reason, field, _ in theirs["refused"]}
        return "" if mine == other else f"only ours: {sorted(mine - other)}\n  only theirs: {sorted(other - mine)}"
    (mine,), (other,) = ours.values(), theirs.values()
    if "undecodable" in ours and " " in other:
        return ""  # for some types the server tells no field
    return "\n  ".join(_differences("", mine, other))


def _differences(path: str, mine: Any, other: Any) -> list[str]:
    if isinstance(mine, dict) and isinstance(other, dict):
        return [
            line
            for key in sorted(mine.keys() | other.keys())
            for line in _differences(f"{path}.{key}", mine.get(key, "<absent>"), other.get(key, "<absent>"))
        ]
    if isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        pairs = enumerate(zip(mine, other, strict=True))
        return [line for position, (a, b) in pairs for line in _differences(f"{path}[{position}]", a, b)]
    return [] if mine == other and type(mine) is type(other) else [f"{path}: ours {mine!r}, theirs {other!r}"]


def same_messages(ours: Answer, theirs: Answer) -> bool:
    """Word for word, except that the server adds a difference of Go structs to one of its messages."""
    return _first_lines(ours) == _first_lines(theirs)


def _first_lines(answer: Answer) -> list[tuple[str, str, str]]:
    return [(reason, field, message.partition("\n")[0]) for reason, field, message in answer.get("refused", ())]


def update_answer(new: Any, old: Any, subresource: str = "") -> Answer:
    """As if `new` were sent in an update of the pod `old` or of a subresource of it."""
    sent = defaults.default_pod(new)
    if subresource == "resize":
        errors = validation.validate_pod_resize(subresources.resized_pod(sent, old), old)
    elif subresource == "ephemeralcontainers":
        taken = subresources.pod_with_ephemeral_containers(sent, old)
        errors = validation.validate_ephemeral_containers_update(taken, old)
    elif subresource == "status":
        errors = validation.validate_pod_status_update(subresources.pod_with_status(sent, old), old)
    else:
        errors = validation.validate_pod_update(sent, old)
    return refusal(errors) if errors else {"accepted": True}


def server_update_answer(status: int, body: Any) -> Answer:
    answer = server_answer(status, body, "metadata")
    return {"accepted": True} if "stored" in answer else answer


def without_prefix(answer: Answer) -> Answer:
    """A template's refusal as a pod's: the fields without the place of the template."""
    if "refused" in answer:
        causes = ((reason, field.removeprefix("template."), message) for reason, field, message in answer["refused"])
        return {"refused": _listed(causes)}
    return {key: value.removeprefix("template.") if isinstance(value, str) else value for key, value in answer.items()}
