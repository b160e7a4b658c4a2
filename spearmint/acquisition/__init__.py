"""Propose the next point: log expected improvement under a fitted model, maximised."""
