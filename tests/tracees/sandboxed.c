// Gives up rights in the way its first argument says, then allocates over many stacks.
// Writes what it allocated there, by write() and nothing else: "allocations frees blocks bytes".
//
//   sandboxed WAY [TIMES [ARGUMENT]]
//
// Exit status 77: this way is not open here.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 1000
#define THREADS 3

struct sums {
  unsigned long allocations, frees, blocks, bytes;
};

static _Atomic int stop_warming_up;
static long g_times_a_thread;

__attribute__((noinline)) static void* Allocate(int depth, size_t bytes) {
  if (depth > 0) {
    void* volatile block = Allocate(depth - 1, bytes);
    return block;
  }
  return malloc(bytes);
}

__attribute__((noinline)) static void Work(long times, struct sums* sums) {
  void* kept[KEPT] = {0};
  size_t sizes[KEPT] = {0};
  unsigned random = 1;
  for (long i = 0; i < times; ++i) {
    random = random * 1103515245 + 12345;
    const size_t slot = (random >> 8) % KEPT;
    if (kept[slot] != NULL) {
      free(kept[slot]);
      ++sums->frees;
      --sums->blocks;
      sums->bytes -= sizes[slot];
    }
    // At times a block that glibc maps.
    sizes[slot] = i % 5000 == 0 ? 200000 : 16 + random % 500;
    kept[slot] = Allocate((int)(random >> 16) % 40, sizes[slot]);
    ++sums->allocations;
    ++sums->blocks;
    sums->bytes += sizes[slot];
  }
}

static void Say(const struct sums* sums) {
  char line[200];
  const int bytes = snprintf(line, sizeof(line), "%lu %lu %lu %lu\n", sums->allocations,
                             sums->frees, sums->blocks, sums->bytes);
  if (write(1, line, (size_t)bytes) != bytes) _exit(1);
}

#define ALLOW(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define MEMORY_AND_WRITE_BUT_MADVISE                                                  \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), ALLOW(mmap), \
      ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(brk), ALLOW(write),        \
      ALLOW(exit), ALLOW(exit_group), ALLOW(rt_sigreturn), ALLOW(futex)
#define MEMORY_AND_WRITE MEMORY_AND_WRITE_BUT_MADVISE, ALLOW(madvise)

static struct sock_filter g_strict[] = {MEMORY_AND_WRITE, KILL};
static struct sock_filter g_all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
// Of madvise what the tracer has to have, by its documents, and no more.
#define ADVICE(number) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter g_some_advice[] = {
    MEMORY_AND_WRITE_BUT_MADVISE,
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
    KILL,
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
    ADVICE(MADV_DONTNEED), ADVICE(MADV_DONTFORK), ADVICE(MADV_DOFORK), ADVICE(MADV_NOHUGEPAGE),
    ADVICE(22), ADVICE(23), KILL};
// As Firefox's: what a filter did not know is a signal, whose handler tells of it.
static struct sock_filter g_no_populating[] = {
    MEMORY_AND_WRITE_BUT_MADVISE, ALLOW(rt_sigprocmask),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 22, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)};
// What glibc needs for threads besides.
static struct sock_filter g_threads[] = {MEMORY_AND_WRITE, ALLOW(clone3), ALLOW(clone),
                                         ALLOW(set_robust_list), ALLOW(rseq),
                                         ALLOW(rt_sigprocmask), ALLOW(rt_sigaction), ALLOW(wait4),
                                         ALLOW(prctl), KILL};
// What malloc needs for small blocks; we need more.
static struct sock_filter g_no_memory[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), ALLOW(brk), ALLOW(write),
    ALLOW(exit), ALLOW(exit_group), KILL};

