"""`kruise install --takeover` and `kruise doctor --takeover`: taking over from OpenKruise, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kruise.kinds import features
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock
from kruise.machinery.wording import listed, plural
from kruise.manager.installation.documents import daemon_in, image_of, manager_in
from kruise.manager.installation.installer import InstallationError, document_of
from kruise.manager.installation.takeover.carrying import Carrier
from kruise.manager.installation.takeover.note import NAME
from kruise.manager.installation.takeover.standing import is_original, stored_version, version_names
from kruise.manager.installation.takeover.steps import in_words

if TYPE_CHECKING:
    from kruise.doctor.surveying import Survey
    from kruise.manager.installation.takeover.standing import Standing
    from kruise.manager.installation.takeover.steps import Step


async def take_over(
    client: Client,
    *,
    namespace: str,
    chosen: Mapping[str, Any],
    runs: Sequence[str],
    clock: Clock,
    timeout: float,
    dry_run: bool,
) -> None:
    """Raises `InstallationError` before anything is changed where something is in the way."""
    from kruise.doctor.surveying import survey

    seen = await survey(client, features(), namespace=namespace, clock=clock, chosen=chosen, runs=runs)
    if not seen.standing.is_of_others:
        raise InstallationError("there is nothing of OpenKruise to take over: kruise install without --takeover")
    if seen.obstacles:
        told = "; ".join(f"{one.about}: {one.message} → {one.remedy}" for one in seen.obstacles)
        raise InstallationError(f"nothing was changed, for something is in the way: {told}")
    if dry_run:
        click.echo("\n".join(planned(seen.steps, "would happen")))
        return
    await _carried_out(client, seen.steps, namespace, clock, timeout)
    where = f"configmap/{NAME} in namespace {namespace}"
    click.echo(f"taken over; {where} keeps what was there: kruise install --takeover --undo goes back")
    if "manager" not in runs:
        click.echo("no manager of ours was started: webhooks answer nobody until one runs (docs/manager.md)")


async def refuse_over_original(client: Client, namespace: str) -> None:
    """Nothing is installed over OpenKruise at work: managers of both would be at work side by side."""
    for name in (manager_in(namespace), daemon_in(namespace)):
        if is_original(await document_of(client, name)):
            raise InstallationError(
                f"nothing was changed: {name} is one of OpenKruise. kruise install --takeover takes its place; "
                "kruise doctor --takeover tells how"
            )


async def go_back(client: Client, *, namespace: str, clock: Clock, timeout: float, dry_run: bool) -> None:
    from kruise.doctor.surveying import way_back

    standing, steps = await way_back(client, features(), namespace=namespace, clock=clock)
    if standing.note is None:
        raise InstallationError(f"there is no way back: configmap/{NAME} is not in namespace {namespace}")
    if dry_run:
        click.echo("\n".join(planned(steps, "would happen")))
        return
    await _carried_out(client, steps, namespace, clock, timeout)
    click.echo(f"OpenKruise is back, as it was before {standing.note.since}")
    if stay := [name.name for name, _ in standing.definitions if name not in standing.note.documents]:
        click.echo(
            f"it did not have {plural(len(stay), 'definition')} that stay, for there may be objects: {listed(stay, 20)}"
        )


async def _carried_out(client: Client, steps: Sequence[Step], namespace: str, clock: Clock, timeout: float) -> None:
    carrier = Carrier(client, namespace=namespace, clock=clock, report=click.echo, timeout=timeout)
    await carrier.carry_out(steps)


# How it is told


def planned(steps: Sequence[Step], what: str) -> list[str]:
    return [f"what {what}:", *(f"  {number}. {in_words(step)}" for number, step in enumerate(steps, 1))]


def report_lines(seen: Survey) -> list[str]:
    """What is there, and what would happen."""
    standing = seen.standing
    lines = [_head(seen), ""]
    if not standing.is_of_others:
        return lines
    lines += ["what is there:", *(f"  {line}" for line in _there(standing)), ""]
    if not standing.is_taken_over:
        lines += [*planned(seen.steps, "kruise install --takeover --image IMAGE does"), ""]
        lines += [
            "what stays as it is:",
            "  custom resources, their generations and the version in which they are stored",
            "  pods and their in-place states, revisions and hashes, the certificates of the webhooks",
            "",
        ]
    return lines


def _head(seen: Survey) -> str:
    kubernetes = f"Kubernetes {seen.kubernetes[2]}"
    standing = seen.standing
    if not standing.is_of_others:
        return f"{kubernetes}, without OpenKruise"
    original = f"OpenKruise {standing.original}".rstrip()
    who = f"PyKruise in the place of {original}" if standing.is_taken_over else original
    return f"{kubernetes}, {who} in namespace {standing.namespace}"


def _there(standing: Standing) -> list[str]:
    found = []
    for what, document in (("manager", standing.deployment), ("node daemon", standing.daemon_set)):
        found.append(f"{what}: {_running(document)}")
    versions: dict[str, list[str]] = {}
    for name, definition in standing.definitions:
        names = [f"{one}*" if one == stored_version(definition) else one for one in version_names(definition)]
        versions.setdefault(", ".join(names), []).append(name.name.partition(".")[0])
    for names_of, kinds in versions.items():
        found.append(f"{plural(len(kinds), 'definition')} in {names_of}: {listed(kinds, 20)}")
    objects = [plural(count, kind) for kind, count in standing.objects.items()]
    found.append(f"objects: {listed(objects, 20) or 'none'}")
    return found


def _running(workload: Mapping[str, Any] | None) -> str:
    if workload is None:
        return "none in the cluster"
    status = workload.get("status") or {}
    ready = status.get("readyReplicas", status.get("numberReady", 0))
    return f"{image_of(workload)}, {plural(int(ready or 0), 'pod')} ready"


def as_data(seen: Survey) -> dict[str, Any]:
    """For programs."""
    standing = seen.standing
    return {
        "kubernetes": seen.kubernetes[2],
        "namespace": standing.namespace,
        "original": standing.original,
        "state": standing.note.state.value if standing.note is not None else "",
        "objects": dict(standing.objects),
        "definitions": {
            name.name: {"versions": list(version_names(definition)), "stored": stored_version(definition)}
            for name, definition in standing.definitions
        },
        "values": dict(seen.inheritance.values),
        "steps": [in_words(step) for step in seen.steps],
        "findings": [finding.as_data() for finding in seen.findings],
    }
