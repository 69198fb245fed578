"""Why kubelets say that containers wait, as far as anybody has to tell these reasons apart."""

from __future__ import annotations

GOING_WELL = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Nothing is wrong: the container is on its way."""
INVALID_IMAGE_NAME = "InvalidImageName"
NO_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        INVALID_IMAGE_NAME,
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
CRASH_LOOP = "CrashLoopBackOff"
NO_START = frozenset(
    {
        CRASH_LOOP,
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
    }
)
