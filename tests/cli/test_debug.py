"""`kruise debug`: a container for each pod that a selector matches, followed until it runs or has ended."""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.api.native.pod import PODS
from kruise.machinery.client.client import Client
from tests.support.commandline import Kruise, local_cluster
from tests.support.manifests import cloneset_manifest

IMAGE = ("--image", "busybox:1.36")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


@pytest.fixture
def kruise(cluster: Kruise, request: pytest.FixtureRequest) -> Kruise:
    """With two pods that run, of the label `app=<the test's name>`."""
    label = request.node.name.partition("[")[0]
    for number in (1, 2):
        metadata = {"name": f"{label.replace('_', '-')}-{number}", "labels": {"app": label}}
        spec = {"containers": [{"name": "main", "image": "nginx:1"}], "terminationGracePeriodSeconds": 0}
        cluster.create(PODS, {"metadata": metadata, "spec": spec})
    return cluster


def test_tasks_are_followed_to_their_end(kruise: Kruise) -> None:
    done = kruise("debug", "app=test_tasks_are_followed_to_their_end", *IMAGE, "--name", "check", "--", "true")
    assert done.code == 0, done.err
    [first, *rest] = done.lines
    assert first == "ephemeraljob.apps.kruise.io/check created for 2 pods"
    ended = [line for line in rest if "ended well; output: kubectl logs" in line]
    assert len(ended) == 2
    failed = kruise("debug", "app=test_tasks_are_followed_to_their_end", *IMAGE, "--", "sh", "-c", "exit 3")
    assert failed.code == 1
    assert failed.out.count("failed with exit code 3; output: kubectl logs") == 2


def test_a_name_that_is_taken_is_told_before_anything_is_made(kruise: Kruise) -> None:  # EJ-20, EJ-52
    label = "app=test_a_name_that_is_taken_is_told_before_anything_is_made"
    kruise.ok("debug", label, *IMAGE, "--name", "again", "--replicas", "1", "--rm", "--", "true")
    some = kruise("debug", label, *IMAGE, "--name", "again", "--rm", "--", "true")
    assert some.code == 0, some.err
    assert "left out, since a container is called again there already: pod/" in some.err
    assert some.lines[0] == "ephemeraljob.apps.kruise.io/again created for 1 pod"
    told = kruise.refused("debug", label, *IMAGE, "--name", "again", "--rm", "--", "true")
    assert told == (
        "each pod has a container called again already: nothing was made; choose another name with --container"
    )
    told = kruise.refused("debug", label, *IMAGE, "--container", "main", "--", "true")
    assert told.startswith("each pod has a container called main already")
    listed = kruise.talk(lambda client: client.list(EPHEMERAL_JOBS, "default"))
    assert [job for job in listed.items if job.metadata.name == "again"] == []


def test_a_target_that_is_not_there_is_told_before_anything_is_made(kruise: Kruise) -> None:  # EJ-16
    label = "test_a_target_that_is_not_there_is_told_before_anything_is_made"
    told = kruise.refused("debug", f"app={label}", *IMAGE, "--name", "aimed", "--target", "app", "--", "true")
    assert told == "no pod has a container called app: nothing was made; choose another one with --target"
    spec = {"containers": [{"name": "app", "image": "nginx:1"}], "terminationGracePeriodSeconds": 0}
    kruise.create(PODS, {"metadata": {"name": "another", "labels": {"app": label}}, "spec": spec})
    done = kruise("debug", f"app={label}", *IMAGE, "--name", "aimed", "--target", "app", "--", "true")
    assert done.code == 0, done.err
    assert "left out, since no container is called app there: pod/" in done.err
    assert done.lines[0] == "ephemeraljob.apps.kruise.io/aimed created for 1 pod"
    assert [line.partition(":")[0] for line in done.lines[1:] if "ended well" in line] == ["pod/another"]


