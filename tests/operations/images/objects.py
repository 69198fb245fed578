"""Image kinds as tests need them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.apps.images import (
    ImagePullJob,
    ImagePullJobSpec,
    ImagePullJobStatus,
    ImageSpec,
    ImageStatus,
    NodeImage,
    NodeImageSpec,
    NodeImageStatus,
    TagPullPolicy,
    TagSpec,
    TagStatus,
)
from kruise.api.meta import ObjectMeta
from kruise.machinery import codec
from kruise.machinery.plan import Action, Plan
from kruise.operations.images.pulljob.decide import Snapshot, decide

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def node_image(name: str = "node-1", images: dict[str, ImageSpec] | None = None, **statuses: Any) -> NodeImage:
    return NodeImage(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", resource_version="7", generation=3),
        spec=NodeImageSpec(images=images or {}),
        status=NodeImageStatus(image_statuses=statuses.get("statuses", {})),
    )


def task(tag: str = "1", *, ttl: int = 300, created: datetime | None = NOW, **fields: Any) -> TagSpec:
    policy = fields.pop("policy", TagPullPolicy(timeout_seconds=600, backoff_limit=3, ttl_seconds_after_finished=ttl))
    return TagSpec(tag=tag, created_at=created, pull_policy=policy, **fields)


def entry(*tasks: TagSpec, **fields: Any) -> ImageSpec:
    return ImageSpec(tags=tasks, **fields)


def told(*statuses: TagStatus, image: str = "nginx") -> dict[str, ImageStatus]:
    return {image: ImageStatus(tags=statuses)}


def job(name: str = "j", *, uid: str = "uid-j", status: ImagePullJobStatus | None = None, **spec: Any) -> ImagePullJob:
    completion = spec.pop("completionPolicy", {"type": "Always"})
    return ImagePullJob(
        metadata=ObjectMeta(
            name=name,
            namespace="demo",
            uid=uid,
            resource_version="5",
            finalizers=("apps.kruise.io/deletion-protection",),
        ),
        spec=codec.convert({"image": "nginx:1", "completionPolicy": completion, **spec}, ImagePullJobSpec),
        status=status or ImagePullJobStatus(start_time=NOW),
    )


def snapshot(wanted: ImagePullJob, *nodes: NodeImage, now: datetime = NOW, **fields: Any) -> Snapshot:
    given: dict[str, Any] = {"secrets": (), "awaited_secrets": (), "missing_secrets": (), "has_copies": False}
    return Snapshot(job=wanted, node_images=nodes, now=now, seed=fields.pop("seed", 11), **{**given, **fields})


def written(plan: Plan, phase: str) -> list[Action]:
    return [action for one in plan.phases if one.name == phase for chain in one.chains for action in chain]


def applied(node: NodeImage, action: Action) -> NodeImage:
    """The NodeImage after a write of its spec, as a server has it."""
    document: dict[str, Any] = codec.to_builtins(node)
    spec = document.setdefault("spec", {})
    for step in action.body:
        if step["op"] == "test":
            assert step == {"op": "test", "path": "/metadata/generation", "value": node.metadata.generation}
        elif step["path"] == "/spec":
            document["spec"] = spec = step["value"]
        else:
            name = step["path"].removeprefix("/spec/images/").replace("~1", "/").replace("~0", "~")
            if step["op"] == "remove":
                del spec["images"][name]
            else:
                spec["images"][name] = step["value"]
    document["metadata"]["generation"] = node.metadata.generation + 1
    return codec.convert(document, NodeImage)


def told_of(node: NodeImage, *statuses: TagStatus, image: str = "nginx") -> NodeImage:
    """The NodeImage after its daemon has spoken."""
    return codec.evolve(node, status=NodeImageStatus(desired=1, image_statuses=told(*statuses, image=image)))


def spread(wanted: ImagePullJob, *nodes: NodeImage, **fields: Any) -> list[NodeImage]:
    """The nodes that get a task in one pass, with it."""
    known = {node.metadata.name: node for node in nodes}
    plan = decide(snapshot(wanted, *nodes, **fields))
    return [applied(known[action.target.name], action) for action in written(plan, "spread")]
