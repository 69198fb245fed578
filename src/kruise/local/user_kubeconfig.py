"""The context of a local cluster in the user's own kubeconfig: `kruise up` puts it in, `kruise down` takes it out.

Every entry of ours carries a mark with the state directory of its cluster, as an extension, which other programs keep.
Only entries with our mark are ever changed or removed. The file is edited as a tree of YAML nodes, so that all the rest
is written back as it was; only comments are lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kruise.machinery.client.kubeconfig import LOCAL_CLUSTER_EXTENSION

NAME = "kruise"
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_LOCK_SECONDS = 5.0
_POLL_SECONDS = 0.05
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UserKubeconfigError(RuntimeError):
    """The user's kubeconfig could not be read or written; the text says which and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Merged:
    """Where a context was put."""

    path: Path
    context: str


def merge(kubeconfig: Any, state: Path, files: Sequence[Path]) -> Merged:
    """Put the cluster of `kubeconfig` into the user's files as their current context.

    kubectl's rule for new entries: the first file that exists, else the last.
    """
    target = next((file for file in files if file.exists()), files[-1])
    taken = {name for file in files if file != target for name in _names(_read(file))}

    def edit(tree: MappingNode) -> None:
        _remove(tree, str(state))
        name = _free_name(taken | _names(tree))
        for section, kind in _SECTIONS.items():
            [entry] = kubeconfig[section]
            _section(tree, section).value.append(_node(_renamed(entry[kind], kind, name, str(state))))
        _set(tree, "current-context", _node(name))
        chosen.append(name)

    chosen: list[str] = []
    _edit(target, edit)
    return Merged(target, chosen[0])


def withdraw(state: Path, files: Iterable[Path]) -> None:
    """Take out whatever is marked as ours. Files that hold nothing of ours are not touched.

    Where our context was the current one there is none afterwards, as with kind: nobody is sent to another cluster that
    he did not choose.
    """
    existing = [file for file in dict.fromkeys(files) if file.exists()]
    marked = [file for file in existing if _is_marked(file)]
    contexts = {name for file in marked for name in _ours(_read(file), "contexts", str(state))}

    def edit(tree: MappingNode) -> None:
        _remove(tree, str(state))
        if _scalar(_get(tree, "current-context")) in contexts:
            _set(tree, "current-context", _node(""))

    for file in existing if contexts else marked:
        tree = _read(file)
        is_concerned = any(_ours(tree, section, str(state)) for section in _SECTIONS)
        if is_concerned or _scalar(_get(tree, "current-context")) in contexts:
            _edit(file, edit)


# Entries


def _renamed(fields: dict[str, Any], kind: str, name: str, state: str) -> dict[str, Any]:
    mark = [{"name": LOCAL_CLUSTER_EXTENSION, "extension": {"state": state}}]
    references = {"cluster": name, "user": name} if kind == "context" else {}
    return {"name": name, kind: {**fields, **references, "extensions": mark}}


def _free_name(taken: set[str]) -> str:
    """`kruise`, or `kruise-2` and so on where another cluster has that name."""
    number = 1
    while (name := NAME if number == 1 else f"{NAME}-{number}") in taken:
        number += 1
    return name


def _names(tree: MappingNode) -> set[str]:
    return {_name(entry) for section in _SECTIONS for entry in _entries(tree, section)}


def _ours(tree: MappingNode, section: str, state: str) -> list[str]:
    return [_name(entry) for entry in _entries(tree, section) if _mark(entry, _SECTIONS[section]) == state]


def _remove(tree: MappingNode, state: str) -> None:
    for section, kind in _SECTIONS.items():
        if _ours(tree, section, state):
            found = _section(tree, section)
            found.value = [entry for entry in found.value if _mark(entry, kind) != state]


def _mark(entry: Node, kind: str) -> str:
    """The state directory that an entry belongs to; empty: it is not of a local cluster."""
    extensions = _get(_get(entry, kind), "extensions")
    for item in extensions.value if isinstance(extensions, SequenceNode) else ():
        if _scalar(_get(item, "name")) == LOCAL_CLUSTER_EXTENSION:
            return _scalar(_get(_get(item, "extension"), "state"))
    return ""


def _name(entry: Node) -> str:
    return _scalar(_get(entry, "name"))


def _entries(tree: MappingNode, section: str) -> list[Node]:
    found = _get(tree, section)
    return list(found.value) if isinstance(found, SequenceNode) else []


def _section(tree: MappingNode, section: str) -> SequenceNode:
    found = _get(tree, section)
    if not isinstance(found, SequenceNode):  # missing, or null as kubectl writes an empty one
        found = _node([])
        _set(tree, section, found)
    if not found.value:
        found.flow_style = tree.flow_style  # an empty list is written as [], one with entries in lines
    return found


# YAML nodes


def _get(node: Node | None, key: str) -> Node | None:
    for name, value in node.value if isinstance(node, MappingNode) else ():
        if _scalar(name) == key:
            return value  # type: ignore[no-any-return]
    return None


def _set(tree: MappingNode, key: str, value: Node) -> None:
    for index, (name, _) in enumerate(tree.value):
        if _scalar(name) == key:
            tree.value[index] = (name, value)
            return
    tree.value.append((_node(key), value))


def _scalar(node: Node | None) -> str:
    return str(node.value) if isinstance(node, ScalarNode) else ""


def _node(data: Any) -> Any:
    return yaml.representer.SafeRepresenter(default_flow_style=False, sort_keys=False).represent_data(data)


# The file


def _is_marked(file: Path) -> bool:
    """Whether a local cluster is in it at all: most files need not be understood."""
    try:
        return LOCAL_CLUSTER_EXTENSION.encode() in file.read_bytes()
    except OSError:
        return False


def _read(file: Path) -> MappingNode:
    try:
        tree = yaml.compose(file.read_text(encoding="utf-8"), Loader=_LOADER)
    except FileNotFoundError:
        tree = None
    except OSError as error:
        raise UserKubeconfigError(f"{file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserKubeconfigError(f"{file} is no valid YAML: {' '.join(str(error).split())}") from error
    if tree is None or _scalar(tree) == "null":
        tree = _node({"apiVersion": "v1", "kind": "Config", "preferences": {}})
    if not isinstance(tree, MappingNode):
        raise UserKubeconfigError(f"{file} is no kubeconfig")
    return tree


def _edit(file: Path, edit: Callable[[MappingNode], None]) -> None:
    target = file.resolve()  # a link stays one
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.ExitStack() as locks:
            # kubectl locks the path that it is given. Others may be given what the link leads to.
            for path in dict.fromkeys((file, target)):
                locks.enter_context(_locked(path))
            tree = _read(target)
            edit(tree)
            _write(target, yaml.serialize(tree, Dumper=yaml.SafeDumper, allow_unicode=True, width=10**9))
    except OSError as error:
        raise UserKubeconfigError(f"{file} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """By the lock file that kubectl and kind use."""
    lock = file.with_name(f"{file.name}.lock")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise UserKubeconfigError(
                    f"{lock} is there: another program is changing the file. Remove the lock if none is"
                ) from None
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    """All of it or nothing. Only its owner may read it: there are keys in it."""
    number, fresh = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)  # 0600
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            if os.geteuid() == 0 and file.exists():
                before = file.stat()
                os.fchown(out.fileno(), before.st_uid, before.st_gid)
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, file)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
