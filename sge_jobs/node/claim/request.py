"""What a job requested, from the master, and what Grid Engine says of its part on this host.

Both contain text of the user: variables, names and paths. So the master is asked for XML, where
such text cannot look like an element, and a file of ``NAME=VALUE`` lines is believed only where no
line contradicts another.
"""

from __future__ import annotations

from sge_jobs.node.claim.record import WHOLE
from sge_jobs.node.queries import QueryFailed, ask, find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_JOB = ("detailed_job_info", "djob_info", "element")
_RESOURCES = "hard_resource_list"  # its prefix differs between versions
_RANGE = (*_JOB, "JB_ja_structure", "task_id_range")


class Request:
    """A job as the master knows it.

    Attributes:
        owner: User who submitted it.
        resources: Value by name of each hard request, ``-l NAME=VALUE``.
        parallel: Whether it runs in a parallel environment.
        array: Whether it is an array of tasks.
    """

    __slots__ = ("array", "owner", "parallel", "resources")

    def __init__(
        self, *, owner: str, resources: Mapping[str, str], parallel: bool, array: bool
    ) -> None:
        self.owner = owner
        self.resources = dict(resources)
        self.parallel = parallel
        self.array = array

    @property
    def gpus(self) -> int:
        """N of ``-l gpu=N``; 0 without such a request. ValueError if N is not a number."""
        number = self.resources.get("gpu", "0").partition(".")[0]
        if not (number.isascii() and number.isdigit()):
            raise ValueError(f"the job requests gpu={self.resources['gpu']}, which is not a number")
        return int(number)

    @property
    def share(self) -> int:
        """Thousandths of a GPU of ``-l gpu_share=X``; 0 without such a request.

        ValueError if X is not between 0 and 1, or if the job also requests whole GPUs.
        """
        text = self.resources.get("gpu_share")
        if text is None:
            return 0
        share = round(float(text) * WHOLE)
        if not 0 < share < WHOLE:
            raise ValueError(f"the job requests gpu_share={text}, which is not between 0 and 1")
        if self.gpus:
            raise ValueError("the job requests gpu_share and gpu: expected one of them")
        return share


def query_request(job: str, environment: Mapping[str, str]) -> Request:
    """Return what job ``job`` requested. Raises QueryFailed."""
    qstat = find_program("qstat", environment)
    return parse_request(ask([qstat, "-xml", "-j", job], environment))


def parse_request(xml: str) -> Request:
    """Return the request in the output of ``qstat -xml -j``.

    Raises:
        QueryFailed: The output does not describe a job.
    """
    from pyexpat import ExpatError, ParserCreate

    path: list[str] = []
    texts: list[str] = []
    seen: dict[tuple[str, ...], str] = {}
    resources: dict[str, str] = {}

    def start(name: str, _: object) -> None:
        path.append(name)
        texts.clear()

    def end(name: str) -> None:
        here = tuple(path)
        if here[:3] == _JOB and here[-2].endswith(_RESOURCES):
            resources.setdefault(seen.pop((*here, "CE_name")), seen.pop((*here, "CE_stringval")))
        seen.setdefault(here, "".join(texts))
        texts.clear()
        path.pop()

    parser = ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = texts.append
    try:
        parser.Parse(_repaired(xml), True)
    except (ExpatError, KeyError) as error:
        raise QueryFailed(f"qstat -xml -j printed no XML: {error}: {xml.strip()[:200]}") from error
    if not seen.get((*_JOB, "JB_job_number"), "").isdigit():
        raise QueryFailed(f"qstat -xml -j printed no job: {xml.strip()[:200] or 'nothing'}")
    return Request(
        owner=seen.get((*_JOB, "JB_owner"), ""),
        resources=resources,
        parallel=bool(seen.get((*_JOB, "JB_pe"), "")),
        array=any(seen.get((*_RANGE, end), "1") != "1" for end in ("RN_min", "RN_max")),
    )


def _repaired(text: str) -> str:
    """Return ``text`` as XML; qstat escapes ``<`` in the text of users, so each one starts a tag.

    It does not escape control characters, which variables have. After a restart of the master, it
    prints the element ``JATASK:       1.``, whose name is invalid.
    """
    printable = "".join(
        char if " " <= char < "\ufffe" or char > "\uffff" or char in "\n\t" else "?"
        for char in text
    )
    first, *tags = printable.split("<")
    return "<".join([first, *map(_repaired_tag, tags)])


def _repaired_tag(tag: str) -> str:
    name, mark, rest = tag.partition(">")
    return name.partition(":")[0] + mark + rest if name.lstrip("/").startswith("JATASK:") else tag


def only_value(text: str, name: str) -> str:
    """Return VALUE of the lines ``NAME=VALUE`` in ``text``; empty without one.

    Raises:
        ValueError: Two lines differ: the text of the user contains one of them.
    """
    prefix = name + "="
    found = {line[len(prefix) :] for line in text.split("\n") if line.startswith(prefix)}
    if len(found) > 1:
        raise ValueError(f"the job has several values of {name}: {', '.join(sorted(found))[:200]}")
    return next(iter(found), "")
