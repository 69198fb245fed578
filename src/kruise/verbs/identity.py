"""`set serviceaccount` and `set selector`."""

from __future__ import annotations

from kruise.faces.face import Face
from kruise.faces.native import SERVICE
from kruise.machinery import selectors
from kruise.machinery.documents import Json, edited, name_of, value_at, with_value
from kruise.machinery.wording import with_article
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.lookup import pod_spec


def change_service_account(kind: Face, document: Json, name: str) -> Json:
    def edit(spec: Json) -> None:
        spec["serviceAccountName"] = name
        # The older name of the same field: left behind it would contradict the new one.
        if "serviceAccount" in spec:
            spec["serviceAccount"] = name

    return edited(document, pod_spec(kind, document), edit)


def parse_selector(text: str) -> dict[str, str]:
    """Equalities only: `app=web,tier=front`."""
    try:
        parsed = selectors.parse(text)
    except selectors.SelectorError as error:
        raise UsageError(f'"{text}" is no selector: {error}') from error
    labels: dict[str, str] = {}
    for requirement in parsed.requirements:
        value = parsed.exact_value(requirement.key)
        if value is None:
            raise UsageError(f'"{text}": only equalities can be set, for example app=web,tier=front')
        labels[requirement.key] = value
    return labels


def change_selector(kind: Face, document: Json, labels: dict[str, str]) -> Json:
    if kind is not SERVICE:
        one = with_article(str(kind))
        raise VerbError(f"setting a selector is only supported for Services; that of {one} cannot be changed")
    return with_value(document, ("spec", "selector"), labels)


def check_version(kind: Face, document: Json, wanted: str) -> None:
    """Refuse an object that was changed since the caller saw it."""
    found = value_at(document, ("metadata", "resourceVersion"), "")
    if wanted and found != wanted:
        raise VerbError(f"{kind.named(name_of(document))}: expected resource version to be {wanted}, was {found}")
