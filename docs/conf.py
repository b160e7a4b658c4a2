"""Sphinx settings; the pages of options and keys are generated from what the code declares."""

import argparse
import os
import sys
from pathlib import Path

import click

from condor_jobs.cli.main import build_parser as condor_jobs_parser
from pycuda_nn.cli.main import cli as pycuda_nn_cli
from sge_jobs.cli.main import build_parser
from spearmint import __version__
from spearmint.cli.main import cli as spearmint_cli
from starcluster.cli.main import cli as starcluster_cli
from starcluster.config.reference import reference
from starcluster.config.schema import SECTIONS
from starcluster.original.table import page as original_page

sys.path.insert(0, str(Path(__file__).parent / "_tools"))
import room_sentences
import setting_pages

project = "starmint"
author = "the starmint contributors"
release = version = __version__
extensions = [
    "diagrams",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "_generated", "_tables", "_tools"]
html_show_copyright = False
html_theme = "furo"
html_title = "starmint"
html_static_path = ["_static"]
html_css_files = ["starmint.css"]
smartquotes = False  # they change --option
html_copy_source = html_show_sourcelink = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# The prompt and the output of a console block are not copied.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]
nitpicky = True
# Types of other packages have no page here; docstrings name classes of their own package only.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|optuna|collections|pathlib|typing|np|pd|spearmint\.model)\b.*"),
    ("py:(class|exc|func|meth)", r"[\w ]+"),
    # Public names use some types of their packages that are not public themselves.
    ("py:.*", r"(spearmint|starcluster|sge_jobs|condor_jobs|pycuda_nn)\.[\w.]+"),
]


def help_pages(name: str, group: click.Group) -> str:
    """Return the help of ``group`` and its commands as reStructuredText."""
    parent = group.context_class(group, info_name=name)
    parts = [_section(name, group, group.context_class(group, info_name=name))]
    for command_name in sorted(group.list_commands(parent)):
        command = group.get_command(parent, command_name)
        if command is not None:
            context = command.context_class(command, info_name=command_name, parent=parent)
            parts.append(_section(f"{name} {command_name}", command, context))
    return "\n".join(parts)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    context.max_content_width = 90
    return _text_section(title, command.get_help(context))


def _text_section(title: str, text: str) -> str:
    lines = "\n".join(f"   {line}".rstrip() for line in text.splitlines())
    return f"{title}\n{'-' * len(title)}\n\n.. code-block:: text\n\n{lines}\n"


def argparse_pages(parser: argparse.ArgumentParser) -> str:
    """Return the help of ``parser`` and its commands as reStructuredText."""
    os.environ["COLUMNS"] = "92"  # argparse takes two off
    commands: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands |= action.choices
    helps = {parser.prog: parser.format_help()}
    helps |= {f"{parser.prog} {name}": each.format_help() for name, each in commands.items()}
    return "\n".join(_text_section(title, text) for title, text in helps.items())


generated = Path(__file__).parent / "_generated"
generated.mkdir(exist_ok=True)
for name, group in (
    ("spearmint", spearmint_cli),
    ("starcluster", starcluster_cli),
    ("pycuda-nn", pycuda_nn_cli),
):
    (generated / f"{name}.rst").write_text(help_pages(name, group))
for page, text in setting_pages.pages().items():
    (generated / page).write_text(text)
(generated / "starcluster_original.rst").write_text(original_page())
(generated / "sge-jobs.rst").write_text(argparse_pages(build_parser()))
(generated / "condor-jobs.rst").write_text(argparse_pages(condor_jobs_parser()))
for kind in SECTIONS:
    (generated / f"starcluster_config_{kind.replace(' ', '_')}.rst").write_text(reference(kind))
(generated / "rooms.rst").write_text(room_sentences.page())