def test_pods_that_are_left_out_take_no_place(kruise: Kruise) -> None:  # EJ-18, EJ-22
    """The oldest is looked at first, and cannot get the container."""
    label = "test_pods_that_are_left_out_take_no_place"
    spec = {"containers": [{"name": "app", "image": "nginx:1"}], "terminationGracePeriodSeconds": 0}
    for name in ("youngest-1", "youngest-2"):
        kruise.create(PODS, {"metadata": {"name": name, "labels": {"app": label}}, "spec": spec})
    flags = ("--name", "few", "--target", "app", "--replicas", "1", "--rm")
    done = kruise("debug", f"app={label}", *IMAGE, *flags, "--", "true")
    assert done.code == 0, done.err
    assert done.lines[0] == "ephemeraljob.apps.kruise.io/few created for 1 pod"
    assert [line.partition(":")[0] for line in done.lines[1:-1]] == ["pod/youngest-1"]


def test_shells_of_which_not_all_run_at_once(kruise: Kruise) -> None:
    label = "app=test_shells_of_which_not_all_run_at_once"
    told = kruise.refused("debug", label, *IMAGE, "--parallelism", "1", "--rm", code=2)
    assert told.startswith("--rm would delete the job while pods still wait for their shell")
    done = kruise("debug", label, *IMAGE, "--name", "shell", "--parallelism", "1")
    assert done.code == 0, done.err
    assert "attach: kubectl attach -it " in done.lines[1]
    assert done.lines[2:] == ["1 more pod gets its shell when one has ended (--parallelism 1)"]
    all_of_them = kruise("debug", label, *IMAGE, "--name", "shells")
    assert all_of_them.out.count("runs; attach: kubectl attach -it ") == 2


def while_it_waits(monkeypatch: pytest.MonkeyPatch, act: Callable[[Client], Awaitable[object]]) -> None:
    """At the third look at the pods something happens."""
    looks, original = itertools.count(), Client.list

    async def disturbed(self: Client, resource: object, *arguments: object, **options: object) -> object:
        if resource is PODS and next(looks) == 2:
            await act(self)
        return await original(self, resource, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "list", disturbed)


def test_nobody_waits_for_a_pod_that_vanishes(kruise: Kruise, monkeypatch: pytest.MonkeyPatch) -> None:
    """One goes while the other has its turn, and then that one as well."""
    label = "test_nobody_waits_for_a_pod_that_vanishes"
    first, second = (f"{label.replace('_', '-')}-{number}" for number in (1, 2))
    flags = ("--parallelism", "1", "--timeout", "0")
    with monkeypatch.context() as patch:
        while_it_waits(patch, lambda client: client.delete(PODS, second, "default"))
        done = kruise("debug", f"app={label}", *IMAGE, "--name", "slow", *flags, "--", "sh", "-c", "sleep 3")
    assert done.code == 0, done.err
    assert f"pod/{second}: is gone, and nobody waits for it any more" in done.lines
    assert sum("ended well" in line for line in done.lines) == 1
    while_it_waits(monkeypatch, lambda client: client.delete(PODS, first, "default"))
    lost = kruise("debug", f"app={label}", *IMAGE, "--name", "lost", *flags, "--", "sleep", "600")
    assert lost.code == 1
    assert "no pod is left that could get the container" in lost.err


def test_nobody_waits_for_a_job_that_is_over(kruise: Kruise, monkeypatch: pytest.MonkeyPatch) -> None:
    label = "app=test_nobody_waits_for_a_job_that_is_over"
    flags = ("--parallelism", "1", "--timeout", "0")
    late = kruise("debug", label, *IMAGE, "--name", "late", *flags, "--deadline", "2s", "--", "sleep", "600")
    assert late.code == 1
    unserved = r"(1 pod was not served; in 1 pod the container runs on|2 pods were not served)"
    assert re.search(f"the job has ended: Failed, since its deadline is over; {unserved}$", late.err, re.MULTILINE)
    while_it_waits(monkeypatch, lambda client: client.delete(EPHEMERAL_JOBS, "gone", "default"))
    gone = kruise("debug", label, *IMAGE, "--name", "gone", *flags, "--rm", "--", "sleep", "600")
    assert gone.code == 1
    assert re.fullmatch(f"the job was deleted; {unserved}", gone.err.strip())
    assert gone.lines[-1] == "ephemeraljob.apps.kruise.io/gone deleted; its containers stay in the pods"


