// What the cases of kept_by have in common, and their tables.

#ifndef MEMTRACE_TESTS_TRACEES_KEPT_BY_H_
#define MEMTRACE_TESTS_TRACEES_KEPT_BY_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define NOINLINE __attribute__((noinline))
enum { kPage = 4096 };

struct Case {
  const char* name;
  int (*run)(void);  // the exit status
};
// Each ends with a name of NULL.
extern const struct Case kThreadsCases[], kMappingsCases[], kProcessCases[];

extern size_t g_next;           // the size of the next block
extern void* volatile in_data;  // a writable word that is initialised
extern void* volatile in_bss;
extern _Thread_local void* volatile in_tls;
extern volatile int g_ready, g_stop;

void Expect(size_t size, const char* kind);
// A block of a size of its own, of which no word but the result is left on the stack.
void* Block(const char* kind);
void Lose(void);  // one
void CleanStack(void);

pthread_t Start(void* (*function)(void*));
void WaitFor(volatile int* flag, int value);
void* KeepOnStack(void* unused);  // of a thread: one block, and counts g_ready
void StartWithRegister(void);     // a thread that keeps one in a register and nowhere else

#endif  // MEMTRACE_TESTS_TRACEES_KEPT_BY_H_
