"""Where a pod goes: the rules of kube-scheduler, as values (pure).

The scheduler of the local cluster decides by them, and forecasts place their pods by them.

    placing      filters, then scores; `Cluster` keeps what is free on each node
    nodes        labels, taints and scores of nodes
    requests     what a pod asks of a node
    exclusion    required anti-affinity between pods
    messages     kube-scheduler's words for a pod that fits nowhere
"""
