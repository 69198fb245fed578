"""Cases on the local cluster, on virtual time: each has a cluster of its own, so a case is the same wherever it runs.

python -m tests.foresight_reality.local 300          # the first 300 cases
python -m tests.foresight_reality.local --case 17    # one of them, told in full
python -m tests.foresight_reality.local 300 --kind statefulset
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping

from kruise.api.native.storage import STORAGE_CLASSES
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from tests.foresight_reality.cases import Case, make_case
from tests.foresight_reality.comparison import Verdict, differences, report, told
from tests.foresight_reality.reality import Outcome, play
from tests.foresight_reality.sets import make_daemon_case, make_stateful_case
from tests.support.world import LocalWorld, run_local

NODES = 4
Make = Callable[[int], Case]
MAKERS: Mapping[str, Make] = {"cloneset": make_case, "statefulset": make_stateful_case, "daemonset": make_daemon_case}
SHARE = 0.99
"""So many cases must come true."""


def outcome_of(seed: int, make: Make = make_case) -> Outcome:
    case = make(seed)
    found: list[Outcome] = []

    async def scenario(world: LocalWorld) -> None:
        await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
        found.append(await play(world, case, world.options))

    run_local(scenario, nodes=NODES, feature_gates=case.gates)
    return found[0]


def judge(seeds: Iterable[int], make: Make = make_case) -> list[Verdict]:
    verdicts = []
    for seed in seeds:
        outcome = outcome_of(seed, make)
        verdicts.append(Verdict(outcome.case, tuple(differences(outcome))))
    return verdicts


def share(verdicts: list[Verdict]) -> float:
    return sum(not verdict.differences for verdict in verdicts) / len(verdicts)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foresight_reality.local", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=300, help="how many cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--case", type=int, help="tell one case in full")
    parser.add_argument("--kind", choices=MAKERS, default="cloneset", help="of which kind")
    chosen = parser.parse_args(arguments)
    make = MAKERS[chosen.kind]
    if chosen.case is not None:
        print(told(outcome_of(chosen.case, make)))
        return 0
    verdicts = judge(range(chosen.first, chosen.first + chosen.count), make)
    print(report(verdicts))
    return 0 if share(verdicts) >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
