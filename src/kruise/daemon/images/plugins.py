"""Credential provider plugins: programs on the node that know how to log in at a registry, as the kubelet calls them
(DMN-47)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pathlib
from typing import Any

from kruise.api.core.images import ImageReference
from kruise.daemon.images.credentials import matches, matching, normalised
from kruise.daemon.runtime import Auth
from kruise.machinery.clock import Clock
from kruise.machinery.codec import DecodeError, Struct, convert, field
from kruise.machinery.times import TimeError, parse_go_duration

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 60.0
_MOST_BYTES = 1024 * 1024
_VERSIONS = ("credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1")


class Variable(Struct):
    name: str
    value: str = ""


class Provider(Struct):
    name: str
    match_images: tuple[str, ...] = ()
    default_cache_duration: str = "0s"
    api_version: str = _VERSIONS[0]
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()


class Config(Struct):
    """`CredentialProviderConfig`, as the kubelet has it."""

    providers: tuple[Provider, ...] = ()


class Answer(Struct):
    """`CredentialProviderResponse`."""

    cache_key_type: str = "Image"
    cache_duration: str | None = None
    auth: dict[str, dict[str, str]] = field(default_factory=dict)


_configs: dict[str, tuple[float, Config]] = {}
_answers: dict[tuple[str, str], tuple[float, Answer]] = {}
"""With when they are out of date, by the time that has passed: clocks may be put back."""


async def credentials(path: str, folder: str, image: ImageReference, clock: Clock) -> tuple[Auth, ...]:
    """What the plugins that are for this image say; nothing where there are none. A plugin that fails is left out."""
    config = await asyncio.to_thread(_config, path) if path else Config()
    found: list[Auth] = []
    for provider in config.providers:
        if any(matches(normalised(pattern), image.repository) for pattern in provider.match_images):
            answer = await _asked(provider, folder, image, clock)
            entries = [
                (normalised(key), Auth(username=one.get("username", ""), password=one.get("password", "")))
                for key, one in answer.auth.items()
            ]
            found += matching(image.repository, entries)
    return tuple(found)


def _config(path: str) -> Config:
    """Read again when the file has changed; a broken one is told of, and counts as none."""
    try:
        changed = os.stat(path).st_mtime
    except OSError:
        return Config()
    known = _configs.get(path)
    if known is not None and known[0] == changed:
        return known[1]
    try:
        config = convert(_yaml(pathlib.Path(path).read_text(encoding="utf-8")) or {}, Config)
    except (OSError, DecodeError, ImportError, ValueError) as error:
        log.error("credential provider plugins not read", extra={"file": path, "error": str(error)})
        config = Config()
    _configs[path] = (changed, config)
    return config


def _yaml(text: str) -> Any:
    """Raises ValueError."""
    import yaml  # only where somebody has plugins

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


async def _asked(provider: Provider, folder: str, image: ImageReference, clock: Clock) -> Answer:
    now = clock.monotonic()
    host = image.repository.partition("/")[0]
    for key in ((provider.name, str(image)), (provider.name, host), (provider.name, "")):
        known = _answers.get(key)
        if known is not None and known[0] > now:
            return known[1]
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            answer = await _run(provider, folder, image)
        seconds = parse_go_duration(answer.cache_duration or provider.default_cache_duration)
    except (OSError, ValueError, TimeoutError, TimeError) as error:
        log.warning("credential provider plugin failed", extra={"plugin": provider.name, "error": str(error)})
        return Answer()
    if seconds > 0:
        for key in [key for key, (until, _) in _answers.items() if until <= now]:
            del _answers[key]
        scope = {"Registry": host, "Global": ""}.get(answer.cache_key_type, str(image))
        _answers[provider.name, scope] = (now + seconds, answer)
    return answer


async def _run(provider: Provider, folder: str, image: ImageReference) -> Answer:
    if provider.api_version not in _VERSIONS:
        raise ValueError(f"apiVersion {provider.api_version} is none of {', '.join(_VERSIONS)}")
    program = os.path.join(folder, provider.name)
    environment = {**os.environ, **{one.name: one.value for one in provider.env}}
    process = await asyncio.create_subprocess_exec(
        program,
        *provider.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        limit=_MOST_BYTES,
    )
    request = {
        "apiVersion": provider.api_version,
        "kind": "CredentialProviderRequest",
        "image": image.repository + ("@" if ":" in image.tag else ":") + image.tag,
    }
    try:
        output, errors = await process.communicate(json.dumps(request).encode())
    except BaseException:
        process.kill()
        raise
    if process.returncode != 0:
        raise ValueError(f"it ended with {process.returncode}: {errors.decode(errors='replace')[:200]}")
    document: Any = json.loads(output)
    return convert(document, Answer)
