"""The plugins that come with the original."""

from __future__ import annotations

from collections.abc import Mapping

_EMR = "Use Amazon EMR, or run Hadoop in containers; Grid Engine runs the jobs of this cluster."
PLUGINS: Mapping[str, str] = {
    "starcluster.plugins.sge.SGEPlugin": "",
    "starcluster.plugins.users.CreateUsers": "",
    "starcluster.plugins.tmux.TmuxControlCenter": "",
    "starcluster.plugins.pkginstaller.PackageInstaller": "",
    "starcluster.plugins.pypkginstaller.PyPkgInstaller": "",
    "starcluster.plugins.ipcluster.IPCluster": "",
    "starcluster.plugins.ipcluster.IPClusterStop": "",
    "starcluster.plugins.ipcluster.IPClusterRestartEngines": "",
    "starcluster.plugins.mpich2.MPICH2Setup": "",
    "starcluster.plugins.xvfb.XvfbSetup": "",
    "starcluster.plugins.condor.CondorPlugin": "",
    "starcluster.plugins.hadoop.Hadoop": _EMR,
    "starcluster.plugins.mysql.MysqlCluster": "Use Amazon RDS. For one server on the master, use "
    "starcluster.plugins.pkginstaller.PackageInstaller with packages = mariadb-server",
    "starcluster.plugins.boto.BotoPlugin": "Do not copy your credentials to nodes. Give the "
    "instances a role with the permissions that their jobs need.",
}
"""Plugins by class; the text says what replaces one that does not exist here."""


def replacement_of(setup_class: str) -> str:
    """Return what replaces a plugin of the original; empty for all other classes."""
    return PLUGINS.get(setup_class, "")
