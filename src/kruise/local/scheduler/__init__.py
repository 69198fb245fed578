"""The scheduler of the local cluster, a client of the API that also runs on a real one.

`kruise.scheduling` says where a pod goes, `decide` places all that wait, `controller.specs` is how it is wired.
"""

from kruise.local.scheduler.controller import specs

__all__ = ["specs"]
