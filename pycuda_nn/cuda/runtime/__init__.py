"""Devices, memory, compilation, graphs and timing: what every CUDA room builds on."""
