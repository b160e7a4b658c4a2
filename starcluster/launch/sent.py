"""The requests of a launch, and what AWS may have launched because of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from starcluster.aws.model import Instance, LaunchRequest
from starcluster.errors import AwsError, ClusterError, NotFound, Throttled, Unreachable
from starcluster.launch.claim.hold import Held

Ask = Callable[[LaunchRequest], tuple[list[Instance], list[AwsError]]]


class Sent(dict[str, Instance | None]):
    """Every instance that AWS may have launched, by alias; None without a response."""

    def send(
        self, held: Held, aliases: Sequence[str], request: LaunchRequest, ask: Ask
    ) -> tuple[list[Instance], list[AwsError]]:
        """Send a request of the launch ``held`` with its token; return its instances and errors.

        Raises:
            ClusterError: Another command has taken over the claim.
        """
        places = [f"{place.instance_type} {place.subnet_id}" for place in request.places]
        token = held.token("spot" if request.spot else "", *aliases, *places)
        self.update(dict.fromkeys(aliases))
        held.launched = list(self)
        try:
            made, errors = ask(replace(request, token=token))
        except (Unreachable, Throttled):  # an earlier attempt has possibly taken effect
            raise
        except AwsError as error:  # AWS refused, so nothing was launched
            self._forget(held, aliases)
            if isinstance(error, NotFound) and error.code.startswith("InvalidLaunchTemplate"):
                raise ClusterError(
                    f"another command took over cluster '{held.cluster}' during the launch",
                    f"See what runs: starcluster listclusters {held.cluster}",
                ) from error
            raise
        self.update(zip(aliases, made, strict=False))
        self._forget(held, aliases[len(made) :])
        return made, errors

    def _forget(self, held: Held, aliases: Iterable[str]) -> None:
        for alias in aliases:
            self.pop(alias, None)
        held.launched = list(self)
