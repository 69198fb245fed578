"""The string formats that schemas may ask for. All others are not checked, as on a real server.

`int32` is among those others, and so is what a server knows but does not check yet (`k8s-short-name`)."""

from __future__ import annotations

import email.utils
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date

from kruise.machinery.times import parse_go_duration

Format = Callable[[str], bool]


def _matcher(pattern: str, flags: int = 0) -> Format:
    found = re.compile(pattern, flags | re.ASCII).fullmatch
    return lambda text: found(text) is not None


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


def _date(text: str) -> bool:
    if _DAY.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return text.startswith("0000-")
    return True


def _date_time(text: str) -> bool:
    day, found, rest = text.lower().partition("t")
    if not found or not _date(day):
        return False
    moment = _TIME.fullmatch(rest.partition("t")[0])
    return moment is not None and moment[1] <= "23" and moment[2] <= "59" and moment[3] <= "59"


_PART_OF_DURATION = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)


def _duration(text: str) -> bool:
    """Go's durations, and words such as `3 hours`."""
    try:
        parse_go_duration(text)
    except ValueError:
        pass
    else:
        return True
    for _, unit in _PART_OF_DURATION.findall(text):
        word = unit.lower()
        if any(word in variants or word.startswith(variants[-1]) for variants in _UNITS):
            return True
    return False


def _ipv4(text: str) -> bool:
    parts = text.split(".")
    if len(parts) == 4 and all(part.isascii() and part.isdigit() and int(part) <= 255 for part in parts):
        return True
    return "." in text and _ipv6(text)


def _ipv6(text: str) -> bool:
    if "%" in text or ":" not in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _cidr(text: str) -> bool:
    address, found, length = text.partition("/")
    if not found or not length.isascii() or not length.isdigit() or len(length) > 3:
        return False
    if ":" in address:
        return _ipv6(address) and int(length) <= 128
    return _ipv4(address) and int(length) <= 32


def _mac(text: str) -> bool:
    for separator, size in ((":", 2), ("-", 2), (".", 4)):
        parts = text.split(separator)
        if len(parts) > 1:
            right_size = all(len(part) == size and re.fullmatch(r"[0-9A-Fa-f]+", part) for part in parts)
            return bool(right_size) and len(parts) * size // 2 in (6, 8, 20)
    return False


_LETTER = r"a-zA-Z0-9\u00a1-\uffff"
_HOSTNAME = re.compile(
    rf"([{_LETTER}]((-?[{_LETTER}]{{0,62}})?)|([{_LETTER}](([-{_LETTER}]{{0,61}}[{_LETTER}])?)(\.)){{1,}}"
    r"([a-zA-Z\u00aa-\uffdc]){2,63})"
)


def _hostname(text: str) -> bool:
    if _HOSTNAME.fullmatch(text) is None or len(text.encode()) > 255:
        return False
    return all(len(part.encode()) <= 63 for part in text.split("."))


def _email(text: str) -> bool:
    name, address = email.utils.parseaddr(text)
    local, found, domain = address.rpartition("@")
    return bool(
        found and local and domain and " " not in address and (name or text.strip() in (address, f"<{address}>"))
    )


_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _uri(text: str) -> bool:
    """What Go takes for a request URI: a path from the root, or something absolute."""
    if not text or any(char < " " or char == "\x7f" for char in text) or _BAD_ESCAPE.search(text.partition("?")[0]):
        return False
    if text.startswith("/") or text == "*":
        return True
    return _SCHEME.match(text) is not None and "://" in text


def _luhn(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_CARD = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"(?:[0-9]{9}X|[0-9]{10})", digits) is None:
        return False
    return sum((position + 1) * (10 if char == "X" else int(char)) for position, char in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum(int(char) * (3 if position % 2 else 1) for position, char in enumerate(digits)) % 10 == 0


_COLOR = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"

_FORMATS: Mapping[str, Format] = {
    "bsonobjectid": _matcher(r"[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "mac": _mac,
    "uuid": _matcher(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE),
    "uuid3": _matcher(r"[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE),
    "uuid4": _matcher(r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE),
    "uuid5": _matcher(r"[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _luhn,
    "ssn": _matcher(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matcher(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matcher(rf"rgb\(\s*{_COLOR}\s*,\s*{_COLOR}\s*,\s*{_COLOR}\s*\)"),
    "byte": _matcher(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
}


def known(name: str) -> Format | None:
    """The check for a format; None where a real server does not check it either. Dashes do not count."""
    return _FORMATS.get(name.replace("-", ""))
