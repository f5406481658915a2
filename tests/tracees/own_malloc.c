// A program with a malloc of its own, as many servers and compilers have: it takes
// a lock that is not recursive to initialise itself, and maps memory under it.
// Whatever a preloaded library does in that mmap must not come back to malloc.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char* next_free;
static char* end;

void* malloc(size_t bytes) {
  pthread_mutex_lock(&lock);
  if (next_free == NULL) {
    const size_t size = 16 << 20;
    next_free = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end = next_free + size;
  }
  char* block = next_free + 16;
  bytes = (bytes + 31) & ~(size_t)15;
  if (next_free + 16 + bytes > end) {
    pthread_mutex_unlock(&lock);
    return NULL;
  }
  *(size_t*)next_free = bytes;
  next_free += 16 + bytes;
  pthread_mutex_unlock(&lock);
  return block;
}
void free(void* block) { (void)block; }
void* calloc(size_t count, size_t bytes) {
  void* block = malloc(count * bytes);
  return block != NULL ? memset(block, 0, count * bytes) : NULL;
}
void* realloc(void* old, size_t bytes) {
  void* block = malloc(bytes);
  if (old != NULL && block != NULL) {
    const size_t old_bytes = *(size_t*)((char*)old - 16);
    memcpy(block, old, old_bytes < bytes ? old_bytes : bytes);
  }
  return block;
}

// Before the constructors of any library, a preloaded one's too.
static void AllocateEarly(void) { free(malloc(1)); }
__attribute__((section(".preinit_array"), used)) static void (*early)(void) = AllocateEarly;

int main(void) {
  char* volatile text = malloc(100);
  strcpy(text, "allocated by the program itself");
  puts(text);
  free(text);
  return 7;
}
