"""Pods that fail now, and which others would fail like them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from kruise.api.native.container_reasons import CRASH_LOOP, NO_IMAGE
from kruise.api.native.pod import Pod, is_active, is_ready
from kruise.inplace import keys
from kruise.machinery.revision_names import short_hash
from kruise.model import podstates


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    broken: tuple[str, ...] = ()
    """Names of pods that are down for a reason that they name."""
    revisions: frozenset[str] = frozenset()
    """Hashes of revisions of which pods fail and none is ready."""
    images: frozenset[str] = frozenset()
    """Images that cannot be pulled."""

    def reason(self, pod: Pod) -> str:
        """Why a pod that starts now fails as others do; empty: it does not."""
        if any(container.image in self.images for container in pod.spec.containers):
            return "ImagePullBackOff"
        revision = short_hash(pod.metadata.labels.get(keys.REVISION_LABEL, ""))
        return CRASH_LOOP if revision in self.revisions else ""


def of(pods: Iterable[Pod], name_of: Callable[[Pod], str]) -> Failures:
    broken: list[str] = []
    failing: set[str] = set()
    well: set[str] = set()
    refused: set[str] = set()
    running: set[str] = set()
    for pod in pods:
        if not is_active(pod):
            continue
        revision = short_hash(pod.metadata.labels.get(keys.REVISION_LABEL, ""))
        images = {container.name: container.image for container in pod.spec.containers}
        if is_ready(pod):
            well.add(revision)
            running.update(images.values())
            continue
        if not podstates.trouble(pod):
            continue
        broken.append(name_of(pod))
        waiting = {
            status.name: status.state.waiting.reason
            for status in pod.status.container_statuses
            if status.state.waiting is not None
        }
        if waiting:
            failing.add(revision)
        refused.update(images[name] for name, reason in waiting.items() if reason in NO_IMAGE and name in images)
    return Failures(
        broken=tuple(broken), revisions=frozenset(failing - well - {""}), images=frozenset(refused - running)
    )
