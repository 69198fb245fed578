"""Kubeconfig files to a `ClusterConfig`, by kubectl's rules.

Several files are merged: for each named cluster, user and context, and for `current-context`, the first file that has
it wins. Files that do not exist are skipped. Paths inside a file are relative to that file.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kruise.machinery.client.config import (
    ClusterConfig,
    ExecPlugin,
    Impersonation,
    InteractiveMode,
    KubeconfigError,
    NothingConfiguredError,
    Pem,
    proxy_from_environment,
)
from kruise.machinery.codec import DecodeError, decode

SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
LOCAL_CLUSTER_EXTENSION = "local-cluster.kruise.io"
"""Marks entries that belong to a cluster of `kruise up`."""
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def load(
    path: str | Path | None = None,
    *,
    context: str = "",
    env: Mapping[str, str] | None = None,
    home: Path | None = None,
    service_account: Path = SERVICE_ACCOUNT_DIRECTORY,
) -> ClusterConfig:
    """The cluster to talk to: `path` alone if given, else the files of KUBECONFIG, else `~/.kube/config`; where none
    of them exists, the identity of the pod that we run in."""
    env = os.environ if env is None else env
    files = [Path(path).expanduser().absolute()] if path is not None else users_files(env, home)
    documents = [_read(file) for file in files if path is not None or file.exists()]
    if documents:
        return _resolve(_merge(documents), context, env)
    if env.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(env=env, directory=service_account)
    looked_at = ", ".join(str(file) for file in files)
    raise NothingConfiguredError(
        f"no cluster is configured: {looked_at} does not exist and this is no pod. Set KUBECONFIG or name a file; "
        "kruise up starts a local cluster."
    )


def in_cluster(*, env: Mapping[str, str] | None = None, directory: Path = SERVICE_ACCOUNT_DIRECTORY) -> ClusterConfig:
    """The identity of the pod that this process runs in."""
    env = os.environ if env is None else env
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise KubeconfigError("this is no pod: KUBERNETES_SERVICE_HOST is not set. Use a kubeconfig instead.")
    token, ca, namespace = directory / "token", directory / "ca.crt", directory / "namespace"
    for file in (token, ca):
        if not file.is_file():
            raise KubeconfigError(
                f"{file} is missing: the pod has no service account token. "
                "Set automountServiceAccountToken: true in the pod."
            )
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ClusterConfig(
        server=server,
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca=Pem(path=str(ca)),
        token_file=str(token),
        proxy_url=proxy_from_environment(server, env),
        origin=f"the service account in {directory}",
    )


def users_files(env: Mapping[str, str], home: Path | None = None) -> list[Path]:
    """The user's kubeconfigs, there or not: those of KUBECONFIG, else `~/.kube/config`."""
    listed = [Path(part).absolute() for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    return list(dict.fromkeys(listed)) or [(home or Path.home()) / ".kube" / "config"]


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A named cluster, user or context, with the file that it stands in."""

    what: str
    name: str
    file: Path
    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return f'{self.what} "{self.name}" in {self.file}'

    def error(self, text: str) -> KubeconfigError:
        return KubeconfigError(f"{self}: {text}")

    def text(self, key: str) -> str:
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(f"{key} must be text, not {value!r}. Put it in quotes.")
        if not value.isprintable() and "\n" not in value:
            raise self.error(f"{key} holds control characters: {value!r}. Write it anew.")
        return value

    def flag(self, key: str) -> bool:
        value = self.fields.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"{key} must be true or false, not {value!r}.")
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.fields.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(f"{key} must be a list of texts, not {value!r}.")
        return tuple(value)

    def path(self, key: str) -> str:
        text = self.text(key)
        return str(self.file.parent / text) if text else ""

    def pem(self, key: str) -> Pem:
        """`key` names a file, `key`-data holds it inline and wins."""
        inline = self.text(f"{key}-data")
        if inline:
            try:
                data = base64.b64decode("".join(inline.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                raise self.error(f"{key}-data is not base64 ({error}). Write `base64 -w0 FILE` there.") from error
            if not data.lstrip().startswith(b"-----BEGIN"):
                raise self.error(f"{key}-data holds no PEM. Encode the PEM file, not the DER form of it.")
            return Pem(data=data)
        return Pem(path=self.existing_file(key))

    def existing_file(self, key: str) -> str:
        path = self.path(key)
        try:
            readable = not path or os.access(path, os.R_OK)
        except ValueError:  # characters that no path can hold
            readable = False
        if not readable:
            raise self.error(f"{key} names {path}, which cannot be read. Correct the path or its permissions.")
        return path


@dataclasses.dataclass
class _Merged:
    files: list[Path]
    current_context: str = ""
    clusters: dict[str, _Entry] = dataclasses.field(default_factory=dict)
    users: dict[str, _Entry] = dataclasses.field(default_factory=dict)
    contexts: dict[str, _Entry] = dataclasses.field(default_factory=dict)


def _read(file: Path) -> tuple[Path, Mapping[str, Any]]:
    try:
        document = _document(file.read_bytes())
    except OSError as error:
        raise KubeconfigError(f"{file} cannot be read: {error.strerror}. Name a kubeconfig that exists.") from error
    except (ValueError, RecursionError) as error:
        detail = " ".join(str(error).split())
        raise KubeconfigError(f"{file} is no valid YAML: {detail}. Correct that place in the file.") from error
    if document is None:
        return file, {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"{file} is no kubeconfig: it must hold `clusters`, `users` and `contexts`.")
    return file, document


def _document(text: bytes) -> Any:
    """Raises ValueError where it cannot be read."""
    if text.startswith(b"{"):
        # JSON is YAML too, and that of a local cluster is JSON: then nothing more has to be loaded.
        with contextlib.suppress(DecodeError):
            return decode(text, object)
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _merge(documents: list[tuple[Path, Mapping[str, Any]]]) -> _Merged:
    merged = _Merged(files=[file for file, _ in documents])
    for file, document in documents:
        current = document.get("current-context") or ""
        if not isinstance(current, str):
            raise KubeconfigError(f"{file}: current-context must be text, not {current!r}. Put it in quotes.")
        merged.current_context = merged.current_context or current
        for what, into in (("cluster", merged.clusters), ("user", merged.users), ("context", merged.contexts)):
            for entry in _entries(file, document, what):
                into.setdefault(entry.name, entry)
    return merged


def _entries(file: Path, document: Mapping[str, Any], what: str) -> list[_Entry]:
    listed = document.get(f"{what}s") or []
    if not isinstance(listed, list):
        raise KubeconfigError(f"{file}: {what}s must be a list of named entries.")
    entries = []
    for number, item in enumerate(listed):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise KubeconfigError(f"{file}: {what}s[{number}] has no name. Write `- name: ...` and `{what}: ...`.")
        fields = item.get(what) or {}
        entry = _Entry(what, item["name"], file, fields if isinstance(fields, dict) else {})
        if not isinstance(fields, dict):
            raise entry.error(f"{what} must be a mapping, not {fields!r}.")
        entries.append(entry)
    return entries


def _resolve(merged: _Merged, context_name: str, env: Mapping[str, str]) -> ClusterConfig:
    files = ", ".join(str(file) for file in merged.files)
    name = context_name or merged.current_context
    known = ", ".join(sorted(merged.contexts)) or "none"
    if not name:
        raise NothingConfiguredError(
            f"{files}: current-context is not set. Choose one of the contexts: {known}. "
            "kruise up starts a local cluster."
        )
    context = merged.contexts.get(name)
    if context is None:
        raise KubeconfigError(f'{files}: there is no context "{name}". Choose one of: {known}.')
    cluster = _referenced(context, "cluster", merged.clusters)
    user = _referenced(context, "user", merged.users)
    return _config(context, cluster, user, env)


def _referenced(context: _Entry, what: str, entries: Mapping[str, _Entry]) -> _Entry:
    name = context.text(what)
    if not name and what == "user":
        return _Entry("user", "", context.file, {})
    entry = entries.get(name)
    if entry is None:
        known = ", ".join(sorted(entries)) or "none"
        raise context.error(f'{what} "{name}" is not defined. Define it, or use one of: {known}.')
    return entry


def _config(context: _Entry, cluster: _Entry, user: _Entry, env: Mapping[str, str]) -> ClusterConfig:
    server = cluster.text("server")
    if not server:
        raise cluster.error("server is missing. Write the address of the API server there.")
    insecure = cluster.flag("insecure-skip-tls-verify")
    ca = cluster.pem("certificate-authority")
    if insecure and ca:
        raise cluster.error("insecure-skip-tls-verify and a certificate authority contradict each other. Remove one.")
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise user.error(f"{missing} is missing: a client certificate and its key go together.")
    token, username = user.text("token"), user.text("username")
    if (token or user.text("tokenFile")) and username:
        raise user.error("token and username are both given. Keep one way to log in.")
    if user.fields.get("auth-provider"):
        raise user.error("auth-provider is no longer supported. Use the provider's exec plugin instead.")
    config = ClusterConfig(
        server=server,
        namespace=context.text("namespace") or "default",
        ca=ca,
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name"),
        disable_compression=cluster.flag("disable-compression"),
        client_certificate=certificate,
        client_key=key,
        token=token,
        token_file=user.existing_file("tokenFile"),
        username=username,
        password=user.text("password"),
        exec_plugin=_exec_plugin(cluster, user),
        impersonation=_impersonation(user),
        context=context.name,
        origin=str(user) if user.name else str(context),
        is_local_cluster=_extension(cluster, LOCAL_CLUSTER_EXTENSION) is not None,
    )
    if not config.unix_socket and not _is_address(config.url):
        raise cluster.error(f"server {server} is no address. Write it as https://host:port.")
    proxy = cluster.text("proxy-url")
    if proxy and not _is_address(proxy):
        raise cluster.error(f"proxy-url {proxy} is no address that can be used. Write http://host:port or https://...")
    if not proxy and not config.unix_socket:
        proxy = proxy_from_environment(config.url, env)
    return dataclasses.replace(config, proxy_url=proxy)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and parts.port != 0 and bool(parts.hostname)
    except ValueError:
        return False


def _impersonation(user: _Entry) -> Impersonation:
    extra = user.fields.get("as-user-extra") or {}
    if not isinstance(extra, dict) or not all(isinstance(values, list) for values in extra.values()):
        raise user.error("as-user-extra must map names to lists of texts.")
    found = Impersonation(
        user=user.text("as"),
        uid=user.text("as-uid"),
        groups=user.texts("as-groups"),
        extra=tuple((str(name), tuple(str(value) for value in values)) for name, values in sorted(extra.items())),
    )
    if not found.user and (found.uid or found.groups or found.extra):
        raise user.error("as-groups, as-uid and as-user-extra need `as`. Add the user to act as.")
    return found


def _exec_plugin(cluster: _Entry, user: _Entry) -> ExecPlugin | None:
    fields = user.fields.get("exec")
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise user.error(f"exec must be a mapping, not {fields!r}.")
    entry = dataclasses.replace(user, fields=fields)
    version = entry.text("apiVersion")
    if version not in EXEC_API_VERSIONS:
        known = " or ".join(EXEC_API_VERSIONS)
        raise user.error(f"exec.apiVersion {version or '(missing)'} is not supported. Use {known}.")
    command = entry.text("command")
    if not command:
        raise user.error("exec.command is missing. Name the program that prints the credentials.")
    return ExecPlugin(
        api_version=version,
        command=entry.path("command") if os.sep in command else command,
        args=entry.texts("args"),
        env=_exec_env(entry),
        install_hint=entry.text("installHint"),
        provide_cluster_info=entry.flag("provideClusterInfo"),
        interactive_mode=_interactive_mode(entry, required=version.endswith("/v1")),
        cluster_extension=_extension(cluster, _EXEC_EXTENSION),
    )


def _exec_env(entry: _Entry) -> tuple[tuple[str, str], ...]:
    listed = entry.fields.get("env") or []
    pairs = [
        (item["name"], item.get("value", ""))
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get("value", ""), str)
    ]
    if not isinstance(listed, list) or len(pairs) != len(listed):
        raise entry.error("exec.env must be a list of `name` and `value`, both texts.")
    return tuple(pairs)


def _interactive_mode(entry: _Entry, *, required: bool) -> InteractiveMode:
    text = entry.text("interactiveMode")
    if not text and not required:
        return InteractiveMode.IF_AVAILABLE
    try:
        return InteractiveMode(text)
    except ValueError:
        known = ", ".join(InteractiveMode)
        raise entry.error(f"exec.interactiveMode is {text or 'missing'}. Write one of: {known}.") from None


def _extension(cluster: _Entry, name: str) -> Any:
    for item in cluster.fields.get("extensions") or []:
        if isinstance(item, dict) and item.get("name") == name:
            return item.get("extension")
    return None
