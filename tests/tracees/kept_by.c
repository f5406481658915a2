// A block, and what keeps it, if anything does: kept_by CASE. Says "expect SIZE KIND" of each block
// that matters, by memcheck's kinds; their sizes are their own. Ends by exit() unless the case says
// otherwise. Status 77: this machine does not let it.

#define _GNU_SOURCE
#include "tests/tracees/kept_by.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tracees/spin_with_register.h"

size_t g_next = 5001;
void* volatile in_data = &g_next;
void* volatile in_bss;
_Thread_local void* volatile in_tls;
volatile int g_ready, g_stop;

void Expect(size_t size, const char* kind) { printf("expect %zu %s\n", size, kind); }

NOINLINE void* Block(const char* kind) {
  const size_t size = g_next++;
  Expect(size, kind);
  void* block = malloc(size);
  memset(block, 0, size);
  return block;
}

NOINLINE void CleanStack(void) {
  volatile char frames[32 << 10];
  for (size_t i = 0; i < sizeof(frames); ++i) frames[i] = 0;
}

void WaitFor(volatile int* flag, int value) {
  while (*flag < value) usleep(1000);
}

void Lose(void) {
  void* volatile block = Block("definite");
  block = NULL;
  (void)block;
}

pthread_t Start(void* (*function)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, NULL) != 0) exit(77);
  return thread;
}

void* KeepOnStack(void* unused) {
  void* volatile kept = Block("reachable");
  (void)unused;
  g_ready++;
  while (!g_stop) pause();
  free(kept);
  return NULL;
}

static NOINLINE uintptr_t Hidden(void) { return ~(uintptr_t)Block("reachable"); }

static void* KeepInRegister(void* unused) {
  (void)unused;
  const uintptr_t hidden = Hidden();
  CleanStack();
  SpinWithRegister(hidden);
  return NULL;
}

void StartWithRegister(void) {
  Start(KeepInRegister);
  WaitFor(&g_spins, 1);
}

static int Globals(void) {
  in_data = Block("reachable");
  in_bss = Block("reachable");
  in_tls = Block("reachable");
  Lose();
  return 0;
}

static NOINLINE int Run(const char* name) {
  static const struct Case kOwnCases[] = {{"globals", Globals}, {NULL, NULL}};
  const struct Case* const tables[] = {kOwnCases, kThreadsCases, kMappingsCases, kProcessCases};
  for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); ++i) {
    for (const struct Case* each = tables[i]; each->name != NULL; ++each) {
      if (strcmp(each->name, name) == 0) return each->run();
    }
  }
  return 2;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 4096);
  const int status = Run(argv[1]);
  CleanStack();
  fflush(stdout);
  exit(status);
}
