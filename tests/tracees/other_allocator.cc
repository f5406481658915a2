// Allocates in every way that programs do, on four threads, after a fork, and by a library
// that is opened late; knows how often. Built as it is, linked with other allocators, and
// with these inside (tests/e2e/allocators_test.cc).
//
//   all BYTES COUNT    of this process by functions of the C library
//   new BYTES COUNT    by operator new
//   own BYTES COUNT    by the allocator's own function, OWN_CALL
//   child BYTES COUNT  of the forked child, by functions of the C library
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

#ifdef OWN_CALL
extern "C" void* mallocx(size_t, int);
extern "C" void* tc_malloc(size_t);
extern "C" void* mi_malloc(size_t);
#endif

namespace {

constexpr int kThreads = 4;
constexpr int kTimes = 200;

struct Kind {
  size_t bytes;
  void* (*allocate)();
};

[[gnu::noinline]] void* Aligned(size_t alignment, size_t bytes) {
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

[[maybe_unused]] char* Text() {
  static char text[777];
  return static_cast<char*>(memset(text, 'x', 776));
}

const Kind kKinds[] = {
    {1011, [] { return malloc(1011); }},
    {1221, [] { return calloc(3, 407); }},
    {5031, [] { return realloc(nullptr, 5031); }},
#ifndef HIDDEN
    // Of libc, by the names of the family. Where the allocator's names are hidden these come from
    // another one, and cannot be freed.
    {6039, [] { return reallocarray(nullptr, 3, 2013); }},
    {777, []() -> void* { return strdup(Text()); }},
#endif
    {3300, [] { return Aligned(64, 3300); }},
    {2560, [] { return aligned_alloc(128, 2560); }},
    {1288, [] { return memalign(64, 1288); }},
    {200001, [] { return malloc(200001); }},
};

void* Work(void*) {
  for (int i = 0; i < kTimes; ++i) {
    for (const Kind& kind : kKinds) {
      void* block = kind.allocate();
      if (block == nullptr) _exit(98);
      memset(block, i, kind.bytes);
      free(block);
    }
    char* volatile made = new char[771];
    made[770] = 1;
    delete[] made;
#ifdef OWN_CALL
    free(OWN_CALL);
#endif
  }
  return nullptr;
}

}  // namespace

int main() {
  pthread_t threads[kThreads];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, Work, nullptr);
  for (pthread_t& thread : threads) pthread_join(thread, nullptr);
  if (fork() == 0) {
    Work(nullptr);
    for (const Kind& kind : kKinds) Tell("child %zu %d\n", kind.bytes, kTimes);
    _exit(0);
  }
  int status = 0;
  wait(&status);
  void* opened = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (opened != nullptr) dlclose(opened);
  for (const Kind& kind : kKinds) Tell("all %zu %d\n", kind.bytes, kThreads * kTimes);
  Tell("new 771 %d\n", kThreads * kTimes);
#ifdef OWN_CALL
  Tell("own 773 %d\n", kThreads * kTimes);
#endif
  return status == 0 ? 3 : 97;
}
