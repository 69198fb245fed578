"""A real Kubernetes control plane for tests and benchmarks: etcd, API server, controller manager, scheduler.

    with ControlPlane(audit=True) as cluster:
        cluster.kubeconfig            # admin, in system:masters
        cluster.kubeconfig_for("me")  # any other user, so that the audit log can tell clients apart

Nodes are not part of it: tests make Node objects and play the kubelet. Root is not needed. `realnodes.py` adds real
ones. Each instance has its own directory, ports, CA and data; `instances.py` sees to it that nothing is left behind.
The same from a shell:

    python -m tests.support.realcluster build | up | up --nodes 3 | status | down
"""

from __future__ import annotations

import argparse
import atexit
import http.client
import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import auditlog, components, kubebuild
from tests.support.auditlog import AuditEntry
from tests.support.clusterpki import Authority, Credentials
from tests.support.instances import Instance, InstanceError, find_instance, list_instances, remove_stale
from tests.support.kubebuild import MissingPrerequisiteError

ADMIN_GROUP = "system:masters"
DEFAULT_NAME = "dev"
DEFAULT_NODES_NAME = "nodes"

_POLL_SECONDS = 0.05
_CONNECT_ERRORS = (OSError, http.client.HTTPException)


class ClusterError(RuntimeError):
    """The cluster did not do what was asked; the text names the component and shows the end of its log."""


@dataclass(frozen=True)
class Answer:
    """What the API server said to a plain request."""

    status: int
    body: Any

    def ok(self) -> Any:
        """The body; raises where the server refused."""
        if self.status >= 400:
            raise ClusterError(f"the API server answered {self.status}: {self.body}")
        return self.body


