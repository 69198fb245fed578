"""The nodes of a job (IPJ 4.6). Reads stores, without any request."""

from __future__ import annotations

from kruise.api.apps.images import NODE_IMAGES, ImagePullJob, NodeImage
from kruise.api.native.pod import PODS, is_active
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import Stores


def selected_nodes(stores: Stores, job: ImagePullJob) -> tuple[tuple[NodeImage, ...], int]:
    """The NodeImages of the nodes that are to pull, by name, and how many objects were looked at for that. A selector
    that is none, as only an object from before can have it, selects nothing."""
    store = stores.store(NODE_IMAGES)
    try:
        names = _names(stores, job)
        if names is not None:
            unique, looked_at = names
            found = (store.get("", name) for name in sorted(unique))
            return tuple(one for one in found if one is not None and not store.is_terminating(one)), looked_at
        selector = from_label_selector(job.spec.selector) if job.spec.selector is not None else None
    except SelectorError:
        return (), 0
    everything = store.list()
    return (
        tuple(
            one
            for one in everything
            if (selector is None or selector.matches(one.metadata.labels)) and not store.is_terminating(one)
        ),
        len(everything),
    )


def _names(stores: Stores, job: ImagePullJob) -> tuple[set[str], int] | None:
    """Nodes that are known by name, with how many objects were looked at; None: they go by labels."""
    spec = job.spec
    if spec.pod_selector is not None:
        selector = from_label_selector(spec.pod_selector)
        pods = stores.store(PODS).list(job.metadata.namespace)
        nodes = {
            pod.spec.node_name
            for pod in pods
            if pod.spec.node_name and selector.matches(pod.metadata.labels) and is_active(pod)
        }
        return nodes, len(pods)
    if spec.selector is not None and spec.selector.names is not None:
        return set(spec.selector.names), len(spec.selector.names)
    return None
