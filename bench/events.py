"""10,000 pods listed, watched and indexed: memory, pauses, and the rate of the event path against bare reading."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from bench import processes
from bench.report import Report, Row

ROUNDS = 7


def measure(scale: float) -> Report:
    pods = max(1000, int(10_000 * scale))
    events = 3 * pods
    with tempfile.TemporaryDirectory() as directory:
        processes.write_certificate(Path(directory))
        with processes.child("recorded", directory, pods, events) as (server, ready):
            url, ca = f"https://{processes.HOST}:{ready['port']}", f"{directory}/ca-cert.pem"
            began = processes.cpu_seconds(server.pid)
            with processes.child("watching", url, ca, pods, events, ROUNDS) as (_, found):
                served = processes.cpu_seconds(server.pid) - began

    def median(side: str, column: int) -> float:
        return statistics.median(float(costs[column]) for costs in found[side]) / events

    pauses = [wall for wall, _ in found["pauses"]]
    total, total_ours = events * (2 * ROUNDS + 1), events * (ROUNDS + 1)
    rows = (
        Row(what="resident memory after the list and 3 updates of each", value=found["rss"], unit="MB", below=130),
        Row(what="  at its highest", value=found["peak"], unit="MB", below=130),
        Row(what="  before the list", value=found["start"], unit="MB"),
        Row(what="full garbage collection, the longest", value=max(pauses) * 1e3, unit="ms", below=100),
        Row(what="  median", value=statistics.median(pauses) * 1e3, unit="ms"),
        Row(what="  CPU, median", value=statistics.median(cpu for _, cpu in found["pauses"]) * 1e3, unit="ms"),
        Row(what="event path", value=1 / median("ours", 0), unit="updates/s"),
        Row(what="bare readline and decode", value=1 / median("bare", 0), unit="updates/s"),
        Row(what="ratio", value=median("bare", 0) / median("ours", 0), at_least=0.45),
        Row(what="CPU, event path", value=median("ours", 1) * 1e6, unit="us/update"),
        Row(what="CPU, bare", value=median("bare", 1) * 1e6, unit="us/update"),
        Row(what="  ratio by CPU", value=median("bare", 1) / median("ours", 1)),
        Row(what="updates per pass of a key", value=total_ours / found["passes"]),
        Row(what="CPU of the server that plays the stream", value=served / total * 1e6, unit="us/update"),
    )
    setting = f"{pods:,} pods of 8 KB in pages of 500, {events:,} updates per round, {ROUNDS} rounds in turns; medians"
    return Report(name="events", setting=setting, rows=rows)
