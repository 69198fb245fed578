"""Where ours differs from a recording on purpose: what, and why. `docs/cloneset-differences.md` tells it to people.

Every difference that is found must be in this table, and every entry of it must be found.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "cloneset-failed-pods": (
        Chosen(
            r"\[pod condition InPlaceUpdateReady\] after step 4 .* pod-5: recorded \('True', '', ''\), ours None",
            "A pod that has no node yet gets its conditions together, in one write, when it is bound.",
        ),
    ),
    "cloneset-graceperiod": (
        Chosen(
            r"\[pod states\] after step 4 .* recorded \['Updating', 'Normal', 'Updating'\], ours \['Updating'\]",
            "A pod whose grace period ends while a newer revision waits goes on to that one at once (IPU-38); it does "
            "not turn Normal in between.",
        ),
        Chosen(
            r"\[pod annotations\] after step 4 .*lastContainerStatuses\":null.* ours .*lastContainerStatuses\":{",
            "The state of the newer update keeps what the overtaken one still waits for.",
        ),
    ),
    "cloneset-lifecycle-inplaceupdate-label": (
        Chosen(
            r"\[pod condition (KruisePodReady|Ready)\] (after step 5 .* pod-1|Pod pod-1): .*"
            r"ours \('True', '', '(\[\])?'\)|\[pod transition times\] Pod pod-1, condition Ready: recorded False",
            "A cancelled PreparingUpdate takes its preUpdateHook out of KruisePodReady (IPU-101), so the pod is ready "
            "again.",
        ),
        Chosen(
            r"\[(status|pod (labels|states|condition KruisePodReady|condition Ready)).*\] "
            r"(after step 5 .* (pod-2:|recorded (None|0), ours 1)|as printed)",
            "Since that pod is ready again, the other one may be rolled back, too: it enters PreparingUpdate.",
        ),
    ),
    "cloneset-lifecycle-prenormal": (
        Chosen(
            r"\[(status\.\w+|pod [\w ]+)\] after step 4 ",
            "The preNormal hook holds: an update in place does not make a pod Normal whose hook is not satisfied. It "
            "stays PreparingNormal and unavailable, and with maxUnavailable 1 the other pod waits.",
        ),
        Chosen(
            r"\[pod (states|turn of update)\] after step 5 ",
            "Satisfying the hook makes that pod Normal, and then the other one is updated.",
        ),
        Chosen(
            r"\[pod (terminating|generation|turn of deletion)\] (after step 7 |Pod pod-1)",
            "The other pod was updated last, has been ready for the shorter time, and goes first (CS-91).",
        ),
    ),
    "cloneset-ondelete-third-revision": (
        Chosen(
            r"\[(answer|generation|spec.updateStrategy|status|status.observedGeneration)\] "
            r"(after )?(step 5 \(type OnDelete\)|as printed)",
            "Type OnDelete is accepted in v1alpha1, too (CS-43).",
        ),
    ),
    "cloneset-progress-deadline": (
        Chosen(
            r"\[progress\] after step 5 .* recorded \['ProgressDeadlineExceeded', 'ProgressPartitionAvailable'\], "
            r"ours \['CloneSetUpdated', 'ProgressPartitionAvailable'\]",
            "The clock of the deadline runs only while a rollout progresses (CS-117): a rollout that starts long after "
            "the last one is not late from the start.",
        ),
    ),
    "cloneset-vct": (
        Chosen(
            r"\[(condition FailedScale\] after step [4567] .* ours None|events\] .* FailedCreate .* ours 0 times)",
            "A pod that takes over the claims of a terminating one waits until that is gone; there is no create that "
            "must fail, and so neither its event nor FailedScale.",
        ),
    ),
}
