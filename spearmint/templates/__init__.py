"""Experiments to begin with: ``spearmint init`` copies one into a new directory."""

from spearmint.templates.copy import TEMPLATES, Template, copy_template

__all__ = ["TEMPLATES", "Template", "copy_template"]
