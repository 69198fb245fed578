"""The parts of the benchmarks that a wrong figure could come from: verdicts, and what the recorded server plays."""

from __future__ import annotations

import gzip
import importlib
import math
import pkgutil
from typing import Any

import pytest

import bench
from bench.churn import growth, visitors, warm
from bench.fleet import OBJECTS_PER_TEAM, PODS_PER_TEAM, is_settled, members
from bench.player import FIRST_VERSION as PLAYED_VERSION
from bench.player import Player
from bench.pods import stored_pod
from bench.recorded import FIRST_VERSION, PAGE, Recording
from bench.report import Report, Row, as_json, table
from bench.teamrecording import VERSION, ListOf, TeamRecording, address, marked
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.client.answers import WatchEvent, read_page
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.codec import decode, encode


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row(what="ratio", value=0.8, at_least=0.8), "pass"),
        (Row(what="ratio", value=0.799, at_least=0.8), "MISS"),
        (Row(what="latency", value=4.99, below=5), "pass"),
        (Row(what="latency", value=5.0, below=5), "MISS"),
        (Row(what="latency", value=math.nan, below=5), "MISS"),
        (Row(what="rate", value=1.0), ""),
    ],
)
def test_a_limit_is_met_or_missed(row: Row, verdict: str) -> None:
    assert (row.verdict, row.met) == (verdict, verdict != "MISS")


def test_one_missed_target_is_enough_to_fail() -> None:
    good, bad = Row(what="ratio", value=0.9, at_least=0.8), Row(what="memory", value=250, unit="MB", below=200)
    report = Report(name="x", setting="s", rows=(good, bad))
    assert not report.met
    assert as_json([report], "m")["met"] is False
    lines = table(report).splitlines()
    assert lines[2].split() == ["ratio", "0.9", ">=", "0.8", "pass"]
    assert lines[3].split() == ["memory", "250", "MB", "<", "200", "MB", "MISS"]


def test_pods_are_of_the_stated_size_and_always_the_same() -> None:
    sizes = [len(encode(stored_pod(number, str(FIRST_VERSION)))) for number in (0, 77, 9999)]
    assert all(7500 < size < 8700 for size in sizes)
    assert encode(stored_pod(5, "1")) == encode(stored_pod(5, "1"))
    assert len({decode(encode(stored_pod(number, "1")), Pod).metadata.name for number in range(200)}) == 200


def test_the_recorded_list_holds_every_pod_once() -> None:
    pods = PAGE + 20
    names: list[tuple[str, str]] = []
    token = "0"
    for answer in Recording(pods, 0).pages:
        body = gzip.decompress(answer.partition(b"\r\n\r\n")[2])
        page = read_page(PODS, body, Request(Verb.LIST, PODS))
        assert page.resource_version == str(FIRST_VERSION)
        assert all(int(pod.metadata.resource_version) <= FIRST_VERSION for pod in page.items)
        names += [(pod.metadata.namespace, pod.metadata.name) for pod in page.items]
        token = page.continue_token
    assert (len(names), len(set(names)), token) == (pods, pods, "")


def test_the_recorded_watch_goes_on_from_the_version_asked_for() -> None:
    stream = b"".join(Recording(40, 100).batches(FIRST_VERSION + 7))
    versions = []
    while stream:
        size, _, rest = stream.partition(b"\r\n")
        line, stream = rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        assert line.endswith(b"\n")
        event = decode(line, WatchEvent[Pod])
        assert event.type == "MODIFIED"
        versions.append(int(event.object.metadata.resource_version))
    assert versions == list(range(FIRST_VERSION + 8, FIRST_VERSION + 108))


@pytest.mark.parametrize(
    "name", [item.name for item in pkgutil.iter_modules(bench.__path__) if item.name != "__main__"]
)
def test_every_benchmark_finds_what_it_measures(name: str) -> None:
    """They run seldom: what moved must not be noticed only then."""
    assert importlib.import_module(f"bench.{name}").__doc__


def test_a_team_has_as_many_objects_and_pods_as_the_figures_say() -> None:
    team = list(members("team-3"))
    assert (len(team), sum(member.pods for member in team)) == (OBJECTS_PER_TEAM, PODS_PER_TEAM)
    places = {(member.resource, member.namespace, member.name) for member in team}
    assert len(places) == OBJECTS_PER_TEAM
    assert {member.resource for member in visitors("team-3")} == {member.resource for member in team}


