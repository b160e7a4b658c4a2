"""The user data that cloud-init reads."""

from __future__ import annotations

import email
import json

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from starcluster.errors import ConfigError
from starcluster.launch.userdata import LIMIT, HostKey, new_host_key, user_data

KEY = HostKey(public="ssh-ed25519 AAAA", private="-----BEGIN secret\n")


def test_the_two_halves_of_a_host_key_belong_together_and_the_private_one_is_not_shown() -> None:
    key = new_host_key()
    private = load_ssh_private_key(key.private.encode(), None)
    from cryptography.hazmat.primitives import serialization as form

    public = private.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    assert public.decode() == key.public
    assert "PRIVATE" not in repr(key)
    assert new_host_key().public != key.public


def test_without_scripts_it_is_one_cloud_config() -> None:
    first, _, rest = user_data(KEY).partition("\n")
    assert first == "#cloud-config"
    config = json.loads(rest)
    assert config["ssh_keys"]["ed25519_private"] == KEY.private
    assert config["disable_root"] is False
    assert config["ssh_deletekeys"] is True
    assert config["manage_etc_hosts"] is False


def test_scripts_are_parts_of_their_own_unchanged_and_in_order() -> None:
    scripts = {"first.sh": "#!/bin/bash\necho 'ä' \\\n  b\n", "second": "#!/usr/bin/python3\n"}
    parts = list(email.message_from_string(user_data(KEY, scripts)).walk())[1:]
    kinds = ["text/cloud-config", "text/x-shellscript", "text/x-shellscript"]
    assert [part.get_content_type() for part in parts] == kinds
    texts = [part.get_payload(decode=True).decode() for part in parts[1:]]
    assert texts == list(scripts.values())


def test_scripts_of_one_name_are_two_and_run_in_the_order_of_the_config() -> None:
    scripts = {f"/home/me/{path}": "#!/bin/sh\n" for path in ("z/setup.sh", "a/setup.sh", "b.sh")}
    parts = list(email.message_from_string(user_data(KEY, scripts)).walk())[2:]
    names = [part.get_filename() for part in parts]
    assert names == sorted(names) == ["001-setup.sh", "002-setup.sh", "003-b.sh"]


def test_what_ec2_would_not_take_is_refused() -> None:
    fits = "#!/bin/sh\n" + "#" * (LIMIT // 2)
    assert len(user_data(KEY, {"fits": fits})) <= LIMIT
    with pytest.raises(ConfigError, match=str(LIMIT)):
        user_data(KEY, {"long": fits + "\n#" * (LIMIT // 2)})


def test_a_script_must_say_what_runs_it() -> None:
    with pytest.raises(ConfigError, match=r"setup\.sh.* #!"):
        user_data(KEY, {"setup.sh": "echo hello"})
