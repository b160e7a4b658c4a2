"""The config file as values: templates, keys, plugins and the AWS settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from starcluster.config import schema
from starcluster.config import values as reader
from starcluster.config.portable import Portable, Target, portable
from starcluster.config.sections import AwsSettings, GlobalSettings, Key, Plugin
from starcluster.config.syntax import (
    Document,
    Entry,
    Problem,
    Where,
    expand,
    others_can_read,
    read,
    short,
)
from starcluster.config.template import Template
from starcluster.config.validate import key_file_problem, template_problems
from starcluster.errors import ConfigError, InputError, did_you_mean

DEFAULT_PATH = "~/.starcluster/config"
_CREDENTIALS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_profile")


def default_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return ``$STARCLUSTER_CONFIG`` if set, otherwise ~/.starcluster/config."""
    return expand(environment.get("STARCLUSTER_CONFIG") or DEFAULT_PATH)


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """Return the config at ``path``; at the default path the file is optional.

    Problems in the file are raised when the affected part is used.

    Raises:
        ConfigError: The file does not exist, cannot be read, or other users can read it.
    """
    file = path or default_path(environment)
    if file.is_dir():
        raise ConfigError(f"the config file {short(file)} is a directory", "Name a file in it.")
    if file.exists() and not file.is_file():  # such as <(gpg -d config.gpg); it is read twice
        raise ConfigError(f"the config {short(file)} is not a regular file", "Write it to a file.")
    if not file.is_file():
        if path is not None or environment.get("STARCLUSTER_CONFIG"):
            fix = f"Create it: starcluster -c {short(file)} help"
            raise ConfigError(f"config file {short(file)} does not exist", fix)
        return Config(file, Document(), environment)
    if others_can_read(file):
        what = f"other users can read {short(file)}, which can contain credentials"
        raise ConfigError(what, f"Run: chmod 600 {short(file)}")
    try:
        document = read(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the config file {short(file)}: {error}") from error
    return Config(file, document, environment)


class Config:
    """A config file as values; made by :func:`load`.

    Attributes:
        path: The file, which does not have to exist.
        problems: All problems of the file except those of [aws info].
        keys, plugins, volumes, permissions: The valid sections by name.
    """

    def __init__(self, path: Path, document: Document, environment: Mapping[str, str]) -> None:
        self.path = path
        self._document = document
        self.problems: list[Problem] = [
            *document.problems,
            *reader.kind_problems(document),
        ]
        self.globals = self._read_globals()
        self._aws, self._aws_problems = self._read_aws(environment)
        self.keys = reader.keys(document, self.problems)
        self.volumes = reader.volumes(document, self.problems)
        self.permissions = reader.permissions(document, self.problems)
        self.plugins = reader.plugins(document, self.problems)
        self.problems += reader.cluster_problems(document)

    @property
    def template_names(self) -> list[str]:
        """Names of all templates, in the order of the file."""
        return list(self._document.of("cluster"))

    @property
    def shown_path(self) -> str:
        """Path of the file for messages."""
        return short(self.path)

    def aws(self) -> AwsSettings:
        """Return the AWS settings. Raises ConfigError for problems of [aws info] only."""
        if self._aws_problems:
            raise self._error("invalid AWS settings", self._aws_problems)
        return self._aws

    def template(
        self, name: str | None = None, overrides: Mapping[str, str] | None = None
    ) -> Template:
        """Return a template. Without a name: default_template, or the only template.

        Args:
            overrides: Text by config key, e.g. of options; ``key_location`` can be one.

        Raises:
            ConfigError: The file has problems, or this template has; it lists all of them.
        """
        if name:
            name = self._chosen(name)
        found = [*self.problems, *self._aws_problems]
        if found:
            raise self._error(f"invalid config {self.shown_path}", found)
        name = self._chosen(name)
        problems: list[Problem] = []
        template = self._built(name, overrides or {}, problems)
        if template is None or problems:
            raise self._error(f"cannot start template '{name}'", problems)
        return template

    def for_master(
        self, template: Template, overrides: Mapping[str, str], target: Target
    ) -> Portable:
        """Return the config that the master of a cluster needs to add nodes; see portable."""
        return portable(self._document, self._aws, template, overrides, target)

    def images_named(self) -> dict[str, set[str]]:
        """Return the images that each template names, also a template that has mistakes."""
        found: dict[str, set[str]] = {}
        for name in self.template_names:
            values = self._valid_values(name)
            named = {values.get("node_image_id", ""), values.get("master_image_id", "")}
            named |= {kind.image_id for kind in values.get("node_instance_type", ())}
            found[name] = named - {""}
        return found

    def default_tags(self) -> dict[str, str]:
        """Return the ``tags`` of the default template, also if it has mistakes."""
        known = self.template_names
        name = self.globals.default_template or (known[0] if len(known) == 1 else "")
        return dict(self._valid_values(name).get("tags", ())) if name in known else {}

    def _valid_values(self, name: str) -> Mapping[str, Any]:
        entries = reader.inherited(self._document, name, [])
        return reader.typed(entries, schema.CLUSTER, [], f"cluster {name}")

    def refusal(
        self,
        name: str,
        problems: Iterable[tuple[str, str]],
        overrides: Mapping[str, str] | None = None,
    ) -> ConfigError:
        """Return the error that lists problems, each a config key and a text, by file and line."""
        section = self._document.of("cluster")[name]
        entries = reader.inherited(self._document, name, [])
        entries |= reader.given(overrides or {})
        found = [
            Problem(
                where=entries[key].where if key in entries else section.where,
                text=f"{key}: {text}",
            )
            for key, text in problems
        ]
        return self._error(f"cannot start template '{name}'", found)

    def key(self, name: str) -> Key:
        """Return a key whose file exists and is private. Raises ConfigError."""
        found = self.keys.get(name)
        if found is None:
            make = f"Create it: starcluster createkey {name} -o ~/.ssh/{name}.pem -a"
            fix = did_you_mean(name, self.keys) or make
            raise ConfigError(f"no key '{name}' in {self.shown_path}", fix)
        if problem := key_file_problem(found.location):
            raise ConfigError(f"key '{name}': {problem}")
        return found

    def plugin(self, name: str) -> Plugin:
        """Return a plugin of the file. Raises ConfigError."""
        found = self.plugins.get(name)
        if found is None:
            mine = [problem for problem in self.problems if f"plugin {name}]" in problem.text]
            if mine:
                raise self._error(f"cannot use plugin '{name}'", mine)
            fix = did_you_mean(name, self.plugins) or f"Add a section [plugin {name}]."
            raise ConfigError(f"no plugin '{name}' in {self.shown_path}", fix)
        return found

    def _error(self, what: str, problems: Sequence[Problem]) -> ConfigError:
        in_file = any(problem.where.file for problem in problems)
        fix = f"Edit {self.shown_path}" if in_file else "Correct these values"
        fix = f"{fix}; nothing was launched."
        return ConfigError(f"{what}:", fix, [str(problem) for problem in problems])

    def _chosen(self, name: str | None) -> str:
        known = self.template_names
        chosen = name or self.globals.default_template or (known[0] if len(known) == 1 else "")
        if chosen in known:
            return chosen
        if not self.path.is_file():
            what = f"config file {self.shown_path} does not exist"
            raise ConfigError(what, "Create it: starcluster help")
        if not chosen:
            what = f"{self.shown_path} has {len(known)} cluster templates and no default_template"
            fix = f"Choose one with -c: {', '.join(known)}"
            add = "Add a section [cluster NAME]. An example: starcluster -c NEW_FILE help"
            raise ConfigError(what, fix if known else add)
        what = f"no cluster template '{chosen}' in {self.shown_path}"
        fix = did_you_mean(chosen, known) or f"Its templates: {', '.join(known) or 'none'}."
        raise InputError(what, fix)

    def _built(
        self, name: str, overrides: Mapping[str, str], problems: list[Problem]
    ) -> Template | None:
        section = self._document.of("cluster")[name]
        entries = reader.inherited(self._document, name, problems)
        entries |= reader.given(overrides)
        own = {key: entry for key, entry in entries.items() if key != "key_location"}
        values = reader.typed(own, schema.CLUSTER, problems, f"cluster {name}")
        problems += reader.missing(section, own, schema.CLUSTER)
        problems += reader.reference_problems(self._document, values, entries)
        if problems:
            return None
        template = self._assembled(name, values, overrides.get("key_location"))
        for wrong, text in template_problems(template):
            where = entries[wrong].where if wrong in entries else section.where
            problems.append(Problem(where=where, text=f"{wrong}: {text}"))
        if text := key_file_problem(template.key.location):
            text = f"key {template.keyname}: {text}"
            problems.append(Problem(where=entries["keyname"].where, text=text))
        return template

    def _assembled(
        self, name: str, values: Mapping[str, Any], key_location: str | None
    ) -> Template:
        """Return the template of valid values; the sections that they name exist."""
        keyname = values["keyname"]
        if key_location is None:
            key = self.keys[keyname]
        else:
            key = Key(name=keyname, location=expand(key_location))
        sections: Mapping[str, Mapping[str, Any]] = {
            "volume": self.volumes,
            "plugin": self.plugins,
            "permission": self.permissions,
        }
        lists = {
            key.name: tuple(sections[key.refers_to][name] for name in values[key.name])
            for key in schema.CLUSTER.values()
            if key.refers_to in sections and key.name in values
        }
        return Template(name=name, key=key, **{**values, **lists})

    def _read_globals(self) -> GlobalSettings:
        section = self._document.of("global").get("")
        entries = section.entries if section else {}
        values = reader.typed(entries, schema.GLOBAL, self.problems, "global")
        named = values.get("default_template")
        if named and named not in self.template_names:
            text = f"default_template = {named}: no section [cluster {named}]."
            text = f"{text} {did_you_mean(named, self.template_names)}".strip()
            where = entries["default_template"].where
            self.problems.append(Problem(where=where, text=text))
        return GlobalSettings(**values)

    def _read_aws(self, environment: Mapping[str, str]) -> tuple[AwsSettings, list[Problem]]:
        section = self._document.of("aws info").get("")
        entries = dict(section.entries) if section else {}
        if environment.get("AWS_ACCESS_KEY_ID") or environment.get("AWS_PROFILE"):
            # Credentials are one set: never take half from the file and half from the environment.
            entries = {key: entry for key, entry in entries.items() if key not in _CREDENTIALS}
        for key in schema.AWS:
            if value := environment.get(key.upper()):
                where = Where(other=f"environment {key.upper()}")
                entries[key] = Entry(key=key, value=value, where=where)
        problems: list[Problem] = []
        settings = AwsSettings(**reader.typed(entries, schema.AWS, problems, "aws info"))
        half = bool(settings.aws_access_key_id) != bool(settings.aws_secret_access_key)
        if half and not problems:
            text = "aws_access_key_id and aws_secret_access_key must both be set"
            entry = entries.get("aws_access_key_id") or entries["aws_secret_access_key"]
            problems.append(Problem(where=entry.where, text=text))
        return settings, problems
