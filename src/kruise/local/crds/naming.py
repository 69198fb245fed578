"""Which names a definition gets, and the conditions that say so. Pure: definitions in, changed definitions out."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, Path, go_quote
from kruise.local.apicore.errors import Json
from kruise.local.apicore.metadata import timestamp
from kruise.machinery.names import dns_1035_label_problems

_APPROVED: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


# Conditions


def condition(obj: Json, name: str) -> Json | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item["type"] == name), None)


def is_true(obj: Json, name: str) -> bool:
    found = condition(obj, name)
    return found is not None and found["status"] == "True"


def with_condition(obj: Json, name: str, status: str, reason: str, message: str, now: datetime) -> Json:
    """The definition with a condition; its time stays while its status does."""
    known = condition(obj, name)
    moment = timestamp(now)
    if known is not None and known["status"] == status:
        moment = known.get("lastTransitionTime", moment)
    made = {"type": name, "status": status, "lastTransitionTime": moment, "reason": reason, "message": message}
    conditions = list((obj.get("status") or {}).get("conditions") or ())
    if known is None:
        conditions.append(made)
    else:
        conditions[conditions.index(known)] = made
    return {**obj, "status": {**(obj.get("status") or {}), "conditions": conditions}}


# Names


def name_problems(names: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """What is wrong with the names that a definition asks for."""
    for name in ("plural", "singular", "kind", "listKind"):
        given = names.get(name, "")
        mixed = name in ("kind", "listKind")
        wrong = dns_1035_label_problems(given.lower() if mixed else given) if given else ()
        if wrong:
            words = "may have mixed case, but should otherwise match: " if mixed else ""
            yield field_errors.invalid(path.child(name), given, words + ",".join(wrong))
    for name in ("shortNames", "categories"):
        for position, given in enumerate(names.get(name) or ()):
            wrong = dns_1035_label_problems(given)
            if wrong:
                yield field_errors.invalid(path.child(name).at(position), given, ",".join(wrong))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        words = "kind and listKind may not be the same"
        yield field_errors.invalid(path.child("listKind"), names["listKind"], words)


def accepted(obj: Json, others: Sequence[Json], now: datetime) -> Json:
    """The definition with the names that it gets beside `others` of its group, and the conditions for it.

    The definition itself where nothing changes.
    """
    wanted: Json = obj["spec"]["names"]
    had: Json = (obj.get("status") or {}).get("acceptedNames") or {}
    if had == wanted:
        return obj
    resources, kinds = _taken(others)
    names = dict(had)
    problem: tuple[str, str] | None = None
    for name, taken, reason in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        refused = _refused(name, wanted, had, taken)
        if refused:
            problem = (reason, refused)
        elif wanted.get(name):
            names[name] = wanted[name]
        else:
            names.pop(name, None)
    names.pop("categories", None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    names = {name: names[name] for name in _ORDER if name in names}
    status, (reason, message) = ("False", problem) if problem else ("True", ("NoConflicts", "no conflicts found"))
    before = condition(obj, "NamesAccepted")
    if names == had and before is not None and (before["reason"], before["message"]) == (reason, message):
        return obj
    changed = {**obj, "status": {**obj["status"], "acceptedNames": names}}
    changed = with_condition(changed, "NamesAccepted", status, reason, message, now)
    if is_true(obj, "Established"):
        return changed
    if status == "True":
        text = "the initial names have been accepted"
        return with_condition(changed, "Established", "False", "Installing", text, now)
    if condition(obj, "Established") is None:
        return with_condition(changed, "Established", "False", "NotAccepted", "not all names are accepted", now)
    return changed


_ORDER: Final = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def _taken(others: Sequence[Json]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update((names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())))
        kinds.update((names.get("kind", ""), names.get("listKind", "")))
    return resources, kinds


def _refused(name: str, wanted: Json, had: Json, taken: set[str]) -> str:
    if name == "shortNames":
        mine = set(had.get(name) or ())
        used = [item for item in wanted.get(name) or () if item not in mine and item in taken]
        texts = list(dict.fromkeys(f"{go_quote(item)} is already in use" for item in used))
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
    given = wanted.get(name, "")
    return f"{go_quote(given)} is already in use" if given != had.get(name, "") and given in taken else ""


# Groups of Kubernetes itself


def approval(obj: Json) -> tuple[str, str]:
    """For groups of Kubernetes: whether the definition was approved, and the words for it. Empty for other groups."""
    group = obj["spec"].get("group", "")
    if not any(group == name or group.endswith(f".{name}") for name in ("k8s.io", "kubernetes.io")):
        return "", ""
    given = (obj["metadata"].get("annotations") or {}).get(_APPROVED, "")
    needed = f"protected groups must have approval annotation {go_quote(_APPROVED)}"
    if not given:
        return "Missing", f"{needed}, {_SEE}"
    if given.startswith("unapproved"):
        return "Unapproved", f"not approved: {go_quote(given)}"
    parts = urllib.parse.urlsplit(given)
    if parts.scheme and parts.netloc:
        return "Approved", f"approved in {given}"
    return "Invalid", f'{needed} with either a URL or a reason starting with "unapproved", {_SEE}'


def with_approval(obj: Json, now: datetime) -> Json:
    """The definition with the condition about its group, where it needs one."""
    state, words = approval(obj)
    if not state:
        return obj
    name, reason = "KubernetesAPIApprovalPolicyConformant", f"{state}Annotation"
    known = condition(obj, name)
    if known is not None and (known["reason"], known["message"]) == (reason, words):
        return obj
    return with_condition(obj, name, "True" if state == "Approved" else "False", reason, words, now)
