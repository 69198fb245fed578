"""From the words of a command line, and from files, to the objects that are meant."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kruise.faces.face import Face
from kruise.machinery.documents import Json, name_of, namespace_of
from kruise.machinery.wording import with_article
from kruise.verbs import lookup
from kruise.verbs.errors import UsageError


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One object."""

    kind: Face
    name: str
    namespace: str = ""
    """Empty: the one of the command."""

    def __str__(self) -> str:
        return self.kind.named(self.name)


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """What a command is about: objects by name, or all of some kinds that a selector matches."""

    targets: tuple[Target, ...] = ()
    kinds: tuple[Face, ...] = ()
    selector: str = ""


def parse(words: Sequence[str], *, selector: str = "", everything: bool = False, can_select: bool = True) -> Selection:
    """`KIND/NAME...`, `KIND NAME...`, or `KIND[,KIND...]` with a selector or `--all`; the kind `all`: workloads.

    `can_select` False: the verb has no such flags, and must not speak of them.
    """
    if selector and everything:
        raise UsageError("cannot set --all and --selector at the same time")
    if not words:
        raise UsageError(
            "name the workload as KIND/NAME or KIND NAME, for example cloneset/web, or give a file with -f"
        )
    if any("/" in word for word in words):
        if selector or everything:
            raise UsageError("a name cannot be given together with --all or --selector")
        return Selection(targets=tuple(_slashed(word) for word in words))
    chosen, names = _kinds(words[0]), words[1:]
    if names:
        if selector or everything:
            raise UsageError("names cannot be given together with --all or --selector")
        return Selection(targets=tuple(Target(kind, name) for kind in chosen for name in names))
    if not selector and not everything:
        flags = ", or use --all or -l SELECTOR" if can_select else ""
        raise UsageError(f"which {chosen[0]}? Name it as {chosen[0].singular}/NAME{flags}")
    return Selection(kinds=chosen, selector=selector)


def _slashed(word: str) -> Target:
    kind, slash, name = word.partition("/")
    if not slash or not kind or not name or "/" in name:
        raise UsageError(
            f'"{word}" is no KIND/NAME: where one object is named so, all must be, for example cloneset/web deploy/api'
        )
    return Target(lookup.find(kind), name)


def _kinds(word: str) -> tuple[Face, ...]:
    if word.lower() == "all":
        return lookup.workloads()
    return tuple(dict.fromkeys(lookup.find(part) for part in word.split(",") if part))


def split_assignments(words: Sequence[str], *, removals: bool = False) -> tuple[list[str], list[str]]:
    """Words that name objects, and those behind them that say what to set (`KEY=VALUE`, `KEY-` where removals count).

    A lone dash stands for assignments that are read from the standard input.
    """
    for index, word in enumerate(words):
        if _is_assignment(word, removals):
            wrong = [later for later in words[index:] if not _is_assignment(later, removals)]
            if wrong:
                raise UsageError(f'name the workloads before what is to be set: "{wrong[0]}" stands too late')
            return list(words[:index]), list(words[index:])
    return list(words), []


def _is_assignment(word: str, removals: bool) -> bool:
    return "=" in word or (removals and word.endswith("-") and "/" not in word)


def flattened(documents: Iterable[Any], origin: str) -> Iterator[Json]:
    """The objects of a file; lists are opened."""
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise UsageError(f"{origin} holds no Kubernetes object: {document!r}")
        if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
            yield from flattened(document["items"], origin)
        elif missing := [field for field in ("apiVersion", "kind") if not document.get(field)]:
            raise UsageError(f"{origin} holds an object without {' and '.join(missing)}: is it a manifest?")
        else:
            yield document


def from_manifest(document: Json, *, namespace: str = "", origin: str = "") -> Target:
    """The object that a manifest is about. `namespace` is the one of the command line, if it names one."""
    kind, name, own = lookup.find_manifest(document, origin), name_of(document), namespace_of(document)
    if not name:
        raise UsageError(f"{origin}: {with_article(str(kind))} there has no metadata.name")
    if namespace and own and own != namespace:
        raise UsageError(
            f'the namespace from the provided object "{own}" does not match the namespace "{namespace}". '
            f"You must pass '--namespace={own}' to perform this operation."
        )
    return Target(kind, name, own)


def only(selected: Sequence[Target], verb: str) -> Target:
    """The one object of verbs that work on a single one."""
    if len(selected) != 1:
        raise UsageError(f"{verb} takes one object, not {len(selected)}: {', '.join(map(str, selected)) or 'none'}")
    return selected[0]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Names that are near a wrong one, as the end of a sentence; empty where none is."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def pod_name(pod: str) -> str:
    """Of what is typed for a pod."""
    return pod.removeprefix("pod/").removeprefix("pods/").removeprefix("po/")
