/* One thread asks for scans without end, while main replaces the program after argv[1]
 * microseconds by /bin/true, without the library. */
#include <memtrace.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *Scan(void *unused) {
  (void)unused;
  for (;;) memtrace_leak_check("again", MEMTRACE_LEAKS_ANY, 0);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  pthread_t thread;
  if (pthread_create(&thread, NULL, Scan, NULL) != 0) return 3;
  usleep((useconds_t)strtoul(argv[1], NULL, 10));
  unsetenv("LD_PRELOAD");
  execl("/bin/true", "true", (char *)NULL);
  return 4;
}
