"""A hundred teams on one manager, past what this machine can run: an API server is played, the manager is the real one.

What one team's API server told the manager is recorded first (`bench.teamrecording`), then played as a hundred teams
(`bench.player`) to `kruise manager` as a process, with all its controllers. Updates of pods come at growing rates, from
all over the cluster or from a few teams at a time; half of them change whether a pod is ready, so statuses of workloads
change with them, and the manager writes those.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

from bench import processes, teamrecording
from bench.fleet import GATES, NODES_PER_TEAM, OBJECTS_PER_TEAM, PODS_PER_TEAM
from bench.living import Meter, memory_of, note
from bench.report import Report, Row
from bench.teamrecording import TeamRecording
from tests.support.instances import in_life_of_this_process
from tests.support.ports import free_port

TEAMS = 100
RATES = (100, 250, 500, 1000, 2000, 5000)
_FEW = 2
"""Teams: what a rollout or a broken node concerns, and not all of the cluster at once."""
_SECONDS = 12.0
_DRAINED_WITHIN = 120.0
_QUIET = 0.5
_IN_TIME = 1.0
_SAMPLE = re.compile(r"^(controller_runtime_reconcile_total|workqueue_depth)\{.*\} ([0-9.e+]+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """What a rate of updates did."""

    rate: int
    few: bool
    told: Mapping[str, Any]
    share: float
    cpu: float
    passes: float
    drained: float
    memory: float

    @property
    def delays(self) -> list[float]:
        """Until a status told it; what it did not tell by the end counts with the time until then."""
        return sorted((*self.told["delays"], *self.told["late"]))

    @property
    def cost(self) -> float:
        """CPU seconds of the manager for each update, what was left to do in the end included."""
        return self.cpu / float(self.told["sent"])

    @property
    def keeps_up(self) -> bool:
        delays = self.delays
        return self.told["rate"] > 0.95 * self.rate and _ninety(delays) < _IN_TIME


class Watched:
    """The manager as a process, seen from outside."""

    def __init__(self, directory: Path, port: int) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "played",
            "clusters": [_named("played", "cluster", {"server": f"https://{processes.HOST}:{port}"})],
            "users": [_named("played", "user", {"token": "none"})],
            "contexts": [_named("played", "context", {"cluster": "played", "user": "played"})],
        }
        config["clusters"][0]["cluster"]["certificate-authority"] = str(directory / "ca-cert.pem")  # type: ignore[index]
        (directory / "kubeconfig").write_text(json.dumps(config))
        self._metrics = free_port()
        command = [sys.executable, "-m", "kruise.cli.main", "manager", f"--kubeconfig={directory / 'kubeconfig'}"]
        command += ["--role=controllers", "--enable-leader-election=false", f"--feature-gates={GATES}"]
        command += [f"--metrics-addr=127.0.0.1:{self._metrics}", "--journal-addr=0", "--health-probe-addr=0"]
        command += [f"--protection-log-path={directory}"]
        self.log = directory / "manager.log"
        self.began = time.perf_counter()
        with self.log.open("wb") as log:
            wrapped = in_life_of_this_process(directory / "manager.pid", command)
            self.process = subprocess.Popen(wrapped, stdout=log, stderr=log, env=os.environ)

    def counts(self) -> tuple[float, float]:
        """Passes so far, and keys that wait for one; none of both while nobody answers."""
        if self.process.poll() is not None:
            raise RuntimeError(f"the manager ended:\n{self.log.read_text()[-3000:]}")
        try:
            with urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=60) as answer:
                text = answer.read().decode()
        except OSError:
            return 0.0, 0.0
        found = _SAMPLE.findall(text)
        passes = sum(float(value) for name, value in found if name.startswith("controller"))
        return passes, sum(float(value) for name, value in found if name.startswith("workqueue"))

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def measure(scale: float) -> Report:
    teams = max(2, round(TEAMS * scale))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        processes.write_certificate(directory)
        teamrecording.record(directory / "team.json")
        return play(directory, teams)


def play(directory: Path, teams: int) -> Report:
    """What is recorded in a directory, to a manager."""
    recording = TeamRecording.load(directory / "team.json")
    ours = [len(found.team) for path, found in recording.lists.items() if ".kruise.io/" in path]
    with processes.child("player", directory, teams) as (player, ready):
        note(f"the player plays {teams} teams")
        manager = Watched(directory, ready["port"])
        try:
            return _report(teams, *_run(player, manager, teams * sum(ours)))
        finally:
            manager.end()


def _run(
    player: subprocess.Popen[bytes], manager: Watched, objects: int
) -> tuple[dict[str, float], Mapping[str, Any], list[Step]]:
    found: dict[str, float] = {}
    while not manager.counts()[0]:
        time.sleep(0.25)
    first = time.perf_counter() - manager.began
    found["first pass"], found["memory at the first pass"] = first, memory_of(manager.process.pid)[0]
    passes, waiting = 0.0, 1.0
    while passes < objects or waiting:
        _settle(manager)
        found["all looked at"] = time.perf_counter() - manager.began - _QUIET
        found["CPU until then"] = processes.cpu_seconds(manager.process.pid)
        passes, waiting = manager.counts()
    note(f"started: {first:.1f} s to the first pass, {found['all looked at']:.1f} s to the last of {passes:.0f}")
    time.sleep(2)  # the reading of so many metrics goes on
    found["memory"] = memory_of(manager.process.pid)[0]
    meter = Meter(manager.process.pid)
    time.sleep(15)
    found["idle"] = meter.share()
    start = _tell(player, {})
    note(f"idle {found['idle'] * 1000:.0f} mCPU, {found['memory']:.0f} MB; written since the start: {start['writes']}")
    steps = []
    for few in (False, True):
        for rate in RATES:
            steps.append(_step(player, manager, rate, few))
            if steps[-1].drained >= _DRAINED_WITHIN:
                break  # it only gets worse
    found["peak"] = memory_of(manager.process.pid)[1]
    return found, start, steps


def _step(player: subprocess.Popen[bytes], manager: Watched, rate: int, few: bool) -> Step:
    before, _ = manager.counts()
    meter, cpu = Meter(manager.process.pid), processes.cpu_seconds(manager.process.pid)
    told = _tell(player, {"rate": rate, "seconds": _SECONDS, "at_a_time": _FEW if few else 0})
    share = meter.share()
    drained = _settle(manager)
    cpu = processes.cpu_seconds(manager.process.pid) - cpu
    after, waiting = manager.counts()
    passes = (after - before) / (_SECONDS + drained)
    step = Step(rate, few, told, share, cpu, passes, drained, memory_of(manager.process.pid)[0])
    note(
        f"{rate}/s {'from a few teams' if few else 'from everywhere'}: {told['rate']:.0f}/s sent, manager {share:.2f}, "
        f"player {told['cpu']:.2f}, blocked {told['blocked']:.1f} s, {step.cost * 1e3:.1f} ms each, "
        f"{passes:.0f} passes/s, p90 {_ninety(step.delays) * 1e3:.0f} ms of {len(step.delays)}, {waiting:.0f} wait, "
        f"drained in {drained:.1f} s, {step.memory:.0f} MB; {told['writes']} {dict(list(told['unknown'].items())[:3])}"
    )
    return step


def _settle(manager: Watched) -> float:
    """Until nothing is to be done any more, which is seen from outside: to read its metrics would be work, too."""
    began, pid = time.perf_counter(), manager.process.pid

    def wanted() -> float:
        """CPU that it had, and that it would have had if others had not been before it."""
        return processes.cpu_seconds(pid) + processes.waiting_seconds(pid)

    while True:
        took, before = time.perf_counter() - began, wanted()
        time.sleep(_QUIET)
        if took > _DRAINED_WITHIN or wanted() - before < 0.1 * _QUIET:
            return took


def _tell(player: subprocess.Popen[bytes], what: Mapping[str, Any]) -> Any:
    stdin, stdout = player.stdin, player.stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(json.dumps(what).encode() + b"\n")
    stdin.flush()
    return _answer(stdout)


def _answer(stdout: IO[bytes]) -> Any:
    line = stdout.readline()
    if not line:
        raise RuntimeError("the player ended; its error is above")
    return json.loads(line)


def _named(name: str, what: str, value: dict[str, str]) -> dict[str, object]:
    return {"name": name, what: value}


def _ninety(delays: list[float]) -> float:
    return delays[int(len(delays) * 0.9)] if delays else float("nan")


def _report(teams: int, found: Mapping[str, float], start: Mapping[str, Any], steps: list[Step]) -> Report:
    pods = teams * PODS_PER_TEAM
    writes = sum(start["writes"].values())
    rows = [
        Row(what="from the start to the first pass", value=found["first pass"], unit="s"),
        Row(what="  until all was looked at", value=found["all looked at"], unit="s"),
        Row(what="  CPU of the manager for it", value=found["CPU until then"], unit="s"),
        Row(what="  writes, where nothing is to be done", value=writes, below=1),
        Row(what="memory then", value=found["memory"], unit="MB"),
        Row(what="  per pod", value=found["memory"] / pods * 1000, unit="KB"),
        Row(what="  at its highest, updates included", value=found["peak"], unit="MB", below=1000),
        Row(what="idle", value=found["idle"] * 1000, unit="mCPU"),
    ]
    for few, where in ((False, "from everywhere"), (True, f"from {_FEW} teams at a time")):
        ours = [step for step in steps if step.few is few]
        most = max((step.rate for step in ours if step.keeps_up), default=0)
        what = f"updates {where}: the most of {', '.join(str(step.rate) for step in ours)} that it keeps up with"
        rows.append(Row(what=what, value=most, unit="/s"))
        for step in ours:
            rows += [
                Row(what=f"  {step.rate}/s: manager's share of a core", value=step.share * 100, unit="%"),
                Row(what="    taken", value=step.told["rate"], unit="/s"),
                Row(what="    CPU of the manager for each", value=step.cost * 1e3, unit="ms"),
                Row(what="    to the workload's status, 90 of 100", value=_ninety(step.delays) * 1e3, unit="ms"),
                Row(what="    passes", value=step.passes, unit="/s"),
                Row(what="    what was left was done after", value=step.drained, unit="s"),
            ]
    setting = (
        f"a played API server with {teams} teams as one was recorded: {teams * OBJECTS_PER_TEAM:,} objects, "
        f"{pods:,} pods, {teams * NODES_PER_TEAM:,} nodes; the real manager"
    )
    return Report(name="hundredthousand", setting=setting, rows=tuple(rows))
