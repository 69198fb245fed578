"""A report as JSON. The names of its members are a promise; `docs/plan.md` lists them."""

from __future__ import annotations

from typing import Any

from kruise.foresight.forecast import FieldChange, Move, Wave
from kruise.foresight.rendering.report import Report
from kruise.foresight.rendering.verdict import counts_of, headline, verdict_of
from kruise.foresight.whose import Share
from kruise.machinery import codec

SCHEMA = "kruise.plan/v1"


def as_data(report: Report) -> dict[str, Any]:
    """Everything, however many pods: programs do not get tired. Times are seconds from the change on."""
    forecast = report.forecast
    return {
        "schema": SCHEMA,
        "object": {
            "kind": forecast.kind,
            "namespace": forecast.namespace,
            "name": forecast.name,
            "exists": not report.is_new,
        },
        "verdict": verdict_of(forecast).value,
        "summary": headline(report),
        "complete": forecast.is_complete,
        "cut": forecast.is_cut,
        "seconds": forecast.seconds,
        "changes": [_change(change) for change in forecast.changes],
        "revisions": {"from": forecast.from_revision, "to": forecast.to_revision, "after": dict(forecast.by_revision)},
        "replicas": forecast.replicas,
        "available": {
            "before": forecast.available_before,
            "fewest": forecast.fewest_available,
            "fewestAllowed": forecast.fewest_allowed,
            "after": forecast.available_after,
        },
        "pods": {"most": forecast.most_pods, "mostAllowed": forecast.most_allowed},
        "counts": {how.value: count for how, count in counts_of(forecast.moves).items()},
        "waves": [_wave(report, wave) for wave in forecast.waves],
        "stops": [
            {
                "code": stop.code,
                "at": stop.at,
                "message": stop.message,
                "remedy": stop.remedy,
                "pods": list(stop.pods),
                "last": stop.is_last,
            }
            for stop in forecast.stops
        ],
        "staying": [
            {
                "pod": pod.pod,
                "revision": pod.revision,
                "code": pod.code,
                "message": pod.message,
                "remedy": pod.remedy,
            }
            for pod in forecast.staying
        ],
        "warnings": [
            {"code": warning.code, "message": warning.message, "remedy": warning.remedy}
            for warning in forecast.warnings
        ],
        **({"workloads": [_share(one) for one in report.shares]} if report.shares else {}),
        **({"parts": list(forecast.parts)} if forecast.parts else {}),
        "assumptions": list(forecast.assumptions),
        "notes": list(report.notes),
        "changedMeanwhile": [{"object": one.object, "how": one.how.value} for one in report.drifted],
    }


def _change(change: FieldChange) -> dict[str, Any]:
    """A side that is not there has no member, so that it differs from null."""
    found: dict[str, Any] = {"path": change.path}
    if change.before:
        found["before"] = codec.decode(change.before.encode(), object)
    if change.after:
        found["after"] = codec.decode(change.after.encode(), object)
    return found


def _share(share: Share) -> dict[str, Any]:
    return {
        "workload": share.workload,
        "namespace": share.namespace,
        "changing": share.changing,
        "staying": share.staying,
    }


def _wave(report: Report, wave: Wave) -> dict[str, Any]:
    return {
        "number": wave.number,
        "begins": wave.begins,
        "fewestAvailable": wave.fewest_available,
        "moves": [_move(report, move) for move in wave.moves],
    }


def _move(report: Report, move: Move) -> dict[str, Any]:
    return {
        "pod": move.pod,
        "exists": report.exists(move),
        "how": move.how.value,
        "at": move.at,
        "why": move.why,
        "revision": move.revision,
        "untilAvailable": move.until_available,
    }
