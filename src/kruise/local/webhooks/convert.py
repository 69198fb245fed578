"""Conversion of custom objects by webhook: ConversionReview from the API server's side, with its checks."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kruise.api.core.field_errors import go_quote
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.webhooks.calling import Caller, CallError, target_of
from kruise.machinery.codec import DecodeError, decode, encode

GROUP = "apiextensions.k8s.io"
VERSIONS = ("v1", "v1beta1")
TIMEOUT = 30.0
"""A real server sets no limit of its own; nobody waits that long for a read."""


class ConversionCaller(Protocol):
    async def convert(self, definition: Json, objects: Sequence[Json], version: str) -> list[Json]:
        """The objects in a version of the kind, in order. `definition` is the CustomResourceDefinition.

        Raises `StatusError` with a real server's words.
        """


class WebhookConversion:
    """Asks the webhook that the definition names, over any caller. `seed` makes the uids of reviews repeatable."""

    def __init__(self, caller: Caller, *, seed: int | None = None, timeout: float = TIMEOUT) -> None:
        self._caller = caller
        self._timeout = timeout
        self._random = random.Random(seed) if seed is not None else random.SystemRandom()

    async def convert(self, definition: Json, objects: Sequence[Json], version: str) -> list[Json]:
        wanted = f"{definition['spec']['group']}/{version}"
        others = [obj for obj in objects if obj.get("apiVersion") != wanted]
        if not others:
            return list(objects)
        first = _described(others[0])
        webhook = definition["spec"].get("conversion", {}).get("webhook") or {}
        uid = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        try:
            review_version = _review_version(webhook)
            body = _question(review_version, uid, wanted, others)
            said = await self._caller.post(target_of(webhook.get("clientConfig") or {}), body, self._timeout)
            converted = _answer(said, review_version, uid)
        except CallError as error:
            why = str(error).removeprefix("failed to call webhook: ").replace(f"?timeout={self._timeout:.0f}s", "")
            raise _failed(f"conversion webhook for {first} failed: {why}") from error
        if len(converted) != len(others):
            raise _failed(f"conversion webhook for {first} returned {len(converted)} objects, expected {len(others)}")
        results = iter(
            [
                _checked(before, after, wanted, at)
                for at, (before, after) in enumerate(zip(others, converted, strict=True))
            ]
        )
        return [obj if obj.get("apiVersion") == wanted else next(results) for obj in objects]


def _failed(text: str) -> StatusError:
    return errors.failure(500, "", text)


def _described(obj: Json) -> str:
    return f"{obj.get('apiVersion', '')}, Kind={obj.get('kind', '')}"


def _review_version(webhook: Mapping[str, Any]) -> str:
    for version in webhook.get("conversionReviewVersions") or ():
        if version in VERSIONS:
            return str(version)
    raise CallError("no supported conversion review versions")


def _question(version: str, uid: str, wanted: str, objects: Sequence[Json]) -> bytes:
    request = {"uid": uid, "desiredAPIVersion": wanted, "objects": objects}
    return encode({"kind": "ConversionReview", "apiVersion": f"{GROUP}/{version}", "request": request})


def _answer(body: bytes, version: str, uid: str) -> list[Any]:
    try:
        review = decode(body, object)
    except DecodeError as error:
        raise CallError(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(review, dict):
        raise CallError("couldn't get version/kind; json parse error: the answer is no object")
    api_version, kind = review.get("apiVersion", ""), review.get("kind", "")
    if version == "v1" and (api_version != f"{GROUP}/v1" or kind != "ConversionReview"):
        raise CallError(f"expected webhook response of {GROUP}/v1, Kind=ConversionReview, got {_described(review)}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallError("no response provided")
    if version == "v1" and response.get("uid", "") != uid:
        raise CallError(f"expected response.uid={go_quote(uid)}, got {go_quote(response.get('uid', ''))}")
    result = response.get("result") or {}
    if result.get("status") != "Success":
        if result.get("message"):
            raise CallError(str(result["message"]))
        raise CallError(f"response.result.status was '{result.get('status', '')}', not 'Success'")
    return list(response.get("convertedObjects") or ())


def _checked(before: Json, after: Any, wanted: str, at: int) -> Json:
    """The converted object with the metadata of the original, of which it may change labels and annotations only."""
    source = _described(before)

    def invalid(why: str) -> StatusError:
        return _failed(f"conversion webhook for {source} returned invalid converted object at index {at}: {why}")

    if not isinstance(after, dict):
        raise invalid("it is no object")
    if after.get("apiVersion") != wanted:
        raise invalid(f"invalid groupVersion (expected {wanted}, received {after.get('apiVersion', '')})")
    if after.get("kind") != before.get("kind"):
        raise invalid(f"invalid kind (expected {before.get('kind', '')}, received {after.get('kind', '')})")
    metadata, original = after.get("metadata"), before["metadata"]
    if metadata is None:
        raise _failed(
            f"conversion webhook for {source} returned invalid metadata in object at index {at}: "
            "missing metadata in converted object"
        )
    if not isinstance(metadata, dict):
        raise invalid("invalid metadata in converted object")
    for field, said in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if metadata.get(field, "") != original.get(field, ""):
            raise invalid(f"must have the same {said}: {original.get(field, '')} != {metadata.get(field, '')}")
    kept = {name: value for name, value in original.items() if name not in ("labels", "annotations")}
    for name in ("labels", "annotations"):
        if metadata.get(name):
            kept[name] = metadata[name]
    return {**after, "metadata": kept}
