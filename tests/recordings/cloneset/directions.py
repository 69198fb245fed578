"""What the words of the CloneSet recordings leave open: which pod a step was about (told by the log), and where our
pace shows another moment than the recorded distance did."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.directions import Directions

DIRECTIONS: Mapping[str, Directions] = {
    "cloneset-adoption-release": Directions(targets={3: "pod-1"}),
    "cloneset-graceperiod": Directions(
        waits={4: 4.5},  # within the second grace period, as the end of the log
        unsettled=frozenset({3}),
        together=frozenset({2, 4}),
        glances={2: 1.5, 3: 1.5},
    ),
    "cloneset-lifecycle-inplaceupdate-label": Directions(targets={3: "pod-2", 4: "pod-2"}),
    "cloneset-lifecycle-predelete-finalizer": Directions(targets={5: "pod-3", 6: "pod-1"}),
    "cloneset-lifecycle-predelete-label": Directions(targets={5: "pod-1"}),
    "cloneset-lifecycle-prenormal": Directions(waits={1: 5.0}, late={2: 2.0}),
    "cloneset-partition": Directions(waits={1: 5.0}, late={2: 2.0, 5: 3.0}),
    "cloneset-priority-weight": Directions(waits={1: 5.0}, late={5: 2.0}),
    "cloneset-progress-deadline": Directions(unsettled=frozenset({1})),
    "cloneset-scaledown-order": Directions(waits={3: 1.2}, unsettled=frozenset({3}), together=frozenset({18})),
    "cloneset-scatter": Directions(waits={1: 12.0}, late={5: 1.5, 6: 3.0, 1: 3.0, 4: 5.0, 3: 5.0, 7: 7.0, 8: 9.0}),
    "cloneset-specified-delete-label": Directions(targets={7: "pod-6"}),
    "cloneset-template-metadata": Directions(waits={1: 5.0}, late={2: 2.0}),
    "cloneset-topology-spread": Directions(spread=True),
    "cloneset-vct": Directions(
        gap=(
            'Pod/pod-5 {"metadata":{"generation":2,"deletionTimestamp":"<time>"}}',
            "Pod/pod-5 DELETED",
            'CloneSet/web {"status":{"observedGeneration":5,"updateRevision":"web-rev-2"}}',
            'PersistentVolumeClaim/data-pod-6 ADDED {"metadata":{"labels":{"app":"web",'
            '"apps.kruise.io/cloneset-instance-id":"<id-6>"},"ownerReferences":[{"kind":"CloneSet"}]}}',
        )
    ),
}
