/* expect(): what a tracee knows about its own allocations, for tests/e2e/hazards_test.cc.
 *
 * A line for each: blocks of this size, so many of them, allocated by these functions, the
 * allocating one first. Every size of a tracee's expectations is its own. */
#ifndef MEMTRACE_TESTS_TRACEES_EXPECT_H_
#define MEMTRACE_TESTS_TRACEES_EXPECT_H_

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Without stdio's buffer, which would be an allocation. */
__attribute__((format(printf, 1, 2))) static inline void Tell(const char* format, ...) {
  char line[1000];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (write(1, line, (size_t)length) != length) _exit(99);
}

static inline void Expect(size_t bytes, long count, const char* functions) {
  Tell("expect %zu %ld %s\n", bytes, count, functions);
}

#endif /* MEMTRACE_TESTS_TRACEES_EXPECT_H_ */
