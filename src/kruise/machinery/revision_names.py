"""How a pod's label and the name of a revision mean the same. Pure."""

from __future__ import annotations


def short_hash(label_or_name: str) -> str:
    """The hash in a revision's name or in a pod's revision label, which holds the name or the hash alone."""
    return label_or_name.rpartition("-")[2]


def is_revision(label: str, name: str) -> bool:
    """Whether a pod's revision label means the revision of this name, in full or by its hash alone (IPU-20)."""
    return bool(label) and bool(name) and (label == name or short_hash(label) == short_hash(name))
