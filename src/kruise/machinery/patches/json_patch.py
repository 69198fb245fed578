"""JSON patches (RFC 6902), applied the way the API server applies them.

The server's library is more lenient than the RFC in a few places, and people rely on it: `replace` of a member that is
missing sets it, `test` with null passes for a missing member, negative list indexes count from the end. Error texts
are the server's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.machinery.patches.errors import PatchError, TestFailedError, refuse_deep_nesting
from kruise.machinery.patches.values import same

_MISSING = object()
_INDEX = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INDEX_DIGITS = 18
_NOT_A_NUMBER = 'strconv.Atoi: parsing "{}": invalid syntax'
_ALIGNED_CELLS = 250_000
"""Above this product of lengths two lists are compared place by place, which is linear."""


@refuse_deep_nesting
def apply(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The document after all operations. Neither argument is changed; unchanged parts are shared with the result."""
    if isinstance(operations, (str, bytes, Mapping)) or not isinstance(operations, Sequence):
        raise PatchError("a JSON patch is a list of operations")
    draft = _Draft(document)
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise PatchError(f"a JSON patch operation is an object, not {operation!r}")
        kind = operation.get("op")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is None:
            raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        handler(draft, operation)
    return draft.root


def escape(token: str) -> str:
    """A member name as a part of a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1")


def pointer(*tokens: str | int) -> str:
    """The JSON pointer of a path: `pointer("metadata", "labels", "a/b")` is `/metadata/labels/a~1b`."""
    return "".join(f"/{escape(str(token))}" for token in tokens)


class _Draft:
    """A document being changed: containers are copied on their first change, so the input stays as it was."""

    def __init__(self, root: Any) -> None:
        self.root = root
        # The values keep the copies alive: an id is only unique among living objects.
        self._owned: dict[int, Any] = {}

    def own(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        copy = container.copy()
        self._owned[id(copy)] = copy
        return copy

    def share(self) -> None:
        """From here on no container is ours alone: one of them is now reachable by two paths."""
        self._owned.clear()

    def read(self, tokens: Sequence[str]) -> Any:
        """The container at the tokens; None where there is none."""
        node = self.root
        for token in tokens:
            node = _get(node, token)
            if node is _MISSING:
                return None
        return node if isinstance(node, (dict, list)) else None

    def write(self, tokens: Sequence[str]) -> Any:
        """The container at the tokens, ready to be changed; None where there is none."""
        if self.read(tokens) is None:
            return None
        node = self.root = self.own(self.root)
        for token in tokens:
            place: Any = token if isinstance(node, dict) else _index(token, len(node))
            child = node[place] = self.own(node[place])
            node = child
        return node


def _tokens(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _path(operation: Mapping[str, Any], name: str = "path") -> str:
    value = operation.get(name)
    if isinstance(value, str):
        return value
    kind = operation["op"]
    if name == "from":
        detail = "operation, missing from field: "
    else:
        detail = "" if kind in ("add", "remove", "copy") else "operation missing path field: "
    raise PatchError(f"{kind} operation failed to decode {name}: {detail}missing value")


def _index(token: str, length: int) -> int:
    """The place of an element that exists, counted from the end where negative."""
    if _INDEX.fullmatch(token) is None:
        raise PatchError(_NOT_A_NUMBER.format(token))
    number = int(token[:_INDEX_DIGITS])
    if len(token) > _INDEX_DIGITS or not -length <= number < length:
        raise PatchError(f"Unable to access invalid index: {token}: invalid index referenced")
    return number if number >= 0 else number + length


def _get(container: Any, token: str) -> Any:
    """The value, or `_MISSING` where a member is absent, an index is bad or there is nothing to look into."""
    if isinstance(container, dict):
        return container.get(token, _MISSING)
    if isinstance(container, list):
        try:
            return container[_index(token, len(container))]
        except PatchError:
            return _MISSING
    return _MISSING


def _insert(container: Any, token: str, value: Any) -> None:
    if isinstance(container, dict):
        container[token] = value
    elif token == "-":
        container.append(value)
    else:
        if _INDEX.fullmatch(token) is None:
            raise PatchError(f"value was not a proper array index: '{token}': {_NOT_A_NUMBER.format(token)}")
        container.insert(_index(token, len(container) + 1), value)


def _discard(container: Any, token: str) -> Any:
    if isinstance(container, dict):
        if token not in container:
            raise PatchError(f"Unable to remove nonexistent key: {token}: missing value")
        return container.pop(token)
    return container.pop(_index(token, len(container)))


def _add(draft: _Draft, operation: Mapping[str, Any]) -> None:
    path = _path(operation)
    tokens = _tokens(path)
    container = draft.write(tokens[:-1]) if tokens else None
    if container is None:
        raise PatchError(f'add operation does not apply: doc is missing path: "{path}": missing value')
    try:
        _insert(container, tokens[-1], operation.get("value"))
    except PatchError as error:
        raise PatchError(f"error in add for path: '{path}': {error}") from None


def _remove(draft: _Draft, operation: Mapping[str, Any]) -> None:
    path = _path(operation)
    tokens = _tokens(path)
    container = draft.write(tokens[:-1]) if tokens else None
    if container is None:
        raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": missing value')
    try:
        _discard(container, tokens[-1])
    except PatchError as error:
        raise PatchError(f"error in remove for path: '{path}': {error}") from None


def _replace(draft: _Draft, operation: Mapping[str, Any]) -> None:
    path = _path(operation)
    value = operation.get("value")
    if not path:
        draft.root = value
        return
    tokens = _tokens(path)
    container = draft.write(tokens[:-1]) if tokens else None
    if container is None:
        raise PatchError(f"replace operation does not apply: doc is missing path: {path}: missing value")
    if isinstance(container, dict):
        container[tokens[-1]] = value
        return
    try:
        place = _index(tokens[-1], len(container))
    except PatchError:
        raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from None
    container[place] = value


def _move(draft: _Draft, operation: Mapping[str, Any]) -> None:
    source = _path(operation, "from")
    tokens = _tokens(source)
    container = draft.write(tokens[:-1]) if tokens else None
    if container is None:
        raise PatchError(f"move operation does not apply: doc is missing from path: {source}: missing value")
    try:
        value = _discard(container, tokens[-1])
    except PatchError as error:
        raise PatchError(f"error in move for path: '{tokens[-1]}': {error}") from None
    path = _path(operation)
    tokens = _tokens(path)
    container = draft.write(tokens[:-1]) if tokens else None
    if container is None:
        raise PatchError(f"move operation does not apply: doc is missing destination path: {path}: missing value")
    try:
        _insert(container, tokens[-1], value)
    except PatchError as error:
        raise PatchError(f"error in move for path: '{path}': {error}") from None


def _copy(draft: _Draft, operation: Mapping[str, Any]) -> None:
    source = _path(operation, "from")
    tokens = _tokens(source)
    container = draft.read(tokens[:-1]) if tokens else None
    if container is None:
        raise PatchError(f"copy operation does not apply: doc is missing from path: {source}: missing value")
    if isinstance(container, dict):
        value = container.get(tokens[-1])
    else:
        try:
            value = container[_index(tokens[-1], len(container))]
        except PatchError as error:
            raise PatchError(f"error in copy for from: '{source}': {error}") from None
    path = _path(operation)
    tokens = _tokens(path)
    draft.share()
    container = draft.write(tokens[:-1]) if tokens else None
    if container is None:
        raise PatchError(f"copy operation does not apply: doc is missing destination path: {path}: missing value")
    try:
        _insert(container, tokens[-1], value)
    except PatchError as error:
        raise PatchError(f"error while adding value during copy: {error}") from None


def _test(draft: _Draft, operation: Mapping[str, Any]) -> None:
    path = _path(operation)
    expected = operation.get("value")
    if not path:
        found = draft.root
    else:
        tokens = _tokens(path)
        container = draft.read(tokens[:-1]) if tokens else None
        if container is None:
            raise PatchError(f"test operation does not apply: is missing path: {path}: missing value")
        if isinstance(container, dict):
            found = container.get(tokens[-1])
        else:
            try:
                found = container[_index(tokens[-1], len(container))]
            except PatchError as error:
                raise PatchError(f"error in test for path: '{path}': {error}") from None
    if not same(found, expected):
        raise TestFailedError(f"testing value {path} failed: test failed")


_HANDLERS = {"add": _add, "remove": _remove, "replace": _replace, "move": _move, "copy": _copy, "test": _test}


@refuse_deep_nesting
def diff(before: Any, after: Any) -> list[dict[str, Any]]:
    """Operations that turn `before` into `after`: only `add`, `remove` and `replace`, and only where they differ.

    List elements are matched by their `name` member where they have one, else by equality, so that an element put in
    front of others is one operation.
    """
    operations: list[dict[str, Any]] = []
    _diff(before, after, "", operations)
    return operations


def _diff(before: Any, after: Any, path: str, operations: list[dict[str, Any]]) -> None:
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict) and _worth_going_into(before, after):
        _diff_objects(before, after, path, operations)
    elif isinstance(before, list) and isinstance(after, list) and before and after:
        _diff_lists(before, after, path, operations)
    else:
        operations.append({"op": "replace", "path": path, "value": after})


def _worth_going_into(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return not before or not after.keys().isdisjoint(before)


def _diff_objects(before: dict[str, Any], after: dict[str, Any], path: str, operations: list[dict[str, Any]]) -> None:
    for name in before:
        if name not in after:
            operations.append({"op": "remove", "path": f"{path}/{escape(name)}"})
    for name, value in after.items():
        place = f"{path}/{escape(name)}"
        if name in before:
            _diff(before[name], value, place, operations)
        else:
            operations.append({"op": "add", "path": place, "value": value})


def _diff_lists(before: list[Any], after: list[Any], path: str, operations: list[dict[str, Any]]) -> None:
    start, end_before, end_after = 0, len(before), len(after)
    while start < min(end_before, end_after) and same(before[start], after[start]):
        start += 1
    while min(end_before, end_after) > start and same(before[end_before - 1], after[end_after - 1]):
        end_before, end_after = end_before - 1, end_after - 1
    place = start
    last_before = last_after = start
    for match_before, match_after in [
        *_aligned(before[start:end_before], after[start:end_after]),
        (end_before - start, end_after - start),
    ]:
        old = before[last_before : start + match_before]
        new = after[last_after : start + match_after]
        paired = min(len(old), len(new))
        for old_value, new_value in zip(old[:paired], new[:paired], strict=True):
            if _named_differently(old_value, new_value):
                operations.append({"op": "replace", "path": f"{path}/{place}", "value": new_value})
            else:
                _diff(old_value, new_value, f"{path}/{place}", operations)
            place += 1
        operations.extend({"op": "remove", "path": f"{path}/{place}"} for _ in old[paired:])
        for value in new[paired:]:
            operations.append({"op": "add", "path": f"{path}/{place}", "value": value})
            place += 1
        last_before, last_after = start + match_before, start + match_after
        if last_before < end_before and last_after < end_after:
            _diff(before[last_before], after[last_after], f"{path}/{place}", operations)
            place, last_before, last_after = place + 1, last_before + 1, last_after + 1


def _aligned(before: list[Any], after: list[Any]) -> list[tuple[int, int]]:
    """Which elements stay: the longest common subsequence by identity, as pairs of places."""
    if not before or not after or len(before) * len(after) > _ALIGNED_CELLS:
        return []
    rows, columns = len(before), len(after)
    alike = [[_alike(old, new) for new in after] for old in before]
    longest = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            longest[row][column] = (
                longest[row + 1][column + 1] + 1
                if alike[row][column]
                else max(longest[row + 1][column], longest[row][column + 1])
            )
    pairs: list[tuple[int, int]] = []
    row = column = 0
    while row < rows and column < columns:
        if alike[row][column]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif longest[row + 1][column] >= longest[row][column + 1]:
            row += 1
        else:
            column += 1
    return pairs


def _named_differently(old: Any, new: Any) -> bool:
    return isinstance(old, dict) and isinstance(new, dict) and old.get("name") != new.get("name")


def _alike(old: Any, new: Any) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        name = old.get("name")
        if isinstance(name, str):
            return name == new.get("name")
    return same(old, new)
