"""Grid Engine job scripts and GPU assignment; standard library only (not built yet)."""
