"""The declarations of the config keys: each is complete, and its option overrides it."""

from __future__ import annotations

import click
import pytest

from starcluster.commands.start import overrides_of, start
from starcluster.config import schema
from starcluster.config.keys import ConfigKey

KEYS = [
    pytest.param(key, id=f"{kind}-{key.name}")
    for kind, keys in schema.SECTIONS.items()
    for key in keys.values()
]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_described_with_an_example_that_changes_it(key: ConfigKey) -> None:
    assert key.help.endswith(".")
    assert key.parse(key.example) != key.default
    if key.default_text:
        assert key.parse(key.default_text) == key.default


@pytest.mark.parametrize("key", schema.start_options(), ids=lambda key: key.name)
def test_an_option_of_start_overrides_its_key(key: ConfigKey) -> None:
    (option,) = (found for found in start.params if found.name == key.name)
    flags = [flag for part in key.flags for flag in part.split("/")]
    assert {*option.opts, *option.secondary_opts} == set(flags)
    assert isinstance(option, click.Option)
    assert option.help == key.option_help
    words = [flags[-2]] if option.secondary_opts else [flags[-1], key.example]
    context = start.make_context("start", ["TAG", *words])
    value = "true" if option.secondary_opts else key.example
    assert overrides_of(context.params) == {key.name: value}


def test_secrets_are_hidden() -> None:
    hidden = {key.name for key in schema.AWS.values() if key.hidden}
    assert hidden == {"aws_secret_access_key", "aws_session_token", "aws_proxy_pass"}


def test_start_keeps_the_options_of_the_original() -> None:
    original = "-b -I -i -m -n -a -k -K -u -S -U -P -p -Q -q -s -N"
    flags = {
        flag for key in schema.start_options() for part in key.flags for flag in part.split("/")
    }
    assert flags >= set(original.split())
    assert flags >= {
        *("--bid", "--force-spot-master", "--no-spot-master", "--master-instance-type"),
        *("--node-instance-type", "--master-image-id", "--node-image-id", "--availability-zone"),
        *("--subnet-id", "--public-ips", "--no-public-ips", "--keyname", "--key-location"),
        *("--cluster-user", "--cluster-shell", "--userdata-script", "--dns-prefix"),
        *("--no-dns-prefix", "--disable-queue", "--enable-queue", "--cluster-size"),
    }
