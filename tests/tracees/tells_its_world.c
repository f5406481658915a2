// Prints what a program can find out about itself: descriptors, threads, children, signals,
// environment, umask. Under the tracer it prints the same.
//
//   tells_its_world           before and after allocating
//   tells_its_world close     after closing every descriptor it has; writes to the file of
//                             its second argument how many blocks it allocated then
//   tells_its_world daemon    the same after daemon()

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int Entries(const char* directory) {
  int count = 0;
  DIR* const open = opendir(directory);
  while (readdir(open) != NULL) ++count;
  closedir(open);
  return count;
}

static void TellDescriptors(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) printf("descriptor %d\n", fd);
  }
}

static void TellWorld(void) {
  TellDescriptors();
  printf("%d threads, single-threaded %d\n", Entries("/proc/self/task") - 2,
         __libc_single_threaded);
  const int waited = wait(NULL);
  printf("wait() %d %s\n", waited, strerror(errno));
  for (int number = 1; number < 65; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0) continue;
    if (action.sa_handler != SIG_DFL || action.sa_flags != 0) printf("signal %d is handled\n", number);
  }
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  for (int number = 1; number < 65; ++number) {
    if (sigismember(&mask, number) == 1) printf("signal %d is blocked\n", number);
  }
  const mode_t before = umask(0);
  umask(before);
  printf("umask %o\n", before);
  char directory[4096];
  printf("directory %s\n", getcwd(directory, sizeof(directory)));
  for (char** entry = environ; *entry != NULL; ++entry) {
    if (strncmp(*entry, "LD_PRELOAD=", 11) != 0 && strncmp(*entry, "MEMTRACE_", 9) != 0 &&
        strncmp(*entry, "HOME=", 5) != 0) {
      printf("environment %s\n", *entry);
    }
  }
  printf("dumpable %d, no new rights %d, seccomp %d\n", prctl(PR_GET_DUMPABLE),
         prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_SECCOMP));
  printf("timer slack %d\n", prctl(PR_GET_TIMERSLACK));
  char name[16];
  prctl(PR_GET_NAME, name);
  printf("name %s\n", name);
}

// What errno is after `call`, when it was 4242 before.
#define ERRNO_AFTER(call)                    \
  do {                                       \
    errno = 4242;                            \
    (void)(call);                            \
    printf("%s: errno %d\n", #call, errno);  \
  } while (0)

static void TellErrno(void) {
  void* volatile block = NULL;
  void* other = NULL;
  const volatile size_t huge = (size_t)-1 / 2 + 1;
  ERRNO_AFTER(block = malloc(100));
  ERRNO_AFTER(block = realloc(block, 1000));
  ERRNO_AFTER(block = reallocarray(block, 100, 100));
  ERRNO_AFTER(malloc_usable_size(block));
  ERRNO_AFTER(free(block));
  ERRNO_AFTER(block = calloc(10, 10));
  free(block);
  ERRNO_AFTER(block = malloc(huge));
  ERRNO_AFTER(block = calloc(huge, 8));
  ERRNO_AFTER(block = realloc(NULL, huge));
  ERRNO_AFTER(block = reallocarray(NULL, huge, 8));
  ERRNO_AFTER(block = aligned_alloc(64, huge));
  ERRNO_AFTER(block = memalign(64, huge));
  ERRNO_AFTER(block = valloc(huge));
  ERRNO_AFTER(posix_memalign(&other, 64, huge));
  ERRNO_AFTER(posix_memalign(&other, 3, 100));
  ERRNO_AFTER(posix_memalign(&other, 64, 100));
  free(other);
  ERRNO_AFTER(block = aligned_alloc(64, 128));
  free(block);
  ERRNO_AFTER(block = valloc(100));
  free(block);
  // Many blocks: rings are spooled, samples taken.
  errno = 4242;
  for (int i = 0; i < 200000; ++i) free(malloc((size_t)(i % 1000)));
  printf("200000 pairs: errno %d\n", errno);
  ERRNO_AFTER(other = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ERRNO_AFTER(munmap(other, 4096));
  ERRNO_AFTER(munmap((void*)1, 4096));
  ERRNO_AFTER(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0));
  ERRNO_AFTER(mremap((void*)1, 4096, 8192, 0));
  ERRNO_AFTER(sbrk(0));
  ERRNO_AFTER(prctl(PR_GET_DUMPABLE));
  ERRNO_AFTER(prctl(-1));
  ERRNO_AFTER(prctl(PR_SET_SECCOMP, 99));
  ERRNO_AFTER(syscall(SYS_getpid));
  ERRNO_AFTER(syscall(100000));
  ERRNO_AFTER(syscall(SYS_unshare, 0x12345));
  ERRNO_AFTER(syscall(SYS_seccomp, 1, 0, NULL));
  ERRNO_AFTER(chroot("/no/such/directory"));
  ERRNO_AFTER(setuid(getuid()));
  ERRNO_AFTER(setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1));
  ERRNO_AFTER(setgid(getgid()));
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  ERRNO_AFTER(setrlimit(RLIMIT_AS, &limit));
  ERRNO_AFTER(prlimit(0, RLIMIT_AS, NULL, &limit));
  ERRNO_AFTER(execl("/no/such/program", "program", (char*)NULL));
}

static void WorkWithoutDescriptors(const char* path) {
  long blocks = 0;
  for (int i = 0; i < 100000; ++i) {
    void* const block = malloc(64);
    blocks += block != NULL;
    free(block);
  }
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd != 0) _exit(1);  // the lowest number is the program's
  char line[32];
  const int bytes = snprintf(line, sizeof(line), "%d %ld\n", getpid(), blocks);
  _exit(write(fd, line, (size_t)bytes) == bytes ? 0 : 1);
}

int main(int count, char** arguments) {
  if (count == 3) {
    const char* const path = arguments[2];
    if (strcmp(arguments[1], "daemon") == 0 && daemon(0, 0) != 0) return 1;
    // By the list, as careful programs do, and then the rest.
    DIR* const descriptors = opendir("/proc/self/fd");
    for (struct dirent* entry; (entry = readdir(descriptors)) != NULL;) {
      const int fd = atoi(entry->d_name);
      if (fd != dirfd(descriptors)) close(fd);
    }
    closedir(descriptors);
    closefrom(0);
    WorkWithoutDescriptors(path);
  }
  TellWorld();
  TellErrno();
  TellWorld();
  return 0;
}
