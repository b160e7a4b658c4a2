"""The GPU through PyCUDA, NVRTC or nvcc, cuBLASLt and CUDA graphs; imported only when asked for."""
