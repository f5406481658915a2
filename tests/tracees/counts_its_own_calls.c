/* counts_its_own_calls: calls the allocator from several threads and counts these calls in a
 * shared file, so that it is known from outside which had returned when the process was ended.
 *
 *   counts_its_own_calls COUNTS LANES [END CALLS]
 *
 * COUNTS is a file of CountsPage (below), which the one who starts this program makes, all zeros.
 * Each of LANES lanes is worked by one thread at a time: after kLife calls it ends and another one
 * goes on. Call N of lane L asks for SizeOf(L, N) bytes, by malloc, calloc, realloc or
 * posix_memalign and from several depths. Blocks are freed in turn, some by the next lane.
 *
 * Without END it goes on until it is killed. Otherwise lane 0 ends the process in its call
 * number CALLS: segv, abort, _exit, quick_exit, exit, exec, exec-fails (then kill), vfork-kill or
 * fill (all memory there is). */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracees/counts_its_own_calls.h"

enum { kLife = 3000, kDepths = 7, kKept = 9 };

static struct CountsPage* g_counts;
static const char* g_end;
static uint64_t g_end_calls;
static int g_lanes;
static atomic_int g_replacing; /* exec is under way: no thread can be made any more */

/* From each lane to the next; one slot is one block. */
struct Mailbox {
  _Atomic(void*) slot[4];
} __attribute__((aligned(64)));
static struct Mailbox g_mail[kMaxLanes];

/* What a lane has, whichever thread works it. */
struct Lane {
  int number;
  uint64_t calls;
  void* kept[kKept];
  unsigned oldest, count;
};
static struct Lane g_lane[kMaxLanes];

#define BEGIN(counter) \
  atomic_store_explicit(&(counter), (counter) + 1, memory_order_release); \
  atomic_signal_fence(memory_order_seq_cst)

__attribute__((noinline)) static void* Obtain(struct Lane* lane, int kind, void* old) {
  struct LaneCounts* counts = &g_counts->lane[lane->number];
  const size_t size = SizeOf(lane->number, lane->calls);
  void* block = NULL;
  if (old != NULL) { BEGIN(counts->releases_begun); }
  BEGIN(counts->calls_begun);
  switch (kind) {
    case 0: block = malloc(size); break;
    case 1: block = calloc(1, size); break;
    case 2: block = realloc(old, size); break;
    default:
      if (posix_memalign(&block, 64, size) != 0) block = NULL;
  }
  atomic_signal_fence(memory_order_seq_cst);
  BEGIN(counts->calls_returned);
  if (old != NULL) { BEGIN(counts->releases_returned); }
  if (block == NULL) _exit(9);
  ++lane->calls;
  return block;
}

static void Release(struct Lane* lane, void* block) {
  struct LaneCounts* counts = &g_counts->lane[lane->number];
  BEGIN(counts->releases_begun);
  free(block);
  atomic_signal_fence(memory_order_seq_cst);
  BEGIN(counts->releases_returned);
}

__attribute__((noinline)) static void* Deep(struct Lane* lane, int kind, void* old, int depth) {
  void* block = depth == 0 ? Obtain(lane, kind, old) : Deep(lane, kind, old, depth - 1);
  asm volatile("" : "+r"(block));
  return block;
}

static void End(void) {
  if (strcmp(g_end, "segv") == 0) *(volatile int*)8 = 1;
  if (strcmp(g_end, "abort") == 0) abort();
  if (strcmp(g_end, "_exit") == 0) _exit(3);
  if (strcmp(g_end, "quick_exit") == 0) quick_exit(4);
  if (strcmp(g_end, "exit") == 0) exit(5);
  if (strcmp(g_end, "exec") == 0) {
    unsetenv("LD_PRELOAD");
    g_replacing = 1;
    execl("/bin/true", "true", (char*)NULL);
  }
  if (strcmp(g_end, "exec-fails") == 0) {
    execl("/nowhere/at/all", "all", (char*)NULL);
    g_end = NULL;
    return;
  }
  if (strcmp(g_end, "vfork-kill") == 0) {
    const pid_t child = vfork();
    if (child == 0) kill(getpid(), SIGKILL);
    int status;
    waitpid(child, &status, 0);
    kill(getpid(), SIGKILL);
  }
  if (strcmp(g_end, "fill") == 0) {
    for (;;) {
      /* The other lanes go on; these blocks are none of theirs. */
      void* block = malloc(1 << 20);
      if (block == NULL) abort();
      memset(block, 1, 1 << 20);
    }
  }
  _exit(8);
}

static void* Work(void* of_lane) {
  struct Lane* lane = of_lane;
  struct Mailbox* out = &g_mail[lane->number];
  struct Mailbox* in = &g_mail[(lane->number + g_lanes - 1) % g_lanes];
  for (int i = 0; i < kLife; ++i) {
    if (lane->number == 0 && g_end != NULL && lane->calls == g_end_calls) End();
    const int kind = (int)(lane->calls % 16);
    void* old = NULL;
    if (kind == 2 && lane->count > 0) {
      old = lane->kept[lane->oldest];
      lane->oldest = (lane->oldest + 1) % kKept;
      --lane->count;
    }
    void* block = Deep(lane, kind < 3 ? kind : kind == 3 ? 3 : 0, old, (int)(lane->calls % kDepths));
    lane->kept[(lane->oldest + lane->count) % kKept] = block;
    if (++lane->count == kKept) {
      block = lane->kept[lane->oldest];
      lane->oldest = (lane->oldest + 1) % kKept;
      --lane->count;
      void* none = NULL;
      if (lane->calls % 5 != 0 || !atomic_compare_exchange_strong(&out->slot[lane->calls % 4],
                                                                  &none, block)) {
        Release(lane, block);
      }
    }
    void* received = atomic_exchange(&in->slot[lane->calls % 4], NULL);
    if (received != NULL) Release(lane, received);
  }
  return NULL;
}

/* A lane: one thread after the other. */
static void* Manage(void* of_lane) {
  for (;;) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Work, of_lane) != 0) {
      while (g_replacing) pause();
      _exit(7);
    }
    pthread_join(thread, NULL);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 2;
  const int fd = open(argv[1], O_RDWR);
  g_counts = mmap(NULL, sizeof(*g_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || g_counts == MAP_FAILED) return 2;
  close(fd);
  g_lanes = atoi(argv[2]);
  if (g_lanes < 1 || g_lanes > kMaxLanes) return 2;
  if (argc == 5) {
    g_end_calls = strtoull(argv[4], NULL, 10);
    g_end = argv[3];
  }
  g_counts->pid = (uint64_t)getpid();
  for (int i = 0; i < g_lanes; ++i) {
    g_lane[i].number = i;
    pthread_t manager;
    if (pthread_create(&manager, NULL, Manage, &g_lane[i]) != 0) {
      while (g_replacing) pause();
      return 7;
    }
  }
  for (;;) pause();
}
