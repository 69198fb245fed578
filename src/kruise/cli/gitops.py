"""`kruise gitops`: what is put into the configuration of GitOps tools."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.group(cls=flags.Group)
def gitops() -> None:
    """Print what GitOps tools must know of our kinds."""


@gitops.command(cls=flags.Command)
@click.option("-n", "--namespace", default="argocd", show_default=True, help="Where Argo CD is.")
def argocd(namespace: str) -> None:
    """Print the part of the ConfigMap argocd-cm that tells how objects of our kinds stand.

    \b
    kruise gitops argocd > health.yaml
    kubectl patch configmap argocd-cm -n argocd --patch-file health.yaml
    """
    import yaml

    from kruise.gitops.argocd import config_map

    class Dumper(yaml.SafeDumper):
        """Scripts as they are, not as one long line."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    click.echo(yaml.dump(config_map(namespace), Dumper=Dumper, sort_keys=False), nl=False)
