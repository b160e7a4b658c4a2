// Rows that are dealt out over the GPUs: rank q holds rows q * share .. of the part. Needs rows.cuh.

struct Dealt {
  const T* x[16];                      // rows of each rank
  const unsigned* y; const int* order; const Clock* clock;
  T* to; unsigned* targets;
  long long share;
  int j, batch, rows, packs, words;
};

extern "C" __global__ void gather_dealt(const __grid_constant__ Dealt u) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / u.packs, c = i - r * u.packs;
  if (r >= u.rows) return;
  const long long s = u.order[(long long)(u.clock->step + u.j) * u.batch + r], owner = s / u.share;
  copy_row_piece(u.x[owner] + ((s - owner * u.share) * u.packs + c) * Pack<T>::N,
                 u.to + (size_t)i * Pack<T>::N);
  if (c == 0)
    for (int k = 0; k < u.words; k++) u.targets[(size_t)r * u.words + k] = u.y[s * u.words + k];
}
