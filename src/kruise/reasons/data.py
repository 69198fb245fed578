"""The answer for programs: complete, however many pods wait.

Pods refer to each other by name (`leadsTo`), so that thousands that wait for the same hundred do not repeat them;
`ends` tells for each what its chain comes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.machinery.causes import Act
from kruise.machinery.codec import to_builtins
from kruise.reasons.links import OBJECT, Answer, HeldObject, Link


def as_data(answer: Answer, *, pod: str = "") -> dict[str, Any]:
    """`pod`: only what that one waits for, directly or not."""
    shown = answer.only(pod) if pod else answer
    acts = {name: answer.act_of(name) for name in shown.waiting}
    waits = (acts.get(pod) if pod else answer.act) or ""
    source = answer.source
    return {
        "kind": answer.kind,
        "namespace": answer.namespace,
        "name": answer.name,
        **({"pod": pod} if pod else {}),
        "revision": answer.revision,
        "replicas": {
            "wanted": answer.wanted,
            "pods": len(answer.pods),
            "expectedUpdated": answer.expected,
            "updated": answer.updated,
            "available": answer.available,
        },
        "waits": bool(waits),
        "act": str(waits),
        "source": {
            "journal": source.is_journal,
            "words": source.words,
            **({"time": to_builtins(source.time)} if source.time is not None else {}),
            **({"reason": source.reason} if source.reason else {}),
        },
        "waiting": [_waiting(answer, waiting, acts[name]) for name, waiting in shown.waiting.items()],
        "remarks": [{"code": remark.code, "message": remark.message} for remark in answer.remarks],
    }


def _waiting(answer: Answer, waiting: HeldObject, act: Act) -> dict[str, Any]:
    return {
        "pod": waiting.pod if waiting.pod != OBJECT else None,
        "act": act.value,
        "causes": [_link(link) for link in waiting.links],
        "ends": [_end(link) for link in answer.ends(waiting.pod)],
    }


def _link(link: Link) -> dict[str, Any]:
    details: Mapping[str, Any] = link.details
    return {
        "code": link.code,
        "message": link.message,
        "act": link.act.value,
        "remedy": link.remedy,
        **({"leadsTo": [name or None for name in link.leads_to]} if link.leads_to else {}),
        **({"details": dict(details)} if details else {}),
    }


def _end(link: Link) -> dict[str, str]:
    return {"code": link.code, "message": link.message, "act": link.act.value, "remedy": link.remedy}


def lone_pod(pod: str, namespace: str, links: Sequence[Link]) -> dict[str, Any]:
    """The same for a pod that belongs to nobody known."""
    return _alone("pod", namespace, pod, links)


def stored(kind: str, namespace: str, name: str, link: Link) -> dict[str, Any]:
    """The same for an object that the cluster keeps, and nobody acts on."""
    return _alone(kind, namespace, name, [link])


def _alone(kind: str, namespace: str, name: str, links: Sequence[Link]) -> dict[str, Any]:
    return {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "waits": bool(links),
        "act": links[0].act.value if links else "",
        "causes": [_link(link) for link in links],
    }
