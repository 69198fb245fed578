"""Real kubectl does with the local server what it does with a real one.

A script of commands runs against both, in order; exit codes and output must be equal after ids, times, ages and
addresses were replaced. What depends on controllers that are not part of the server is left out: pods are not
scheduled, and nothing waits for a garbage collector.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kruise.local import crds, fields
from kruise.local.apicore import ApiCore
from kruise.local.kinds import admitting, bootstrap, native_registry
from kruise.local.server import LocalServer, kubeconfig, make_identity
from kruise.machinery.clock import RealClock
from tests.support import kubebuild
from tests.support.realcluster import ControlPlane

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: applied, labels: {l: "1"}}
data: {k: v}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}}
spec:
  schedulerName: nobody
  automountServiceAccountToken: false
  containers: [{name: c, image: "nginx:1"}]
"""
CHANGED = MANIFEST.replace("{k: v}", "{k: w}")
UNKNOWN_KIND = """\
apiVersion: apps.kruise.io/v1beta1
kind: Clonset
metadata: {name: misspelt}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: beside}
"""
UNKNOWN_FIELD = MANIFEST.replace("{k: v}", "{k: v}\\nodd: 1")
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.kubectl.kruise.io}
spec:
  group: kubectl.kruise.io
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo, listKind: GizmoList, shortNames: [gz], categories: [toys]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer, default: 1}, color: {type: string}}}
          status: {type: object, properties: {replicas: {type: integer}}}
