"""Where ours differs from a recording of real nodes on purpose. `docs/cloneset-differences.md` tells it to people."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "cloneset-enhanced-liveness": (
        Chosen(
            r"step [12], .*'container main of a pod starts again'",
            "A liveness probe that was moved into an annotation is run by the node daemon, so the container that fails "
            "it is started again. Taking the annotation that asked for it off the pod does not end that (ELP-4). (In "
            "the original nobody runs it. The bare pod is the kubelet's in both.)",
        ),
    ),
    "cloneset-env-multiline": (
        Chosen(
            r"step 2, .*recorded .*'container blank of a pod starts again'|labels of pod pod-1: recorded .*'Updating'.*"
            r"ours .*'Normal'",
            "Values with line breaks or trailing blanks are compared rightly: the container whose value changed starts "
            "again once, the other not at all, and the update ends. (In the original both are stopped for ever.)",
        ),
    ),
}
