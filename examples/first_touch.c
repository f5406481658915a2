// first_touch: memory costs when it is first touched, not when it is allocated.
//
// malloc(1 MiB) maps the buffer and touches only the page that holds the block's header. The first
// memset touches the other 256 pages, a minor fault each; the second finds them all present. The
// marks are small allocations around each step, with a few milliseconds between them, so that
// the report's samples of the fault counters fall between the steps.
//
//   expect: minor faults from @before_first to @after_first == 256
//   expect: minor faults from @before_second to @after_second == 0
//   expect: leak 1048576 bytes in 1 block at @buffer in main
//   expect: /faults/minor >= 256
//   expect faults: site at @buffer in main: minor_faults == 257
//   expect faults: text "256 of 257 faults came when"
//   expect faults: text "none\s+in the .*\s+after that"
//   expect faults: words "256 of 257 faults came when .* touched the block allocated by main first_touch.c:.*; none in the .* after that"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBufferBytes = 1 << 20 };

static char g_warm_up[64];

static void PauseMs(long ms) {
  const struct timespec pause = {0, ms * 1000 * 1000};
  nanosleep(&pause, NULL);
}
static void Pause(void) { PauseMs(3); }

int main(void) {
  memset(g_warm_up, 1, sizeof(g_warm_up));  // memset and nanosleep are bound, their pages present
  Pause();
  char* buffer = malloc(kBufferBytes);  // @buffer
  char* marks[4];
  Pause();
  marks[0] = malloc(24);  // @before_first
  Pause();
  memset(buffer, 1, kBufferBytes);
  Pause();
  marks[1] = malloc(24);  // @after_first
  Pause();
  marks[2] = malloc(24);  // @before_second
  Pause();
  memset(buffer, 2, kBufferBytes);
  Pause();
  marks[3] = malloc(24);  // @after_second
  // The faults of the program's end are none of the second step; and that there were no more is said of a time
  // that is long beside the first step's, even on a machine that has other things to do.
  PauseMs(100);
  return marks[0] == NULL || marks[1] == NULL || marks[2] == NULL || marks[3] == NULL;
}
