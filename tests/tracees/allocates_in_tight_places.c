// Allocations where there is little room or where a lock is held: on the smallest stack a
// thread can have, in a handler on a small alternate stack, in a callback of the loader
// while another thread loads and unloads, with errno set and all signals blocked, in
// processes forked while all that goes on, and with every descriptor closed. Says what it
// finds of its own state after each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;
static void* volatile kept;
static void Allocate(int times) {
  for (int i = 0; i < times; ++i) {
    kept = malloc(50);
    free(kept);
  }
}

static void* LoadAndUnload(void* unused) {
  while (!atomic_load(&stop)) {
    void* library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) dlclose(library);
  }
  return unused;
}

static void* OnTheSmallestStack(void* unused) {
  Allocate(100);
  return unused;
}

static int InACallback(struct dl_phdr_info* info, size_t size, void* data) {
  (void)info, (void)size;
  Allocate(1);
  ++*(int*)data;
  return 0;
}

static atomic_int handled;
static void Handler(int signal) {
  (void)signal;
  Allocate(1);
  atomic_fetch_add(&handled, 1);
}

static int Descriptors(void) {
  int count = 0;
  for (int fd = 0; fd < 100; ++fd) {
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    count += readlink(path, target, sizeof target) >= 0;
  }
  return count;
}

int main(void) {
  printf("descriptors %d\n", Descriptors());
  pthread_t loader;
  pthread_create(&loader, NULL, LoadAndUnload, NULL);

  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, OnTheSmallestStack, NULL) != 0) return 2;
    pthread_join(thread, NULL);
  }

  static char alternate[8192];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = Handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 50; ++i) raise(SIGUSR1);
  printf("handled %d\n", atomic_load(&handled));

  int visited = 0;
  for (int i = 0; i < 50; ++i) dl_iterate_phdr(InACallback, &visited);
  printf("visited %s\n", visited >= 50 ? "all" : "too few");

  sigset_t mask, after;
  sigfillset(&mask);
  sigdelset(&mask, SIGUSR2);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  errno = ENOTTY;
  Allocate(10);
  printf("errno %s\n", errno == ENOTTY ? "kept" : "lost");
  sigprocmask(SIG_SETMASK, NULL, &after);
  int differ = 0;
  for (int i = 1; i < 32; ++i) {
    differ += i != SIGKILL && i != SIGSTOP && sigismember(&mask, i) != sigismember(&after, i);
  }
  printf("mask %s\n", differ == 0 ? "kept" : "changed");
  fflush(stdout);

  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Allocate(20);
      _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) printf("child %x\n", status);
  }

  atomic_store(&stop, 1);
  pthread_join(loader, NULL);
  printf("descriptors %d\n", Descriptors());
  fflush(stdout);
  for (int fd = 0; fd < 100; ++fd) close(fd);
  Allocate(10);
  return 5;
}
