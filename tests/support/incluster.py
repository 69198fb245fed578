"""PyKruise inside a cluster with real nodes: from this tree's image, installed as people install it.

with RealNodes(nodes=3) as nodes:
    kruise = InCluster(nodes)
    kruise.install(kruise.push("v1"))            # by the command; install_chart: by Helm
    kruise.leader(), kruise.managers(), kruise.daemons()
    kruise.uninstall()
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hack.image import build, oci
from hack.image.base import PrerequisiteError
from tests.support import helmbuild
from tests.support.kubebuild import MissingPrerequisiteError
from tests.support.realcluster import ClusterError
from tests.support.realnodes import RealNodes
from tests.support.realnodes_images import Image

Json = dict[str, Any]
T = TypeVar("T")

REPOSITORY = "pykruise/kruise-manager"
NAMESPACE = "kruise-system"
MANAGERS, DAEMONS = "control-plane=controller-manager", "control-plane=daemon"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kruise-manager"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kruise-controller-manager"


class InCluster:
    def __init__(self, nodes: RealNodes) -> None:
        self.nodes = nodes
        self.image = ""
        """What is installed; empty where nothing is."""
        self._gates: str | None = None
        self._has_release = False

    # Coming and going

    def push(self, tag: str) -> str:
        """This tree's image into the cluster's registry, each tag an image of its own; returns its name."""
        try:
            made = build.find(build.own_architecture()).image
        except PrerequisiteError as error:
            raise MissingPrerequisiteError([str(error)]) from error
        labelled = _labelled(made, tag)
        self.nodes.registry.push(f"{REPOSITORY}:{tag}", Image(labelled.blobs, labelled.manifest))
        return f"{REPOSITORY}:{tag}"

    def install(self, image: str, *settings: str) -> str:
        """`kruise install`; returns when all that it brings is ready."""
        said = self.kruise("install", f"--image={image}", *(f"--set={each}" for each in settings))
        self.image = image
        self.wait_ready()
        return said

    def install_chart(self, image: str, *settings: str, upgrade: bool = False) -> None:
        """`helm install`, or `helm upgrade`, of the chart that this tree writes."""
        tag = image.rpartition(":")[2]
        with tempfile.TemporaryDirectory() as directory:
            self.kruise("install", f"--write-chart={directory}")
            verb = ["upgrade"] if upgrade else ["install"]
            chosen = [f"--set={each}" for each in (f"manager.image.tag={tag}", *settings)]
            self._has_release = True
            self.helm(*verb, "kruise", directory, *chosen)
        self.image = image
        self.wait_ready()

    def choose_gates(self, gates: str) -> None:
        """This tree's image by the chart, with these gates; what has had them stays as it is."""
        if gates == self._gates:
            return
        # Helm reads a comma as the beginning of another value.
        chosen = "featureGates=" + gates.replace(",", "\\,")
        self.install_chart(self.image or self.push("first"), chosen, upgrade=bool(self.image))
        self._gates = gates

    def uninstall(self) -> None:
        """Whatever it was installed by."""
        self.kruise("uninstall", "--with-resources")
        if self._has_release:
            # Helm deletes in an order of its own: objects of ours go before. Its hooks would have no namespace by now.
            self.helm("uninstall", "kruise", "--ignore-not-found", "--no-hooks")
        self.image, self._gates, self._has_release = "", None, False
        self.wait(lambda: self.nodes.request("GET", f"/api/v1/namespaces/{NAMESPACE}").status == 404, "it is gone")

    def helm(self, *arguments: str) -> str:
        # Its own notes of releases and repositories stay with this test.
        with tempfile.TemporaryDirectory() as home:
            places = dict.fromkeys(("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"), home)
            return _run([helmbuild.find(), *arguments, f"--kubeconfig={self.nodes.kubeconfig}"], places)

    def kruise(self, verb: str, *arguments: str) -> str:
        command = [sys.executable, "-m", "kruise.cli.main", verb, f"--kubeconfig={self.nodes.kubeconfig}", *arguments]
        return _run(command, {})

    # What is there

    def pods(self, selector: str) -> list[Json]:
        found: list[Json] = self.nodes.request(
            "GET", f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector.replace('=', '%3D')}"
        ).ok()["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def managers(self) -> list[Json]:
        return self.pods(MANAGERS)

    def daemons(self) -> list[Json]:
        return self.pods(DAEMONS)

    def lease(self) -> Json:
        answer = self.nodes.request("GET", LEASE)
        spec: Json = answer.body["spec"] if answer.status == 200 else {}
        return spec

    def leader(self) -> str:
        """The name of the pod that leads; empty where none does."""
        return str(self.lease().get("holderIdentity") or "").partition("_")[0]

    def log(self, pod: str) -> str:
        return self.nodes.kubectl("logs", "--namespace", NAMESPACE, pod, "--all-containers")

    # Waiting

    def wait_ready(self, *, within: float = 120.0) -> None:
        """Both Deployment and DaemonSet run what was asked for last, somebody leads, and webhooks answer."""
        self.wait(self._is_rolled_out, "manager and daemon are ready", within=within)
        self.wait(lambda: self.leader() in {pod["metadata"]["name"] for pod in self.managers()}, "a leader")
        self.wait(self._refuses_nonsense, "webhooks answer")

    def _is_rolled_out(self) -> bool:
        found = self.nodes.request("GET", DEPLOYMENT).ok()
        status, wanted = found["status"], found["spec"]["replicas"]
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return False
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        daemons = self.nodes.request("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/kruise-daemon").ok()
        about = daemons["status"]
        is_seen = about.get("observedGeneration") == daemons["metadata"]["generation"]
        numbers = [about.get(name, 0) for name in ("updatedNumberScheduled", "numberAvailable")]
        running = [about.get("desiredNumberScheduled", 0)] * 2
        return counts == [wanted] * 3 and is_seen and numbers == running and running[0] > 0

    def _refuses_nonsense(self) -> bool:
        path = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets?dryRun=All"
        return "spec.replicas" in str(self.nodes.request("POST", path, clone_set("nonsense", replicas=-1)).body)

    def wait(self, check: Callable[[], T], what: str, *, within: float = 60.0, every: float = 0.2) -> T:
        """Until it is true; the cluster may answer with errors meanwhile."""
        deadline = time.monotonic() + within
        while True:
            try:
                if found := check():
                    return found
                problem = ""
            except (AssertionError, ClusterError, OSError, KeyError) as error:
                problem = f": {error}"
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {within:g} s: {what}{problem}\n{self.report()}")
            time.sleep(every)

    def report(self) -> str:
        """For failures: all pods, events, and what the managers say."""
        parts: list[str] = []
        for command in (("get", "pods", "-A", "-o", "wide"), ("get", "events", "-n", NAMESPACE)):
            with _told(parts):
                parts.append(self.nodes.kubectl(*command)[-4000:])
        for pod in self.managers():
            with _told(parts):
                parts.append(self.log(pod["metadata"]["name"])[-3000:])
        return "\n".join(parts)


@contextmanager
def _told(parts: list[str]) -> Iterator[None]:
    try:
        yield
    except (ClusterError, subprocess.SubprocessError) as error:
        parts.append(str(error))


def made(kind: str, name: str, spec: Json, *, group: str = "apps.kruise.io") -> Json:
    """An object of ours; the API server wants to be told its kind."""
    return {"apiVersion": f"{group}/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def clone_set(name: str, *, replicas: int = 1, image: str = "nginx:1.25", pod: Mapping[str, Any] | None = None) -> Json:
    """Updated in place, one pod after the other."""
    updating = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
    containers = [{"name": "main", "image": image}]
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 2, **(pod or {})},
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": updating},
        "template": template,
    }
    return made("CloneSet", name, spec)


def _labelled(image: oci.Image, tag: str) -> oci.Image:
    """The same layers under another digest."""
    manifest = json.loads(image.manifest)
    digest = manifest["config"]["digest"]
    config = json.loads(image.blobs[digest])
    config["config"]["Labels"]["tag"] = tag
    packed = json.dumps(config).encode()
    manifest["config"] = oci.descriptor(oci.CONFIG_TYPE, packed)
    blobs = {**{key: blob for key, blob in image.blobs.items() if key != digest}, oci.digest_of(packed): packed}
    return dataclasses.replace(image, blobs=blobs, manifest=json.dumps(manifest).encode())


def _run(command: list[Any], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [str(each) for each in command],
        env={**os.environ, **environment},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    if done.returncode != 0:
        raise ClusterError(f"`{' '.join(map(str, command))}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
