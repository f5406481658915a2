// arena: an allocator of the program's own, whose blocks the report knows by memtrace.h.
//
// A pool of 64 KiB from malloc gives out nodes of 100 bytes. Without the header there is one
// block that is all in use; with it each node has the stack of who took it. The phase "build" takes
// 50 nodes, "prune" gives 20 of them back. A second pool is destroyed, with all that it gave out.
//
//   expect: leak 3000 bytes in 30 blocks at @node in AddNode
//   expect: site at @pool in MakePool: live_bytes == 62536, live_blocks == 1
//   expect: /totals/live_bytes == 65536
//   expect: /totals/live_blocks == 31
//   expect: /totals/allocations == 62
//   expect: text "build"
//   expect: /phases/0/allocations == 50
//   expect: /phases/0/bytes_allocated == 5000
//   expect: /phases/0/growth_bytes == 0
//   expect: /phases/0/growth_blocks == 50
//   expect: /phases/1/frees == 20
//   expect: text "nodes"
//   expect: /pools/0/live_bytes == 3000
//   expect: /pools/0/peak_bytes == 5000
//   expect: text "scratch"
//   expect: /pools/1/live_blocks == 0
//   expect: /pools/1/destroyed == 1
//
// The bytes do not grow in "build": the nodes come out of the pool's block, whose own bytes are
// those that it has not given out.
#include <memtrace.h>
#include <stddef.h>
#include <stdlib.h>

enum { kPoolBytes = 64 << 10, kNodeBytes = 100, kNodes = 50 };

struct Pool {
  char* memory;
  size_t used;
};

static struct Pool g_nodes;
static void* g_node[kNodes];

static void MakePool(struct Pool* pool, const char* name) {
  pool->memory = malloc(kPoolBytes);  // @pool
  pool->used = 0;
  memtrace_pool_create(pool, name, 0);
}

static void* Take(struct Pool* pool, size_t bytes) {
  void* block = pool->memory + pool->used;
  pool->used += (bytes + 15) & ~(size_t)15;
  memtrace_pool_alloc(pool, block, bytes);
  return block;
}

static void EndPool(struct Pool* pool) {
  memtrace_pool_destroy(pool);
  free(pool->memory);
}

static void AddNode(int i) {
  g_node[i] = Take(&g_nodes, kNodeBytes);  // @node
}

int main(void) {
  MakePool(&g_nodes, "nodes");
  memtrace_phase_begin("build");
  for (int i = 0; i < kNodes; ++i) AddNode(i);
  memtrace_phase_end("build");

  struct Pool scratch;
  MakePool(&scratch, "scratch");
  for (int i = 0; i < 10; ++i) Take(&scratch, 64);
  EndPool(&scratch);

  memtrace_phase_begin("prune");
  for (int i = 0; i < 20; ++i) memtrace_pool_free(&g_nodes, g_node[i]);
  memtrace_phase_end("prune");
  return 0;
}
