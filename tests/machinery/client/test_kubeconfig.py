"""Kubeconfig files and the identity of a pod."""

from __future__ import annotations

import base64
import contextlib
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kruise.machinery.client import kubeconfig
from kruise.machinery.client.config import (
    ClusterConfig,
    InteractiveMode,
    KubeconfigError,
    Pem,
    proxy_from_environment,
)

PEM = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
NOWHERE = Path("/nonexistent")


def document(
    *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, context: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443", "proxy-url": ""} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"} | (context or {})}],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def load(tmp_path: Path, **parts: Any) -> ClusterConfig:
    return kubeconfig.load(write(tmp_path / "config", document(**parts)), env={})


def load_error(tmp_path: Path, content: Any) -> str:
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig.load(write(tmp_path / "config", content), env={})
    return str(caught.value)


def test_plain(tmp_path: Path) -> None:
    """Server, namespace and token of the current context."""
    config = load(tmp_path, user={"token": "secret"}, context={"namespace": "shop"})
    assert (config.server, config.namespace, config.token) == ("https://one:6443", "shop", "secret")
    assert config.context == "main"
    assert "secret" not in repr(config)


def test_namespace_falls_back_to_default(tmp_path: Path) -> None:
    assert load(tmp_path).namespace == "default"


def test_merge_first_file_wins_per_entry(tmp_path: Path) -> None:
    """Of an entry that stands in two files the first counts as a whole, entries of both files are there."""
    first = document(cluster={"server": "https://first"}, context={"user": "other"})
    second = document(cluster={"server": "https://second", "tls-server-name": "x"})
    second["current-context"] = "ignored"
    second["users"] = [{"name": "other", "user": {"token": "from-second"}}]
    a, b = write(tmp_path / "a", first), write(tmp_path / "b", second)
    config = kubeconfig.load(env={"KUBECONFIG": f"{a}:{tmp_path / 'missing'}:{b}:{a}"}, home=NOWHERE)
    assert config.server == "https://first"
    assert config.tls_server_name == ""
    assert config.token == "from-second"
    assert config.context == "main"


def test_current_context_from_a_later_file(tmp_path: Path) -> None:
    """The first file may leave the context open."""
    first = document(cluster={"server": "https://first"})
    first["current-context"] = ""
    a, b = write(tmp_path / "a", first), write(tmp_path / "b", {"current-context": "main"})
    assert kubeconfig.load(env={"KUBECONFIG": f"{a}:{b}"}, home=NOWHERE).server == "https://first"


