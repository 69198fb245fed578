"""What several workloads accept although it will not do what its author may expect: warnings that kubectl shows."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.api.apps.shared import (
    PREDOWNLOAD_MIN_READY,
    PREDOWNLOAD_PARALLELISM,
    PREDOWNLOAD_TIMEOUT,
    InPlaceUpdateStrategy,
)
from kruise.api.core.field_errors import Path
from kruise.machinery import codec
from kruise.workloads.shared import failure_budget


def of_failure_budget(annotations: Mapping[str, str]) -> str:
    """Told about one that was stored before anybody looked at it; a new one is refused. `annotations` are those that
    did not change."""
    value = annotations.get(failure_budget.ANNOTATION)
    if value is None:
        return ""
    try:
        failure_budget.parse(value)
    except failure_budget.BudgetError as error:
        return f"metadata.annotations[{failure_budget.ANNOTATION}]: {shown(value)} has no effect, it {error}"
    return ""


def of_pre_download(path: Path, in_place: InPlaceUpdateStrategy | None, who: str, instead: str = "") -> str:
    """Told where annotations count and the fields do not. `path` holds the in-place strategy."""
    if in_place is None:
        return ""
    ignored = {
        PREDOWNLOAD_PARALLELISM: in_place.image_pre_download_parallelism,
        PREDOWNLOAD_TIMEOUT: in_place.image_pre_download_timeout_seconds,
        PREDOWNLOAD_MIN_READY: in_place.image_pre_download_min_updated_ready_pods,
    }
    wanted = [key for key, value in ignored.items() if value is not None]
    if not wanted:
        return ""
    return (
        f"{path}.inPlaceUpdateStrategy: {who} takes image pre-download settings from annotations only: "
        f"set {', '.join(wanted)}{instead}"
    )


def shown(value: object) -> str:
    return codec.encode(value).decode()
