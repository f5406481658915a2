// growth_unbounded: a queue that is filled faster than it is emptied.
//
// Each step appends two messages of 500 bytes and takes one away, so that 500 bytes more are live
// after each: the second half of the steps adds what the first did. Every block is still
// reachable; only growth over time tells that this program will not end well.
//
//   expect: /totals/allocations == 2000
//   expect: /totals/frees == 1000
//   expect: /totals/live_bytes == 500000
//   expect: /totals/peak_live_bytes == 500500
//   expect: leak 500000 bytes in 1000 blocks at @message in Append
//   expect: /phases/0/growth_bytes == 250000
//   expect: /phases/1/growth_bytes == 250000
#include <memtrace.h>
#include <stdlib.h>
#include <time.h>

enum { kSteps = 1000, kMessageBytes = 500 };

static char* g_queue[2 * kSteps];
static int g_head, g_tail;

static void Append(int messages) {
  for (int i = 0; i < messages; ++i) {
    g_queue[g_head++] = malloc(kMessageBytes);  // @message
  }
}

static void Take(void) { free(g_queue[g_tail++]); }

static void Run(const char* phase, int steps) {
  const struct timespec pause = {0, 20 * 1000};
  memtrace_phase_begin(phase);
  for (int step = 0; step < steps; ++step) {
    Append(2);
    Take();
    nanosleep(&pause, NULL);
  }
  memtrace_phase_end(phase);
}

int main(void) {
  Run("first half", kSteps / 2);
  Run("second half", kSteps / 2);
  return 0;
}
