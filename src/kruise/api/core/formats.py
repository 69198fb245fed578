"""The string formats of the Kubernetes API: names, label values, keys, ports, paths. Checks return complaints."""

from __future__ import annotations

import functools
import ipaddress
import re

_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN_UNDERSCORE = rf"{_DNS_LABEL_UNDERSCORE}(\.{_DNS_LABEL_UNDERSCORE})*"
_QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED_NAME})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
SYSCTL = rf"({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}"

_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_UNDERSCORE_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_QUALIFIED_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_CONFIG_KEY_WORDS = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_ENV_WORDS = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_HEADER_WORDS = "a valid HTTP header must consist of alphanumeric characters or '-'"

MAX_INT32 = 2**31 - 1


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _matches(pattern: str, value: str) -> bool:
    return _pattern(pattern).fullmatch(value) is not None


def byte_length(value: str) -> int:
    """Kubernetes counts bytes where it says characters."""
    return len(value) if value.isascii() else len(value.encode())


def regex_words(words: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{words} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def max_length_words(limit: int) -> str:
    return f"must be no more than {limit} characters"


def range_words(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def dns_label(value: str) -> list[str]:
    found = [max_length_words(63)] if byte_length(value) > 63 else []
    if not _matches(_DNS_LABEL, value):
        if _matches(_DNS_SUBDOMAIN, value):
            found.append("must not contain dots")
        else:
            found.append(regex_words(_LABEL_WORDS, _DNS_LABEL, "my-name", "123-abc"))
    return found


def dns_subdomain(value: str) -> list[str]:
    found = [max_length_words(253)] if byte_length(value) > 253 else []
    if not _matches(_DNS_SUBDOMAIN, value):
        found.append(regex_words(_SUBDOMAIN_WORDS, _DNS_SUBDOMAIN, "example.com"))
    return found


def dns_subdomain_underscore(value: str) -> list[str]:
    found = [max_length_words(253)] if byte_length(value) > 253 else []
    if not _matches(_DNS_SUBDOMAIN_UNDERSCORE, value):
        found.append(regex_words(_SUBDOMAIN_UNDERSCORE_WORDS, _DNS_SUBDOMAIN_UNDERSCORE, "example.com"))
    return found


def name_prefix(value: str) -> str:
    """A name that ends in a dash may be the beginning of a generated one."""
    return value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value


def qualified_name(value: str) -> list[str]:
    parts = value.split("/")
    words = regex_words(_QUALIFIED_WORDS, _QUALIFIED_NAME, "MyName", "my.name", "123-abc")
    if len(parts) > 2:
        return [f"a qualified name {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found: list[str] = []
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            found.extend(f"prefix part {complaint}" for complaint in dns_subdomain(parts[0]))
    if not name:
        found.append("name part must be non-empty")
    elif byte_length(name) > 63:
        found.append(f"name part {max_length_words(63)}")
    if not _matches(_QUALIFIED_NAME, name):
        found.append(f"name part {words}")
    return found


def label_value(value: str) -> list[str]:
    found = [max_length_words(63)] if byte_length(value) > 63 else []
    if not _matches(_LABEL_VALUE, value):
        found.append(regex_words(_VALUE_WORDS, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return found


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else [range_words(1, 65535)]


def port_name(value: str) -> list[str]:
    found: list[str] = []
    if byte_length(value) > 15:
        found.append(max_length_words(15))
    if not _matches("[-a-z0-9]+", value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _pattern("[a-z]").search(value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value and (value[0] == "-" or value[-1] == "-"):
        found.append("must not begin or end with a hyphen")
    return found


def env_name(value: str) -> list[str]:
    """Since Kubernetes 1.34 nearly every printable name is allowed."""
    if not value:
        return ["environment variable name must be non-empty"]
    return [] if all(" " <= char <= "~" and char != "=" for char in value) else [_ENV_WORDS]


def config_key(value: str) -> list[str]:
    found = [max_length_words(253)] if byte_length(value) > 253 else []
    if not _matches(_CONFIG_KEY, value):
        found.append(regex_words(_CONFIG_KEY_WORDS, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        found.append(f"must not be '{value}'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return found


def http_header(value: str) -> list[str]:
    return [] if _matches(_HEADER, value) else [regex_words(_HEADER_WORDS, _HEADER, "X-Header-Name")]


def user_or_group_id(value: int) -> list[str]:
    return [] if 0 <= value <= MAX_INT32 else [range_words(0, MAX_INT32)]


def sysctl_name(value: str) -> bool:
    return byte_length(value) <= 253 and _matches(SYSCTL, value)


def ip_address(value: str) -> list[str]:
    """IPv4 addresses may have leading zeros, which Python refuses and old manifests contain."""
    parts = value.split(".")
    if len(parts) == 4 and all(part.isascii() and part.isdigit() and int(part) <= 255 for part in parts):
        return []
    try:
        ipaddress.IPv6Address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if "%" not in value else ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]


def no_backsteps(value: str) -> list[str]:
    return ["must not contain '..'"] if ".." in value.split("/") else []


def descending_path(value: str) -> list[str]:
    """A relative path without a way up."""
    found = ["must be a relative path"] if value.startswith("/") else []
    return found + no_backsteps(value)


def non_reserved_path(value: str) -> list[str]:
    """The same, for files in a volume whose own bookkeeping uses names that begin with two dots."""
    found = descending_path(value)
    if value.startswith("..") and not value.startswith("../"):
        found.append("must not start with '..'")
    return found
