"""Load plugins by dotted name and call their hooks."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from starcluster.clustersetup import ClusterSetup
from starcluster.config.sections import Plugin
from starcluster.config.template import Template
from starcluster.config.volume import Volume, file_systems, with_devices
from starcluster.errors import ConfigError, PluginError, SetupError, StarClusterError
from starcluster.logger import log
from starcluster.node.node import Node
from starcluster.original import replacement_of
from starcluster.setup.python2 import fix_for
from starmint import install_command

FOLDER = Path("~/.starcluster/plugins")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPlugin:
    """A plugin with its arguments from the config; ``name`` is the name of its section."""

    name: str
    setup: ClusterSetup


def load_plugins(plugins: Sequence[Plugin], folder: Path = FOLDER) -> list[LoadedPlugin]:
    """Return the plugins in the same order; nothing is sent to a node.

    Args:
        folder: Directory to search for modules in addition to installed packages.

    Raises:
        PluginError: The module or class does not exist or cannot be imported.
        ConfigError: The class does not accept the arguments.
    """
    return [LoadedPlugin(name=plugin.name, setup=load(plugin, folder)) for plugin in plugins]


def load(plugin: Plugin, folder: Path = FOLDER) -> ClusterSetup:
    """Return one plugin; raises like :func:`load_plugins`."""
    kind = _class(plugin, folder.expanduser())
    plugin = replace(plugin, arguments=_by_parameter(plugin.arguments, kind))
    _check_arguments(plugin, kind)
    try:
        return kind(**plugin.arguments)
    except StarClusterError:
        raise
    except Exception as error:
        raise PluginError(
            f"plugin {plugin.name}: cannot create {plugin.setup_class}: {error}",
            f"Correct the arguments in section [plugin {plugin.name}].",
        ) from error


def _class(plugin: Plugin, folder: Path) -> type[ClusterSetup]:
    module_name, _, name = plugin.setup_class.rpartition(".")
    where = f"plugin {plugin.name}: setup_class {plugin.setup_class}"
    if replacement := replacement_of(plugin.setup_class):
        raise PluginError(f"{where} does not exist", replacement)
    if not module_name:
        raise PluginError(f"{where} has no module name", "Write it as module.Class.")
    module = _module(module_name, where, folder)
    kind = getattr(module, name, None)
    if kind is None:
        known = [key for key, value in vars(module).items() if _is_plugin(value)]
        fix = f"Plugin classes in {module_name}: {', '.join(known)}." if known else ""
        raise PluginError(f"{where}: {module_name} has no class {name}", fix)
    if not _is_plugin(kind):
        raise PluginError(
            f"{where} is not a plugin",
            "Derive the class from starcluster.clustersetup.ClusterSetup.",
        )
    return kind  # type: ignore[no-any-return]


def _module(name: str, where: str, folder: Path) -> Any:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            fix = f"Put {name.partition('.')[0]}.py into {folder}, or install its package."
        else:
            fix = f"Install the package that the plugin imports: {install_command(missing)}"
            fix = fix_for(error, _file_of(error) or name) or fix
        raise PluginError(f"{where}: no module named '{missing}'", fix) from error
    except SyntaxError as error:
        raise PluginError(
            f"{where}: {error.filename}, line {error.lineno}: {error.msg}",
            fix_for(error, error.filename or name),
        ) from error
    except Exception as error:
        what = f"{where} cannot be imported: {type(error).__name__}: {error}"
        raise PluginError(what, fix_for(error, _file_of(error) or name)) from error


def _file_of(error: Exception) -> str:
    """Return the file whose code raised ``error``, without those of the import system."""
    frames = traceback.extract_tb(error.__traceback__)
    files = [frame.filename for frame in frames if not frame.filename.startswith("<")]
    return files[-1] if files else ""


def _is_plugin(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, ClusterSetup)


def _by_parameter(arguments: Mapping[str, str], kind: type[ClusterSetup]) -> dict[str, str]:
    """Return the arguments by parameter; keys in capitals mean the parameter in any case."""
    known = {name.lower(): name for name in inspect.signature(kind).parameters}
    return {known.get(key.lower(), key.lower()): value for key, value in arguments.items()}


def _check_arguments(plugin: Plugin, kind: type[ClusterSetup]) -> None:
    parameters = inspect.signature(kind).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL
    ]
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    problems = []
    for name in plugin.arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"it accepts: {', '.join(known)}"
            problems.append(f"unknown argument '{name}' of {kind.__name__}; {hint}")
    problems += [
        f"missing argument '{name}' of {kind.__name__}"
        for name in needed
        if name in known and name not in plugin.arguments
    ]
    if problems:
        raise ConfigError(
            f"invalid arguments of plugin {plugin.name}:",
            f"Edit section [plugin {plugin.name}].",
            problems,
        )


def call(plugin: LoadedPlugin, hook: str, *arguments: Any) -> bool:
    """Call a hook; return whether the plugin implements it.

    Raises:
        SetupError: The hook failed on the nodes in ``failed`` and succeeded on the others.
        PluginError: The hook failed as a whole.
    """
    if getattr(type(plugin.setup), hook) is getattr(ClusterSetup, hook):
        return False
    try:
        getattr(plugin.setup, hook)(*arguments)
    except NotImplementedError:
        return False
    except SetupError as error:
        if not error.failed:
            raise PluginError(f"plugin {plugin.name}: {error.what}", error.fix) from error
        failed = {alias: f"{plugin.name}: {why}" for alias, why in error.failed.items()}
        raise SetupError(f"plugin {plugin.name}: {error.what}", error.fix, failed=failed) from error
    except StarClusterError as error:
        raise PluginError(f"plugin {plugin.name}: {error.what}", error.fix) from error
    except Exception as error:
        log.debug("plugin %s", plugin.name, exc_info=True)
        raise PluginError(
            f"plugin {plugin.name}: {type(error).__name__}: {error}",
            fix_for(error, _file_of(error))
            or "Show the traceback: starcluster --debug runplugin ...",
        ) from error
    return True


def volumes_for_plugins(volumes: Sequence[Volume]) -> Mapping[str, Mapping[str, Any]]:
    """Return the volumes in the form that hooks receive."""
    return {
        volume.name: {
            "volume_id": volume.volume_id,
            "device": volume.device,
            "partition": volume.partition,
            "mount_path": volume.mount_path,
            volume.kind.value: volume.id,
        }
        for volume in (*with_devices(volumes), *file_systems(volumes))
    }


def hook_arguments(master: Node, template: Template) -> tuple[Any, ...]:
    """Return the last arguments of every hook: master, user, shell and volumes."""
    volumes = volumes_for_plugins(template.volumes)
    return master, template.cluster_user, template.cluster_shell, volumes
