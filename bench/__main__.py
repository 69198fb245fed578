"""`python -m bench [NAME ...]`: run the benchmarks, show the figures, and fail where a target is missed."""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import sys
from collections.abc import Callable

from bench import (
    admission,
    churn,
    daemon,
    events,
    foresight,
    hundredthousand,
    images,
    jobs,
    local,
    processes,
    protection,
    rollouts,
    scale,
    sets,
    sidecar_rollouts,
    sidecars,
    spread,
    steps,
    why,
    writes,
)
from bench.report import Report, as_json, table

BENCHMARKS: dict[str, Callable[[float], Report]] = {
    "writes": writes.measure,
    "events": events.measure,
    "admission": admission.measure,
    "sidecars": sidecars.measure,
    "spread": spread.measure,
    "local": local.measure,
    "rollouts": rollouts.measure,
    "sets": sets.measure,
    "sidecar-rollouts": sidecar_rollouts.measure,
    "foresight": foresight.measure,
    "why": why.measure,
    "steps": steps.measure,
    "jobs": jobs.measure,
    "images": images.measure,
    "daemon": daemon.measure,
    "protection": protection.measure,
    "churn": churn.measure,
    "scale": scale.measure,
    "hundredthousand": hundredthousand.measure,
}
SHARES = {"scale": 0.1, "hundredthousand": 0.0}
"""How much of those that take long is measured where no name is given; 0: nothing."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)} (default: all that `make bench` has)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes; below 1 for a quick look only")
    parser.add_argument(
        "--hours", type=float, default=0.0, help="how long `churn` goes on; default: less than two minutes"
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}")
    machine = (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {processes.loop_name()}, "
        f"load {os.getloadavg()[0]:.1f} before"
    )
    if not options.json:
        print(machine, flush=True)
    reports = []
    chosen = BENCHMARKS | {"churn": functools.partial(churn.measure, hours=options.hours)}
    shares = dict.fromkeys(options.names, 1.0) or dict.fromkeys(BENCHMARKS, 1.0) | SHARES
    for name, share in shares.items():
        if not share:
            continue
        reports.append(chosen[name](options.scale * share))
        if not options.json:
            print(f"\n{table(reports[-1])}", flush=True)
    if options.json:
        print(json.dumps(as_json(reports, machine), indent=2))
    missed = [f"{report.name}: {row.what}" for report in reports for row in report.rows if not row.met]
    if missed:
        print(f"\nmissed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
