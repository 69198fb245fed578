"""The scheduler of the local cluster, a client of the API that also runs on a real one.

`placing.place` says where a pod goes, `decide` places all that wait, `controller.specs` is how it is wired.
"""

from kruise.local.scheduler.controller import specs
from kruise.local.scheduler.messages import Unschedulable
from kruise.local.scheduler.placing import Placement, place

__all__ = ["Placement", "Unschedulable", "place", "specs"]
