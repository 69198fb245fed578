"""The image puller as a part of the daemon: what it watches, and how one attempt is carried out."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from weakref import WeakKeyDictionary

from kruise.api.apps.images import ReferenceObject
from kruise.api.core.images import ImageReference, reference_of
from kruise.api.meta import Key
from kruise.api.native.config import SECRETS, Secret
from kruise.daemon.images import plugins
from kruise.daemon.images.conclude import conclude
from kruise.daemon.images.credentials import CredentialsError, credentials_for
from kruise.daemon.images.decide import Attempt, Attempted, Snapshot, decide
from kruise.daemon.images.objects import NODE_IMAGES, NodeImage
from kruise.daemon.parts import Part, Place, Scene
from kruise.daemon.patience import patiently
from kruise.daemon.runtime import Auth, CallError, Image, Runtime, SandboxConfig, first_runtime
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.codec import Struct
from kruise.machinery.spec import ControllerSpec, Source, Stores, View
from kruise.machinery.watched import Watched

log = logging.getLogger(__name__)

PULLED_BY, DAEMON = "apps.kruise.io/pulling-image-by", "kruise-daemon"
SHORTEST_MEMORY, LONGER = 300.0, 300.0
"""Seconds for which a secret is remembered: five to ten minutes, not all equally long (DMN-44)."""
_PACE_PER_TASK = 0.05
_LONGEST_PACE = 2.0


class Seen(Struct):
    """That the node is here. What is on it is looked at by the attempts."""

    node: str


class Pulled(Struct):
    image_id: str = ""


def _keys(old: NodeImage | None, new: NodeImage | None, stores: Stores) -> tuple[Key, ...]:
    """A NodeImage matters when it comes, and when its spec changes (DMN-30). One that goes ends its jobs. What this
    daemon writes itself is no news; an answer that somebody has taken away must be given again."""
    if new is not None and old is not None and not _is_news(old, new):
        return ()
    changed = new if new is not None else old
    return (Key("", changed.metadata.name),) if changed is not None else ()


def _is_news(old: NodeImage, new: NodeImage) -> bool:
    return old.spec != new.spec or _is_leaving(old) != _is_leaving(new) or not _answers(old) <= _answers(new)


def _answers(node_image: NodeImage) -> set[tuple[str, str, int]]:
    """Tasks that are over, by what the status says."""
    images = node_image.status.image_statuses if node_image.status is not None else {}
    return {
        (name, tag.tag, tag.version)
        for name, entry in images.items()
        for tag in entry.tags
        if tag.completion_time is not None
    }


def _is_leaving(node_image: NodeImage) -> bool:
    return node_image.metadata.deletion_timestamp is not None


async def look(scene: Scene, key: Key) -> Seen | None:
    return Seen(node=key.name) if scene.node(key.name) is not None else None


def _snapshot(limit: int, view: View, key: Key) -> Snapshot | None:
    node_image = view.store(NODE_IMAGES).get(*key)
    if node_image is None or _is_leaving(node_image) or not isinstance(view.outside, Seen):
        return None
    return Snapshot(
        node_image=node_image,
        attempts={
            name: Attempted(
                began=state.began,
                ended=state.ended,
                image_id=state.result.image_id if isinstance(state.result, Pulled) else "",
                error=state.error,
                timed_out=state.timed_out,
            )
            for name, state in view.jobs.items()
        },
        now=view.now,
        limit=limit,
    )


def spec(place: Place) -> ControllerSpec[Snapshot]:
    limit = max(0, place.settings.max_pulls)
    watched: Watched[NodeImage] = place.own(NODE_IMAGES)
    return ControllerSpec(
        name=PART_NAME,
        subject=NODE_IMAGES,
        sources=(Source(watched, _keys),),
        snapshot=lambda view, key: _snapshot(limit, view, key),
        decide=decide,
        conclude=conclude,
        snapshot_type=Snapshot,
        workers=1 if place.node else 10,
        pace=lambda snapshot: min(_LONGEST_PACE, _PACE_PER_TASK * len(snapshot.attempts)),
    )


# One attempt


async def perform(scene: Scene, call: Struct) -> Pulled:
    """DMN-39."""
    assert isinstance(call, Attempt)
    node = scene.node(call.node)
    if node is None:
        raise CallError("Unavailable", f"node {call.node} is gone")
    runtime, image = first_runtime(node), ImageReference(call.name, call.tag)
    if call.only_if_absent and (present := find(await patiently(runtime.list_images, scene.clock), image)) is not None:
        return Pulled(image_id=present.id)
    annotations = {**call.annotations, PULLED_BY: DAEMON}
    sandbox = SandboxConfig(labels=call.labels, annotations=annotations)
    await _pull(scene, runtime, image, sandbox, call.secrets)
    found = find(await patiently(runtime.list_images, scene.clock), image)
    return Pulled(image_id=found.id if found is not None else "")


async def _pull(
    scene: Scene, runtime: Runtime, image: ImageReference, sandbox: SandboxConfig, secrets: tuple[ReferenceObject, ...]
) -> None:
    reference = str(image)
    auths, missing = await _credentials(scene, image, secrets)
    if not auths:
        try:
            await patiently(partial(runtime.pull_image, reference, sandbox=sandbox), scene.clock)
        except CallError as error:
            raise OSError(f'Failed to pull image reference "{reference}": {error}{_without(missing)}') from error
        return
    errors: list[str] = []
    for auth in auths:
        try:
            await patiently(partial(runtime.pull_image, reference, sandbox=sandbox, auth=auth), scene.clock)
        except CallError as error:
            errors.append(str(error))
        else:
            return
    unique = list(dict.fromkeys(errors))
    # Perhaps somebody has put the right password into the secret since it was read.
    _MEMORY.forget(scene, secrets)
    raise OSError((unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]") + _without(missing))


def _without(missing: tuple[str, ...]) -> str:
    """A registry that refuses strangers does not know that a secret was meant to be there."""
    return f" (pull secrets that could not be read: {', '.join(missing)})" if missing else ""


def find(images: Iterable[Image], wanted: ImageReference) -> Image | None:
    """The image, under whatever way of writing its name (DMN-40)."""
    is_digest = ":" in wanted.tag
    for image in images:
        for name in image.repo_digests if is_digest else image.repo_tags:
            if reference_of(name) == wanted:
                return image
    return None


async def _credentials(
    scene: Scene, image: ImageReference, references: tuple[ReferenceObject, ...]
) -> tuple[tuple[Auth, ...], tuple[str, ...]]:
    """What to log in with, and the secrets that could not be read."""
    found: list[Secret] = []
    missing: list[str] = []
    for one in references:
        secret = await _secret(scene, one)
        if secret is not None:
            found.append(secret)
        else:
            missing.append(f"{one.namespace}/{one.name}")
    try:
        own = credentials_for(image.repository, found)
    except CredentialsError as error:
        raise OSError(str(error)) from error
    settings = scene.place.settings
    others = await plugins.credentials(settings.plugin_config_file, settings.plugin_bin_dir, image, scene.clock)
    return (*own, *others), tuple(missing)


class _Memory:
    """Secrets that were read lately, by who has read them. The time that has passed counts: clocks may be put back."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Client, dict[tuple[str, str], tuple[float, Secret]]] = WeakKeyDictionary()

    def get(self, scene: Scene, reference: ReferenceObject) -> Secret | None:
        found = self._known.get(scene.client, {}).get((reference.namespace, reference.name))
        return found[1] if found is not None and found[0] > scene.clock.monotonic() else None

    def put(self, scene: Scene, reference: ReferenceObject, secret: Secret) -> None:
        now = scene.clock.monotonic()
        # Spread by the name, so that nodes with many secrets do not read them all at once.
        share = sum(reference.name.encode()) % 60 / 60
        known = {key: one for key, one in self._known.get(scene.client, {}).items() if one[0] > now}
        known[reference.namespace, reference.name] = (now + SHORTEST_MEMORY + LONGER * share, secret)
        self._known[scene.client] = known

    def forget(self, scene: Scene, references: Iterable[ReferenceObject]) -> None:
        for reference in references:
            self._known.get(scene.client, {}).pop((reference.namespace, reference.name), None)


_MEMORY = _Memory()


async def _secret(scene: Scene, reference: ReferenceObject) -> Secret | None:
    """A secret that cannot be read is left out; the pull is tried without it (DMN-44)."""
    known = _MEMORY.get(scene, reference)
    if known is not None:
        return known
    try:
        secret = await scene.client.get(SECRETS, reference.name, reference.namespace)
    except ClientError as error:
        log.warning(
            "pull secret not read",
            extra={"secret": f"{reference.namespace}/{reference.name}", "error": str(error)},
        )
        return None
    _MEMORY.put(scene, reference, secret)
    return secret


def node_of(stores: Stores, key: Key) -> str:
    return key.name if not key.namespace else ""


PART_NAME = "imagepuller"
PART = Part(
    name=PART_NAME,
    component="kruise-daemon-imagepuller",
    spec=spec,
    look=look,
    perform=perform,
    node_of=node_of,
)
