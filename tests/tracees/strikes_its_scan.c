// What a scan at the exit meets: pages that are not what /proc/self/maps says of them, and a process that
// dies before it is done.
//
//   strikes_its_scan guard | key | killed [alone]
//
// `alone`: no copy of the process can be made, it scans itself. Exits with 77 where the kernel cannot do that.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPages = 64, kPage = 4096, kGuardInstall = 102 };

void *volatile g_kept;
static pid_t g_main;

// The copy is a child of the thread that called exit.
static void *kill_children(void *unused) {
  char path[64], text[64];
  snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)g_main);
  for (;;) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) _exit(77);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n > 0) {
      text[n] = 0;
      kill(atoi(text), SIGKILL);
    }
    usleep(200);
  }
  return unused;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  char *area = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(area, 1, kPages * kPage);
  g_kept = malloc(100);
  if (strcmp(argv[1], "guard") == 0) {
    if (madvise(area + 8 * kPage, 2 * kPage, kGuardInstall) != 0) return 77;
  } else if (strcmp(argv[1], "key") == 0) {
    int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key < 0) return 77;
    *(void **)(area + 9 * kPage) = malloc(200);  // kept by what only the kernel may read now
    if (pkey_mprotect(area + 8 * kPage, 2 * kPage, PROT_READ | PROT_WRITE, key) != 0) return 77;
  } else {
    const size_t bytes = 400u << 20;  // takes a while to look through
    char *large = malloc(bytes);
    memset(large, 1, bytes);
    g_main = (pid_t)syscall(SYS_gettid);
    pthread_t killer;
    if (pthread_create(&killer, NULL, kill_children, NULL) != 0) return 77;
  }
  if (argc > 2 && unshare(CLONE_NEWPID) != 0) return 77;
  return 0;
}