def test_a_workload_is_settled_when_its_status_is_of_its_spec_and_all_pods_are_new_and_ready() -> None:
    document = {"kind": "CloneSet", "metadata": {"generation": 2}, "spec": {"replicas": 3}}
    done = {"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 3}
    assert is_settled(document | {"status": done}, 3)
    for field, value in (("observedGeneration", 1), ("readyReplicas", 2), ("updatedReplicas", 2)):
        assert not is_settled(document | {"status": done | {field: value}}, 3)


def test_growth_is_what_a_round_adds_however_the_memory_jumps_now_and_then() -> None:
    steady = [100.0 + (5.0 if number % 7 == 0 else 0.0) for number in range(60)]
    assert abs(growth(steady)) < 0.01
    assert growth([value + 0.5 * number for number, value in enumerate(steady)]) == pytest.approx(0.5, abs=0.02)
    assert list(warm([90.0, 100.0, 100.0])) == [100.0, 100.0]


_UID = "0a1b2c3d-1111-4222-8333-0123456789ab"
_LISTED = "/api/v1/pods"


def _recording() -> TeamRecording:
    """A CloneSet of a team with one pod, which is not ready once; besides a pod that is nobody's."""
    owner = {"kind": "CloneSet", "apiVersion": CLONE_SETS.api_version, "name": "web-00", "uid": _UID}
    metadata: dict[str, Any] = {
        "name": "web-00-a",
        "namespace": "team-0",
        "uid": f"1{_UID[1:]}",
        "resourceVersion": "7",
    }
    pod: dict[str, Any] = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {**metadata, "ownerReferences": [{**owner, "controller": True}]},
        "spec": {"nodeName": "sim-4"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    changed = {**pod, "metadata": {**pod["metadata"], "resourceVersion": VERSION}}
    broken = {**changed, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    clone_set = {"kind": "CloneSet", "metadata": {"name": "web-00", "namespace": "team-0", "uid": _UID}, "status": {}}
    other = '{"metadata":{"name":"alone","namespace":"default","resourceVersion":"3"}}'
    path = CLONE_SETS.path()
    return TeamRecording(
        lists={
            _LISTED: ListOf(kind="PodList", api_version="v1", team=(marked(pod),), shared=(other,)),
            path: ListOf(kind="CloneSetList", api_version="v", team=(marked(clone_set),), shared=()),
        },
        others={},
        updates={"web-00-a": (marked(broken), marked(changed))},
    )


def test_a_recorded_team_is_played_as_many_that_differ_in_whatever_names_them() -> None:
    (page,) = Player(_recording(), 3).objects.pages[_LISTED]
    body = decode(gzip.decompress(page.partition(b"\r\n\r\n")[2]), dict[str, Any])
    alone, *pods = body["items"]
    assert (alone["metadata"]["name"], body["metadata"]["resourceVersion"]) == ("alone", str(PLAYED_VERSION))
    assert [pod["metadata"]["namespace"] for pod in pods] == ["team-000", "team-001", "team-002"]
    assert [pod["spec"]["nodeName"] for pod in pods] == ["sim-000-4", "sim-001-4", "sim-002-4"]
    assert len({pod["metadata"]["uid"] for pod in pods}) == 3
    assert {pod["metadata"]["ownerReferences"][0]["uid"][:-3] for pod in pods} == {_UID[:-3]}


def test_a_pod_goes_through_its_recorded_updates_again_and_again() -> None:
    updates = Player(_recording(), 3).updates
    assert updates.turns(2, 0) == 1
    chunks = [updates.next(2, 0, version) for version in (11, 12, 13)]
    pods = [decode(chunk.split(b"\r\n")[1], WatchEvent[Pod]).object for chunk in chunks]
    assert [pod.metadata.resource_version for pod in pods] == ["11", "12", "13"]
    assert [pod.status.conditions[0].status for pod in pods] == ["False", "True", "False"]
    assert {pod.metadata.namespace for pod in pods} == {"team-002"}


def test_what_is_written_to_the_player_is_there_from_then_on_under_a_new_version() -> None:
    player = Player(_recording(), 3)
    path = f"{CLONE_SETS.path('team-002', 'web-00')}"
    answer = player._write("PATCH", f"{path}/status", "application/merge-patch+json", b'{"status":{"replicas":4}}')
    assert answer.startswith(b"HTTP/1.1 200 ")
    found = player.objects.get(path)
    assert (found["status"], found["metadata"]["resourceVersion"]) == ({"replicas": 4}, str(PLAYED_VERSION + 1))
    assert player.objects.get(CLONE_SETS.path("team-001", "web-00"))["status"] == {}
    assert player._write("PATCH", f"{path}x", "application/merge-patch+json", b"{}").startswith(b"HTTP/1.1 404 ")


def test_a_list_is_known_by_its_path_and_selectors() -> None:
    assert address("/api/v1/pods?limit=500&continue=3") == "/api/v1/pods"
    assert address("/api/v1/pods?limit=5&labelSelector=a%3Db") == "/api/v1/pods?labelSelector=a=b"
