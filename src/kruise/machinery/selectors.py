"""Label selectors and field selectors, with the API's grammar and its error texts.

a=b, c==d, e!=f, g in (x, y), h notin (z), i, !j, k>1, l<5          labels
metadata.name=x,spec.nodeName!=y                                    fields; `\\,` `\\=` `\\\\` in values
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.core.formats import label_value, qualified_name
from kruise.api.meta import LabelSelector, LabelSelectorRequirement


class SelectorError(ValueError):
    """The selector does not follow the grammar, or one of its keys or values is not allowed."""


class Operator(enum.StrEnum):
    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_BINARY = "in, notin, =, ==, !=, gt, lt"
_POSITIVE = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_NEGATIVE = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})
_SINGLE = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS})
_UNARY = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SIGNS = {
    Operator.IN: " in ",
    Operator.NOT_IN: " notin ",
    Operator.GREATER_THAN: ">",
    Operator.LESS_THAN: "<",
}


def _invalid(field: str, value: Any, detail: str) -> str:
    return f"{field}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {detail}"


@dataclasses.dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if wrong := qualified_name(self.key):
            problems.append(_invalid("key", self.key, "; ".join(wrong)))
        if detail := self._wrong_values():
            problems.append(_invalid("values", list(self.values) or None, detail))
        if self.operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
            problems.extend(
                _invalid(f"values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
                for index, value in enumerate(self.values)
                if _integer(value) is None
            )
        for index, value in enumerate(self.values):
            if wrong := label_value(value):
                problems.append(_invalid(f"values[{index}][{self.key}]", value, "; ".join(wrong)))
        if problems:
            raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    def _wrong_values(self) -> str:
        if self.operator in (Operator.IN, Operator.NOT_IN):
            return "" if self.values else "for 'in', 'notin' operators, values set can't be empty"
        if self.operator in _UNARY:
            return "values set must be empty for exists and does not exist" if self.values else ""
        if len(self.values) == 1:
            return ""
        if self.operator in _SINGLE:
            return "exact-match compatibility requires one single value"
        return "for 'Gt', 'Lt' operators, exactly one value is required"

    @property
    def only_values(self) -> tuple[str, ...]:
        """The values of which the label must have one; none: they do not decide it."""
        return self.values if self.operator in _POSITIVE else ()

    @property
    def needs_label(self) -> bool:
        """Whether nothing matches that does not have the label at all."""
        return self.operator not in _NEGATIVE and self.operator is not Operator.DOES_NOT_EXIST

    def matches(self, labels: Mapping[str, str]) -> bool:
        operator = self.operator
        value = labels.get(self.key)
        if operator is Operator.EQUALS:  # nearly all are like this, and looking into a set of members takes its time
            return value == self.values[0]
        if operator in _POSITIVE:
            return value in self.values
        if operator in _NEGATIVE:
            return value not in self.values
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        number = None if value is None else _integer(value)
        bound = _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if operator is Operator.GREATER_THAN else number < bound

    def __str__(self) -> str:
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator is Operator.EXISTS:
            return self.key
        values = ",".join(sorted(self.values))
        if self.operator in (Operator.IN, Operator.NOT_IN):
            values = f"({values})"
        return f"{self.key}{_SIGNS.get(self.operator, self.operator.value)}{values}"


def _integer(text: str) -> int | None:
    if len(text) > 20 or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@dataclasses.dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements; without any, everything is selected."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.selects_nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110 - a generator costs more than all that it asks
            if not requirement.matches(labels):
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements and not self.selects_nothing

    def exact_value(self, key: str) -> str | None:
        """The only value that a label may have for a match, where the selector says so."""
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator in _POSITIVE and len(requirement.values) == 1:
                return requirement.values[0]
        return None

    def __str__(self) -> str:
        """The canonical text. A selector that selects nothing has none; what it gives is refused by every server, where
        an empty text would select everything."""
        if self.selects_nothing:
            return "<nothing>"
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()
NOTHING = Selector(selects_nothing=True)


def _selector(requirements: Iterable[Requirement]) -> Selector:
    return Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def from_labels(labels: Mapping[str, str] | None) -> Selector:
    """Select what has all these labels (the selector of a Service). None and empty select everything."""
    return _selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in (labels or {}).items())


_STRUCT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_label_selector(selector: LabelSelector | Mapping[str, Any] | None) -> Selector:
    """From the `LabelSelector` of an object, decoded or as plain JSON. None selects nothing, empty everything."""
    if selector is None:
        return NOTHING
    if not isinstance(selector, LabelSelector):
        selector = _decoded(selector)
    requirements = [Requirement(key, Operator.EQUALS, (value,)) for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        operator = _STRUCT_OPERATORS.get(expression.operator)
        if operator is None:
            raise SelectorError(f"{json.dumps(expression.operator)} is not a valid label selector operator")
        requirements.append(Requirement(expression.key, operator, expression.values))
    return _selector(requirements)


def _decoded(selector: Mapping[str, Any]) -> LabelSelector:
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    if not isinstance(labels, Mapping) or not all(isinstance(value, str) for value in labels.values()):
        raise SelectorError("matchLabels must be an object of strings")
    if not isinstance(expressions, list) or not all(isinstance(item, Mapping) for item in expressions):
        raise SelectorError("matchExpressions must be a list of objects")
    decoded = []
    for item in expressions:
        values = item.get("values") or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise SelectorError("the values of a match expression must be a list of strings")
        decoded.append(
            LabelSelectorRequirement(
                key=str(item.get("key", "")), operator=str(item.get("operator", "")), values=tuple(values)
            )
        )
    return LabelSelector(match_labels=dict(labels), match_expressions=tuple(decoded))


_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|\Z)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_TEXT_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


def parse(text: str) -> Selector:
    """Parse the text form of a label selector; an empty text selects everything."""
    return _Parser(text).run()


class _Parser:
    """Reads requirements one after the other. A token is a symbol, a word, or empty at the end of the text."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(text)
        self._place = 0

    def run(self) -> Selector:
        requirements: list[Requirement] = []
        if self._next() == "":
            return EVERYTHING
        if self._next() in _SYMBOLS - {"!"}:
            raise SelectorError(f"found '{self._next()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            separator = self._take()
            if separator == "":
                return _selector(requirements)
            if separator != ",":
                raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
            if self._next() == "" or self._next() in _SYMBOLS - {"!"}:
                raise SelectorError(f"found '{self._next()}', expected: identifier after ','")

    def _next(self) -> str:
        return self._tokens[min(self._place, len(self._tokens) - 1)]

    def _take(self) -> str:
        token = self._next()
        self._place += 1
        return token

    def _word(self) -> str:
        token = self._take()
        if token == "" or token in _SYMBOLS:
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _requirement(self) -> Requirement:
        absent = self._next() == "!"
        if absent:
            self._take()
        key = self._word()
        if wrong := qualified_name(key):
            raise SelectorError(_invalid("<nil>", key, "; ".join(wrong)))
        if absent:
            return Requirement(key, Operator.DOES_NOT_EXIST)
        if self._next() in ("", ","):
            return Requirement(key, Operator.EXISTS)
        token = self._take()
        operator = _TEXT_OPERATORS.get(token)
        if operator is None:
            raise SelectorError(f"found '{token}', expected: {_BINARY}")
        if operator in (Operator.IN, Operator.NOT_IN):
            return Requirement(key, operator, tuple(sorted(self._values())))
        value = "" if self._next() in ("", ",") else self._word()
        return Requirement(key, operator, (value,))

    def _values(self) -> set[str]:
        """The values in parentheses. A value may be empty: `()`, `(a,)` and `(,a)` all hold the empty one."""
        if (token := self._take()) != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        values: set[str] = set()
        while True:
            token = self._next()
            if token in (",", ")"):
                values.add("")
            elif token == "" or token in _SYMBOLS:
                raise SelectorError(f"found '{token}', expected: ',', ')' or identifier")
            else:
                values.add(self._take())
            token = self._take()
            if token == ")":
                return values
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or ')'")


@dataclasses.dataclass(frozen=True, slots=True)
class FieldRequirement:
    field: str
    equal: bool
    value: str

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'=' if self.equal else '!='}{escaped}"


@dataclasses.dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of field requirements; without any, everything is selected."""

    requirements: tuple[FieldRequirement, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_FIELD_TERM = re.compile(r"(?:[^\\,]|\\.|\\\Z)*", re.DOTALL)
_FIELD_OPERATOR = re.compile(r"!=|==|=")


def parse_fields(text: str) -> FieldSelector:
    """Parse the text form of a field selector; an empty text selects everything."""
    terms: list[str] = []
    place = 0
    while place <= len(text):
        match = _FIELD_TERM.match(text, place)
        term = match.group() if match else ""
        terms.append(term)
        place += len(term) + 1
    requirements = []
    for term in sorted(filter(None, terms)):
        found = _FIELD_OPERATOR.search(term)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        field, value = term[: found.start()], _unescaped(term[found.end() :])
        if field or value:
            requirements.append(FieldRequirement(field, found.group() != "!=", value))
    return FieldSelector(tuple(requirements))


def _unescaped(value: str) -> str:
    characters: list[str] = []
    remaining = iter(value)
    for character in remaining:
        if character == "\\":
            escaped = next(remaining, "")
            if escaped not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            characters.append(escaped)
        elif character == "=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            characters.append(character)
    return "".join(characters)
