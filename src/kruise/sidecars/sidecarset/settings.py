"""Strategy and limits of a SidecarSet, each with a title, as `kruise describe rollout` shows them."""

from __future__ import annotations

from kruise.faces.face import Setting
from kruise.machinery import codec
from kruise.machinery.documents import Json, value_at


def settings(document: Json) -> list[Setting]:
    strategy = value_at(document, ("spec", "updateStrategy"), {})
    found = [
        ("Strategy", str(strategy.get("type") or "RollingUpdate")),
        ("Partition", str(strategy.get("partition", 0))),
        ("Max Unavailable", str(strategy.get("maxUnavailable", 1))),
    ]
    if strategy.get("selector") is not None:
        found.append(("Update Selector", codec.encode(strategy["selector"]).decode()))
    injection = value_at(document, ("spec", "injectionStrategy"), {})
    if injection.get("paused"):
        found.append(("Injection", "paused"))
    elif injection.get("revision"):
        revision = injection["revision"]
        named = revision.get("revisionName") or revision.get("customVersion")
        found.append(("Injection", f"{revision.get('policy', 'Always')} {named}"))
    return found
