"""The native workload controllers of the local cluster: ReplicaSet, Deployment, StatefulSet, DaemonSet and Job, as
clients of the API.

`specs` gives one `ControllerSpec` per kind; the name of a spec is the component that its events name.
"""

from kruise.local.workloads.controllers import specs

__all__ = ["specs"]
