"""Warnings about environment variables of the terminator that will not do what they look like. Nothing is refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Allow, Mutation
from kruise.sidecars.terminator.containers import ENVS, IGNORE, IMAGE, KILL

GATE = "SidecarTerminator"
_PREFIX = "KRUISE_TERMINATE"
Json = dict[str, Any]


def warn(pod: Json, context: StepContext) -> Mutation | None:
    spec = pod.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(containers, list):
        return None
    found: list[str] = []
    is_meant = False
    for position, container in enumerate(containers):
        env = container.get("env") if isinstance(container, dict) else None
        told = [item for item in env if isinstance(item, dict) and _is_ours(item)] if isinstance(env, list) else []
        if told:
            is_meant = True
            found += _of_container(f"spec.containers[{position}].env", told)
    if not is_meant:
        return None
    if spec.get("restartPolicy", "Always") == "Always":
        found.append("spec.restartPolicy: Always: sidecars are stopped only in pods that end, so these stay")
    elif not context.view.gates.get(GATE, False):
        found.append(f"feature gate {GATE} is off: no sidecar is stopped when the main containers are done")
    return Allow(warnings=tuple(found)) if found else None


def _is_ours(item: Json) -> bool:
    return str(item.get("name", "")).upper().startswith(_PREFIX)


def _of_container(where: str, told: list[Json]) -> Iterator[str]:
    names = [str(item["name"]) for item in told]
    for item, name in zip(told, names, strict=True):
        path = f"{where}[{name}]"
        if name not in ENVS:
            near = difflib.get_close_matches(name.upper(), ENVS, 1, 0.0)
            yield f"{path}: unknown, so it has no effect; did you mean {near[0]}?"
        elif item.get("valueFrom") is not None:
            yield f"{path}: only a value that is written here counts, so it has no effect"
        elif name == IMAGE:
            if not item.get("value"):
                yield f"{path}: is empty, so it has no effect: name an image that ends at once"
        elif str(item.get("value", "")).lower() not in ("true", "false"):
            yield f'{path}: "{item.get("value", "")}" is not true, so it has no effect'
    if IGNORE in names and KILL not in names:
        yield f"{where}[{IGNORE}]: has an effect only together with {KILL}"
