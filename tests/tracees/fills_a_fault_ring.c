/* fills_a_fault_ring: touches a block of 64 MiB on one processor, goes to another one, and says what it did
 * a tenth of a second later. Exits with 77 where it has one processor alone. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static char *volatile g_block;

/* The nth of those in `allowed`. */
static int MoveTo(const cpu_set_t *allowed, int nth) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, allowed) || nth-- != 0) continue;
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one);
  }
  return -1;
}

int main(void) {
  const size_t bytes = (size_t)64 << 20;
  cpu_set_t allowed;
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || MoveTo(&allowed, 0) != 0) return 77;
  g_block = malloc(bytes);
  memset(g_block, 1, bytes);
  if (MoveTo(&allowed, 1) != 0) return 77;
  usleep(100000);
  return 0;
}
