"""PyKruise: advanced Kubernetes workloads and in-place update."""

import functools


@functools.cache
def release() -> str:
    """The version of this very PyKruise: that of its package, its image and its chart."""
    from importlib.metadata import PackageNotFoundError, version  # heavier than all that `kruise --help` needs

    try:
        return version("pykruise")
    except PackageNotFoundError:  # a source tree on the path
        return "0"
