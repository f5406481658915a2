/* overrun_stack: writes over the frames outside of its own, allocates, and returns into what it
 * wrote. It dies of that, and of nothing before.
 *
 *   overrun_stack WORDS PATTERN      PATTERN: letters, zeros, code, stack
 *
 * Up to 60 words: what lies above are the arguments and the end of the stack. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static volatile int g_sink;

__attribute__((noinline)) static void Innocent(int count) {
  for (int i = 0; i < count; ++i) free(malloc(601));
  g_sink = g_sink + 1;
}

__attribute__((noinline)) static void Overrun(int words, const char* pattern) {
  uintptr_t* frame = __builtin_frame_address(0);
  uint64_t value;
  for (int i = 0; i < words; ++i) {
    switch (pattern[0]) {
      case 'l': value = 0x4141414141414141; break;
      case 'c': value = (uintptr_t)&Innocent + 7 + (uintptr_t)i; break;
      case 's': value = (uintptr_t)(frame + i + 2); break;
      default: value = 0;
    }
    frame[i] = value;
  }
  Innocent(10);
  write(1, "done\n", 5);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Expect(601, 12, "Innocent");
  Innocent(2);
  Overrun(atoi(argv[1]), argv[2]);
  return 0;
}
