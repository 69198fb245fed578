"""Looking ahead for a command: read, foresee, look again whether the cluster is still the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence

from kruise.api.native.pod import Pod
from kruise.cli import plan_outlook, plan_reading
from kruise.cli.plan_deciding import deciders
from kruise.cli.plan_notes import notes_of
from kruise.cli.plan_objects import Chosen
from kruise.cli.plan_reading import Edit, Others, Situation
from kruise.cli.session import Session, explained
from kruise.foresight import foreseeing, whose
from kruise.foresight.forecast import Forecast
from kruise.foresight.playing import Bounds
from kruise.foresight.rendering.report import Prospect, Refused, Report
from kruise.foresight.rendering.several import Plans
from kruise.kinds import features
from kruise.machinery.client.errors import ApiError
from kruise.machinery.documents import Json
from kruise.manager.options import Options
from kruise.model.room import RoomNotReadError
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target


class Look:
    """How to look ahead: the same for every object that the command is about."""

    def __init__(
        self, session: Session, options: Options, *, answer_hooks: bool, thorough: bool, has_edits: bool = False
    ) -> None:
        self._session = session
        self._options = options
        self._answer_hooks = answer_hooks
        self._thorough = thorough
        self._has_edits = has_edits
        self._others = Others(session)

    async def at_all(self, chosen: Chosen, edit_of: Callable[[Target], Edit]) -> Plans:
        """An object that is refused does not keep the others from being planned."""
        results: list[Report | Prospect | Refused] = []
        skipped = list(chosen.skipped)
        for target, manifest in chosen.planned:
            try:
                if not target.kind.outlook:
                    results.append(await self._at(target, manifest, edit_of(target), chosen.skipped))
                elif not self._has_edits:
                    results.append(await plan_outlook.look(self._session, target, manifest, self._options))
                elif chosen.is_one:
                    plan_outlook.refuse_edits(target)
                else:
                    skipped.append(str(target))
            except (VerbError, ApiError) as error:
                if chosen.is_one or isinstance(error, UsageError):
                    raise
                namespace = target.namespace or self._session.namespace
                results.append(
                    Refused(
                        subject=str(target),
                        kind=str(target.kind),
                        namespace=namespace,
                        name=target.name,
                        error=explained(error),
                    )
                )
        return Plans(results=(*results, *chosen.refused), skipped=tuple(skipped))

    async def _at(self, target: Target, manifest: Json | None, edit: Edit, brought: Collection[str]) -> Report:
        session = self._session
        question = plan_reading.question_of(session, target, manifest, edit, features())
        among = deciders(question.subject, self._options)
        situation = await plan_reading.read(session, question, features=among, settings=self._options)
        refused = question.fields.refusal(target.name, situation.changed, situation.live)
        with plan_reading.refusing_as_a_server(refused):
            forecast, notes = await self._forecast(situation)
        found = await notes_of(
            session,
            question.target.kind,
            situation.changed,
            forecast,
            namespace=situation.key.namespace,
            brought=brought,
        )
        face = question.target.kind
        kind, contributes = face.forecast_facts(), face.contribution is not None
        assert kind is not None  # others are refused before
        return Report(
            subject=str(target),
            forecast=forecast,
            pods=frozenset(map(kind.name_of, situation.pods)),
            shares=whose.shares(situation.pods, kind, forecast) if contributes else (),
            is_new=situation.live is None,
            notes=(*situation.notes, *notes, *found),
            drifted=await plan_reading.drifted(session, situation),
        )

    async def _forecast(self, situation: Situation) -> tuple[Forecast, tuple[str, ...]]:
        """Only where a pod needs a node, or more of its own, are all pods of the cluster read: they take room."""
        try:
            return self._foreseen(situation, None), ()
        except RoomNotReadError:
            others = await self._others.read()
            return self._foreseen(situation, others.pods), others.notes

    def _foreseen(self, situation: Situation, elsewhere: Sequence[Pod] | None) -> Forecast:
        return foreseeing.foresee(
            situation.question.subject,
            situation.key,
            situation.changed,
            situation.objects,
            elsewhere=elsewhere,
            features=deciders(situation.question.subject, self._options),
            settings=self._options,
            now=self._session.clock.now(),
            answer_hooks=self._answer_hooks,
            server_version=situation.server_version,
            bounds=Bounds(looks=sys.maxsize, passes=sys.maxsize) if self._thorough else Bounds(),
        )