"""
GIZMO = """
apiVersion: kubectl.kruise.io/v1
kind: Gizmo
metadata: {name: g}
spec: {color: red}
"""


@dataclasses.dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    stdin: str = ""
    namespaced: bool = True

    def __str__(self) -> str:
        return "kubectl " + " ".join(self.words)


def do(text: str, *more: str, stdin: str = "", namespaced: bool = True) -> Command:
    return Command((*text.split(), *more), stdin, namespaced)


SCRIPTS = {
    "objects": [
        do("create configmap a --from-literal=x=1"),
        do("create configmap a --from-literal=x=1"),
        do("create secret generic s --from-literal=k=v"),
        do("create serviceaccount robot"),
        do("get cm a"),
        do("get cm a -o yaml"),
        do("get cm a -o json"),
        do("get cm a -o name"),
        do("get cm a -o jsonpath={.data.x}"),
        do("get cm a -o custom-columns=N:.metadata.name,X:.data.x"),
        do("get cm a secret/s sa/robot --show-labels"),
        do("get cm missing"),
        do("get nonsense"),
        do("get cm --field-selector=metadata.name=a"),
        do("get cm --field-selector=data.x=1"),
        do("get cm -l", "a in"),
        do("describe cm a"),
        do("label cm a t=1"),
        do("label cm a t=2"),
        do("label cm a t=2 --overwrite"),
        do("annotate cm a n=v"),
        do("get cm -l t=2 -o wide"),
        do("get cm -L t -l t"),
        do("patch cm a -p", '{"data":{"y":"2"}}'),
        do("patch cm a --type merge -p", '{"data":{"x":null}}'),
        do("patch cm a --type json -p", '[{"op":"add","path":"/data/z","value":"3"}]'),
        do("patch cm a --type json -p", '[{"op":"test","path":"/data/z","value":"4"}]'),
        do("get cm a -o jsonpath={.data}"),
        do("delete cm a secret/s"),
        do("delete cm a"),
        do("delete cm a --ignore-not-found"),
    ],
    "apply": [
        do("apply -f -", stdin=MANIFEST),
        do("apply -f -", stdin=MANIFEST),
        do("apply -f -", stdin=CHANGED),
        do("apply -f - --dry-run=server", stdin=MANIFEST),
        do("apply -f -", stdin=UNKNOWN_FIELD),
        do("apply -f - --validate=warn", stdin=UNKNOWN_FIELD),
        do("apply -f -", stdin=UNKNOWN_KIND),
        do("get cm beside"),
        do("apply --server-side -f -", stdin=CHANGED),
        do("apply --server-side --field-manager=other -f -", stdin=MANIFEST),
        do("apply --server-side --field-manager=other --force-conflicts -f -", stdin=MANIFEST),
        do("get -f - -o name", stdin=MANIFEST),
        do("get cm applied -o yaml --show-managed-fields"),
        do("diff -f -", stdin=MANIFEST),
        do("replace -f -", stdin=CHANGED.partition("---")[0]),
        do("delete -f - --now", stdin=MANIFEST),
    ],
    "pods": [
        do("create -f -", stdin=MANIFEST),
        do("get pods"),
        do("get pods -o wide"),
        do("get pod p -o yaml"),
        do("describe pod p"),
        do("set image pod/p c=nginx:2"),
        do("patch pod p --subresource=status --type merge -p", '{"status":{"phase":"Running"}}'),
        do("wait --for=jsonpath={.status.phase}=Running pod/p --timeout=5s"),
        do("wait --for=condition=Ready pod/p --timeout=1s"),
        do("get pods --field-selector=status.phase=Running"),
        do("get pods --field-selector=spec.odd=1"),
        do("logs p"),
        do("logs p -c nope"),
        do("logs missing"),
        do("exec p -- ls"),
        do("run r --image=nginx --dry-run=server -o name"),
        do("delete pod p --now"),
        do("wait --for=delete pod/p --timeout=5s"),
        do("get pods"),
    ],
    "workloads": [
        do("create deployment d --image=nginx --replicas=0 --port=80"),
        do("get deploy d -o jsonpath={.spec.template.spec}"),
        do("scale deployment d --replicas=3 --current-replicas=1"),
        do("get deploy d --subresource=scale"),
        do("rollout pause deploy/d"),
        do("rollout resume deploy/d"),
        do("set env deploy/d A=b"),
        do("create job j --image=busybox --dry-run=server -o jsonpath={.spec.template.spec.containers} -- echo hi"),
        do("create cronjob c --image=busybox", "--schedule=* * * * *", "--", "date"),
        do("create poddisruptionbudget b --min-available=1 --selector=a=b"),
        do("create priorityclass kubectl-test --value=5 --dry-run=server -o name", namespaced=False),
        do("create role r --verb=get,list --resource=pods"),
        do("create rolebinding rb --role=r --user=jane"),
        do("create service clusterip svc --tcp=80:8080"),
        do("get cronjob,pdb,role,rolebinding"),
        do("delete deploy d --cascade=orphan --wait=false"),
        do("delete cronjob c --cascade=background"),
        do("delete pdb b --cascade=foreground --wait=false"),
        do("delete role,rolebinding --all"),
    ],
    "custom kinds": [
        do("apply -f -", stdin=DEFINITION, namespaced=False),
        do("wait --for=condition=Established crd/gizmos.kubectl.kruise.io --timeout=10s", namespaced=False),
        do("apply -f -", stdin=GIZMO),
        do("apply -f -", stdin=GIZMO.replace("red", "blue")),
        do("create -f -", stdin=GIZMO.replace("red", "blue, odd: 1")),
        do("get gz"),
        do("get toys -o name"),
        do("get gizmo g -o yaml"),
        do("scale gizmo g --replicas=4"),
        do("get gz g -o jsonpath={.spec}"),
        do("explain gizmo.spec"),
        do("patch gz g -p", '{"spec":{"color":"x"}}'),
        do("describe gz g"),
        do("delete gz --all"),
        do("delete crd gizmos.kubectl.kruise.io", namespaced=False),
    ],
    "about the server": [
        do("version"),
        do("explain pod.spec.containers.image"),
        do("explain deployment --recursive"),
        do("auth can-i create pods"),
        do("auth whoami -o jsonpath={.status.userInfo.groups}"),
        do("get --raw /healthz"),
        do("get --raw /api/v1/namespaces/nowhere/pods/x"),
        do("api-resources --api-group=apps"),
        do("api-resources --api-group=batch -o wide"),
        do("api-resources --api-group=policy --no-headers"),
        do("get ns default"),
        do("get svc -n default", namespaced=False),
        do("cordon nowhere", namespaced=False),
        do("drain nowhere", namespaced=False),
        do("events"),
        do("get events"),
    ],
}


class Kubectl:
    def __init__(self, config: Path, namespace: str, home: Path) -> None:
        self.config = config
        self.namespace = namespace
        self._home = home

    def _words(self, command: Command) -> list[str]:
        words = [str(kubebuild.cache_directory() / "kubectl"), f"--kubeconfig={self.config}", *command.words]
        if command.namespaced:
            words.insert(2, f"--namespace={self.namespace}")
        return words

    async def start(self, command: Command) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        environment = {**os.environ, "HOME": str(self._home)}
        words = self._words(command)
        return await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)

    async def run(self, command: Command) -> str:
        """Exit code and output, without what is different by nature."""
        process = await self.start(command)
        async with asyncio.timeout(30):
            out, err = await process.communicate(command.stdin.encode())
        text = f"exit {process.returncode}\n{out.decode()}{err.decode()}"
        return normalised(text.replace(self.namespace, "<ns>"))


REPLACED = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( \+0000|Z)?", "<time>"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r'(resourceVersion"?: )"\d+"', r'\1"<version>"'),
    (r"(Resource Version:\s+)\d+", r"\1<version>"),
    (r"/tmp/(LIVE|MERGED)-\d+", r"/tmp/\1"),
    (r"\b\d+(s|m\d+s|m)\b", "<age>"),
    (r"10\.\d+\.\d+\.\d+", "<ip>"),
    (r"Server Version: .*", "Server Version"),
    (r"(?m)[ \t]+$", ""),
    (r" {2,}", "  "),
)


def normalised(text: str) -> str:
    for pattern, instead in REPLACED:
        text = re.sub(pattern, instead, text)
    return text


@pytest.fixture
async def ours(tmp_path: Path, namespace: str) -> AsyncIterator[Kubectl]:
    clock = RealClock()
    core = ApiCore(native_registry(), clock=clock, require_namespaces=True)
    fields.install(core)
    crds.Definitions(core)
    admitting.install(core, require_service_accounts=False)
    await bootstrap.create_system_objects(core)
    identity = make_identity(clock.now())
    server = LocalServer(core, certificates=identity)
    await server.start()
    config = tmp_path / "kubeconfig"
    config.write_text(kubeconfig(identity, server.url))
    kubectl = Kubectl(config, namespace, tmp_path / "ours")
    try:
        assert "created" in await kubectl.run(do(f"create namespace {namespace}", namespaced=False))
        yield kubectl
    finally:
        await server.stop()


@pytest.fixture
def theirs(cluster: ControlPlane, tmp_path: Path, namespace: str) -> Kubectl:
    return Kubectl(cluster.kubeconfig, namespace, tmp_path / "theirs")


@pytest.mark.parametrize(
    "script",
    [pytest.param(name, marks=pytest.mark.smoke) if name in ("objects", "apply") else name for name in SCRIPTS],
)
async def test_kubectl_sees_no_difference(script: str, ours: Kubectl, theirs: Kubectl) -> None:
    different = []
    for command in SCRIPTS[script]:
        real, local = await asyncio.gather(theirs.run(command), ours.run(command))
        if real != local:
            different.append(f"{command}\n--- real\n{real}\n--- ours\n{local}")
    print(f"\n{script}: {len(SCRIPTS[script])} commands, {len(SCRIPTS[script]) - len(different)} with the same result")
    assert not different, "\n\n".join(different)


@pytest.mark.smoke
async def test_get_with_watch_prints_changes(ours: Kubectl) -> None:
    process = await ours.start(do("get cm -w --output-watch-events"))
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            # It lists first: an object that is there shows that the watch is about to begin.
            await ours.run(do("create configmap first"))
            lines = [(await process.stdout.readline()).decode().split()[:2] for _ in range(2)]
            await ours.run(do("create configmap second"))
            await ours.run(do("delete configmap second"))
            lines += [(await process.stdout.readline()).decode().split()[:2] for _ in range(2)]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()
    assert lines == [["EVENT", "NAME"], ["ADDED", "first"], ["ADDED", "second"], ["DELETED", "second"]]


async def test_the_token_and_impersonation(ours: Kubectl, tmp_path: Path) -> None:
    config = json.loads(ours.config.read_text())
    config["users"][0]["user"] = {"token": "nonsense"}
    stranger = tmp_path / "stranger"
    stranger.write_text(json.dumps(config))
    refused = await Kubectl(stranger, ours.namespace, tmp_path).run(do("get cm"))
    assert "You must be logged in to the server" in refused
    jane = await ours.run(do("auth whoami --as=jane --as-group=dev -o jsonpath={.status.userInfo}"))
    assert json.loads(jane.partition("\n")[2]) == {"username": "jane", "groups": ["dev", "system:authenticated"]}
