"""Read and check ``config.pb`` and the regions of a config."""
