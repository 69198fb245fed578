"""`kruise images` and `kruise restart`, on a local cluster."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.native.pod import PODS
from kruise.cli.session import explained
from kruise.cli.work.restart import prefix_of
from kruise.machinery.client.errors import ForbiddenError, Status
from tests.support.commandline import Kruise, local_cluster

Json = dict[str, Any]
NODES = ["node-1", "node-2", "node-3"]


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        kruise = Kruise(kubeconfig)
        kruise.create(PODS, pod("web"))
        yield kruise


def pod(name: str) -> Json:
    containers = [{"name": one, "image": "nginx:1.25"} for one in ("app", "side")]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def pull(name: str, image: str, *nodes: str) -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {"name": name},
        "spec": {
            "image": image,
            "selector": {"names": list(nodes)},
            "parallelism": 10,
            "pullPolicy": {"backoffLimit": 0},
            "completionPolicy": {"type": "Always"},
        },
    }


def until(check: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.2)


def rows(lines: list[str]) -> list[list[str]]:
    return [line.split()[:3] for line in lines[1:]]


def planned(lines: list[str]) -> list[list[str]]:
    return [line.split(maxsplit=2) for line in lines if line.startswith(tuple(NODES))]


def test_which_node_has_which_image(kruise: Kruise) -> None:
    until(lambda: len(kruise("images", "nginx:1.25").lines) == 4)
    assert kruise("images", "nginx:1.25").lines[0].split() == ["IMAGE", "NODE", "STATE", "SIZE", "SINCE"]
    until(lambda: sorted(row[2] for row in rows(kruise.ok("images", "nginx:1.25"))) == ["absent", "absent", "present"])
    kruise.create(IMAGE_PULL_JOBS, pull("bring", "nginx:1.25", *NODES))
    kruise.ok("rollout", "status", "imagepulljob/bring", "--timeout=120s")
    until(lambda: kruise("images", "nginx:1.25", "--check").code == 0)
    assert planned(kruise.ok("plan", "imagepulljob/bring")) == [[node, "-", "has the image"] for node in NODES]
    assert rows(kruise.ok("images", "docker.io/library/nginx")) == [["nginx:1.25", node, "present"] for node in NODES]
    [line] = [line for line in kruise.ok("images") if line.startswith("nginx:1.25")]
    assert line.split()[3] == "3/3"
    # The kubelet tells of sizes, some time later.
    until(lambda: "B" in kruise.ok("images", "nginx", "--node=node-2")[1])
    data = json.loads(kruise("images", "nginx", "--node=node-2", "-o", "json").out)
    assert data["nodes"] == 1
    [image] = data["images"]
    assert image["image"] == "nginx:1.25"
    assert image["sizeBytes"] > 0
    assert [(one["node"], one["present"], one["pull"]) for one in image["nodes"]] == [("node-2", True, "")]


def test_which_nodes_a_job_will_pull_on(kruise: Kruise, tmp_path: Path) -> None:
    """A job that is in a file only: two nodes, one after the other; admission fills in what it leaves out."""
    job = pull("later", "nginx:1.26", "node-1", "node-3")
    job["spec"]["parallelism"] = 1
    (tmp_path / "job.json").write_text(json.dumps(job))
    lines = kruise.ok("plan", "-f", str(tmp_path / "job.json"), "--feature-gates=ImagePullJobGate=true")
    assert {"Image: nginx:1.26", "Nodes: 2 of 3"} <= {" ".join(line.split()) for line in lines}
    assert planned(lines) == [["node-1", "1", "to come"], ["node-3", "2", "to come"]]
    assert kruise("images", "nginx:1.26").code != 0, "nothing was made"


def test_a_pull_that_failed_is_told_in_the_words_of_the_registry(kruise: Kruise) -> None:
    kruise.create(IMAGE_PULL_JOBS, pull("missing", "nginx:missing", "node-1"))
    assert kruise("rollout", "status", "imagepulljob/missing", "--timeout=120s").code == 1
    done = kruise("images", "nginx:missing")
    [row] = [line for line in done.lines if "node-1" in line]
    assert row.split()[2] == "failed"
    assert "Failed to pull image reference" in row
    assert row.endswith("nginx:missing: not found")  # the reason stands at the end
    assert kruise("images", "nginx:missing", "--check").code == 1
    assert [row[:2] for row in rows(kruise.ok("images", "--pulls"))] == [["nginx:missing", "node-1"]]
    why = kruise("why", "nodeimage/node-1")
    assert why.code == 3
    assert "nginx:missing could not be pulled: Failed to pull image reference" in why.out
    assert "correct the name or the tag of the image" in why.out
    assert kruise("why", "nodeimage/node-2").code == 0


def test_what_is_not_there_is_said(kruise: Kruise) -> None:
    assert kruise.refused("images", "redis:7").startswith("no node has redis:7, and none pulls it")
    assert kruise("images", "redis:7", "--check").code == 1
    assert "no node is called node-9; there are: node-1, node-2, node-3" in kruise.refused("images", "--node=node-9")
    assert "'Redis' is no image" in kruise.refused("images", "Redis", code=2)
    assert "--check needs the images" in kruise.refused("images", "--check", code=2)


def restarts(kruise: Kruise) -> dict[str, int]:
    async def ask(client: Any) -> dict[str, int]:
        found = await client.get(PODS, "web", "default")
        return {one.name: one.restart_count for one in found.status.container_statuses}

    return kruise.talk(ask)


def requests(kruise: Kruise) -> list[str]:
    async def ask(client: Any) -> list[str]:
        return [one.metadata.name for one in (await client.list(REQUESTS, "default")).items]

    return kruise.talk(ask)


def test_a_request_that_is_not_kept_is_followed_to_its_end(kruise: Kruise) -> None:
    """CRR-22: it would be gone before anybody could see what became of it."""
    until(lambda: len(restarts(kruise)) == 2)
    done = kruise.ok("restart", "web", "-c", "app", "--keep=0")
    assert done[-2:] == ["app: recreated", "pod/web: 1 container recreated"]
    assert restarts(kruise)["app"] == 1
    until(lambda: requests(kruise) == [])
    asked = kruise.ok("restart", "pod/web", "-c", "side", "--no-wait", "--keep=0")
    assert len(asked) == 1
    until(lambda: restarts(kruise)["side"] == 1 and requests(kruise) == [])


def test_a_container_that_is_named_twice_is_one(kruise: Kruise) -> None:  # CRR-14
    until(lambda: len(restarts(kruise)) == 2)
    [line] = kruise.ok("restart", "web", "-c", "app", "-c", "app", "--no-wait", "--keep=0")
    assert line.startswith("pod/web: container app is restarted by ")
    until(lambda: requests(kruise) == [])


def test_a_refusal_of_admission_is_no_lack_of_rights() -> None:
    """Both are answered with 403; a webhook says by itself what would help."""
    refused = (
        'admission webhook "m.kb.io" denied the request: feature-gate KruiseDaemon is not enabled: start the manager'
    )
    for message, is_of_rights in (
        (refused, False),
        ('pods is forbidden: User "jane" cannot get resource "pods"', True),
    ):
        said = explained(ForbiddenError(Status(message=message, reason="Forbidden", code=403)))
        assert message in said
        assert ("Ask for the right" in said) is is_of_rights


def test_a_restart_as_data(kruise: Kruise) -> None:
    data = json.loads("\n".join(kruise.ok("restart", "web", "-o", "json", "--keep=0")))
    assert data["request"].startswith("web-")
    assert (data["pod"], data["completed"], data["message"]) == ("web", True, "")
    assert data["containers"] == [{"name": name, "phase": "Succeeded", "message": ""} for name in ("app", "side")]


def test_a_request_that_somebody_deletes_is_not_called_done(kruise: Kruise) -> None:
    done: list[str] = []

    async def take_away(client: Any) -> None:
        for one in (await client.list(REQUESTS, "default")).items:
            await client.delete(REQUESTS, one.metadata.name, "default")

    def watch() -> None:
        until(lambda: bool(requests(kruise)))
        kruise.talk(take_away)
        done.append("deleted")

    thread = threading.Thread(target=watch)
    thread.start()
    said = kruise.refused("restart", "clone/combo", code=2)
    assert said.endswith("To make all pods of a CloneSet anew: kruise rollout restart cloneset/combo")
    assert "is no pod" in kruise.refused("restart", "moon/web", code=2)
    said = kruise.refused("restart", "web", "-c", "app", "--min-started=30")
    thread.join()
    assert done == ["deleted"]
    assert said == "pod/web: the request was deleted before its end; 0 of 1 containers recreated"


@pytest.mark.parametrize(
    ("pod", "prefix"), [("web", "web-"), (f"{'a' * 49}.b", f"{'a' * 49}-"), ("a" * 60, f"{'a' * 50}-")]
)
def test_a_request_has_a_name_whatever_its_pod_is_called(pod: str, prefix: str) -> None:
    assert prefix_of(pod) == prefix


def test_completion(kruise: Kruise) -> None:
    def offered(*words: str) -> list[str]:
        variables = {
            "_KRUISE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["kruise", *words]),
            "COMP_CWORD": str(len(words)),
        }
        return [line.partition(",")[2] for line in kruise(environment=variables).lines if line]

    assert offered("restart", "we") == ["web"]
    assert offered("restart", "web", "-c", "") == ["app", "side"]
    assert offered("images", "--node", "node-") == NODES
    assert "nginx:1.25" in offered("images", "ngin")
