"""Templates: what admission writes into them, and the revisions that come of it (CS-31, IPU section 4)."""

from __future__ import annotations

from tests.scenarios.inplace import NEW, OLD
from tests.scenarios.stage import BETA, Stage, hash_in, scenario, uids


@scenario("IPU-11", "IPU-12", "IPU-14", "CS-33", "CS-31")
async def equal_templates_have_equal_revisions(stage: Stage) -> None:
    """The golden hashes; bare containers of a merge patch are filled in and so give the same revision."""
    nginx = {"name": "nginx", "imagePullPolicy": "Always"}
    for tag, wanted in (("alpine", "d4d4fb5bd"), ("1.19.1", "7b66b966b7"), ("mainline", "56dfb978d4")):
        name = f"sample-{tag.replace('.', '-')}"
        manifest = stage.manifest(name, replicas=0, containers=[{**nginx, "image": f"nginx:{tag}"}])
        manifest["spec"]["selector"] = {"matchLabels": {"app": "sample"}}
        manifest["spec"]["template"]["metadata"]["labels"] = {"app": "sample"}
        await stage.world.create(manifest)
        assert hash_in((await stage.seen(name))["status"]["updateRevision"]) == wanted
    bare = {"template": {"spec": {"containers": [{"name": "nginx", "image": "nginx:alpine"}]}}}
    await stage.change(bare, "sample-mainline", version=BETA)
    assert hash_in((await stage.seen("sample-mainline"))["status"]["updateRevision"]) == "d4d4fb5bd"


@scenario("CS-31", "IPU-12", gates={"TemplateNoDefaults": True})
async def templates_stay_as_written_where_asked_for(stage: Stage) -> None:
    """With TemplateNoDefaults nothing is written into the template, and pods run and update all the same."""
    before = await stage.start(replicas=1)
    spec = (await stage.world.cloneset())["spec"]["template"]["spec"]
    assert spec == {"containers": [{"name": "main", "image": OLD}]}
    await stage.set_image(NEW)
    after = await stage.complete()
    assert uids(after) == uids(before)


@scenario("CS-31", gates={"TemplateNoDefaults": False})
async def templates_are_filled_in(stage: Stage) -> None:
    """Defaults are written into the template; images of containers are pulled always."""
    await stage.start(replicas=1)
    spec = (await stage.world.cloneset())["spec"]["template"]["spec"]
    assert spec == {
        "containers": [
            {
                "name": "main",
                "image": OLD,
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
