"""What the words of the DaemonSet recordings leave open. The original took nodes of one class in any order (DS-64), so
where several followed each other the order means nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.directions import Directions

DIRECTIONS: Mapping[str, Directions] = {
    "daemonset-inplace": Directions(together=frozenset({2, 3, 4})),
    "daemonset-lifecycle": Directions(targets={3: "pod-2", 4: "pod-1"}),
    "daemonset-partition-selector": Directions(targets={3: "pod-1"}, together=frozenset({2, 5})),
    "daemonset-rolling-standard": Directions(targets={3: "pod-7"}, together=frozenset({2})),
    # Ours waits for whole seconds to be over, so it takes longer.
    "daemonset-surge": Directions(waits={2: 9.0}, together=frozenset({2})),
}
