"""How a Troupe is watched, and what it brings to the manager."""

from __future__ import annotations

from kruise.api.meta import Key
from kruise.api.native.pod import PODS
from kruise.feature import Conversion, Feature
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, View, owner_keys
from kruise.machinery.watched import Watched

from .admission import HANDLERS, MUTATING, VALIDATING
from .api import DEFINITION, GROUP, TROUPES
from .conclude import conclude, events
from .conversion import convert
from .decide import Snapshot, decide


def snapshot(view: View, key: Key) -> Snapshot | None:
    """From the stores, without any request."""
    troupe = view.store(TROUPES).get(*key)
    if troupe is None or troupe.metadata.deletion_timestamp is not None:
        return None
    pods = view.store(PODS).by_index(OWNER, troupe.metadata.uid)
    return Snapshot(troupe=troupe, pods=pods, now=view.now)


SPEC = ControllerSpec(
    name="troupe-controller",
    subject=TROUPES,
    sources=(Source(Watched(PODS, indexes=OWNER_INDEX), owner_keys(TROUPES)),),
    snapshot=snapshot,
    decide=decide,
    conclude=conclude,
    events=events,
    snapshot_type=Snapshot,
)
FEATURE = Feature(
    name="troupe",
    definitions=(DEFINITION,),
    controllers=lambda settings: (SPEC,),
    webhooks=lambda settings: HANDLERS,
    mutating_entries=(MUTATING,),
    validating_entries=(VALIDATING,),
    conversions=(Conversion(GROUP, "Troupe", convert),),
)
