"""Server-side apply and `managedFields` of the local API server and of a real one are the same, step by step.

A sequence is a list of writes by several managers. It is played to both servers; after each step the answer (code,
reason, message, causes) and the stored object with its `managedFields` are compared. Uids, versions, addresses and
times are normalised; whether an entry has a time is compared. Further sequences are made at random, from seeds.

The real server runs without controllers, so that nobody but the sequence writes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.resource import Resource
from kruise.local import fields
from kruise.local.apicore import ApiCore
from kruise.local.crds import Definitions, definition_kind
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.local.server import LocalServer
from kruise.local.server.identity import kubeconfig as local_kubeconfig
from kruise.local.server.identity import make_identity
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import RealClock
from tests.local.fields.random_sequences import random_sequence
from tests.local.fields.sequences import SEQUENCES
from tests.local.fields.steps import GROUP, SCHEMAS, Json, Step
from tests.support import kubebuild
from tests.support.realcluster import ControlPlane

# The two servers


@pytest.fixture(scope="module")
def quiet() -> Iterator[ControlPlane]:
    """An API server alone, without the admission plugins that add to pods."""
    off = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority"
    with ControlPlane(controller_manager=False, scheduler=False, apiserver_args=(off,)) as cluster:
        asyncio.run(_define_really(cluster))
        yield cluster


async def _define_really(cluster: ControlPlane) -> None:
    transport = HttpTransport(kubeconfig.load(cluster.kubeconfig))
    try:
        await _define(transport)
        # The types of a definition take part in apply a moment after it is served.
        await asyncio.sleep(1)
    finally:
        await transport.close()


@pytest.fixture
async def real(quiet: ControlPlane) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(kubeconfig.load(quiet.kubeconfig))
    yield transport
    await transport.close()


@pytest.fixture
def place(quiet: ControlPlane, request: pytest.FixtureRequest) -> str:
    """A fresh namespace."""
    name = f"apply-{abs(hash(request.node.name)) % 10**12}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    quiet.request("POST", "/api/v1/namespaces", body).ok()
    return name


def definition(resource: Resource[Any]) -> Json:
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMAS[resource]},
        "subresources": {"status": {}},
    }
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def _define(transport: Transport) -> None:
    for resource in SCHEMAS:
        body = json.dumps(definition(resource)).encode()
        answer = await transport.send(Request(Verb.CREATE, CUSTOM_RESOURCE_DEFINITIONS, body=body))
        assert answer.status == 201, answer.body
    async with asyncio.timeout(30):
        for resource in SCHEMAS:
            while (await transport.send(Request(Verb.LIST, resource, "default"))).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def local() -> InProcessTransport:
    core = ApiCore(native_registry([definition_kind()]), clock=RealClock(), seed=1)
    fields.install(core)
    Definitions(core)
    transport = InProcessTransport(core, managed_fields=True)
    await _define(transport)
    return transport


# Playing


def normalised(obj: Any) -> Any:
    """An object without what cannot be the same, its entries in an order that does not depend on the second."""
    if not isinstance(obj, dict) or "metadata" not in obj:
        return obj
    obj = json.loads(json.dumps(obj))
    about = obj["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "namespace"):
        if name in about:
            about[name] = f"<{name}>"
    for entry in about.get("managedFields", ()):
        if "time" in entry:
            entry["time"] = "<time>"
    if "managedFields" in about:
        about["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    for name in ("clusterIP", "clusterIPs"):
        if name in (obj.get("spec") or {}) and obj.get("kind") == "Service":
            obj["spec"][name] = f"<{name}>"
    return obj


def outcome(code: int, answer: Any) -> Any:
    if code < 400:
        return code, normalised(answer)
    causes = (answer.get("details") or {}).get("causes") or []
    # Some kinds check their metadata twice.
    ordered = sorted({json.dumps(cause, sort_keys=True) for cause in causes})
    # Go looks at the fields of a custom object in no order.
    message = answer.get("message") if len(ordered) < 2 or answer.get("reason") != "Invalid" else "<several>"
    if message and "errors:\n" in message:
        head, _, errors = message.partition("errors:\n")
        message = f"{head}errors:\n" + "\n".join(sorted(errors.splitlines()))
    return code, answer.get("reason"), message, ordered


async def play(transport: Transport, namespace: str, steps: list[Step]) -> list[Any]:
    """The answer and the stored object after each step."""
    results: list[Any] = []
    versions: dict[str, int] = {}

    async def stored(step: Step) -> tuple[int, Any]:
        answer = await transport.send(Request(Verb.GET, step.resource, namespace, step.name))
        return answer.status, json.loads(answer.body)

    for step in steps:
        body = step.body
        if callable(body):
            body = body((await stored(step))[1])
        name = "" if step.verb is Verb.CREATE else step.name
        answer = await transport.send(
            Request(
                step.verb,
                step.resource,
                namespace,
                name,
                step.sub,
                query=step.all_query,
                body=json.dumps(body).encode(),
                content_type=step.content_type,
            )
        )
        code, obj = await stored(step)
        # Versions are numbered as they come, so that a write that changes nothing is seen.
        version = obj.get("metadata", {}).get("resourceVersion", "") if code == 200 else ""
        number = versions.setdefault(version, len(versions))
        decoded = json.loads(answer.body)
        said = outcome(answer.status, decoded)
        results.append({"answer": said, "stored": outcome(code, obj), "version": number})
    return results


def differences(title: str, steps: list[Step], theirs: list[Any], ours: list[Any]) -> list[str]:
    found = []
    for number, (step, their, our) in enumerate(zip(steps, theirs, ours, strict=True)):
        for part in ("answer", "stored", "version"):
            their_text = json.dumps(their[part], sort_keys=True, indent=1)
            our_text = json.dumps(our[part], sort_keys=True, indent=1)
            if their_text != our_text:
                found.append(f"{title!r}, step {number} ({step}): {part}\nreal {their_text}\nours {our_text}")
    return found


SMOKE = {"config map: conflict, then force", "deployment: replicas taken over", "typed: elements by name"}


@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=[pytest.mark.smoke] if title in SMOKE else []) for title in SEQUENCES]
)
async def test_same_owners(title: str, real: HttpTransport, place: str) -> None:
    """Each sequence gives the same answers, objects and owners on both sides."""
    steps = SEQUENCES[title]
    theirs, ours = await play(real, place, steps), await play(await local(), place, steps)
    found = differences(title, steps, theirs, ours)
    assert not found, "\n".join(found)


# At random

RANDOM_SEQUENCES = 84


async def test_same_owners_at_random(real: HttpTransport, place: str, quiet: ControlPlane) -> None:
    """Sequences that nobody thought of."""
    found: list[str] = []
    steps_played = refused = 0
    for seed in range(RANDOM_SEQUENCES):
        steps = random_sequence(seed)
        namespace = f"{place}-{seed}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        quiet.request("POST", "/api/v1/namespaces", body).ok()
        theirs, ours = await play(real, namespace, steps), await play(await local(), namespace, steps)
        found.extend(differences(f"seed {seed}", steps, theirs, ours)[:1])
        steps_played += len(steps)
        refused += sum(result["answer"][0] >= 400 for result in theirs)
    written = sum(len(steps) for steps in SEQUENCES.values())
    print(f"{len(SEQUENCES)} sequences written by hand, {written} steps")
    print(f"{RANDOM_SEQUENCES} random sequences, {steps_played} steps of which {refused} refused, {len(found)} differ")
    assert not found, "\n".join(found)


# With kubectl

FIRST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kk, labels: {a: "1"}}
data: {x: "1", day: 2020-01-01}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kk}
spec:
  replicas: 1
  selector: {matchLabels: {app: kk}}
  template:
    metadata: {labels: {app: kk}}
    spec:
      containers: [{name: main, image: "nginx:1"}]
"""
SECOND = FIRST.replace('x: "1", day: 2020-01-01', 'x: "2"').replace("nginx:1", "nginx:2")
COMMANDS: list[tuple[str, str]] = [
    ("apply --validate=false -f -", FIRST),
    ("apply --validate=false -f - --server-side", FIRST),
    ("apply --validate=false -f - --server-side", SECOND),
    ("apply --validate=false -f - --server-side --field-manager=other", SECOND),
    ("label configmap kk a=9 --overwrite", ""),
    ("scale deployment kk --replicas=4", ""),
    ("apply --validate=false -f - --server-side", FIRST),
    ("apply --validate=false -f - --server-side --force-conflicts", FIRST),
    ("apply --validate=false -f - --server-side --dry-run=server -o name", SECOND),
    ("apply view-last-applied configmap kk", ""),
    ("apply --validate=false -f -", SECOND),
    ("set image deployment kk main=nginx:3", ""),
    ("get configmap,deployment kk --show-managed-fields -o json", ""),
]


