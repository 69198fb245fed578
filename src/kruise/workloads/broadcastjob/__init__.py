"""BroadcastJob: a pod to completion on each node that suits."""
