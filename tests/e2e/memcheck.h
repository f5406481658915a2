// The installed Valgrind, as the tests ask it about leaks.

#ifndef MEMTRACE_TESTS_E2E_MEMCHECK_H_
#define MEMTRACE_TESTS_E2E_MEMCHECK_H_

#include "tests/e2e/harness.h"

namespace memtrace::e2e {

bool HaveValgrind();

// `valgrind --leak-check=full` and `more`, which ends in the program. The program's memory lies
// above 4 GiB. Valgrind puts it from 64 MiB on otherwise, where numbers look like addresses of
// blocks: the dynamic loader keeps the cycles that relocating took it, 60 to 90 million under
// Valgrind (relocate_time, glibc's elf/rtld.c), and a lost block of a megabyte at that address
// is "possibly lost", once in some fifty runs.
Words MemcheckCommand(const Words& more);

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_MEMCHECK_H_