class ControlPlane:
    """One control plane. A context manager; `start` and `stop` do the same. All calls block for a short time.

    With `detached` it lives on after this process; `python -m tests.support.realcluster down` ends it.
    """

    _port_count = 5

    def __init__(
        self,
        *,
        name: str | None = None,
        audit: bool = False,
        controller_manager: bool = True,
        scheduler: bool = True,
        address: str = "127.0.0.1",
        feature_gates: Mapping[str, bool] | None = None,
        apiserver_args: Sequence[str] = (),
        controller_manager_args: Sequence[str] = (),
        scheduler_args: Sequence[str] = (),
        detached: bool = False,
        start_timeout: float = 60.0,
    ) -> None:
        self._name = name
        self._audit = audit
        self._with_controller_manager = controller_manager
        self._with_scheduler = scheduler
        self._address = address
        self._feature_gates = dict(feature_gates or {})
        self._extra = {
            "kube-apiserver": tuple(apiserver_args),
            "kube-controller-manager": tuple(controller_manager_args),
            "kube-scheduler": tuple(scheduler_args),
        }
        self._detached = detached
        self._joined = False
        self._start_timeout = start_timeout
        self._instance: Instance | None = None
        self._authority: Authority | None = None
        self._commands: dict[str, list[str | Path]] = {}
        self._tls: ssl.SSLContext | None = None
        self._one_certificate = threading.Lock()
        self.start_seconds = 0.0

    # Life

    def start(self) -> Self:
        """Starts everything and returns when it is ready to serve: about 5 s on 2 cores."""
        if self._instance is not None:
            raise ClusterError(f"cluster {self._instance.name} is started already")
        binaries = self._find_programs()
        began = time.monotonic()
        self._instance = Instance.create(name=self._name, ports=self._port_count, detached=self._detached)
        if not self._detached:
            atexit.register(self.stop)
        try:
            self._prepare(binaries)
            self._bring_up(began + self._start_timeout)
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - began
        return self

    def join(self, directory: Path) -> Self:
        """Uses a cluster of the same options that another process started, and that only this one ends."""
        self._instance = Instance(directory)
        self._joined = True
        self._authority = Authority.join(directory / "keys")
        self._tls = None
        return self

    def stop(self) -> None:
        """Ends all processes and removes the directory. Does nothing where it is not started."""
        atexit.unregister(self.stop)
        instance, self._instance = self._instance, None
        if instance is not None and not self._joined:
            instance.remove()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Where things are

    @property
    def directory(self) -> Path:
        return self._running_instance.directory

    @property
    def name(self) -> str:
        return self._running_instance.name

    @property
    def url(self) -> str:
        return f"https://{self._address}:{self._apiserver_port}"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of user `admin` in system:masters."""
        return self.directory / "admin.kubeconfig"

    @property
    def ca_file(self) -> Path:
        return self._running_authority.files.certificate

    @property
    def ca_pem(self) -> bytes:
        return self._running_authority.certificate_pem

    def kubeconfig_for(self, user: str, groups: Iterable[str] = (ADMIN_GROUP,)) -> Path:
        """A kubeconfig for any user. In system:masters unless told otherwise: then RBAC rules are up to the caller."""
        return self._running_authority.kubeconfig(self.url, user, groups)

    def credentials_for(self, user: str, groups: Iterable[str] = (ADMIN_GROUP,)) -> Credentials:
        """The same as certificate and key files."""
        return self._running_authority.client(user, groups)

    def ssl_context(self, user: str = "admin", groups: Iterable[str] = (ADMIN_GROUP,)) -> ssl.SSLContext:
        """A client TLS context for any user, for clients without kubeconfig."""
        files = self.credentials_for(user, groups)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(files.certificate, files.key)
        return context

    def log_path(self, component: str) -> Path:
        return self._running_instance.log_path(component)

    def pids(self) -> dict[str, int]:
        """Component names and pids of what runs now."""
        return self._running_instance.running()

    # Plain requests, for set-up and checks

    def request(self, method: str, path: str, body: Any = None, *, timeout: float = 10.0) -> Answer:
        """One request as admin over a connection of its own; a PATCH is a merge patch."""
        with self._one_certificate:
            self._tls = self._tls or self.ssl_context()
        return _request(self._address, self._apiserver_port, self._tls, method, path, body, timeout)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Runs the matching kubectl as admin and returns its output."""
        command = [str(kubebuild.cache_directory() / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def create_namespace(self, name: str, *, timeout: float = 20.0) -> None:
        """Makes a namespace and waits for its default ServiceAccount, without which pods are refused."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).ok()
        if self._with_controller_manager:
            self._wait_for(
                lambda: self.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default").status == 200,
                time.monotonic() + timeout,
                f"default ServiceAccount of namespace {name}",
                ("kube-controller-manager",),
            )
        else:
            path = f"/api/v1/namespaces/{name}/serviceaccounts"
            self.request("POST", path, {"metadata": {"name": "default"}}).ok()

    def delete_namespace(self, name: str) -> None:
        """Asks for the removal of a namespace and does not wait for it."""
        answer = self.request("DELETE", f"/api/v1/namespaces/{name}")
        if answer.status != 404:
            answer.ok()

    # Audit

    def audit_mark(self) -> int:
        """The present end of the audit log, for `audit_entries(since=...)`."""
        return auditlog.end(self._audit_path)

    def audit_entries(self, since: int = 0) -> list[AuditEntry]:
        """Finished requests in the order in which they finished, across restarts of the API server.

        A request is in the log before its client has the whole answer; a watch appears when it ends.
        """
        return auditlog.read(self._audit_path, since)

    # Chaos

    def kill_apiserver(self) -> None:
        """SIGKILL: the API server is gone when this returns. etcd keeps the data."""
        self._own_instance.stop("kube-apiserver")

    def start_apiserver(self, *, timeout: float = 30.0) -> None:
        """Starts the API server again on the same port with the same data, and waits until it is ready."""
        self._spawn("kube-apiserver")
        self._wait_apiserver(time.monotonic() + timeout, "readyz")

    def restart_apiserver(self, *, grace: float = 0.0, timeout: float = 30.0) -> None:
        """Ends the API server (SIGTERM first where `grace` seconds are given) and starts it again."""
        self._own_instance.stop("kube-apiserver", grace=grace)
        self.start_apiserver(timeout=timeout)

    # Inside

    @property
    def _running_instance(self) -> Instance:
        if self._instance is None:
            raise ClusterError("the cluster is not started")
        return self._instance

    @property
    def _own_instance(self) -> Instance:
        """To be killed and restarted at will."""
        if self._joined:
            raise ClusterError(f"cluster {self.name} is shared with others: start one for this test alone")
        return self._running_instance

    @property
    def _running_authority(self) -> Authority:
        if self._instance is None or self._authority is None:
            raise ClusterError("the cluster is not started")
        return self._authority

    @property
    def _apiserver_port(self) -> int:
        return self._running_instance.ports[0]

    @property
    def _audit_path(self) -> Path:
        if not self._audit:
            raise ClusterError("the audit log is off: start the cluster with audit=True")
        return self.directory / "audit.log"

    def _find_programs(self) -> dict[str, Path]:
        return require_prerequisites()

    def _serving_names(self) -> list[str]:
        """Host names and addresses under which clients reach the components."""
        return ["127.0.0.1", "localhost", self._address, "kubernetes.default.svc"]

    def _prepare(self, binaries: Mapping[str, Path]) -> None:
        directory = self.directory
        keys = directory / "keys"
        keys.mkdir(mode=0o700)
        authority = self._authority = Authority(keys)
        self._tls = None
        authority.kubeconfig(self.url, "admin", (ADMIN_GROUP,), path=self.kubeconfig)
        serving = authority.server("serving", self._serving_names())
        tokens = authority.signing_key("service-accounts")
        _, etcd_port, peer_port, manager_port, scheduler_port = self._running_instance.ports[:5]
        self._commands["etcd"] = components.etcd(binaries["etcd"], directory, etcd_port, peer_port)
        apiserver = components.apiserver(
            binaries["kube-apiserver"], self._address, self._apiserver_port, etcd_port, authority, serving, tokens
        )
        if self._audit:
            policy = directory / "audit-policy.json"
            policy.write_text(json.dumps(auditlog.POLICY))
            # The size is a limit in megabytes after which the file is rotated away from its readers.
            apiserver += [f"--audit-policy-file={policy}", f"--audit-log-path={self._audit_path}"]
            apiserver += ["--audit-log-maxsize=100000"]
        self._commands["kube-apiserver"] = apiserver
        # Both are in system:masters: they can begin while the API server still writes its own RBAC rules.
        for component, port in (("kube-controller-manager", manager_port), ("kube-scheduler", scheduler_port)):
            kubeconfig = authority.kubeconfig(self.url, f"system:{component}", (ADMIN_GROUP,))
            self._commands[component] = components.client_component(binaries[component], port, kubeconfig, serving)
        self._commands["kube-controller-manager"] += [
            f"--root-ca-file={authority.files.certificate}",
            f"--service-account-private-key-file={tokens.key}",
            f"--cluster-signing-cert-file={authority.files.certificate}",
            f"--cluster-signing-key-file={authority.files.key}",
        ]
        gates = ",".join(f"{gate}={str(on).lower()}" for gate, on in sorted(self._feature_gates.items()))
        for component, extra in self._extra.items():
            self._commands[component] += [*([f"--feature-gates={gates}"] if gates else []), *extra]

    def _bring_up(self, deadline: float) -> None:
        self._spawn("etcd")
        self._spawn("kube-apiserver")
        self._wait_apiserver(deadline, "livez/ping")
        ports = self._running_instance.ports
        if self._with_controller_manager:
            self._spawn("kube-controller-manager")
        if self._with_scheduler:
            self._spawn("kube-scheduler")
        self._wait_apiserver(deadline, "readyz")
        if self._with_controller_manager:
            self._wait_healthy("kube-controller-manager", ports[3], "/healthz", deadline)
            self._wait_for(
                lambda: self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default").status == 200,
                deadline,
                "default ServiceAccount of namespace default",
                ("kube-controller-manager",),
            )
        if self._with_scheduler:
            self._wait_healthy("kube-scheduler", ports[4], "/readyz", deadline)

    def _spawn(self, component: str) -> None:
        self._own_instance.spawn(component, self._commands[component])

    def _wait_apiserver(self, deadline: float, path: str) -> None:
        def answers() -> bool:
            try:
                return self.request("GET", f"/{path}", timeout=5.0).status == 200
            except _CONNECT_ERRORS:
                return False

        self._wait_for(answers, deadline, f"API server's /{path}", ("kube-apiserver", "etcd"))

    def _wait_healthy(self, component: str, port: int, path: str, deadline: float) -> None:
        context = ssl.create_default_context(cafile=str(self.ca_file))

        def answers() -> bool:
            try:
                return _request("127.0.0.1", port, context, "GET", path, None, 5.0).status == 200
            except _CONNECT_ERRORS:
                return False

        self._wait_for(answers, deadline, f"{path} of {component}", (component,))

    def _wait_for(self, done: Callable[[], bool], deadline: float, what: str, makers: Sequence[str]) -> None:
        """Polls; fails at once where a component that should bring it about has ended."""
        while not done():
            for component in makers:
                code = self._running_instance.exit_code(component)
                if code is not None:
                    raise ClusterError(f"{component} ended with code {code}; {self._tail(component)}")
            if time.monotonic() > deadline:
                raise ClusterError(f"no {what} in time; {self._tail(makers[0])}")
            time.sleep(_POLL_SECONDS)

    def _tail(self, component: str) -> str:
        instance = self._running_instance
        return f"the end of {instance.log_path(component)}:\n{instance.log_tail(component)}"


def require_prerequisites(more: Sequence[str] = ()) -> dict[str, Path]:
    """Paths of all programs of a control plane, and of `more` Kubernetes binaries.

    Raises one MissingPrerequisiteError that names all that is missing.
    """
    missing: list[str] = []
    found: dict[str, Path] = {}
    if not sys.platform.startswith("linux"):
        missing.append("Linux: real clusters are for Linux only")
    try:
        found["etcd"] = kubebuild.find_etcd()
    except MissingPrerequisiteError as error:
        missing += error.missing
    try:
        found.update(kubebuild.find_binaries((*kubebuild.CONTROL_PLANE_BINARIES, *more)))
    except MissingPrerequisiteError as error:
        missing += error.missing
        try:
            kubebuild.find_go()
        except MissingPrerequisiteError as no_go:
            missing += no_go.missing
    if missing:
        raise MissingPrerequisiteError(missing)
    return found


def _request(
    host: str, port: int, context: ssl.SSLContext, method: str, path: str, body: Any, timeout: float
) -> Answer:
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=timeout)
    try:
        content = None if body is None else json.dumps(body)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": kind, "Accept": "application/json", "User-Agent": "realcluster"}
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        raw = response.read()
    finally:
        connection.close()
    if response.headers.get_content_type() == "application/json":
        return Answer(response.status, json.loads(raw))
    return Answer(response.status, raw.decode(errors="replace"))


# Command line


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.realcluster", description=(__doc__ or "").partition("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the Kubernetes binaries that the cache lacks")
    build.add_argument("--nodes", action="store_true", help="also what real nodes need: kubelet and kube-proxy")
    up = commands.add_parser("up", help="start a control plane that stays until `down`")
    up.add_argument("--audit", action="store_true", help="write an audit log")
    up.add_argument("--nodes", type=int, default=0, metavar="N", help="with N real nodes; needs root")
    up.add_argument("--name", help=f"default: {DEFAULT_NAME}, with nodes {DEFAULT_NODES_NAME}")
    down = commands.add_parser("down", help="stop it and remove all its files")
    down.add_argument("--name", help=f"which cluster (default: {DEFAULT_NAME} and {DEFAULT_NODES_NAME})")
    commands.add_parser("status", help="list the clusters of this user")
    options = parser.parse_args(arguments)
    try:
        if options.command == "build":
            return _command_build(nodes=options.nodes)
        if options.command == "up":
            name = options.name or (DEFAULT_NODES_NAME if options.nodes else DEFAULT_NAME)
            return _command_up(name, audit=options.audit, nodes=options.nodes)
        if options.command == "down":
            return _command_down([options.name] if options.name else [DEFAULT_NAME, DEFAULT_NODES_NAME])
        return _command_status()
    except (MissingPrerequisiteError, kubebuild.BuildError, InstanceError, ClusterError) as error:
        print(error, file=sys.stderr)
        return 1


def _command_build(*, nodes: bool) -> int:
    names = kubebuild.CONTROL_PLANE_BINARIES + (kubebuild.NODE_BINARIES if nodes else ())
    for path in kubebuild.ensure_binaries(names).values():
        print(path)
    return 0


def _command_up(name: str, *, audit: bool, nodes: int) -> int:
    remove_stale()
    existing = find_instance(name)
    if existing is None:
        cluster = _cluster(name, audit=audit, nodes=nodes).start()
        directory = cluster.directory
        print(f"Kubernetes {kubebuild.kubernetes_version()} is up after {cluster.start_seconds:.1f} s: {cluster.url}")
    else:
        directory = existing.directory
        print(f"cluster {name} runs already")
    print(f"use it:  export KUBECONFIG={directory / 'admin.kubeconfig'} PATH={kubebuild.cache_directory()}:$PATH")
    print(f"logs:    {directory}/*.log")
    by_default = name in (DEFAULT_NAME, DEFAULT_NODES_NAME)
    print(f"stop it: python -m tests.support.realcluster down{'' if by_default else f' --name {name}'}")
    return 0


def _cluster(name: str, *, audit: bool, nodes: int) -> ControlPlane:
    """A cluster that is not started yet, with the binaries it needs built."""
    # First what takes no time to check: no one should wait for a build to learn that a package is missing.
    kubebuild.find_etcd()
    if not nodes:
        kubebuild.ensure_binaries()
        return ControlPlane(name=name, audit=audit, detached=True)
    # Nodes stand on this module.
    from tests.support import realnodes

    realnodes.require_machine()
    kubebuild.ensure_binaries(kubebuild.CONTROL_PLANE_BINARIES + kubebuild.NODE_BINARIES)
    return realnodes.RealNodes(nodes=nodes, name=name, audit=audit, detached=True)


def _command_down(names: Sequence[str]) -> int:
    found = [instance for name in names if (instance := find_instance(name)) is not None]
    if not found:
        print(f"no cluster {' or '.join(names)} runs")
    for instance in found:
        if not instance.detached and instance.owner_alive():
            owner = f"process {instance.owner_pid}, which stops it itself"
            raise InstanceError(f"cluster {instance.name} belongs to {owner}")
        instance.remove()
        print(f"cluster {instance.name} is gone")
    return 0


def _command_status() -> int:
    instances = list_instances()
    if not instances:
        print("no clusters")
    for instance in instances:
        running = ", ".join(f"{component} {pid}" for component, pid in instance.running().items()) or "nothing runs"
        owner = "stays until `down`" if instance.detached else f"owned by process {instance.owner_pid}"
        if not instance.detached and not instance.owner_alive():
            owner += ", which is gone: the next start removes it"
        print(f"{instance.name}: {owner}\n  {instance.directory / 'admin.kubeconfig'}\n  {running}")
    return 0


if __name__ == "__main__":
    # Run as a program, this file is module `__main__`. Nodes import it by its name; there must be one of each class.
    from tests.support.realcluster import main as command

    sys.exit(command())
