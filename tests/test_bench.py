"""The parts of the benchmarks that a wrong figure could come from: verdicts, and what the recorded server plays."""

from __future__ import annotations

import gzip
import importlib
import math
import pkgutil

import pytest

import bench
from bench.pods import stored_pod
from bench.recorded import FIRST_VERSION, PAGE, Recording
from bench.report import Report, Row, as_json, table
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
