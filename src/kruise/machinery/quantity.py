"""Resource quantities: exact amounts with Kubernetes' suffixes, rounding and text forms.

An amount is kept in whole billionths ("nano"), which is the finest that the API knows; anything finer is rounded up.
The text form follows the family that the amount was written in: binary (`Ki`, `Mi`), decimal (`m`, `k`, `M`) or decimal
exponent (`e3`). Like the API server's own code, a text that passes for canonical there is kept as it was written, even
where that is a stretch (`1.500`, `1E3`): templates are hashed, so every client has to write the same.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
from typing import Self

_WORDS_FORMAT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"  # the server's text
)
_WORDS_SUFFIX = "unable to parse quantity's suffix"

_NANO = 10**9
_MAX_BINARY = 2**63 - 1
_FAST_DIGITS = 18
_MAX_EXPONENT = 1_000
"""Far above anything that can be meant, and small enough that no text can make us compute for long."""

_PATTERN = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,18})", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES = ("", *_BINARY)


class QuantityError(ValueError):
    """The text is no quantity."""


class Format(enum.Enum):
    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@functools.total_ordering
@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Two quantities are equal when their amounts are, however they are written."""

    nanos: int
    format: Format = Format.DECIMAL
    written: str = ""
    """The text that it was read from, where that counts as canonical."""

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _PATTERN.fullmatch(text)
        if not text or match is None:
            raise QuantityError(_WORDS_FORMAT)
        sign, number, fraction, suffix = match[1], match[2] or "0", match[3] or "", match[4]
        if suffix in _BINARY:
            return cls._binary(text, sign == "-", number, fraction, _BINARY[suffix])
        if suffix in _DECIMAL:
            exponent, family = _DECIMAL[suffix], Format.DECIMAL
        elif found := _EXPONENT.fullmatch(suffix):
            exponent, family = int(found[1]), Format.EXPONENT
        else:
            raise QuantityError(_WORDS_SUFFIX)
        return cls._decimal(text, sign == "-", number, fraction, exponent, family)

    @classmethod
    def _decimal(cls, text: str, negative: bool, number: str, fraction: str, exponent: int, family: Format) -> Self:
        digits = number + fraction
        if len(digits) > _MAX_EXPONENT or exponent > _MAX_EXPONENT:
            raise QuantityError(_WORDS_SUFFIX)
        scale = exponent - len(fraction)
        amount = int(digits)
        if amount == 0:
            nanos = 0
        elif scale >= -9:
            nanos = amount * 10 ** (scale + 9)
        elif -scale - 9 > len(digits):
            nanos = 1
        else:
            nanos = -(-amount // 10 ** (-scale - 9))
        kept = (
            len(digits) <= _FAST_DIGITS
            and scale >= -9
            and scale % 3 == 0
            and not digits.endswith("000")
            and not digits.startswith("0")
        )
        return cls(-nanos if negative else nanos, family, text if kept else "")

    @classmethod
    def _binary(cls, text: str, negative: bool, number: str, fraction: str, exponent: int) -> Self:
        if len(number) + len(fraction) > _MAX_EXPONENT:
            raise QuantityError(_WORDS_SUFFIX)
        product = int(number + fraction) << exponent
        nanos = -(-product * _NANO // 10 ** len(fraction))
        nanos = min(nanos, _MAX_BINARY * _NANO)
        # The server reads short whole numbers in another way, and keeps their text unless they may be reducible.
        short = not fraction and 15 - len(number) - exponent * 3 // 10 - 1 >= 0
        kept = short and int(number) & 7 != 0
        family = Format.DECIMAL if 0 < nanos < _NANO else Format.BINARY
        return cls(-nanos if negative else nanos, family, text if kept else "")

    def value(self) -> int:
        """The amount as a whole number; a fraction is rounded up (away from zero)."""
        return self._rounded(_NANO)

    def milli_value(self) -> int:
        """The amount in thousandths; what is finer is rounded up (away from zero)."""
        return self._rounded(_NANO // 1000)

    def _rounded(self, unit: int) -> int:
        whole = -(-abs(self.nanos) // unit)
        return whole if self.nanos >= 0 else -whole

    @property
    def is_zero(self) -> bool:
        return self.nanos == 0

    def __str__(self) -> str:
        if self.written:
            return self.written
        if self.nanos == 0:
            return "0"
        if self.format is Format.BINARY and self.nanos % _NANO == 0 and abs(self.nanos) >= 1024 * _NANO:
            return self._binary_text()
        return self._decimal_text()

    def _binary_text(self) -> str:
        amount, power = abs(self.nanos) // _NANO, 0
        while amount % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
            amount, power = amount // 1024, power + 1
        return f"{'-' if self.nanos < 0 else ''}{amount}{_BINARY_SUFFIXES[power]}"

    def _decimal_text(self) -> str:
        amount, exponent = abs(self.nanos), -9
        # Beyond E there is no suffix, so from there on the number grows.
        while amount % 1000 == 0 and (self.format is Format.EXPONENT or exponent < 18):
            amount, exponent = amount // 1000, exponent + 3
        in_exponents = f"e{exponent}" if exponent else ""
        suffix = in_exponents if self.format is Format.EXPONENT else _DECIMAL_SUFFIXES[exponent]
        return f"{'-' if self.nanos < 0 else ''}{amount}{suffix}"

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, other.format if self.nanos == 0 else self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, other.format if self.nanos == 0 else self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


ZERO = Quantity(0)


def parse_quantity(value: str | int | float, *, field: str = "") -> Quantity:
    """Read a quantity as it stands in JSON: text or a number. `field` names the place in the error."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise QuantityError(f"{field}: {_WORDS_FORMAT}" if field else _WORDS_FORMAT)
    try:
        return Quantity.parse(value.strip() if isinstance(value, str) else repr(value))
    except QuantityError as error:
        if field:
            raise QuantityError(f"{field}: {error}") from None
        raise


def from_value(value: int, format: Format = Format.DECIMAL) -> Quantity:
    """A whole number as a quantity."""
    return Quantity(value * _NANO, format)


def from_milli_value(value: int, format: Format = Format.DECIMAL) -> Quantity:
    """Thousandths as a quantity."""
    return Quantity(value * (_NANO // 1000), format)
