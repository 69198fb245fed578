"""`kruise journal` and `kruise replay` from outside, against one `kruise up`."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kruise import replaying
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS
from tests.support.commandline import COMMAND, Kruise, local_cluster, plain

SECRET = "hunter2-very-secret"


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        kruise = Kruise(kubeconfig)
        create(kruise, "web")
        kruise.ok("rollout", "status", "cloneset/web", "--timeout=60s")
        kruise.ok("set", "image", "cloneset/web", "main=nginx:1.26")
        # What is held by a partition stays so.
        kruise.ok("rollout", "status", "cloneset/web", "--timeout=60s")
        yield kruise


def create(kruise: Kruise, name: str) -> None:
    labels = {"app": name}
    container = {"name": "main", "image": "nginx:1.25", "env": [{"name": "TOKEN", "value": SECRET}]}
    document = {
        "apiVersion": CLONE_SETS.api_version,
        "kind": "CloneSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "partition": 2}},
        },
    }

    kruise.create(CLONE_SETS, document)


@pytest.fixture
def dump(kruise: Kruise, tmp_path: Path) -> Path:
    path = tmp_path / "web.json"
    done = kruise("journal", "cloneset/web", "--dump", str(path))
    assert done.code == 0, done.err
    assert done.out == ""
    assert f"note: the manager of the local cluster: the latest decision about {NAME} is in {path}" in done.err
    return path


NAME = "cloneset.apps.kruise.io/web"


def test_the_last_decisions_newest_first(kruise: Kruise) -> None:
    header, *rows = kruise.ok("journal", "cloneset/web", "--limit", "500")
    assert header.split() == ["TIME", "DIGEST", "ACTIONS", "HELD", "OUTCOME", "TOOK", "ID"]
    times = [row.split()[0] for row in rows]
    assert times == sorted(times, reverse=True)
    assert re.fullmatch(r"\S+Z +[0-9a-f]{8} .* 2 partition .*[0-9a-f]{14}", rows[0])
    assert any("1 create controllerrevisions, 3 create pods" in row for row in rows)
    assert len(kruise.ok("journal", "clone", "web", "--limit", "2")) == 3
    entries = json.loads("\n".join(kruise.ok("journal", "cloneset/web", "--limit", "500", "-o", "json")))
    # There may have been another pass meanwhile.
    assert [entry["reconcile_id"] for entry in entries][-len(rows) :] == [row.split()[-1] for row in rows]
    assert {entry["controller"] for entry in entries} == {"cloneset-controller"}
    assert entries[0]["plan"]["heldBy"] == {"partition": 2}


def test_all_objects_or_those_of_a_kind(kruise: Kruise) -> None:
    create(kruise, "other")
    kruise.ok("rollout", "status", "cloneset/other", "--timeout=60s")
    everything = kruise.ok("journal", "--limit", "500")
    assert everything[0].split()[1] == "OBJECT"
    assert {row.split()[2] for row in everything[1:]} >= {"default/web", "default/other"}
    sets = kruise.ok("journal", "clonesets.apps.kruise.io", "--limit", "500")
    assert {row.split()[1] for row in sets[1:]} == {"cloneset"}
    assert kruise.ok("journal", "-n", "default", "cloneset", "--limit", "1")[1:]
    assert "no such decision" in kruise.refused("journal", "-n", "kruise-system")


def test_one_decision_in_full(kruise: Kruise) -> None:
    [newest] = json.loads("\n".join(kruise.ok("journal", "cloneset/web", "--limit=1", "-o", "json")))
    shown = kruise.ok("journal", "--id", newest["reconcile_id"][:9])
    assert shown[0] == f"Decision:   {newest['reconcile_id']}"
    assert f"Snapshot:   {newest['digest']}" in shown
    assert "Held:       2 partition" in shown
    assert json.loads("\n".join(kruise.ok("journal", "--id", newest["reconcile_id"], "-o", "json"))) == newest
    assert "no decision has that id. A manager remembers the last 256" in kruise.refused("journal", "--id", "xyz")


def test_what_cannot_be_told(kruise: Kruise) -> None:
    assert kruise.refused("journal", "cloneset/wbe") == (
        'clonesets.apps.kruise.io "wbe" not found in namespace "default"; did you mean web?'
    )
    assert "not found" in kruise.refused("journal", "cloneset/wbe", "--dump", "-")
    kruise.create(PODS, {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}})
    assert "has made no decision about pod/plain that it remembers" in kruise.refused("journal", "pod/plain")
    assert "no snapshot of default/plain is kept" in kruise.refused("journal", "pod/plain", "--dump", "-")
    assert "decides nothing about a Deployment" in kruise.refused("journal", "deploy/x", code=2)
    assert "did you mean cloneset" in kruise.refused("journal", "clonest/web", code=2)
    assert "takes one object" in kruise.refused("journal", "cloneset/web", "cloneset/other", code=2)
    assert "is no KIND/NAME" in kruise.refused("journal", "cloneset/", code=2)
    assert "--dump is about one object" in kruise.refused("journal", "--dump", "-", code=2)
    assert "say where with --dump" in kruise.refused("journal", "cloneset/web", "--redact", code=2)
    assert "cannot be followed" in kruise.refused("journal", "--id", "x", "--follow", code=2)
    assert "cannot be written" in kruise.refused("journal", "cloneset/web", "--dump", "/nowhere/x", code=2)
    silent = kruise("journal", "cloneset/web", environment={"KRUISE_MANAGER_URL": "https://127.0.0.1:9"})
    assert (silent.code, "the manager at https://127.0.0.1:9 does not answer" in silent.err) == (1, True)
    plain_http = kruise.refused("journal", "cloneset/web", "--manager-url=http://127.0.0.1:8080", code=2)
    assert "write it as https://HOST:PORT" in plain_http
    assert "write it as https://" in kruise.refused("journal", "--manager-url", "x", code=2)


def test_without_a_manager(tmp_path: Path) -> None:
    with local_cluster(tmp_path, "--bare") as kubeconfig:
        assert "no manager has ever led in this cluster" in Kruise(kubeconfig).refused("journal", "cloneset/web")


def test_following_goes_on_until_it_is_ended(kruise: Kruise) -> None:
    command = [*COMMAND, "journal", "cloneset/web", "--follow", "-o", "json"]
    variables = {**os.environ, "KUBECONFIG": str(kruise.kubeconfig)}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            seen = [json.loads(process.stdout.readline())["time"] for _ in range(3)]
            kruise.ok("scale", "cloneset/web", "--replicas=4")
            # The three pods of the beginning are told of, too: what comes of the scaling is a single one.
            while (entry := json.loads(process.stdout.readline()))["plan"]["counts"].get("create pods") != 1:
                seen.append(entry["time"])
            seen.append(entry["time"])
            assert seen == sorted(seen), "as in a log, the oldest first"
        finally:
            process.terminate()
    kruise.ok("scale", "cloneset/web", "--replicas=3", "--wait", "--timeout=60s")


def test_a_table_on_a_terminal(kruise: Kruise) -> None:
    drawn = kruise.drawn("journal", "cloneset/web", "--limit=5")
    assert "\x1b[1m" in drawn, "the heads of the columns are bold"
    shown = plain(drawn)
    assert all(len(line) <= 120 for line in shown.splitlines())
    assert len(re.findall(r"^\S+Z .*[0-9a-f]{14}\s*$", shown, re.MULTILINE)) == 5


# Replay


def test_a_dump_decides_the_same_again(kruise: Kruise, dump: Path) -> None:
    said = kruise.ok("replay", str(dump))
    assert re.fullmatch(r"cloneset-controller about default/web, decision [0-9a-f]{14} of \S+Z", said[0])
    assert said[1:] == ["equal: the same plan, 0 actions, 2 held"]
    data = json.loads("\n".join(kruise.ok("replay", str(dump), "-o", "json")))
    assert (data["equal"], data["digestEqual"], data["differences"]) == (True, True, [])
    assert data["plan"] == data["recorded"] == json.loads(dump.read_text())["plan"]
    printed = kruise("journal", "cloneset/web", "--dump", "-")
    assert json.loads(printed.out)["name"] == "web"
    assert kruise("replay", "-", stdin=printed.out).lines[1:] == said[1:]
    packed = dump.with_suffix(".json.gz")
    assert kruise("journal", "cloneset/web", "--dump", str(packed)).code == 0
    assert json.loads(gzip.decompress(packed.read_bytes()))["name"] == "web"
    assert kruise.ok("replay", str(packed), str(dump))[0].startswith(f"{packed}: cloneset-controller")


def test_a_dump_without_secrets(kruise: Kruise, dump: Path) -> None:
    assert SECRET in dump.read_text()
    assert kruise("journal", "cloneset/web", "--dump", str(dump), "--redact").code == 0
    assert SECRET not in dump.read_text()
    assert kruise.ok("replay", str(dump))[-1] == "equal: the same plan, 0 actions, 2 held"


def test_differences_are_told(kruise: Kruise, dump: Path) -> None:
    edited = json.loads(dump.read_text())
    edited["snapshot"]["cloneset"]["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = 1
    edited["version"] = "0.0.1"
    dump.write_text(json.dumps(edited))
    done = kruise("replay", str(dump))
    assert done.code == 1
    assert "written by PyKruise 0.0.1, decided again by " in done.lines[1]
    assert "different (- recorded, + decided now, ~ changed):" in done.lines
    assert any(re.match(r"  \+ action update: patch pods default/web-\S+: update to ", line) for line in done.lines)
    assert any(re.match(r"  - held pods default/web-\S+: partition", line) for line in done.lines)
    told = json.loads(kruise("replay", str(dump), "-o", "json").out)
    assert told["equal"] is False
    assert {one["part"] for one in told["differences"]} >= {"action", "held"}
    edited["digest"] = "00000000"
    dump.write_text(json.dumps(edited))
    assert "the digest is not 00000000 any more" in kruise("replay", str(dump)).out


def test_a_golden_test_in_one_command(kruise: Kruise, dump: Path, tmp_path: Path) -> None:
    folder = tmp_path / "golden"
    assert kruise.ok("replay", str(dump), "--golden", str(folder), "--name", "held")[0] == (
        f"golden test written: {folder / 'held.json.gz'}"
    )
    assert kruise.ok("replay", str(dump), "--golden", str(folder))[0].startswith(f"golden test written: {folder}/web-")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
    # Another decision is refused, and recorded where it is meant.
    held = json.loads(gzip.decompress((folder / "held.json.gz").read_bytes()))
    held["plan"]["held"] = []
    (folder / "held.json.gz").write_bytes(gzip.compress(json.dumps(held).encode()))
    refused = kruise("replay", str(folder / "held.json.gz"), "--golden", str(folder))
    assert (refused.code, "--accept records what is decided now" in refused.err) == (1, True)
    files = sorted(str(path) for path in folder.glob("*.json.gz"))
    assert kruise("replay", *files).code == 1
    assert kruise("replay", *files, "--golden", str(folder), "--accept").code == 0
    assert kruise("replay", *files).code == 0
    assert sorted(str(path) for path in folder.glob("*.json.gz")) == files


def test_what_cannot_be_read(kruise: Kruise, dump: Path, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in kruise.refused("replay", str(tmp_path / "nope"), code=2)
    text = dump.read_text()
    bad = tmp_path / "bad"

    def refused(content: bytes) -> str:
        bad.write_bytes(content)
        return kruise.refused("replay", str(bad), code=2)

    assert refused(b"") == f"{bad} is empty"
    assert "truncated" in refused(text[:900].encode())
    assert "cut off or damaged" in refused(gzip.compress(text.encode())[:500])
    assert "the dump does not fit" in refused(b"[]")
    said = refused(text.replace("cloneset-controller", "nobody").encode())
    assert "known here: " in said
    assert "cloneset-controller" in said
    assert "does not fit" in refused(text.replace('"replicas":3', '"replicas":"x"', 1).encode())
    assert "name the file" in kruise.refused("replay", code=2)
    assert "go with --golden" in kruise.refused("replay", str(dump), "--accept", code=2)
    assert "--name is for one dump" in kruise.refused("replay", "a", "b", "--golden", "x", "--name", "c", code=2)
    assert "without its folder" in kruise.refused("replay", "a", "--golden", "x", "--name", "c/d", code=2)


def test_a_decision_that_fails_can_be_seen_again(kruise: Kruise, dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(snapshot: Any) -> Any:
        raise KeyError("oh")

    broken = [dataclasses.replace(spec, decide=fails) for spec in replaying.specs()]
    monkeypatch.setattr(replaying, "specs", lambda: tuple(broken))
    done = kruise("replay", str(dump))
    assert (done.code, "~ error none -> KeyError: 'oh'" in done.out) == (1, True)
    assert kruise("replay", str(dump), "--golden", str(dump.parent), "--name", "x", "--accept").code == 0
    assert (
        "deciding fails with the same error: KeyError: 'oh'" in kruise.ok("replay", str(dump.parent / "x.json.gz"))[1]
    )
