"""The kinds that are known: those of this build, Kubernetes' own, and those that installed packages bring.

A kind is a package with two doors: module `face` with a `FACE`, and module `controller` with a `FEATURE`. The registry
knows packages by their names only, and loads a door when somebody asks for it.

A package of somebody else names its kinds as entry points of the group `kruise.kinds`, `Kind.group = package`:

    [project.entry-points."kruise.kinds"]
    "Troupe.toy.pykruise.dev" = "troupe"

To read entry points takes some milliseconds, so what is known without them is answered without them. One that cannot be
used is left out, and told of in `problems`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kruise.faces.face import Face, GroupKind

if TYPE_CHECKING:
    from kruise.feature import Feature

ENTRY_POINTS = "kruise.kinds"


class Entry(NamedTuple):
    """A kind and the package that is about it."""

    group: str
    kind: str
    package: str

    @property
    def group_kind(self) -> GroupKind:
        return self.group, self.kind


class Installed(NamedTuple):
    """An entry point, and the distribution that brings it."""

    name: str
    package: str
    distribution: str
    problem: str = ""
    """Why it cannot be used, where that is known already."""

    def __str__(self) -> str:
        return f'kind "{self.name}" of the package {self.distribution}' if self.name else f"package {self.distribution}"


def installed() -> Iterable[Installed]:
    """The entry points of this environment."""
    # Loaded here, since it takes longer than all faces together.
    from importlib.metadata import distributions

    for distribution in distributions():
        name = str(distribution.metadata["Name"] or "(unnamed)")
        try:
            points = distribution.entry_points.select(group=ENTRY_POINTS)
        except (TypeError, ValueError) as error:
            if ENTRY_POINTS in (distribution.read_text("entry_points.txt") or ""):
                yield Installed("", "", name, f"its entry_points.txt cannot be read: {error}")
            continue
        for point in points:
            yield Installed(point.name, point.value, name)


class _UnfitError(Exception):
    """An entry cannot be used; the text says why."""


class Registry:
    def __init__(
        self,
        own: Sequence[Entry],
        *,
        without_kind: Sequence[str] = (),
        natives: Sequence[Face] = (),
        installed: Callable[[], Iterable[Installed]] = installed,
    ) -> None:
        """`without_kind` are packages of features that are about no kind of ours: they have no face."""
        self._own = {entry.group_kind: entry for entry in own}
        self._without_kind = without_kind
        self._natives = {face.group_kind: face for face in natives}
        self._find_installed = installed
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with installed kinds, as far as it was noticed."""
        return tuple(self._problems)

    # Faces

    @functools.cached_property
    def built_in(self) -> tuple[Face, ...]:
        """The faces that are known without a look at what is installed."""
        return (*(self._face(entry) for entry in self._own.values()), *self._natives.values())

    @functools.cached_property
    def faces(self) -> tuple[Face, ...]:
        """Of every kind: ours, Kubernetes' own, those of installed packages."""
        return (*self.built_in, *(face for _, face in self._installed))

    @functools.cached_property
    def packages(self) -> tuple[tuple[Face, str], ...]:
        """Of every kind but Kubernetes' own: its face, and the package that is about it."""
        own = ((self._face(entry), entry.package) for entry in self._own.values())
        return (*own, *((face, entry.package) for entry, face in self._installed))

    def face_of(self, group: str, kind: str) -> Face | None:
        found = (group, kind)
        if found in self._own:
            return self._face(self._own[found])
        if found in self._natives:
            return self._natives[found]
        return next((face for _, face in self._installed if face.group_kind == found), None)

    # Features

    @functools.cached_property
    def features(self) -> tuple[Feature, ...]:
        """What every kind brings to the manager. Loads the code of all of them."""
        found = [self._feature(entry.package) for entry in self._own.values()]
        found += [self._feature(package) for package in self._without_kind]
        for entry, _ in self._installed:
            feature = self._tried(entry, self._beside, (entry.package, tuple(found)))
            if feature is not None:
                found.append(feature)
        return tuple(found)

    def feature_of(self, group: str, kind: str) -> Feature | None:
        """What one kind brings. Loads only its code."""
        if (group, kind) in self._own:
            return self._feature(self._own[group, kind].package)
        for entry, face in self._installed:
            if face.group_kind == (group, kind):
                feature: Feature | None = self._tried(entry, self._feature, entry.package)
                return feature
        return None

    # Doors

    def _face(self, entry: Entry) -> Face:
        face: Face = _door(entry.package, "face", "FACE", Face)
        if face.group_kind != entry.group_kind:
            raise _UnfitError(f"{entry.package}.face is about {face}.{face.resource.group}")
        return face

    def _feature(self, package: str) -> Feature:
        from kruise.feature import Feature

        feature: Feature = _door(package, "controller", "FEATURE", Feature)
        return feature

    def _beside(self, wanted: tuple[str, tuple[Feature, ...]]) -> Feature:
        """The feature of a package, if it gets along with the others."""
        from kruise.feature import check_beside

        package, others = wanted
        feature = self._feature(package)
        try:
            check_beside(others, feature)
        except ValueError as error:
            raise _UnfitError(str(error)) from error
        return feature

    @functools.cached_property
    def _installed(self) -> tuple[tuple[Installed, Face], ...]:
        found: dict[GroupKind, tuple[Installed, Face]] = {}
        for entry in self._find_installed():
            kind, _, group = entry.name.partition(".")
            if entry.problem:
                self._leave_out(entry, entry.problem)
                continue
            if (group, kind) in self._own or (group, kind) in self._natives:
                self._leave_out(entry, "this kind is built in")
            elif (group, kind) in found:
                self._leave_out(entry, f"{found[group, kind][0].distribution} brings it already")
            elif (face := self._tried(entry, self._face, Entry(group, kind, entry.package))) is not None:
                found[group, kind] = (entry, face)
        return tuple(found.values())

    def _tried(self, entry: Installed, load: Callable[[Any], Any], what: Any) -> Any:
        try:
            return load(what)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the code of somebody else, and must stop nobody
            text = str(error) if isinstance(error, _UnfitError) else f"{type(error).__name__}: {error}"
            self._leave_out(entry, text)
            return None

    def _leave_out(self, entry: Installed, why: str) -> None:
        self._problems[f"{entry} is left out: {why}"] = None


def _door(package: str, module: str, name: str, type_: type[Any]) -> Any:
    found = getattr(importlib.import_module(f"{package}.{module}"), name, None)
    if not isinstance(found, type_):
        raise _UnfitError(f"{package}.{module} has no {type_.__name__} called {name}")
    return found
