"""Where we chose to differ from what was recorded of DaemonSets; docs/daemonset-differences.md tells it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

NAME = Chosen(
    r"\[revision name\] the first one: recorded 'agent-\w+', ours 'agent-\w+'",
    "Revisions have other hashes, since templates are stored as they were sent; which revision a template has is told "
    "by comparing it, never by a hash (DS-23).",
)
CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "daemonset-inplace": (NAME,),
    "daemonset-lifecycle": (NAME,),
    "daemonset-partition-selector": (NAME,),
    "daemonset-paused-ondelete": (NAME,),
    "daemonset-rolling-standard": (
        NAME,
        Chosen(
            r"\[spec.template\] as printed .*'creationTimestamp': None.*'resources': \{\}",
            "The template is stored as it was sent, without an empty `creationTimestamp` and empty `resources` "
            "(DS-15).",
        ),
    ),
    "daemonset-surge": (NAME,),
}
