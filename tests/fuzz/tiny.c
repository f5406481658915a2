// The program whose traces are seeds of the fuzzer: a little of everything. With an
// argument it kills itself, so that its rings stay.

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void* work(void* block) {
  free(block);
  return realloc(malloc(10), 2000);
}

int main(int argc, char** argv) {
  char* kept = strdup("kept");
  for (int i = 0; i < 20; ++i) free(calloc(i, 8));
  pthread_t thread;
  void* block = NULL;
  pthread_create(&thread, NULL, work, malloc(100));
  pthread_join(thread, &block);
  void* map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(map, 4096);
  void* aligned = NULL;
  posix_memalign(&aligned, 4096, 1 << 20);
  if (argc > 1) raise(SIGKILL);
  free(block);
  return kept[0] == 'x';
}
