/* faults_of_each_kind: touches memory of each kind, and says how many minor faults getrusage
 * counted for that.
 *
 *   faults_of_each_kind [kill]        kill: ends itself by SIGKILL
 *
 * Prints a line for each: NAME FAULTS */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { kPage = 4096, kPages = 200, kBytes = kPages * kPage };

static char g_bss[kBytes + kPage];

static long Faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

static void Touch(const char* name, volatile char* memory, size_t bytes) {
  const long before = Faults();
  for (size_t i = 0; i < bytes; i += kPage) memory[i] = 1;
  const long after = Faults();
  printf("%s %ld\n", name, after - before);
}

__attribute__((noinline)) static void TouchStack(void) {
  volatile char deep[kBytes];
  Touch("stack", deep, sizeof(deep));
}

/* A thread that never allocates. */
static void* InThread(void* buffer) {
  Touch("thread", buffer, kBytes);
  return NULL;
}

__attribute__((noinline)) static char* MallocOnce(void) { return malloc(kBytes); }
__attribute__((noinline)) static char* MallocForThread(void) { return malloc(kBytes); }
__attribute__((noinline)) static char* MallocForKernel(void) { return malloc(kBytes); }
__attribute__((noinline)) static char* CallocUntouched(void) { return calloc(1, kBytes); }
__attribute__((noinline)) static char* MapOnce(void) {
  return mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
__attribute__((noinline)) static char* MapShared(void) {
  return mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  puts("begin 0");
  char* block = MallocOnce();
  Touch("malloc", block, kBytes);
  Touch("again", block, kBytes);
  char* untouched = CallocUntouched();
  char* map = MapOnce();
  Touch("mmap", map, kBytes);
  char* shared = MapShared();
  Touch("shared", shared, kBytes);
  Touch("bss", g_bss, kBytes);
  TouchStack();
  char* for_thread = MallocForThread();
  pthread_t thread;
  if (pthread_create(&thread, NULL, InThread, for_thread) != 0) return 1;
  pthread_join(thread, NULL);
  char* for_kernel = MallocForKernel();
  const int fd = open("/dev/zero", O_RDONLY);
  const long before = Faults();
  if (fd < 0 || read(fd, for_kernel, kBytes) != kBytes) return 1;
  printf("kernel %ld\n", Faults() - before);
  close(fd);
  madvise((char*)(((size_t)block + kPage) & ~(size_t)(kPage - 1)), kBytes - 2 * kPage,
          MADV_DONTNEED);
  Touch("after-madvise", block, kBytes);
  printf("total %ld\n", Faults());
  if (argc > 1 && strcmp(argv[1], "kill") == 0) raise(SIGKILL);
  free(for_kernel);
  free(for_thread);
  munmap(shared, kBytes);
  munmap(map, kBytes);
  free(untouched);
  free(block);
  return 0;
}
