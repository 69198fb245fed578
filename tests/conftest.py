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
LONGEST = ("cli", "release", "foresight_reality", "protection", "spread", "workloads", "recordings", "sidecars")


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders with long files first and many short ones last, so that all workers end at about the same time."""

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def no_kubeconfig_of_others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(tmp_path_factory.mktemp("nobody") / "kubeconfig"))
        yield
