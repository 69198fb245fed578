"""CloneSets and their pods, for admission without a server."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.patches import merge
from kruise.workloads.cloneset.admission import ADMISSION
from tests.support import admission
from tests.support.admission import NAMESPACE, Json


def cloneset(spec: Mapping[str, Any] | None = None, *, version: str = "v1beta1", **metadata: Any) -> Json:
    """A small sound CloneSet, with parts of its spec replaced by a JSON merge patch."""
    base = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "cs"}},
        "template": {
            "metadata": {"labels": {"app": "cs"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
        },
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": "cs", **metadata},
        "spec": merge.apply(base, dict(spec or {})),
    }


def pod(name: str, *, controller_uid: str = "", terminating: bool = False) -> Pod:
    metadata: Json = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}"}
    if controller_uid:
        reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "cs", "uid": controller_uid}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return codec.convert({"metadata": metadata}, Pod)


Server = functools.partial(admission.Server, admission=ADMISSION)