def test_home_is_the_default(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", document())
    assert kubeconfig.load(env={}, home=tmp_path).server == "https://one:6443"


def test_another_context(tmp_path: Path) -> None:
    content = document()
    content["contexts"].append({"name": "second", "context": {"cluster": "c", "namespace": "two"}})
    file = write(tmp_path / "config", content)
    assert kubeconfig.load(file, context="second", env={}).namespace == "two"


def test_paths_are_relative_to_their_own_file(tmp_path: Path) -> None:
    """Each file of a merge has its own directory."""
    for folder, name in (("one", "ca.crt"), ("two", "me.crt"), ("two", "me.key"), ("two", "token")):
        write(tmp_path / folder / name, PEM.decode())
    first = document(cluster={"certificate-authority": "ca.crt"}, context={"user": "v"})
    keys = {"client-certificate": "me.crt", "client-key": str(tmp_path / "two" / "me.key"), "tokenFile": "token"}
    second = {"users": [{"name": "v", "user": keys}]}
    a, b = write(tmp_path / "one" / "config", first), write(tmp_path / "two" / "config", second)
    config = kubeconfig.load(env={"KUBECONFIG": f"{a}:{b}"}, home=NOWHERE)
    assert config.ca == Pem(path=str(tmp_path / "one" / "ca.crt"))
    assert config.client_certificate == Pem(path=str(tmp_path / "two" / "me.crt"))
    assert config.client_key == Pem(path=str(tmp_path / "two" / "me.key"))
    assert config.token_file == str(tmp_path / "two" / "token")


def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    data = base64.b64encode(PEM).decode()
    config = load(tmp_path, cluster={"certificate-authority": "gone", "certificate-authority-data": data})
    assert config.ca == Pem(data=PEM)


def test_connection_settings(tmp_path: Path) -> None:
    cluster = {"proxy-url": "http://p:3128", "tls-server-name": "api.local", "disable-compression": True}
    config = load(tmp_path, cluster=cluster)
    assert (config.proxy_url, config.tls_server_name, config.disable_compression) == (
        "http://p:3128",
        "api.local",
        True,
    )
    assert load(tmp_path, cluster={"insecure-skip-tls-verify": True}).insecure


def test_impersonation(tmp_path: Path) -> None:
    extra = {"scopes": ["a", "b"]}
    user = {"as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": extra}
    who = load(tmp_path, user=user).impersonation
    assert (who.user, who.uid, who.groups) == ("jane", "7", ("dev", "ops"))
    assert who.extra == (("scopes", ("a", "b")),)


def test_basic(tmp_path: Path) -> None:
    config = load(tmp_path, user={"username": "u", "password": "p"})
    assert (config.username, config.password) == ("u", "p")


def test_exec_plugin(tmp_path: Path) -> None:
    """A command with a slash is relative to the file, one without is looked up in PATH."""
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["--now"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": "get it there",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    found = load(tmp_path, cluster={"extensions": [extension]}, user={"exec": plugin}).exec_plugin
    assert found is not None
    assert found.command == str(tmp_path / "bin" / "login")
    assert (found.args, found.env, found.install_hint) == (("--now",), (("A", "1"),), "get it there")
    assert found.provide_cluster_info
    assert found.interactive_mode is InteractiveMode.NEVER
    assert found.cluster_extension == {"audience": "x"}
    older = plugin | {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login"}
    del older["interactiveMode"]
    found = load(tmp_path, user={"exec": older}).exec_plugin
    assert found is not None
    assert (found.command, found.interactive_mode) == ("login", InteractiveMode.IF_AVAILABLE)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"cluster": {"server": ""}}, ['cluster "c"', "server is missing"]),
        ({"cluster": {"server": 5}}, ['cluster "c"', "server must be text", "quotes"]),
        ({"cluster": {"server": "https://[x"}}, ['cluster "c"', "is no address", "https://host:port"]),
        ({"cluster": {"server": "https://h:port"}}, ["server https://h:port is no address"]),
        ({"cluster": {"proxy-url": "http://"}}, ["proxy-url http:// is no address"]),
        ({"user": {"tokenFile": "a\x00b"}}, ['user "u"', "tokenFile holds control characters"]),
        ({"cluster": {"insecure-skip-tls-verify": "yes"}}, ["insecure-skip-tls-verify", "true or false"]),
        ({"cluster": {"certificate-authority": "gone.crt"}}, ["certificate-authority", "gone.crt", "cannot be read"]),
        ({"cluster": {"certificate-authority-data": "!!"}}, ["certificate-authority-data", "base64"]),
        ({"cluster": {"certificate-authority-data": "QUJD"}}, ["certificate-authority-data", "PEM"]),
        (
            {
                "cluster": {
                    "insecure-skip-tls-verify": True,
                    "certificate-authority-data": base64.b64encode(PEM).decode(),
                }
            },
            ["contradict"],
        ),
        ({"cluster": {"proxy-url": "socks5://x"}}, ["proxy-url", "socks5", "http://"]),
        ({"user": {"client-certificate-data": base64.b64encode(PEM).decode()}}, ['user "u"', "client-key is missing"]),
        ({"user": {"token": "a", "username": "b"}}, ['user "u"', "token and username"]),
        ({"user": {"auth-provider": {"name": "gcp"}}}, ["auth-provider", "exec plugin"]),
        ({"user": {"as-groups": ["g"]}}, ["`as`"]),
        ({"user": {"as": "j", "as-groups": "g"}}, ["as-groups must be a list"]),
        ({"user": {"as": "j", "as-user-extra": ["g"]}}, ["as-user-extra"]),
        ({"user": {"exec": "x"}}, ["exec must be a mapping"]),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1"}}}, ["v1alpha1", "v1beta1"]),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}}, ["exec.command is missing"]),
        (
            {"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}},
            ["interactiveMode is missing", "IfAvailable"],
        ),
        (
            {"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "x", "env": ["A"]}}},
            ["exec.env"],
        ),
        ({"context": {"cluster": "nope"}}, ['context "main"', '"nope" is not defined', "one of: c"]),
        ({"context": {"user": "nope"}}, ['user "nope" is not defined']),
    ],
)
def test_errors_name_file_entry_and_remedy(tmp_path: Path, parts: dict[str, Any], words: list[str]) -> None:
    message = load_error(tmp_path, document(**parts))
    for word in [*words, str(tmp_path / "config")]:
        assert word in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", ["no valid YAML", "line"]),
        ('{"a": [', ["no valid YAML", "line"]),
        ('{"current-context": "x"}', ['no context "x"']),
        ("{current-context: x}", ['no context "x"']),
        ("just text", ["no kubeconfig"]),
        ("", ["current-context is not set", "none"]),
        ({"current-context": "x"}, ['no context "x"']),
        ({"current-context": 7}, ["current-context must be text"]),
        ({"clusters": {"a": 1}}, ["clusters must be a list"]),
        ({"users": [{"user": {}}]}, ["users[0] has no name"]),
        ({"contexts": [{"name": "a", "context": "text"}]}, ['context "a"', "must be a mapping"]),
    ],
)
def test_malformed_files(tmp_path: Path, content: Any, words: list[str]) -> None:
    message = load_error(tmp_path, content)
    for word in [*words, str(tmp_path / "config")]:
        assert word in message


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
addresses = st.builds(
    "{}://{}".format, st.sampled_from(["http", "https", "unix", "x"]), st.text("a[]:@/1%.", max_size=8)
)
PLACES = [
    "current-context",
    "clusters",
    "users",
    "contexts",
    "server",
    "proxy-url",
    "user",
    "cluster",
    "exec",
    "tokenFile",
    "token",
    "as",
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), value=json_like | addresses)
def test_no_content_crashes_the_reader(tmp_path: Path, place: str, value: Any) -> None:
    """Whatever stands at a place of the file: a configuration comes out or a KubeconfigError."""
    content = document()
    user = content["users"][0]["user"]
    for holder in (content, content["clusters"][0], content["clusters"][0]["cluster"], content["contexts"][0], user):
        if place in holder or holder is user:
            holder[place] = value
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(content))
    with contextlib.suppress(KubeconfigError):
        assert kubeconfig.load(file, env={}).server


