"""Why a node does not have all the images that its NodeImage asks for, in causes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.images import FAILED, NODE_IMAGES, SUCCEEDED, NodeImage
from kruise.api.core.images import ImageReference
from kruise.machinery.causes import Cause
from kruise.machinery.plan import Held, Target
from kruise.machinery.wording import listed, plural, without_middle
from kruise.operations.images import causes as pulls
from kruise.operations.images.tasks import status_of

_LONGEST = 300


def held(node_image: NodeImage) -> tuple[Held, ...]:
    found = tuple(_causes(node_image))
    return (Held(target=Target.of(NODE_IMAGES, node_image), causes=found),) if found else ()


def _causes(node_image: NodeImage) -> Iterator[Cause]:
    node = node_image.metadata.name
    silent: list[str] = []
    under_way: list[str] = []
    for name, entry in sorted(node_image.spec.images.items()):
        for task in sorted(entry.tags, key=lambda one: one.tag):
            image = str(ImageReference(name, task.tag))
            status = status_of(node_image, name, task.tag)
            if status is None or status.version != task.version:
                silent.append(image)
            elif status.phase == FAILED:
                yield pulls.PULL_FAILED.cause(
                    f"{image} could not be pulled: {without_middle(status.message, _LONGEST) or 'no reason is told'}",
                    details={"images": [image], "message": status.message},
                    remedy=f"{pulls.remedy(status.message, node)}; raise the version of the task to try once more",
                )
            elif status.phase != SUCCEEDED:
                progress = f" {status.progress}%" if status.progress else ""
                under_way.append(f"{image} ({status.phase}{progress})")
    if under_way:
        yield pulls.PULLING.cause(f"the node is at {plural(len(under_way), 'image')}: {listed(under_way)}")
    if silent:
        yield pulls.NO_DAEMON.cause(
            f"the node has not answered yet: {listed(silent)}",
            details={"images": silent},
            remedy=f"see whether kruise-daemon runs there (kubectl describe node {node}); "
            "after ten minutes they count as failed",
        )
