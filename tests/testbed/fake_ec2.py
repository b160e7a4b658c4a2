"""EC2 as a separate process: moto over HTTP, whose instances are nodes of the test bed.

``Cloud`` starts ``python -m tests.testbed.fake_ec2 SETTINGS`` in the network of the test bed and
kills it at the end. ``moto_instances`` and ``moto_more`` add the features that moto does not have.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"  # the 1301 images take 1.5 s per DescribeImages
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
os.environ["MOTO_ENABLE_KEYPAIR_VALIDATION"] = "true"

from moto.core.responses import BaseResponse
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.server import ThreadedMotoServer

from tests.testbed.cloud import IMAGE
from tests.testbed.consistency import Consistency, cut
from tests.testbed.machines import Faults, Hostless, Machines
from tests.testbed.metadata import serve_metadata
from tests.testbed.moto_agents import tell_agents
from tests.testbed.moto_consistency import OneAtATime, connect_consistency, refused
from tests.testbed.moto_instances import connect_fleets, connect_instances, wrap
from tests.testbed.moto_more import add_what_moto_lacks, tell_prices
from tests.testbed.roles import REGION, authorize

ACCOUNT = "123456789012"


def record_calls(machines: Faults, lagging: Consistency) -> None:
    """Log each call with its parameters; fail, delay or cut it if a test has requested that."""
    in_turn = OneAtATime()

    def call_action(original: Any) -> Any:
        def call(self: Any) -> Any:
            action = self._get_action()
            parameters = dict(getattr(self, "params", None) or {})  # EFS has none
            fault = machines.fault(action)
            lagging.before(action, self.headers.get("User-Agent", ""))
            authorize(self, action, REGION)
            if lagging.throttles and self.service_name == "ec2":
                return refused("RequestLimitExceeded", 503)
            if fault.get("code"):

                def refuse() -> None:
                    raise EC2ClientError(fault["code"], fault.get("message", "asked for"))

                snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in action).lstrip("_")
                setattr(self, snake, refuse)
            done = in_turn.call(action, parameters, lambda: original(self))
            if fault.get("how") == "lost":
                cut()
            lagging.after()
            status = int(done[0])
            machines.log(action, parameters, str(status) if status >= 400 else "")
            return done

        return call

    wrap(BaseResponse, "call_action", call_action)


def furnish(region: str) -> None:
    """Register the image of the nodes."""
    backend = ec2_backends[ACCOUNT][region]
    image = backend.register_image(name="starmint-test-bed", description="Debian 12, Grid Engine")
    del backend.amis[image.id]
    image.id = IMAGE
    backend.amis[IMAGE] = image
    image.root_device_type, image.root_device_name = "ebs", "/dev/xvda"
    image.virtualization_type, image.architecture, image.state = "hvm", "x86_64", "available"


def main() -> None:
    """Serve until killed."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    machines = Machines(settings) if "pid" in settings else Hostless(settings)
    lagging = Consistency(machines.folder)
    if isinstance(machines, Machines):
        serve_metadata(machines)
    connect_instances(machines)
    connect_fleets(machines)
    add_what_moto_lacks()
    connect_consistency(lagging)
    record_calls(machines, lagging)
    tell_prices()
    tell_agents(machines.folder)
    furnish(settings["region"])
    server = ThreadedMotoServer(
        ip_address=settings["net"].partition("/")[0], port=settings["port"], verbose=False
    )
    server.start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
