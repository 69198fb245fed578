"""`set resources`: requests and limits of containers."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.faces.face import Face
from kruise.machinery.documents import Json
from kruise.machinery.quantity import QuantityError, parse_quantity
from kruise.verbs import containers
from kruise.verbs.errors import UsageError


def parse(text: str, flag: str) -> dict[str, str]:
    """`cpu=200m,memory=512Mi`."""
    amounts: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = part.partition("=")
        if not equals or not name:
            raise UsageError(f'{flag}: "{part}" is no RESOURCE=AMOUNT, for example cpu=200m')
        try:
            parse_quantity(amount)
        except QuantityError as error:
            raise UsageError(f"{flag}: {name}: {error}") from error
        amounts[name] = amount
    return amounts


def check(limits: Mapping[str, str], requests: Mapping[str, str]) -> None:
    if not limits and not requests:
        raise UsageError("you must specify an update to requests or limits (in the form of --requests/--limits)")


def change(
    kind: Face,
    document: Json,
    *,
    limits: Mapping[str, str],
    requests: Mapping[str, str],
    pattern: str = containers.EVERY,
) -> Json:
    """The object with other amounts; resources that are not named keep theirs."""

    def edit(container: Json) -> None:
        amounts = dict(container.get("resources") or {})
        for field, wanted in (("limits", limits), ("requests", requests)):
            if wanted:
                amounts[field] = {**(amounts.get(field) or {}), **wanted}
        container["resources"] = amounts

    return containers.edited(kind, document, pattern, edit)