static void InstallProgram(int by_prctl, unsigned flags, struct sock_filter* code, size_t length) {
  const struct sock_fprog program = {(unsigned short)length, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(77);
  const long result = by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                               : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (result != 0) _exit(77);
}

#define INSTALL(by_prctl, flags, code) \
  InstallProgram(by_prctl, flags, code, sizeof(code) / sizeof(code[0]))

static void Install(int by_prctl, int threads, unsigned flags) {
  if (threads) {
    INSTALL(by_prctl, flags, g_threads);
  } else {
    INSTALL(by_prctl, flags, g_strict);
  }
}

static void OnTrap(int signal) {
  static const char kTold[] = "trapped\n";
  (void)signal;
  if (write(1, kTold, sizeof(kTold) - 1) < 0) _exit(1);
}

static void InstallByLibseccomp(void) {
  void* library = dlopen("libseccomp.so.2", RTLD_NOW);
  if (library == NULL) _exit(77);
  void* (*init)(unsigned) = (void* (*)(unsigned))dlsym(library, "seccomp_init");
  int (*add)(void*, unsigned, int, unsigned, ...) =
      (int (*)(void*, unsigned, int, unsigned, ...))dlsym(library, "seccomp_rule_add");
  int (*load)(void*) = (int (*)(void*))dlsym(library, "seccomp_load");
  void* context = init(SECCOMP_RET_KILL_PROCESS);
  const int allowed[] = {SYS_mmap,  SYS_munmap, SYS_mremap,     SYS_madvise,      SYS_mprotect,
                         SYS_brk,   SYS_write,  SYS_exit,       SYS_exit_group,   SYS_rt_sigreturn,
                         SYS_futex};
  for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); ++i) {
    if (add(context, SECCOMP_RET_ALLOW, allowed[i], 0) != 0) _exit(77);
  }
  if (load(context) != 0) _exit(77);
}

static void* Thread(void* data) {
  struct sums sums = {0, 0, 0, 0};
  (void)data;
  Work(g_times_a_thread, &sums);
  return memcpy(malloc(sizeof(sums)), &sums, sizeof(sums));
}

// Works until the filter is there for all threads, and then a little more.
static void* WarmThread(void* data) {
  struct sums sums = {0, 0, 0, 0};
  while (!stop_warming_up) Work(1000, &sums);
  (void)data;
  Work(g_times_a_thread, &sums);
  return memcpy(malloc(sizeof(sums)), &sums, sizeof(sums));
}

static void Run(void* (*thread)(void*), long times, pthread_t* threads) {
  g_times_a_thread = times;
  for (int i = 0; i < THREADS; ++i) {
    if (pthread_create(&threads[i], NULL, thread, NULL) != 0) _exit(1);
  }
  if (thread == WarmThread) {
    usleep(20000);
    Install(0, 1, SECCOMP_FILTER_FLAG_TSYNC);
    stop_warming_up = 1;
  }
}

static void Join(const pthread_t* threads, struct sums* sums) {
  for (int i = 0; i < THREADS; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    const struct sums* of_thread = result;
    sums->allocations += of_thread->allocations;
    sums->frees += of_thread->frees;
    sums->blocks += of_thread->blocks;
    sums->bytes += of_thread->bytes;
    free(result);
  }
}

// The order of a server that gives up root.
static void BecomeNobody(void) {
  if (setgid(65534) != 0 || setuid(65534) != 0) _exit(77);
}

