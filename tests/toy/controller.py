"""How a Troupe is watched, and what it brings to the manager."""

from kruise.admission.registry import MutatingHandler, ValidatingHandler
from kruise.api.meta import Key
from kruise.api.native.pod import PODS
from kruise.feature import Feature
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, View, owner_keys
from kruise.machinery.watched import Watched
from tests.toy import admission
from tests.toy.decide import TROUPES, Snapshot, conclude, decide, events


def snapshot(view: View, key: Key) -> Snapshot | None:
    if (troupe := view.store(TROUPES).get(*key)) is None or troupe.metadata.deletion_timestamp is not None:
        return None
    return Snapshot(troupe=troupe, pods=view.store(PODS).by_index(OWNER, troupe.metadata.uid), now=view.now)


SPEC = ControllerSpec(
    name="toy-controller",
    subject=TROUPES,
    sources=(Source(Watched(PODS, indexes=OWNER_INDEX), owner_keys(TROUPES)),),
    snapshot=snapshot,
    decide=decide,
    conclude=conclude,
    events=events,
    snapshot_type=Snapshot,
)
HANDLERS = (
    MutatingHandler("/mutate-troupe", admission.default),
    ValidatingHandler("/validate-troupe", admission.validate),
)
FEATURE = Feature(name="troupe", controllers=lambda settings: (SPEC,), webhooks=lambda settings: HANDLERS)
