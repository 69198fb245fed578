"""What `kruise doctor` does."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from kruise.cli.deciding import Asking, explain_all
from kruise.cli.flags import Connection
from kruise.cli.session import EVERYWHERE, Session, explained, run
from kruise.cli.takeover import as_data as takeover_data
from kruise.cli.takeover import report_lines
from kruise.doctor.findings import Finding, Severity
from kruise.doctor.gathering import Looking, gather
from kruise.doctor.mending import Mended, mend
from kruise.doctor.rules import examine
from kruise.doctor.snapshot import Snapshot
from kruise.doctor.surveying import Survey, survey
from kruise.faces.progress import Progress
from kruise.kinds import features
from kruise.machinery.client.errors import ClientError, NotFoundError
from kruise.machinery.documents import name_of, namespace_of
from kruise.machinery.wording import plural
from kruise.manager.installation.documents import image_of
from kruise.manager.installation.takeover.note import NoteError
from kruise.verbs.lookup import workloads
from kruise.verbs.targets import Target

BROKEN, RISKS = 3, 4
"""Exit codes."""

_MOST = 200
"""Workloads that are asked why they wait: each takes several requests."""


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    seen: Snapshot
    findings: Sequence[Finding]
    mended: Sequence[Mended] = ()

    @property
    def code(self) -> int:
        return code_of(self.findings)


def code_of(findings: Sequence[Finding]) -> int:
    found = {finding.severity for finding in findings}
    return BROKEN if Severity.BROKEN in found else RISKS if Severity.RISK in found else 0


def doctor(
    fix: bool, preflight: bool, takeover: bool, output: str | None, system_namespace: str, connection: Connection
) -> None:
    if takeover:
        if fix or preflight:
            raise click.UsageError("--takeover looks at OpenKruise: it does not go with --fix or --preflight")
        _tell_takeover(system_namespace, output, connection)
        return
    looking = Looking(namespace=system_namespace, only=connection.namespace, preflight=preflight)

    async def work(session: Session) -> Report:
        report = await examined(session, looking)
        if not fix or not any(finding.fix for finding in report.findings):
            return report

        mended = await mend(session.client, report.findings, clock=session.clock)
        after = await examined(session, looking)
        return dataclasses.replace(after, mended=mended)

    report = run(connection, work)
    if output:
        _show(as_data(report), output)
    else:
        click.echo("\n".join(lines(report, mending=fix)))
    if report.code:
        sys.exit(report.code)


def _tell_takeover(namespace: str, output: str | None, connection: Connection) -> None:
    async def work(session: Session) -> Survey:
        try:
            return await survey(session.client, features(), namespace=namespace, clock=session.clock)
        except NoteError as error:
            raise click.ClickException(str(error)) from error

    seen = run(connection, work)
    if output:
        _show(takeover_data(seen), output)
    else:
        paragraphs = [line for finding in seen.findings for line in _paragraph(finding)]
        click.echo("\n".join([*report_lines(seen), *paragraphs, _counted(seen.findings) or "nothing is in the way"]))
    if code := code_of(seen.findings):
        sys.exit(code)


async def examined(session: Session, looking: Looking) -> Report:
    seen = await gather(session.client, features(), looking, clock=session.clock)
    if seen.is_installed:
        seen = await _with_waits(session, seen)
    return Report(seen, examine(seen))


async def _with_waits(session: Session, seen: Snapshot) -> Snapshot:
    """What workloads of ours wait for. Those whose own status says that they are done are not asked."""

    where = session.namespace if session.is_chosen else EVERYWHERE
    found, unseen, count = [], list(seen.unseen), 0
    for face in workloads():
        if not face.is_ours or face.progress is None:
            continue
        try:
            items = await session.items(face.resource, namespace=where if face.resource.namespaced else EVERYWHERE)
        except NotFoundError:
            continue
        except ClientError as error:
            unseen.append(f"{face.resource.plural}: {error}")
            continue
        count += len(items)
        found += [
            (Target(face, name_of(item), namespace_of(item)), item)
            for item in items
            if not _is_done(face.progress(item))
        ]
    if len(found) > _MOST:
        unseen.append(f"why {len(found) - _MOST} more workloads wait: kruise why --all -n NAMESPACE tells")
    answers, failures = await explain_all(session, found[:_MOST], Asking())
    unseen += [f"{target}: {explained(error)}" for target, error in failures]
    return dataclasses.replace(seen, waits=answers, workloads=count, unseen=tuple(unseen))


def _is_done(progress: Progress) -> bool:
    return progress.is_over and progress.available >= progress.wanted


# How it is told


def lines(report: Report, *, mending: bool = False) -> list[str]:
    seen = report.seen
    told = [_head(seen), ""]
    for done in report.mended:
        finding = done.finding
        outcome = f"could not be mended: {done.error}" if done.error else "mended"
        told.append(f"{outcome}: {finding.about}: {finding.message} [{finding.code}]")
    if report.mended:
        told.append("")
    for finding in report.findings:
        told += _paragraph(finding)
    for what in seen.unseen:
        told.append(f"not looked at: {what}")
    if seen.unseen:
        told.append("")
    return [*told, _summary(report, mending)]


def _head(seen: Snapshot) -> str:
    kubernetes = f"Kubernetes {seen.kubernetes[2]}" if seen.kubernetes is not None else "Kubernetes"
    if not seen.is_installed:
        return f"{kubernetes}, without PyKruise"
    if seen.runs_inside:
        runs = "manager in the local cluster"
    elif seen.deployment is not None:
        runs = f"manager {image_of(seen.deployment)}"
    else:
        runs = "no manager in the cluster"
    return f"{kubernetes}, PyKruise in namespace {seen.namespace}: {runs}"


def _paragraph(finding: Finding) -> list[str]:
    told = [f"{finding.severity.value}: {finding.about} [{finding.code}]", f"  {finding.message}"]
    if finding.remedy:
        told.append(f"  → {finding.remedy}")
    return [*told, ""]


def _summary(report: Report, mending: bool) -> str:
    seen = report.seen
    if not report.findings:
        looked = [
            plural(len(seen.live), "object"),
            plural(len(list(seen.entries)), "webhook"),
            plural(len(seen.nodes), "node"),
            plural(seen.workloads, "workload"),
        ]
        bound = " as far as it could be seen" if seen.unseen else ""
        return f"nothing is wrong{bound}: {', '.join(looked)} looked at, {len(_answering(seen))} webhooks asked"
    text = _counted(report.findings)
    can = sum(finding.fix is not None for finding in report.findings)
    if not can:
        return text
    return f"{text}; {can} could not be mended" if mending else f"{text}; --fix mends {can} of them"


def _counted(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity.value for finding in findings)
    return ", ".join(
        plural(counts[word], noun) if noun else f"{counts[word]} {word}"
        for word, noun in (("broken", ""), ("risk", "risk"), ("note", "note"))
        if counts[word]
    )


def _answering(seen: Snapshot) -> list[str]:
    return [asked.entry for asked in seen.asked if not asked.error]


def as_data(report: Report) -> dict[str, Any]:
    """For programs."""
    seen = report.seen
    return {
        "version": seen.version,
        "kubernetes": seen.kubernetes[2] if seen.kubernetes is not None else "",
        "namespace": seen.namespace,
        "isInstalled": seen.is_installed,
        "findings": [finding.as_data() for finding in report.findings],
        "mended": [{"code": one.finding.code, "about": one.finding.about, "error": one.error} for one in report.mended],
        "asked": [{"entry": one.entry, "error": one.error, "seconds": one.seconds} for one in seen.asked],
        "lookedAt": {
            "objects": len(seen.live),
            "webhooks": len(list(seen.entries)),
            "nodes": len(seen.nodes),
            "workloads": seen.workloads,
        },
        "notLookedAt": list(seen.unseen),
    }


def _show(data: Any, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    import yaml

    click.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)
