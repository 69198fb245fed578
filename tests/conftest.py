"""No test meets the kubeconfig of the person who runs it: `kruise up` would write into it. No test measures time."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, and nothing is wrong.
settings.register_profile("kruise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kruise")

TESTS = Path(__file__).parent
WAITING = "cli"
LONGEST = ("release", "foresight_reality", "protection", "spread", "workloads", "recordings", "sidecars")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: the garbage collector need not look at it, neither now nor
    again and again while tests run. That takes a tenth of their time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders with long files first and many short ones last, so that all workers end at about the same time. Tests of
    commands wait for clusters, so one file of them goes with two others that keep the cores busy meanwhile."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [path for path in files if _folder(path) == WAITING]
    others = sorted((path for path in files if _folder(path) != WAITING), key=_place)
    items.clear()
    while waiting or others:
        items += [item for path in (*waiting[:1], *others[:2]) for item in files[path]]
        del waiting[:1], others[:2]


def _folder(path: Path) -> str:
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def _place(path: Path) -> int:
    return LONGEST.index(_folder(path)) if _folder(path) in LONGEST else len(LONGEST)


@pytest.fixture(scope="session", autouse=True)
def no_kubeconfig_of_others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(tmp_path_factory.mktemp("nobody") / "kubeconfig"))
        yield