int main(int count, char** arguments) {
  const char* const way = arguments[1];
  const long times = count > 2 ? atol(arguments[2]) : 1000;
  const char* const argument = count > 3 ? arguments[3] : "";
  struct sums sums = {0, 0, 0, 0};
  pthread_t threads[THREADS];
  // Another arena's trimming opens a file of /proc.
  mallopt(M_ARENA_MAX, 1);
  // glibc's first malloc asks for random numbers, which the filters do not allow.
  if (strcmp(way, "worker") != 0 && strcmp(way, "first") != 0) free(malloc(1));
  if (strcmp(way, "prctl") == 0) {
    Install(1, 0, 0);
  } else if (strcmp(way, "first") == 0) {  // it has allocated nothing before
    INSTALL(1, 0, g_all);
  } else if (strcmp(way, "some_advice") == 0) {
    INSTALL(1, 0, g_some_advice);
  } else if (strcmp(way, "seccomp") == 0) {
    Install(0, 0, 0);
  } else if (strncmp(way, "no_memory", 9) == 0) {
    if (strcmp(way, "no_memory_later") == 0) Install(1, 1, 0);
    Work(times, &sums);
    INSTALL(1, 0, g_no_memory);
    for (int i = 0; i < 1000; ++i) free(malloc(100));
    Say(&sums);
    _exit(3);
  } else if (strcmp(way, "no_populating") == 0 || strcmp(way, "chroot_no_populating") == 0) {
    if (way[0] == 'c' && geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) return 77;
    if (way[0] == 'c' && (chroot(argument) != 0 || chdir("/") != 0)) return 77;
    signal(SIGSYS, OnTrap);
    INSTALL(0, 0, g_no_populating);
  } else if (strcmp(way, "libseccomp") == 0) {
    InstallByLibseccomp();
  } else if (strcmp(way, "threads") == 0) {
    Install(1, 1, 0);
    for (int round = 0; round < 20; ++round) {
      Run(Thread, times / 20, threads);
      Join(threads, &sums);
    }
    Say(&sums);
    return 0;
  } else if (strcmp(way, "all_threads") == 0) {
    Run(WarmThread, times, threads);
    Join(threads, &sums);
    Say(&sums);
    return 0;
  } else if (strcmp(way, "fork") == 0) {  // of a confined process
    Install(1, 1, 0);
    Work(times, &sums);
    const pid_t child = fork();
    if (child == 0) {
      struct sums of_child = {0, 0, 0, 0};
      Work(times, &of_child);
      _exit(of_child.allocations == (unsigned long)times ? 7 : 8);
    }
    int status;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) return 1;
  } else if (strcmp(way, "mode_strict") == 0) {
    Work(times, &sums);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 77;
    for (int i = 0; i < 1000; ++i) free(malloc(100));
    Say(&sums);
    syscall(SYS_exit, 3);
  } else if (strcmp(way, "refused") == 0) {
    // No program, so no filter: the usage samples go on.
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void*)1) == 0) return 1;
    if (errno != EFAULT && errno != EACCES) return 2;
  } else if (strcmp(way, "refused_no_memory") == 0) {
    // Whatever it would have forbidden.
    const struct sock_fprog program = {sizeof(g_no_memory) / sizeof(g_no_memory[0]), g_no_memory};
    if (geteuid() == 0) BecomeNobody();
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) return 77;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 || errno != EACCES) return 2;
  } else if (strcmp(way, "chroot") == 0) {
    if (geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) return 77;
    if (chroot(argument) != 0 || chdir("/") != 0) return 77;
  } else if (strcmp(way, "chroot_in_little_space") == 0) {
    const struct rlimit limit = {128 << 20, 128 << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 77;
    if (geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) return 77;
    if (chroot(argument) != 0 || chdir("/") != 0) return 77;
  } else if (strcmp(way, "filter_in_little_space") == 0) {
    const struct rlimit limit = {128 << 20, 128 << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 77;
    Install(1, 0, 0);
  } else if (strcmp(way, "namespaces") == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
    if (chroot(argument) != 0) return 77;
  } else if (strcmp(way, "setuid") == 0) {
    BecomeNobody();
  } else if (strcmp(way, "setresuid") == 0) {
    if (setresuid(65534, 65534, 65534) != 0) return 77;
  } else if (strcmp(way, "syscall") == 0) {
    if (syscall(SYS_setresuid, 65534, 65534, 65534) != 0) return 77;
  } else if (strcmp(way, "worker") == 0) {  // a child that does it before it allocates
    const pid_t child = fork();
    if (child != 0) {
      int status;
      if (waitpid(child, &status, 0) != child) return 1;
      return WEXITSTATUS(status);
    }
    BecomeNobody();
    char line[32];
    const int bytes = snprintf(line, sizeof(line), "%d\n", getpid());
    if (write(1, line, (size_t)bytes) != bytes) return 1;
  } else if (strcmp(way, "address_space") == 0) {
    if (chroot("/") != 0) return 77;
    const struct rlimit limit = {256 << 20, 256 << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 77;
    void* const memory = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 2;
    munmap(memory, 100 << 20);
  } else if (strcmp(way, "chdir") == 0) {
    if (chdir("/") != 0) return 77;
  } else {
    return 64;
  }
  Work(times, &sums);
  Say(&sums);
  return 0;
}
