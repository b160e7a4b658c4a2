"""Whether a training waits for its data: ``python -m benchmarks.data_pipeline``."""
