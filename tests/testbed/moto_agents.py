"""The SSM agents of instances, which moto does not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from tests.testbed.moto_instances import wrap


def tell_agents(folder: Path) -> None:
    """Answer requests for agents: each running instance has one.

    None has while ``folder`` has the file ``faults/agents``.
    """

    def answer(original: Any) -> Any:
        def call(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
            action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
            if action != "DescribeInstanceInformation":
                return original(self, environ, start_response)
            asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            (wanted,) = asked["Filters"]
            rows = [
                {"InstanceId": instance.id, "PingStatus": "Online"}
                for regions in ec2_backends.values()
                for backend in regions.values()
                for instance in backend.all_instances()
                if instance.id in wanted["Values"] and instance.state == "running"
            ]
            if (folder / "faults" / "agents").exists():
                rows = []
            start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
            return [json.dumps({"InstanceInformationList": rows}).encode()]

        return call

    wrap(DomainDispatcherApplication, "__call__", answer)
