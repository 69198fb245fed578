"""How a pod's label and the name of a revision mean the same. Pure."""

from __future__ import annotations

_NAME_BYTES = 223


def revision_name(owner_name: str, hashed: str) -> str:
    """The name of a revision (IPU-13)."""
    return f"{owner_name.encode()[:_NAME_BYTES].decode(errors='ignore')}-{hashed}"


def is_of(revision: str, owner_name: str) -> bool:
    """Whether the revision of this name is one of an owner's: `web-5d9c` is of `web`, and `web-2-5d9c` is not."""
    return bool(revision) and revision == revision_name(owner_name, short_hash(revision))


def short_hash(label_or_name: str) -> str:
    """The hash in a revision's name or in a pod's revision label, which holds the name or the hash alone."""
    return label_or_name.rpartition("-")[2]


def is_revision(label: str, name: str) -> bool:
    """Whether a pod's revision label means the revision of this name, in full or by its hash alone (IPU-20)."""
    return bool(label) and bool(name) and (label == name or short_hash(label) == short_hash(name))
