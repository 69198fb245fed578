"""`set image`: other images for containers of a template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kruise.faces.face import Face
from kruise.machinery.documents import Json
from kruise.verbs import containers
from kruise.verbs.containers import EVERY
from kruise.verbs.errors import UsageError


def parse(words: Iterable[str]) -> dict[str, str]:
    """`CONTAINER=IMAGE`, `*` for every container."""
    images: dict[str, str] = {}
    for word in words:
        container, equals, image = word.partition("=")
        if not equals or not container or not image:
            raise UsageError(f'"{word}" is no CONTAINER=IMAGE, for example web=nginx:1.27')
        if images.get(container, image) != image:
            raise UsageError(f'container "{container}" is given two images')
        images[container] = image
    if not images:
        raise UsageError("say which image: CONTAINER=IMAGE, for example web=nginx:1.27, or *=IMAGE for all containers")
    if EVERY in images and len(images) > 1:
        raise UsageError("all containers are already specified by *, but saw more than one container_name=image pair")
    return images


def change(kind: Face, document: Json, images: Mapping[str, str]) -> Json:
    """The object with other images, init containers included. Every other field stays as it is."""
    for container in images:
        containers.chosen(kind, document, container)

    def edit(container: Json) -> None:
        image = images.get(str(container.get("name")), images.get(EVERY))
        if image is not None:
            container["image"] = image

    return containers.edited(kind, document, EVERY, edit)