def test_missing_files() -> None:
    """An explicit file must exist; without any file the error tells where was looked."""
    with pytest.raises(KubeconfigError, match="/nonexistent/x cannot be read"):
        kubeconfig.load("/nonexistent/x", env={})
    with pytest.raises(KubeconfigError, match=r"/nonexistent/\.kube/config does not exist"):
        kubeconfig.load(env={}, home=NOWHERE)


def service_account(path: Path) -> Path:
    for name, text in (("token", "tok\n"), ("ca.crt", PEM.decode()), ("namespace", "kruise-system\n")):
        write(path / name, text)
    return path


def test_in_cluster(tmp_path: Path) -> None:
    """Without a kubeconfig the pod's own identity is used."""
    directory = service_account(tmp_path / "sa")
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    config = kubeconfig.load(env=env, home=NOWHERE, service_account=directory)
    assert (config.server, config.namespace) == ("https://10.0.0.1:443", "kruise-system")
    assert config.token_file == str(directory / "token")
    assert config.ca.path == str(directory / "ca.crt")
    ipv6 = kubeconfig.in_cluster(env=env | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, directory=directory)
    assert ipv6.url == "https://[fd00::1]:443"


def test_in_cluster_errors(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="KUBERNETES_SERVICE_HOST"):
        kubeconfig.in_cluster(env={}, directory=tmp_path)
    with pytest.raises(KubeconfigError, match="automountServiceAccountToken"):
        kubeconfig.in_cluster(env={"KUBERNETES_SERVICE_HOST": "x"}, directory=tmp_path)


def test_addresses_without_a_scheme() -> None:
    """As kubectl reads them: https where TLS is configured."""
    assert ClusterConfig(server="localhost:8080/").url == "http://localhost:8080"
    assert ClusterConfig(server="host:6443", insecure=True).url == "https://host:6443"
    assert ClusterConfig(server="https://host/k8s/clusters/x/").url == "https://host/k8s/clusters/x"


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example.com", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api.example.com", {"HTTP_PROXY": "http://p:1"}, ""),
        ("http://api.example.com", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .example.com"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, ""),
        ("https://notexample.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com"}, "http://p:1"),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "api.example.com:6443"}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "api.example.com:1"}, "http://p:1"),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://11.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8,bad/net"}, "http://p:1"),
    ],
)
def test_proxy_from_environment(url: str, env: dict[str, str], expected: str) -> None:
    assert proxy_from_environment(url, env) == expected


def test_environment_proxy_only_where_none_is_configured(tmp_path: Path) -> None:
    env = {"HTTPS_PROXY": "http://env:1"}
    file = write(tmp_path / "a", document())
    assert kubeconfig.load(file, env=env).proxy_url == "http://env:1"
    file = write(tmp_path / "b", document(cluster={"proxy-url": "http://own:1"}))
    assert kubeconfig.load(file, env=env).proxy_url == "http://own:1"


def test_yaml_as_people_write_it(tmp_path: Path) -> None:
    """A literal file, with comments and unknown fields."""
    text = textwrap.dedent(
        """
        # made by hand
        apiVersion: v1
        preferences: {}
        current-context: k
        clusters:
        - name: k
          cluster: {server: "https://10.0.0.1", something-new: 1}
        contexts:
        - {name: k, context: {cluster: k}}
        """
    )
    config = kubeconfig.load(write(tmp_path / "c", text), env={})
    assert (config.server, config.token) == ("https://10.0.0.1", "")
