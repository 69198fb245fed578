"""Names that are chosen without chance, in Kubernetes' safe alphabet.

A planned create carries its full name, because only a name that is known beforehand lets a create whose answer was
lost be tried again. So names come from a seed and from what the object is for, never from a global source of chance.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Collection

from kruise.api.core import formats

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like another character: no generated name is a word."""

LABEL_MAX = 63
"""The longest name that still fits into a label."""
SUBDOMAIN_MAX = 253
"""The longest name of most objects."""
SUFFIX_LENGTH = 5


def random_suffix(rng: random.Random, n: int = SUFFIX_LENGTH) -> str:
    """`n` characters of the safe alphabet."""
    return "".join(rng.choices(ALPHABET, k=n))


def safe_encode(text: str) -> str:
    """Each character of the text as one of the safe alphabet (Kubernetes' `SafeEncodeString`)."""
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)


def child_name(base: str, suffix: str, *, limit: int = LABEL_MAX) -> str:
    """The base cut so that it fits the limit together with the suffix, as the API server does for generateName."""
    if len(suffix) > limit:
        raise ValueError(f"the suffix {suffix!r} alone is longer than {limit} characters")
    return base[: limit - len(suffix)] + suffix


def derived_suffix(*parts: str | int, n: int = SUFFIX_LENGTH) -> str:
    """`n` characters of the safe alphabet that depend on all parts and on nothing else."""
    text = "\0".join(f"{len(str(part))}:{part}" for part in parts)
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=32).digest())
    characters = []
    for _ in range(n):
        number, digit = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return "".join(characters)


def choose_suffixes(count: int, *, owner_uid: str, seed: int, taken: Collection[str] = ()) -> list[str]:
    """`count` different suffixes for the children of an owner, none of them in `taken`.

    The same arguments give the same suffixes, so a plan that is made again from the same snapshot has the same names.
    """
    chosen: list[str] = []
    used = set(taken)
    for ordinal in range(count):
        attempt = 0
        while (suffix := derived_suffix(owner_uid, seed, ordinal, attempt)) in used:
            attempt += 1
        used.add(suffix)
        chosen.append(suffix)
    return chosen


def choose_names(
    base: str, count: int, *, owner_uid: str, seed: int, taken: Collection[str] = (), limit: int = LABEL_MAX
) -> list[str]:
    """`count` different full names that begin with `base`, none of them in `taken`; see `choose_suffixes`."""
    stem = child_name(base, "x" * SUFFIX_LENGTH, limit=limit)[:-SUFFIX_LENGTH]
    suffixes = [name[len(stem) :] for name in taken if name.startswith(stem)]
    chosen = choose_suffixes(count, owner_uid=owner_uid, seed=seed, taken=suffixes)
    return [stem + suffix for suffix in chosen]


class NameSource:
    """An endless source of names: two sources with the same seed give the same names in the same order."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def suffix(self, n: int = SUFFIX_LENGTH) -> str:
        return random_suffix(self._random, n)

    def generate(self, base: str) -> str:
        """What the API server makes of `generateName: base`."""
        return child_name(base, self.suffix())

    def uid(self) -> str:
        """A random (version 4) UUID."""
        bits = self._random.getrandbits(128)
        bits = bits & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


# What is wrong with a name, in Kubernetes' words; nothing if it is allowed. The rules live with the other formats.
dns_label_problems = formats.dns_label
dns_subdomain_problems = formats.dns_subdomain
qualified_name_problems = formats.qualified_name
label_value_problems = formats.label_value

_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_dns_1035 = re.compile(_DNS_1035)
_DNS_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)


def dns_1035_label_problems(value: str) -> list[str]:
    """What is wrong with a value that must be an RFC 1035 label (the name of a Service)."""
    found = [formats.max_length_words(LABEL_MAX)] if formats.byte_length(value) > LABEL_MAX else []
    if _dns_1035.fullmatch(value) is None:
        found.append(formats.regex_words(_DNS_1035_WORDS, _DNS_1035, "my-name", "abc-123"))
    return found
