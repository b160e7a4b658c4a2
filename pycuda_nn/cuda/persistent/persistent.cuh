// Many steps of a small network's training in one launch of blocks that are all resident.
//
// ROW_GROUPS x COLUMN_GROUPS blocks. In the passes a block has ROWS rows of the minibatch and
// tiles of 16 columns of each hidden layer; all blocks of a row group make all its logits and the
// last hidden layer's gradient. In the update a block has a tile of each weight matrix; masters
// and velocities stay in its registers.
//
// Blocks exchange words that say themselves whether they are there (EMPTY). A step has one of
// three buffers in turn. What was exchanged in step i - 1 is emptied by who wrote it in step i,
// when every block has arrived at the counter in step i, hence read all of it; it is read again
// in step i + 2, when everyone has seen every arrival in step i + 1, hence no old words. So
// nobody waits for a barrier in the passes, and a result is read as soon as it is written.
//
// Warps 0 to 7 work; warps 8 to 11 serve: they fetch the last layer's weights and the next step's
// rows, count arrivals, empty, and sum losses.
//
// Fragments read straight from the exchange are 16 bytes a lane: lane t has k = 8 t to 8 t + 7 of
// 32, which permutes k alike for both operands of mma.

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
