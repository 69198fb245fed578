"""Advanced DaemonSet: a pod on each node that suits it, updated node by node, in place where possible."""
