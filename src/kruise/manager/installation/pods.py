"""What the pods of manager and daemon have in common: the image, and no right that they do not need. Pure."""

from __future__ import annotations

from typing import Any

from kruise.manager.installation.templating import IsSet, Value, When, text

NAMESPACE = Value("installation.namespace")


def image(version: str) -> Any:
    repository = Value("manager.image.repository")
    return When(
        IsSet("manager.image.tag"),
        text(repository, ":", Value("manager.image.tag")),
        text(repository, f":{version}"),
    )


def image_fields(version: str) -> dict[str, Any]:
    return {"image": image(version), "imagePullPolicy": Value("manager.image.pullPolicy")}


def unprivileged_pod(user: int, group: int) -> dict[str, Any]:
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": group,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def unprivileged_container() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def if_set(path: str) -> When:
    """The value, where there is one."""
    return When(IsSet(path), Value(path))


def env_of_field(name: str, field: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
