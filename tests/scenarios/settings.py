"""The settings of the manager under which scenarios are played."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.manager import gates
from tests.scenarios.stage import Scenario

EVERYTHING_ON: Mapping[str, bool] = {
    "AllAlpha": True,
    "AllBeta": True,
    "EnableExternalCerts": False,
    "TemplateNoDefaults": False,
}
"""IPU-1."""


def gates_text(chosen: Mapping[str, bool]) -> str:
    """The value of `--feature-gates`."""
    return ",".join(f"{name}={str(value).lower()}" for name, value in chosen.items())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One start of a manager. `options` are fields of its `Options`, `flags` the same on the command line."""

    name: str
    chosen: Mapping[str, bool]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @property
    def gates(self) -> Mapping[str, bool]:
        return gates.resolve(self.chosen)

    def suits(self, scenario: Scenario) -> bool:
        return scenario.suits(self.gates) and scenario.flags == self.options


PRODUCT = Setting(name="product", chosen={})
ALL = Setting(name="everything-on", chosen=EVERYTHING_ON)
OTHERS = Setting(
    name="others",
    chosen={"TemplateNoDefaults": True, "InPlaceUpdateEnvFromMetadata": False},
    options={"flags": {"cloneset-scaling-exclude-preparing-delete": True}},
    flags=("--cloneset-scaling-exclude-preparing-delete=true",),
)
"""What neither of the two has: for scenarios that ask for it, whatever else they leave open."""


def settings_for(scenario: Scenario) -> Sequence[Setting]:
    """The settings of a long-lived cluster under which a scenario is played; never none."""
    found = [setting for setting in (PRODUCT, ALL) if setting.suits(scenario)]
    if not found and scenario.suits(OTHERS.gates) and scenario.flags.items() <= OTHERS.options.items():
        found = [OTHERS]
    assert found, f"{scenario.name} suits no setting"
    return found
