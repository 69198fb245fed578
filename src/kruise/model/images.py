"""Images as the runtimes of the nodes know them."""

from __future__ import annotations

import functools
import hashlib

from kruise.api.native.pod import Container, ContainerStatus, Pod, is_ready


class ImageIds:
    """What the runtimes say about images: the id under which an image runs, learnt from those that run it."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def learn(self, pod: Pod) -> None:
        """Only containers that run as they should: the status names the image as the runtime calls it."""
        if not is_ready(pod):
            return
        wanted = {container.name: container.image for container in pod.spec.containers}
        for status in pod.status.container_statuses:
            if status.image_id and status.name in wanted and _same_image(status.image, wanted[status.name]):
                self._ids.setdefault(wanted[status.name], status.image_id)

    def id_of(self, image: str) -> str:
        found = self._ids.get(image)
        if found is None:
            found = self._ids[image] = f"{image.partition('@')[0]}@sha256:{digest(image)}"
        return found

    def runs(self, pod: Pod, container: Container) -> bool:
        """Whether a container runs what the pod asks for, as far as its status tells."""
        status = next((item for item in pod.status.container_statuses if item.name == container.name), None)
        if status is None or not status.image:
            return True
        if status.image_id and status.image_id == self._ids.get(container.image):
            return True
        return _same_image(status.image, container.image)

    def runs_status(self, pod: Pod, status: ContainerStatus) -> bool:
        container = next((item for item in pod.spec.containers if item.name == status.name), None)
        return container is None or self.runs(pod, container)


def _same_image(reported: str, wanted: str) -> bool:
    """Runtimes report full names, or only a digest: then nothing can be said against it."""
    if reported.startswith("sha256:") or "@" in wanted:
        return True
    return reported == wanted or reported.endswith(f"/{wanted}") or reported.removesuffix(":latest").endswith(wanted)


@functools.lru_cache(maxsize=4096)
def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