async def kubectl(config: str, namespace: str, arguments: str, stdin: str) -> Any:
    command = [
        str(kubebuild.cache_directory() / "kubectl"),
        f"--kubeconfig={config}",
        f"--namespace={namespace}",
        *arguments.split(),
    ]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(stdin.encode())
    if out.startswith(b"{"):
        return [normalised(item) for item in json.loads(out)["items"]]
    return process.returncode, out.decode().replace(namespace, "<namespace>"), err.decode()


async def test_kubectl_moves_from_its_own_apply_to_the_servers(quiet: ControlPlane, place: str, tmp_path: Path) -> None:
    """kubectl patches `managedFields` itself when an object that it applied comes to server-side apply."""
    identity = make_identity(datetime.now(UTC))
    core = ApiCore(native_registry(), clock=RealClock(), seed=1)
    fields.install(core)
    server = LocalServer(core, certificates=identity)
    await server.start()
    try:
        config = tmp_path / "kubeconfig"
        config.write_text(local_kubeconfig(identity, server.url))
        for number, (arguments, stdin) in enumerate(COMMANDS):
            theirs = await kubectl(str(quiet.kubeconfig), place, arguments, stdin)
            ours = await kubectl(str(config), place, arguments, stdin)
            assert ours == theirs, f"command {number}: {arguments}"
    finally:
        await server.stop()
