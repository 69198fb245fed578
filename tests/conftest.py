"""No test meets the kubeconfig of the person who runs it: `kruise up` would write into it. No test measures time."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, and nothing is wrong.
settings.register_profile("kruise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kruise")


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


@pytest.fixture(scope="session", autouse=True)
def no_kubeconfig_of_others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(tmp_path_factory.mktemp("nobody") / "kubeconfig"))
        yield
