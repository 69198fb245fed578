"""Which annotations SidecarSets may put on pods: a list in the ConfigMap `kruise-configuration` (SCS-33). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kruise.api.core.field_errors import FieldError, Path, invalid, required
from kruise.api.meta import LabelSelector
from kruise.machinery import codec
from kruise.machinery.codec import Struct
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.patterns import PatternError, compiled

GATE = "SidecarSetPatchPodMetadataDefaultsAllowed"
NOT_FOUND = "SidecarSet patch metadata whitelist not found"


class _Rule(Struct):
    selector: LabelSelector | None = None
    allowed_annotation_key_exprs: tuple[str, ...] = ()


class _Whitelist(Struct):
    rules: tuple[_Rule, ...] = ()


def problems(
    path: Path, patched: Iterable[str], labels: Mapping[str, str], text: str | None, *, defaults_allowed: bool
) -> Iterator[FieldError]:
    """`text` is the list as the ConfigMap has it; None: there is none."""
    where = f"in ConfigMap {keys.CONFIGURATION}, key {keys.WHITELIST}"
    expressions: list[str] = []
    patterns: list[re.Pattern[str]] = []
    if text:
        try:
            rules = codec.decode(text.encode(), _Whitelist).rules
            expressions = [one for rule in rules if _applies(rule, labels) for one in rule.allowed_annotation_key_exprs]
            patterns = [compiled(one) for one in expressions]
        except (codec.DecodeError, SelectorError, PatternError) as error:
            yield invalid(path, text, f"the whitelist {where} cannot be read: {error}")
            return
    if not expressions:
        if not defaults_allowed:
            yield required(path, f"{NOT_FOUND}: allow the annotations {where}, or switch on the feature gate {GATE}")
        return
    for key in patched:
        if not any(pattern.search(key) for pattern in patterns):
            yield invalid(path, key, f"the whitelist {where} does not allow this annotation")


def _applies(rule: _Rule, labels: Mapping[str, str]) -> bool:
    return rule.selector is None or from_label_selector(rule.selector).matches(labels)
