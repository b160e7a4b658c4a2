// Many training steps of a small network in one launch; all blocks are resident.
//
// ROW_GROUPS x COLUMN_GROUPS blocks. In the passes a block has ROWS rows of the minibatch and
// tiles of 16 columns of each hidden layer; each block of a row group computes all outputs of the
// group and the gradient of the last hidden layer. In the update a block has a tile of each weight
// matrix; weights and moments stay in its registers. A picture is in docs/why/persistent_kernel.rst.
//
// Blocks exchange words; a word is EMPTY until it is written. The steps use three buffers in turn.
// The writer empties the words of step i - 1 in step i, after every block has arrived at the counter
// in step i and has therefore read all of them. The buffer is read again in step i + 2, after every
// block has seen all arrivals in step i + 1: no block reads old words. The passes therefore need no
// barrier, and a result is read as soon as it is written.
//
// Warps 0 to 7 are workers. Warps 8 to 11 are servers: they fetch the weights of the last layer and
// the rows of the next step, draw its dropout, count arrivals, empty buffers, and sum losses.
//
// Fragments that are read directly from the exchange have 16 bytes per lane: lane t has k = 8 t to
// 8 t + 7 of 32 (floats: 4 t to 4 t + 3 of 16). This permutes k in the same way for both operands of mma.

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    train_steps(const __grid_constant__ Persistent a) {
  extern __shared__ __align__(128) unsigned char memory[];
  Shared& s = *(Shared*)memory;
  if (threadIdx.x < WORKERS) {
    take_registers<216>();
    Worker(a, s).run();
  } else {
    give_registers<72>();
    Server(a, s).run();
  }
}
