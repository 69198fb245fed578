"""Plans to carry out against an API core in process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.native.pod import PODS
from kruise.machinery.apply import Applier
from kruise.machinery.clock import run_virtual
from kruise.machinery.plan import (
    Action,
    Target,
    create,
    patch,
)
from tests.support.faults import Rule
from tests.support.inprocess import OWNER_UID, InProcess, pod_body


def new_pod(name: str, *, owner_uid: str = OWNER_UID, **metadata: Any) -> Action:
    return create(PODS, pod_body(name, owner_uid=owner_uid, **metadata), reason="scale", owner_uid=owner_uid)


def at(name: str) -> Target:
    return Target(PODS, "default", name)


def label(name: str, uid: str, value: str = "new", **options: Any) -> Action:
    return patch(at(name), {"metadata": {"labels": {"x": value}}}, uid=uid, reason="label", **options)


def applier(env: InProcess, **options: Any) -> Applier:
    return Applier(env.client, env.cache, clock=env.clock, **options)


def run(scene: Callable[[InProcess], Awaitable[None]], *rules: Rule) -> None:
    async def main() -> None:
        await scene(InProcess(rules))

    run_virtual(main())


def results(outcomes: Any) -> list[str]:
    return [outcome.result.value for outcome in outcomes]