def test_a_successor_is_waited_for(kruise: Kruise, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload replaces a pod that goes, and the job serves the new one."""
    kruise.create(CLONE_SETS, cloneset_manifest("heirs"))
    kruise.ok("rollout", "status", "cloneset/heirs", "--timeout=60s")
    [first, *_] = kruise.talk(lambda client: client.list(PODS, "default", labels="app=heirs")).items
    while_it_waits(monkeypatch, lambda client: client.delete(PODS, first.metadata.name, "default"))
    done = kruise("debug", "cloneset/heirs", *IMAGE, "--name", "heirs", "--timeout", "60s", "--", "sh", "-c", "sleep 3")
    assert done.code == 0, done.err
    assert f"pod/{first.metadata.name}: is gone, and nobody waits for it any more" in done.lines
    assert sum("ended well" in line for line in done.lines) == 3


@pytest.mark.parametrize(
    ("image", "reason"),
    [("Web", "must be lowercase"), ("busybox:1.36 ", "invalid reference format"), ("", "invalid reference format")],
)
def test_an_image_that_is_none_is_told_before_anything_is_made(cluster: Kruise, image: str, reason: str) -> None:
    """The container would stay in the pods for good."""
    told = cluster("debug", "app=whoever", "--image", image)
    assert told.code == 2
    last = told.err.splitlines()[-1]
    assert last.startswith(f"Error: Invalid value for --image: {image!r} is no image: ")
    assert reason in last


def test_a_deadline_ends_no_job_at_once(kruise: Kruise) -> None:  # EJ-30
    label = "app=test_a_deadline_ends_no_job_at_once"
    for given in ("0", "-5s"):
        told = kruise.refused("debug", label, *IMAGE, f"--deadline={given}", code=2)
        assert told.startswith(f"--deadline: {given} would end the job at once")
    kruise.ok("debug", label, *IMAGE, "--name", "brief", "--deadline", "500ms", "--no-wait", "--", "true")
    job = kruise.talk(lambda client: client.get(EPHEMERAL_JOBS, "brief", "default"))
    assert job.spec.active_deadline_seconds == 1


def test_an_image_that_cannot_be_had(kruise: Kruise) -> None:
    done = kruise("debug", "app=test_an_image_that_cannot_be_had", "--image", "busybox:missing", "--replicas", "1")
    assert done.code == 1
    assert "cannot start: ImagePullBackOff" in done.out


def test_pods_by_the_name_of_their_workload_or_their_own(kruise: Kruise) -> None:
    label = "test_pods_by_the_name_of_their_workload_or_their_own"
    pod = f"{label.replace('_', '-')}-1"
    told = kruise.refused("debug", f"pod/{pod}", *IMAGE, "--", "true")
    assert told.startswith(f"pod/{pod} has no labels of its own")
    assert f"kubectl debug {pod} -it --image IMAGE" in told
    kruise.create(CLONE_SETS, cloneset_manifest("web"))
    kruise.ok("rollout", "status", "cloneset/web", "--timeout=60s")
    done = kruise.ok("debug", "cloneset/web", *IMAGE, "--name", "whole", "--", "true")
    assert done[0] == "ephemeraljob.apps.kruise.io/whole created for 3 pods"
    [first, *_] = kruise.talk(lambda client: client.list(PODS, "default", labels="app=web")).items
    done = kruise.ok("debug", f"po/{first.metadata.name}", *IMAGE, "--name", "single", "--", "true")
    assert done[0] == "ephemeraljob.apps.kruise.io/single created for 1 pod"
    assert "not found" in kruise.refused("debug", "cloneset/nobody", *IMAGE)
    assert "does not tell the labels of its pods" in kruise.refused("debug", "ws/nobody", *IMAGE, code=2)
    assert "has the labels example.com/x" in kruise.refused("debug", "example.com/x", *IMAGE)


def test_it_asks_only_for_the_pods_that_it_is_about(kruise: Kruise, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = Client.list

    async def counted(self: Client, resource: object, *arguments: object, **options: object) -> object:
        if resource is PODS:
            asked.append(str(options.get("labels")))
        return await original(self, resource, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "list", counted)
    label = "app=test_it_asks_only_for_the_pods_that_it_is_about"
    kruise.ok("debug", label, *IMAGE, "--", "true")
    assert set(asked) == {label}
    assert len(asked) > 1
