// What a scan at the exit meets: pages that are not what /proc/self/maps says of them, and a process that
// dies before it is done.
//
//   strikes_its_scan guard | block | key | userfault | device | killed | late [alone]
//
// `block`: a guard region within a block, and a word that points right behind it. `userfault`: the same with
// pages that another thread is to fill. `device`: such a thread wants to know of forks, and has its
// descriptor from /dev. `late`: the alarm comes by which the copy ends itself. `alone`: no copy of the process can be made, it scans itself. Exits with 77 where the kernel cannot do that.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPages = 64, kPage = 4096, kGuardInstall = 102 };

void *volatile g_kept, *volatile g_within[4];

// A child that kills all others of the process, the copy among them, until that has ended.
static void kill_other_children(int signal) {
  char path[64], text[256];
  const pid_t parent = getpid();
  if (fork() != 0) return;
  close(1);
  close(2);
  snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
  while (getppid() == parent) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) continue;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    for (char *at = text; *at != 0;) {
      char *end;
      const long pid = strtol(at, &end, 10);
      if (end == at) break;
      if (pid != getpid()) kill((pid_t)pid, signal);
      at = end;
    }
    usleep(200);
  }
  syscall(SYS_exit_group, 0);
}

// A block of which every page is there.
static char *block_of_pages(void) {
  void *block = NULL;
  if (posix_memalign(&block, kPage, kPages * kPage) != 0) exit(77);
  memset(block, 1, kPages * kPage);
  return block;
}

static void *fill_pages(void *of) {
  const int faults = *(int *)of;
  for (;;) {
    struct uffd_msg message;
    struct pollfd readable = {faults, POLLIN, 0};
    poll(&readable, 1, -1);
    if (read(faults, &message, sizeof(message)) != sizeof(message)) continue;
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    struct uffdio_zeropage page = {{message.arg.pagefault.address & -(unsigned long long)kPage, kPage}, 0, 0};
    ioctl(faults, UFFDIO_ZEROPAGE, &page);
  }
  return NULL;
}

// Memory of which a thread fills the pages that are touched. Of these the third is.
static char *block_that_is_filled(unsigned long long features) {
  static int faults;
  if (features == 0) {
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  } else {
#ifdef USERFAULTFD_IOC_NEW
    faults = ioctl(open("/dev/userfaultfd", O_RDWR), USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
#else
    faults = -1;
#endif
  }
  struct uffdio_api api = {.api = UFFD_API, .features = features};
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) exit(77);
  void *block = NULL;
  if (posix_memalign(&block, kPage, kPages * kPage) != 0) exit(77);
  struct uffdio_register all = {
      .range = {(unsigned long long)block, kPages * kPage}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (ioctl(faults, UFFDIO_REGISTER, &all) != 0) exit(77);
  pthread_t filler;
  if (pthread_create(&filler, NULL, fill_pages, &faults) != 0) exit(77);
  ((char *)block)[2 * kPage + 8] = 1;
  return block;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  char *area = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(area, 1, kPages * kPage);
  g_kept = malloc(100);
  if (strcmp(argv[1], "guard") == 0) {
    if (madvise(area + 8 * kPage, 2 * kPage, kGuardInstall) != 0) return 77;
  } else if (strcmp(argv[1], "block") == 0) {
    char *block = block_of_pages();
    if (madvise(block + 8 * kPage, 2 * kPage, kGuardInstall) != 0) return 77;
    g_within[0] = block + 10 * kPage;
    g_within[1] = block + 10 * kPage + 8;
    g_within[2] = block + 10 * kPage + 16;
    g_within[3] = block + 9 * kPage;
  } else if (strcmp(argv[1], "userfault") == 0) {
    g_within[0] = block_that_is_filled(0) + 2 * kPage + 8;
  } else if (strcmp(argv[1], "device") == 0) {
    g_within[0] = block_that_is_filled(UFFD_FEATURE_EVENT_FORK);
  } else if (strcmp(argv[1], "key") == 0) {
    int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key < 0) return 77;
    *(void **)(area + 9 * kPage) = malloc(200);  // kept by what only the kernel may read now
    if (pkey_mprotect(area + 8 * kPage, 2 * kPage, PROT_READ | PROT_WRITE, key) != 0) return 77;
  } else {
    const size_t bytes = 400u << 20;  // takes a while to look through
    char *large = malloc(bytes);
    memset(large, 1, bytes);
    if (access("/proc/thread-self/children", R_OK) != 0) return 77;
    kill_other_children(strcmp(argv[1], "late") == 0 ? SIGALRM : SIGKILL);
  }
  if (argc > 2 && unshare(CLONE_NEWPID) != 0) return 77;
  return 0;
}
