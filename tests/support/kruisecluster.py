"""A real API server with PyKruise installed, a manager process of its own, and nodes.

    with KruiseCluster() as cluster:                 # a control plane of its own, simulated nodes
    with KruiseCluster(real_nodes) as cluster:       # a cluster that is there already, with real nodes
        async with cluster.world("demo") as world:   # for scenarios

The manager runs as the account of an installation, with the rights that its gates need and no others, and without any
capability. So the audit log tells its writes and the test's apart. It can be killed, restarted with other flags, and
frozen.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kruise.kinds import features
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.clock import RealClock
from kruise.manager.installation.granting import Right
from kruise.manager.installation.installer import Installer
from kruise.manager.installation.manifests import manifests
from tests.support import rights
from tests.support.applied_twice import cases, resource_of
from tests.support.installed import DEFINITIONS
from tests.support.instances import in_life_of_this_process
from tests.support.ports import free_port
from tests.support.realcluster import ControlPlane
from tests.support.world import Json, World

MANAGER = rights.user_of(rights.MANAGER)
"""The user as which managers run."""
_GATES = "--feature-gates="
ALONE = ("--enable-leader-election=false",)
"""Flags of a manager beside which there is no other: a busy machine does not cost it the lead."""
SHORT_LEASE = (
    "--leader-election-lease-duration=6s",
    "--leader-election-renew-deadline=5s",
    "--leader-election-retry-period=500ms",
)
"""Flags of a manager that another one follows soon after its end."""
_PROBE: dict[str, Any] = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "CloneSet",
    "metadata": {"name": "probe"},
    "spec": {
        "selector": {"matchLabels": {"app": "probe"}},
        "template": {
            "metadata": {"labels": {"app": "probe"}},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        },
    },
}


class KruiseCluster:
    """`nodes` are simulated; 0 where the cluster has real ones, or where a test plays the kubelet itself. Without
    `installed`, the test installs, and starts the manager."""

    def __init__(
        self,
        plane: ControlPlane | None = None,
        *,
        nodes: int | None = None,
        flags: tuple[str, ...] = (),
        installed: bool = True,
    ) -> None:
        self._installed = installed
        self._own = plane is None
        self.plane = plane or ControlPlane(audit=True)
        self._count = (6 if self._own else 0) if nodes is None else nodes
        self._flags = flags
        self._nodes: subprocess.Popen[bytes] | None = None
        self._manager: subprocess.Popen[bytes] | None = None
        self._directory = Path()
        self.taken: Right | None = None
        """A right that managers do not have, though they need it."""
        # The kernel ties a child to the thread that made it: this one lives as long as they.
        self._spawner = ThreadPoolExecutor(1, thread_name_prefix="kruise-cluster")

    @property
    def kubeconfig(self) -> Path:
        return self.plane.kubeconfig

    @property
    def manager_log(self) -> Path:
        return self.directory / "manager.log"

    @property
    def directory(self) -> Path:
        """Logs and certificates, below the control plane's own directory: whatever ends that one ends this one too."""
        assert self._directory.name, "the cluster is not started"
        return self._directory

    @property
    def manager_pid(self) -> int:
        assert self._manager is not None, "there is no manager"
        return self._manager.pid

    @property
    def manager_is_running(self) -> bool:
        """A manager that loses its lease ends; whoever runs it starts it again."""
        manager = self._manager  # somebody may kill it from another thread
        return manager is not None and manager.poll() is None

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self._metrics_port}"

    @property
    def journal_url(self) -> str:
        return f"https://127.0.0.1:{self._journal_port}"

    def __enter__(self) -> Self:
        if self._own:
            self.plane.start()
        self._directory = Path(tempfile.mkdtemp(prefix="kruise-", dir=self.plane.directory))
        try:
            if self._installed:
                asyncio.run(self._install())
            if self._count:
                self._start_nodes()
            if self._installed:
                self.start_manager()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def join(self, directory: Path) -> Self:
        """Uses the manager that another process runs on this control plane."""
        self._directory = directory
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_manager()
        _end(self._nodes)
        self._nodes = None
        self._spawner.shutdown()
        if self._own:
            self.plane.stop()
        else:
            self._remove_webhooks()
            shutil.rmtree(self.directory)

    async def _install(self) -> None:
        client = Client(HttpTransport(load(self.kubeconfig)))
        try:
            await Installer(client, clock=RealClock(), report=lambda line: None).install(manifests(features()))
        finally:
            await client.close()

    def _remove_webhooks(self) -> None:
        """The cluster lives on: entries that point to a manager which is gone would refuse every pod."""
        for manifest in manifests(features()):
            if manifest["kind"] in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
                plural = f"{manifest['kind'].lower()}s"
                name = manifest["metadata"]["name"]
                self.plane.request("DELETE", f"/apis/admissionregistration.k8s.io/v1/{plural}/{name}")

    def _start_nodes(self) -> None:
        user = self.plane.kubeconfig_for("kruise-nodes")
        command = [sys.executable, "-m", "kruise.cli.main", "nodes", f"--kubeconfig={user}", f"--count={self._count}"]
        command += ["--zones=a,b,c", "--prefix=sim-", "--max-pods=2000", "--cpu=256", "--memory=4Ti"]
        self._nodes = self._spawn("nodes", command, {})

    def start_manager(self, *flags: str, wait: bool = True) -> None:
        """Start a manager; returns when its webhooks answer."""
        assert self._manager is None, "a manager is running already"
        self._metrics_port, self._journal_port = free_port(), free_port()
        user = self.manager_kubeconfig(*flags)
        environment = {
            "WEBHOOK_HOST": "127.0.0.1",
            "WEBHOOK_PORT": str(free_port()),
            "WEBHOOK_CERT_DIR": str(self.directory / "certs"),
        }
        command = [
            sys.executable,
            "-m",
            "kruise.cli.main",
            "manager",
            f"--kubeconfig={user}",
            f"--metrics-addr=127.0.0.1:{self._metrics_port}",
            f"--journal-addr=127.0.0.1:{self._journal_port}",
            "--health-probe-addr=0",
            f"--protection-log-path={self.directory}",
            *self._flags,
            *flags,
        ]
        self._manager = self._spawn("manager", command, environment)
        if wait:
            self._until_it_answers()

    def manager_kubeconfig(self, *flags: str) -> Path:
        """That of the manager's account, which is given the rights for the gates among these flags."""
        given = [flag for flag in (*self._flags, *flags) if flag.startswith(_GATES)]
        self.give_rights(given[-1].removeprefix(_GATES) if given else "")
        return self.plane.kubeconfig_for(MANAGER, rights.groups_of())

    def give_rights(self, gates: str = "") -> None:
        """Those of an installation with these gates, without what is `taken`."""
        for role in rights.roles_with(features(), gates):
            if role["kind"] in rights.ROLES:
                rules = rights.without(role["rules"], self.taken) if self.taken is not None else role["rules"]
                self.plane.request("PATCH", rights.path_of(role), {"rules": rules}).ok()

    def _spawn(self, name: str, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """It dies with this process, whatever kills that."""
        wrapped = in_life_of_this_process(self.directory / f"{name}.pid", command, privileges=False)
        with (self.directory / f"{name}.log").open("ab") as log:
            start = functools.partial(
                subprocess.Popen, wrapped, stdout=log, stderr=log, env={**os.environ, **environment}
            )
            return self._spawner.submit(start).result()

    def _until_it_answers(self) -> None:
        """The API server hears of webhooks and of conversions by ways of their own: all must have arrived."""
        deadline = time.monotonic() + 120
        while missing := self._unanswered():
            if time.monotonic() > deadline or (self._manager is not None and self._manager.poll() is not None):
                text = self.manager_log.read_text()[-3000:]
                raise RuntimeError(f"the manager does not answer: {missing}\n{text}")
            time.sleep(0.1)

    def _unanswered(self) -> str:
        path = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets?dryRun=All"
        refused = self.plane.request("POST", path, {**_PROBE, "spec": {**_PROBE["spec"], "replicas": -1}})
        if refused.status < 400 or "spec.replicas" not in str(refused.body):
            return f"nonsense is answered with {refused.status} {refused.body}"
        accepted = self.plane.request("POST", path, _PROBE)
        if accepted.status >= 400 or "revisionHistoryLimit" not in accepted.body["spec"]:
            return f"a CloneSet is answered with {accepted.status} {accepted.body}"
        return next(filter(None, map(self._unconverted, _in_older_versions())), "")

    def _unconverted(self, request: tuple[str, Json]) -> str:
        """Whether it is accepted does not matter here: some kinds are refused while their gate is off."""
        path, manifest = request
        answer = self.plane.request("POST", f"{path}?dryRun=All", manifest)
        if answer.status == 500 and "conversion webhook" in str(answer.body):
            return f"{path} is answered with {answer.body}"
        return ""

    def stop_manager(self) -> None:
        """End it in order."""
        _end(self._manager)
        self._manager = None

    def kill_manager(self) -> None:
        """End it as a crash does."""
        if self._manager is not None:
            self._manager.send_signal(signal.SIGKILL)
            self._manager.wait(20)
            self._manager = None

    def keep_manager(self) -> None:
        """What a Deployment does: one that ended is started again, such as a manager that lost its lease."""
        if not self.manager_is_running:
            self.kill_manager()
            self.start_manager()

    @contextlib.asynccontextmanager
    async def world(self, namespace: str) -> AsyncIterator[World]:
        """The cluster as scenarios see it."""
        client = Client(HttpTransport(load(self.kubeconfig)))
        try:
            yield World(client, namespace, RealClock())
        finally:
            await client.close()


@functools.cache
def _in_older_versions() -> tuple[tuple[str, Json], ...]:
    """For every kind that is converted, where to create an object that has to be, and one from the documents."""
    found: dict[str, tuple[str, Json]] = {}
    stored = {
        (spec["group"], spec["names"]["kind"], version["name"])
        for spec in (definition["spec"] for definition in DEFINITIONS.values())
        for version in spec["versions"]
        if version["storage"]
    }
    for case in cases(features()):
        resource = resource_of(case, features())
        if (resource.group, resource.kind, resource.version) not in stored:
            place = "namespaces/default/" if resource.namespaced else ""
            path = f"/apis/{resource.group}/{resource.version}/{place}{resource.plural}"
            found.setdefault(resource.plural, (path, case.manifest))
    return tuple(found.values())


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
