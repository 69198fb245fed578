"""Where we chose to differ from what was recorded of sidecars; the documents of differences tell it.

What follows from a difference is listed with it: a pod that was refused is missing after every later step.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

SIDECAR_SETS, LAUNCH, TERMINATOR = "sidecarset-differences.md", "container-launch-priority.md", "sidecar-terminator.md"

_LATE = "acts when a pod is ready: bound by the restarts"
_STALE = "follow the pods"
_ENTRIES = "entries of all sets stay"
_COUNTS = r"\[set\] after step \d+, [\w-]+: (counts: )?"
_BARRIER = "made again, with the levels that are open"
_ENDS = "the Job ends"
_BEFORE = "the present images at once"

CHOSEN: Mapping[str, tuple[tuple[str, Chosen], ...]] = {
    # On simulated nodes
    "sidecarset-hotupgrade": (
        (SIDECAR_SETS, Chosen(r"\[set\] after step [34], side-hotupgrade: counts recorded", _LATE)),
        (SIDECAR_SETS, Chosen(r"\[printed\] Pod after (injection|two upgrades): ", _LATE)),
    ),
    "sidecarset-injection-revision": (
        (SIDECAR_SETS, Chosen(r"\[set\] after step 13, side-injection-revision: counts recorded", _STALE)),
    ),
    "sidecarset-namespaces": (
        (SIDECAR_SETS, Chosen(r"\[set\] after step [356], [\w-]+: counts recorded", "those of one namespace run here")),
    ),
    "sidecarset-patchpodmetadata": ((SIDECAR_SETS, Chosen(r"\[printed\] Pod p[12]: ", "by name: the same each time")),),
    # On real nodes
    "sidecarset-and-cloneset-update": (
        (SIDECAR_SETS, Chosen(r"\[order\] after step 3: ", "who writes first is chance; nobody undoes anybody")),
    ),
    "sidecarset-init-native-notupdate": (
        (SIDECAR_SETS, Chosen(_COUNTS + r"recorded \"(1 1 0 0|2 1 1 0)\", ours \"(1 1 1 1|2 1 2 1)\"", _STALE)),
    ),
    "sidecarset-injection-revision-v1alpha1": (
        (
            SIDECAR_SETS,
            Chosen(r"\[pod\] after step 1[0-3], p5: written kruise.io/sidecarset-inplace-update-state", _BEFORE),
        ),
        (
            SIDECAR_SETS,
            Chosen(r"\[pod\] after step 1[0-3], p5: (verdict|runs side restarts: recorded 1, ours 0)", _BEFORE),
        ),
        (
            SIDECAR_SETS,
            Chosen(r"\[order\] after step 10: recorded \['p5: side gets busybox:1.34'\], ours \[\]", _BEFORE),
        ),
    ),
    "sidecarset-pause-hotupgrade": (
        (SIDECAR_SETS, Chosen(_COUNTS + r"recorded \"3 0 3 0\", ours \"3 1 2 0\"", _LATE)),
    ),
    "sidecarset-priority-scatter": (
        (SIDECAR_SETS, Chosen(r"\[order\] after step 5: ", "once over all pods of the rollout")),
    ),
    "sidecarset-revision-history": (
        (SIDECAR_SETS, Chosen(_COUNTS + r"recorded \"(1 1 0 0|2 1 1 0)\", ours \"(1 1 1 1|2 1 2 1)\"", _STALE)),
    ),
    "sidecarset-share-order-secrets": (
        (
            SIDECAR_SETS,
            Chosen(r"\[answer\] step 5, .* SidecarSet lab-share has a sidecar s9, and the pod", "both are named"),
        ),
        (SIDECAR_SETS, Chosen(r"\[pod\] after step \d+, p3: : .* ours null", "both are named")),
        (SIDECAR_SETS, Chosen(_COUNTS + r"recorded \"3 3 2 2\", ours \"2 2 1 1\"", "both are named")),
    ),
    "sidecarset-two-sets": (
        (SIDECAR_SETS, Chosen(r"\[pod\] after step [34], a pod \(2\): verdict 2 lab-two-a: recorded null", _ENTRIES)),
    ),
    "launch-priority-levels-deployment": (
        # Recorded kubelets took 14 s to look again.
        (
            LAUNCH,
            Chosen(r"\[(pod|barrier)\] after step [1-5], (a pod \(1\)|pod-1-barrier): ", "starts within a second"),
        ),
    ),
    "launch-priority-ordered-after-done": (
        (LAUNCH, Chosen(_COUNTS + r"recorded \"1 1 0 0\", ours \"1 1 1 1\"", _BARRIER)),
        (
            LAUNCH,
            Chosen(
                r"\[pod\] after step 5, p1: runs side (restarts: recorded 1, ours 2|ready: recorded false)", _BARRIER
            ),
        ),
        (LAUNCH, Chosen(r"\[barrier\] after step [5-8], p1-barrier: ", _BARRIER)),
        (LAUNCH, Chosen(r"\[answer\] step 6, create ConfigMap .* already exists", _BARRIER)),
    ),
    "launch-priority-ordered-sidecar": (
        (LAUNCH, Chosen(_COUNTS + r"recorded \"1 1 0 0\", ours \"1 1 1 1\"", _BARRIER)),
        (
            LAUNCH,
            Chosen(r"\[pod\] after step [3-6], p1: (written apps.kruise.io/container-launch|phase|runs)", _BARRIER),
        ),
        (LAUNCH, Chosen(r"\[barrier\] after step [346], p1-barrier: ", _BARRIER)),
    ),
    "terminator-broadcastjob-image-env": (
        (TERMINATOR, Chosen(r"\[pod\] after step [56], again: (phase: recorded \"Running\"|runs side ready)", _ENDS)),
    ),
    "terminator-job-never": ((SIDECAR_SETS, Chosen(_COUNTS + r"recorded \"1 1 0 0\", ours \"0 0 0 0\"", _STALE)),),
    "terminator-onfailure": (
        (
            TERMINATOR,
            Chosen(r"\[pod\] after step 2, a pod \(1\): (phase: recorded \"Running\"|runs side ready)", _ENDS),
        ),
        (TERMINATOR, Chosen(r"\[job\] after step 2, bad: : recorded null, ours \[\"Complete\"\]", _ENDS)),
    ),
}
"""By recording: the document that tells it, and what differs. Recordings that are not here are equal."""
