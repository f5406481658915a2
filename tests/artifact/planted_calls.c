/* Not part of anything: what event_path_test must flag. Every function does one thing that the
 * event path must not do, two calls deep; memalign() does none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default"), noinline))
#define HIDDEN static __attribute__((noinline, noclone))

void (*g_pointer)(void);
static volatile int g_sink;
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
/* Another object's could define it: the dynamic model, by __tls_get_addr. */
extern __thread int t_dynamic __attribute__((tls_model("global-dynamic")));
__thread int t_dynamic;

HIDDEN void Locks(void) {
  pthread_mutex_lock(&g_mutex);
  g_sink = g_sink + 1;
}
EXPORTED void* malloc(size_t bytes) {
  Locks();
  return (void*)(bytes & 1);
}

HIDDEN void* Looks(void) { return dlsym(RTLD_NEXT, "free"); } /* a tail call: a jump */
EXPORTED void free(void* block) { g_sink = Looks() == block; }

HIDDEN int UsesDynamicTls(void) { return ++t_dynamic; }
EXPORTED void* calloc(size_t count, size_t bytes) { return (void*)(count * bytes + UsesDynamicTls()); }

HIDDEN void CallsAPointer(void) {
  g_pointer();
  g_sink = g_sink + 1;
}
EXPORTED void* realloc(void* block, size_t bytes) {
  CallsAPointer();
  return (char*)block + bytes;
}

HIDDEN int CallsBack(struct dl_phdr_info* info, size_t bytes, void* data) {
  return info == data && bytes == 0;
}
EXPORTED void* valloc(size_t bytes) { return (void*)(bytes + dl_iterate_phdr(CallsBack, NULL)); }

/* Its own malloc by its exported name: the program's, or this one again. */
EXPORTED void* pvalloc(size_t bytes) { return malloc(bytes + 1); }

HIDDEN void Prints(void) { printf("%d\n", g_sink); }
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  Prints();
  return (void*)(alignment + bytes);
}

HIDDEN int Switches(size_t value) {
  switch (value) {
    case 0: return g_sink;
    case 1: return g_sink * 3;
    case 2: return g_sink + 77;
    case 3: return g_sink / 5;
    case 4: return g_sink ^ 12;
    case 5: return g_sink << 3;
    case 6: return g_sink % 11;
    default: return 0;
  }
}
EXPORTED void* memalign(size_t alignment, size_t bytes) { return (void*)(alignment + Switches(bytes)); }
