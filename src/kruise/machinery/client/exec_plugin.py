"""Credential plugins: programs that print an `ExecCredential` (client.authentication.k8s.io/v1 and v1beta1)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kruise.machinery.client.config import ClusterConfig, CredentialError, ExecPlugin, InteractiveMode, Pem
from kruise.machinery.codec import DecodeError, Struct, decode, encode

DEFAULT_TIMEOUT = 120.0


class _CredentialStatus(Struct):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(Struct):
    api_version: str = ""
    kind: str = ""
    status: _CredentialStatus | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PluginResult:
    token: str = dataclasses.field(default="", repr=False)
    certificate: Pem = dataclasses.field(default=Pem(), repr=False)
    key: Pem = dataclasses.field(default=Pem(), repr=False)
    expires: datetime | None = None


async def run(
    plugin: ExecPlugin,
    config: ClusterConfig,
    *,
    environ: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    terminal: bool | None = None,
) -> PluginResult:
    """Run the plugin once. `terminal` says whether a person sits at standard input."""
    terminal = _at_terminal() if terminal is None else terminal
    interactive = terminal and plugin.interactive_mode is not InteractiveMode.NEVER
    if plugin.interactive_mode is InteractiveMode.ALWAYS and not terminal:
        raise _failure(plugin, config, "it needs a terminal (interactiveMode: Always) and there is none")
    env = dict(os.environ if environ is None else environ) | dict(plugin.env)
    env["KUBERNETES_EXEC_INFO"] = encode(exec_info(plugin, config, interactive=interactive)).decode()
    output = await _output(plugin, config, env, interactive=interactive, timeout=timeout)
    return parse(plugin, config, output)


def exec_info(plugin: ExecPlugin, config: ClusterConfig, *, interactive: bool) -> dict[str, Any]:
    """What the plugin finds in KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        cluster: dict[str, Any] = {"server": config.url}
        if config.tls_server_name:
            cluster["tls-server-name"] = config.tls_server_name
        if config.insecure:
            cluster["insecure-skip-tls-verify"] = True
        if config.ca:
            cluster["certificate-authority-data"] = base64.b64encode(_ca(plugin, config)).decode()
        if config.proxy_url:
            cluster["proxy-url"] = config.proxy_url
        if config.disable_compression:
            cluster["disable-compression"] = True
        if plugin.cluster_extension is not None:
            cluster["config"] = plugin.cluster_extension
        spec["cluster"] = cluster
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


def parse(plugin: ExecPlugin, config: ClusterConfig, output: bytes) -> PluginResult:
    """The credentials in a plugin's output."""
    try:
        credential = decode(output, _ExecCredential)
    except DecodeError as error:
        raise _failure(plugin, config, f"it printed no ExecCredential ({error})") from error
    if credential.kind != "ExecCredential" or credential.api_version != plugin.api_version:
        raise _failure(
            plugin,
            config,
            f"it printed {credential.api_version or '?'} {credential.kind or '?'}, "
            f"not {plugin.api_version} ExecCredential",
        )
    status = credential.status
    if status is None or not (status.token or status.client_certificate_data):
        raise _failure(plugin, config, "its answer holds neither a token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _failure(plugin, config, "its answer holds a client certificate or a key, but not both")
    return PluginResult(
        token=status.token,
        certificate=Pem(data=status.client_certificate_data.encode()),
        key=Pem(data=status.client_key_data.encode()),
        expires=status.expiration_timestamp,
    )


async def _output(
    plugin: ExecPlugin, config: ClusterConfig, env: Mapping[str, str], *, interactive: bool, timeout: float
) -> bytes:
    command = shutil.which(plugin.command, path=env.get("PATH"))
    if command is None:
        hint = f" {plugin.install_hint}" if plugin.install_hint else " Install it, or correct exec.command."
        raise _failure(plugin, config, "it is not an executable file on this machine", hint)
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *plugin.args,
            env=env,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # A person must see the prompts; without one, what the plugin says belongs into our error.
            stderr=None if interactive else asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise _failure(plugin, config, f"it cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(None if interactive else timeout):
            output, complaints = await process.communicate()
    except TimeoutError as error:
        raise _failure(plugin, config, f"it did not answer within {timeout:g} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        said = (complaints or b"").decode("utf-8", "replace").strip()[-500:]
        raise _failure(plugin, config, f"it ended with exit code {process.returncode}: {said or '(no message)'}")
    return output


def _ca(plugin: ExecPlugin, config: ClusterConfig) -> bytes:
    if config.ca.data:
        return config.ca.data
    try:
        with open(config.ca.path, "rb") as file:
            return file.read()
    except OSError as error:
        raise _failure(plugin, config, f"{config.ca.path} cannot be read: {error.strerror}") from error


def _at_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def _failure(plugin: ExecPlugin, config: ClusterConfig, why: str, remedy: str = "") -> CredentialError:
    return CredentialError(f"{config.origin}: the credential plugin {plugin.command} gave nothing: {why}.{remedy}")
