"""Which containers hold up others, and when a pod needs its barrier no more (CLP A3)."""

from __future__ import annotations

from kruise.api.native.pod import ContainerStatus, Pod

DONE = "apps.kruise.io/container-launch-priority-completed"


def is_done(pod: Pod) -> bool:
    return pod.metadata.annotations.get(DONE) == "true"


def lets_others_start(pod: Pod, status: ContainerStatus | None) -> bool:
    """Whether a container holds up none of lower priority: it is ready (CLP-11), or has run to a good end in a pod that
    does not start it again, and so will never be ready."""
    if status is None or status.ready:
        return status is not None
    ended = status.state.terminated
    return ended is not None and ended.exit_code == 0 and pod.spec.restart_policy in ("Never", "OnFailure")
