// Runs the actions of protocol.py in random orders. An action waits for actions before it, and for a
// flag or none; work takes time, in which it reads and writes cells. Each cell has a version: work
// expects that of the program in order.

#include <cstddef>
#include <cstdint>
#include <vector>

enum Fault { NONE, DEADLOCK, NOT_THERE, READ_WHILE_WRITTEN, OVERWRITTEN, FLAG_SHRINKS };

struct Action {  // all lists are ranges of `lists`
  int rank, layer, missing;
  int next, n_next;              // actions
  int put, wait, value;          // flags, or -1
  int reads, n_reads;            // pairs: cell, version
  int writes, n_writes;          // pairs: cell, version afterwards
};
struct Found { int fault, action, cell; unsigned seed; };

namespace {

struct Cell { int version, readers, written; };

struct Random {
  uint64_t state;
  unsigned operator()(unsigned below) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (state >> 32) * below >> 32;
  }
};

struct Run {
  const Action* actions;
  const int* lists;
  int n, ranks, layers;
  std::vector<int> missing, flags, able, running;
  std::vector<std::vector<int>> waiting;
  std::vector<Cell> cells;
  Found found{};

  bool fails(Fault fault, int action, int cell) {
    found.fault = fault, found.action = action, found.cell = cell;
    return false;
  }

  void enable(int i) {
    const Action& a = actions[i];
    if (a.wait >= 0 && flags[a.wait] < a.value)
      waiting[a.wait].push_back(i);
    else
      able.push_back(i);
  }

  bool begin(int i) {
    const Action& a = actions[i];
    for (int k = 0; k < a.n_reads; k++) {
      Cell& cell = cells[lists[a.reads + 2 * k]];
      if (cell.written) return fails(READ_WHILE_WRITTEN, i, lists[a.reads + 2 * k]);
      if (cell.version != lists[a.reads + 2 * k + 1]) return fails(NOT_THERE, i, lists[a.reads + 2 * k]);
      cell.readers++;
    }
    for (int k = 0; k < a.n_writes; k++) {
      Cell& cell = cells[lists[a.writes + 2 * k]];
      if (cell.readers || cell.written) return fails(OVERWRITTEN, i, lists[a.writes + 2 * k]);
      cell.written = 1;
    }
    return true;
  }

  bool end(int i) {
    const Action& a = actions[i];
    for (int k = 0; k < a.n_reads; k++) cells[lists[a.reads + 2 * k]].readers--;
    for (int k = 0; k < a.n_writes; k++)
      cells[lists[a.writes + 2 * k]] = {lists[a.writes + 2 * k + 1], 0, 0};
    if (a.put >= 0) {
      if (flags[a.put] >= a.value) return fails(FLAG_SHRINKS, i, a.put);
      flags[a.put] = a.value;
      auto& all = waiting[a.put];
      for (std::size_t k = 0; k < all.size();)
        if (actions[all[k]].value <= a.value) {
          able.push_back(all[k]);
          all[k] = all.back();
          all.pop_back();
        } else {
          k++;
        }
    }
    for (int k = 0; k < a.n_next; k++)
      if (!--missing[lists[a.next + k]]) enable(lists[a.next + k]);
    return true;
  }

  bool go(Random& random) {
    for (int i = 0; i < n; i++) {
      missing[i] = actions[i].missing;
      if (!missing[i]) enable(i);
    }
    int slow_rank = random(2 * ranks), slow_layer = random(2 * layers), done = 0;
    while (done < n) {
      const unsigned all = able.size() + running.size();
      if (!all) return fails(DEADLOCK, -1, -1);
      if (!random(200)) slow_rank = random(2 * ranks);
      if (!random(200)) slow_layer = random(2 * layers);
      unsigned k = random(all);
      for (int retry = 0; retry < 8; retry++) {
        const Action& a = actions[k < able.size() ? able[k] : running[k - able.size()]];
        if (a.rank != slow_rank && a.layer != slow_layer) break;
        k = random(all);
      }
      auto& from = k < able.size() ? able : running;
      if (&from == &running) k -= able.size();
      const int i = from[k];
      from[k] = from.back();
      from.pop_back();
      const Action& a = actions[i];
      if (&from == &able) {
        if (!begin(i)) return false;
        if (a.n_reads || a.n_writes) {
          running.push_back(i);
          continue;
        }
      }
      if (!end(i)) return false;
      done++;
    }
    return true;
  }
};

}  // namespace

// Tries seeds first .. first + runs - 1; stops at the first fault.
extern "C" Found interleave(const Action* actions, const int* lists, int n, int ranks, int layers,
                            int n_cells, int n_flags, unsigned first, unsigned runs) {
  Run run{actions, lists, n, ranks, layers};
  run.missing.resize(n);
  for (unsigned seed = first; seed != first + runs; seed++) {
    Random random{seed * 0x9e3779b97f4a7c15ull + 0x1234567};
    for (int k = 0; k < 4; k++) random(1);
    run.flags.assign(n_flags, 0);
    run.cells.assign(n_cells, {0, 0, 0});
    run.waiting.assign(n_flags, {});
    run.able.clear();
    run.running.clear();
    if (!run.go(random)) {
      run.found.seed = seed;
      return run.found;
    }
  }
  return {};
}
