"""Which names a kind accepts, with Kubernetes' words for what is wrong.

A check is called with a name and whether it is only the beginning of a generated one (`generateName`).
"""

from __future__ import annotations

from collections.abc import Callable

from kruise.machinery.names import dns_1035_label_problems, dns_label_problems, dns_subdomain_problems

NameCheck = Callable[[str, bool], list[str]]


def _whole(name: str, prefix: bool) -> str:
    """A generated name goes on after its dash, so a trailing one is no fault (two characters go, as upstream)."""
    return f"{name[:-2]}a" if prefix and len(name) > 1 and name.endswith("-") else name


def dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    return dns_subdomain_problems(_whole(name, prefix))


def dns_label(name: str, prefix: bool = False) -> list[str]:
    return dns_label_problems(_whole(name, prefix))


def dns_1035_label(name: str, prefix: bool = False) -> list[str]:
    return dns_1035_label_problems(_whole(name, prefix))


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """The loosest rule: whatever can stand between two slashes of a path."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]
