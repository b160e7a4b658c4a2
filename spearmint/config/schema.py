"""The protobuf message of config.pb: experiment.proto and the keys of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from spearmint.config import experiment_pb2 as pb
from spearmint.fields import keys_of
from spearmint.resources import Resources
from spearmint.run_options import RunOptions


def experiment_class(run: type = RunOptions, resources: type = Resources) -> type[pb.Experiment]:
    """Return the message class of config.pb.

    Args:
        run: Dataclass whose settings declare more keys of the file.
        resources: Dataclass whose settings declare the keys of the block ``resources``.
    """
    file = FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(file)
    experiment = _named(file.message_type, "Experiment")
    _add_keys(experiment, run)
    _add_keys(_named(experiment.nested_type, "Resources"), resources)
    pool = DescriptorPool()
    pool.Add(file)
    made = GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{experiment.name}"))
    return cast(type[pb.Experiment], made)


def _named(messages: Iterable[DescriptorProto], name: str) -> DescriptorProto:
    return next(message for message in messages if message.name == name)


def _add_keys(message: DescriptorProto, cls: type) -> None:
    """Add the keys of ``cls``, sorted by number, which is their order in error messages."""
    for key in keys_of(cls):
        label = "LABEL_REPEATED" if key.repeated else "LABEL_OPTIONAL"
        message.field.add(
            name=key.name,
            number=key.number,
            label=FieldDescriptorProto.Label.Value(label),
            type=FieldDescriptorProto.Type.Value(f"TYPE_{key.kind.key_type.upper()}"),
        )
    message.field.sort(key=lambda field: field.number)
