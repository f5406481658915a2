/* process_kinds KIND [ARGUMENT]: the ways in which processes come to be, one for each KIND.
 *
 * Every process image says on standard output what it is, "image LABEL PID PARENT\n" with
 * PARENT the pid of the process that made it, allocates, and ends well. It says "unseen"
 * in place of "image" where no trace is to be expected. Standard output ends when the last
 * of them has ended. See ../e2e/process_tree_test.cc. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracees/expect.h"

extern char** environ;

static const char* g_self;

static void Say(const char* what, const char* label, pid_t parent) {
  Tell("%s %s %d %d\n", what, label, (int)getpid(), (int)parent);
}

/* More than a ring of 64 KiB holds, so that there are spools too. */
static void Work(void) {
  static void* kept[100];
  for (int i = 0; i < 6000; ++i) {
    void** slot = &kept[i % 100];
    free(*slot);
    *slot = malloc((size_t)(i % 500 + 1));
  }
  for (int i = 0; i < 100; ++i) {
    if (i % 10 != 0) free(kept[i]);
    kept[i] = NULL;
  }
}

static void Check(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "process_kinds: %s: %s\n", what, strerror(errno));
  _exit(9);
}

static void WaitFor(pid_t pid, int wanted) {
  int status = 0;
  Check(waitpid(pid, &status, __WALL) == pid, "waitpid");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted) {
    fprintf(stderr, "process_kinds: status %x of %d\n", (unsigned)status, (int)pid);
    _exit(8);
  }
}

/* Until all others that have our standard output have ended there is no end of it; those
 * that nobody waits for are waited for by this pipe. */
static int g_outlivers[2];
static void WaitForOutlivers(void) {
  char byte;
  close(g_outlivers[1]);
  while (read(g_outlivers[0], &byte, 1) > 0) {
  }
}

static void Leaf(const char* label, pid_t parent) {
  Say("image", label, parent);
  Work();
}

static void Fork(void) {
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    Leaf("forked", parent);
    _exit(3);
  }
  WaitFor(child, 3);
}

static void RawFork(void) {
  const pid_t parent = getpid(), child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    Leaf("cloned", parent);
    _exit(3);
  }
  WaitFor(child, 3);
}

static void ForkExec(void) {
  char parent[16];
  snprintf(parent, sizeof(parent), "%d", (int)getpid());
  const pid_t child = fork();
  if (child == 0) {
    Say("image", "between", atoi(parent));
    execl(g_self, g_self, "leaf", parent, "executed", (char*)NULL);
    _exit(9);
  }
  WaitFor(child, 0);
}

static void VforkExec(void) {
  char parent[16];
  snprintf(parent, sizeof(parent), "%d", (int)getpid());
  const pid_t child = vfork();
  if (child == 0) {
    execl(g_self, g_self, "leaf", parent, "executed", (char*)NULL);
    _exit(9);
  }
  WaitFor(child, 0);
}

/* Allocates and cannot execute: all of it is its parent's. */
static void VforkAlone(void) {
  for (int i = 0; i < 50; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      free(malloc(123));
      execl("/does/not/exist", "none", (char*)NULL);
      free(malloc(124));
      _exit(7);
    }
    WaitFor(child, 7);
  }
}

static void Spawn(void) {
  char parent[16], label[] = "spawned", leaf[] = "leaf", self[4096];
  snprintf(parent, sizeof(parent), "%d", (int)getpid());
  snprintf(self, sizeof(self), "%s", g_self);
  char* const arguments[] = {self, leaf, parent, label, NULL};
  pid_t child;
  Check(posix_spawn(&child, g_self, NULL, NULL, arguments, environ) == 0, "posix_spawn");
  WaitFor(child, 0);
}

static int CloneVmChild(void* parent) {
  (void)parent;
  Work();
  return 5;
}

/* Shares memory, and with it thread-local variables, with a parent that waits. */
static void CloneVm(void) {
  const size_t bytes = 1 << 18;
  char* stack = malloc(bytes);
  const pid_t child = clone(CloneVmChild, stack + bytes, CLONE_VM | SIGCHLD, NULL);
  Check(child > 0, "clone");
  WaitFor(child, 5);
  free(stack);
}

static void DoubleFork(void) {
  const pid_t first = getpid(), child = fork();
  if (child == 0) {
    const pid_t middle = getpid();
    Say("image", "middle", first);
    if (fork() == 0) {
      while (getppid() == middle) sched_yield();  /* its parent has ended */
      Leaf("orphan", middle);
      _exit(0);
    }
    _exit(0);
  }
  WaitFor(child, 0);
  WaitForOutlivers();
}

static void Daemon(void) {
  const pid_t first = getpid(), child = fork();
  if (child == 0) {
    const pid_t launcher = getpid();
    Say("image", "launcher", first);
    Check(daemon(1, 1) == 0, "daemon");
    Leaf("daemon", launcher);
    exit(0);
  }
  WaitFor(child, 0);
  WaitForOutlivers();
}

static void Session(void) {
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    Check(setsid() == getpid(), "setsid");
    Leaf("leader", parent);
    _exit(0);
  }
  WaitFor(child, 0);
}

/* One process, an image after the other. */
static void ExecChain(int left) {
  Leaf(left == 0 ? "last" : "link", getppid());
  if (left == 0) return;
  char text[16];
  snprintf(text, sizeof(text), "%d", left - 1);
  execl(g_self, g_self, "exec_chain", text, (char*)NULL);
  _exit(9);
}

static void* ExecuteInThread(void* parent) {
  execl(g_self, g_self, "leaf", parent, "executed", (char*)NULL);
  _exit(9);
}

/* Another thread than the first executes, while the first allocates. */
static void ThreadExec(void) {
  char parent[16];
  snprintf(parent, sizeof(parent), "%d", (int)getpid());
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    Say("image", "between", atoi(parent));
    Check(pthread_create(&thread, NULL, ExecuteInThread, parent) == 0, "pthread_create");
    for (;;) Work();
  }
  WaitFor(child, 0);
}

static void EmptyEnvironment(void) {
  char parent[16];
  char* none[] = {NULL};
  snprintf(parent, sizeof(parent), "%d", (int)getpid());
  const pid_t child = fork();
  if (child == 0) {
    Say("image", "between", atoi(parent));
    execle(g_self, g_self, "unseen", parent, (char*)NULL, none);
    _exit(9);
  }
  WaitFor(child, 0);
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  g_self = argv[0];
  if (strcmp(kind, "leaf") == 0) {
    Leaf(argv[3], atoi(argv[2]));
    return 0;
  }
  if (strcmp(kind, "unseen") == 0) {
    Say("unseen", "leaf", atoi(argv[2]));
    Work();
    return 0;
  }
  if (strcmp(kind, "exec_chain") == 0) {
    ExecChain(atoi(argv[2]));
    return 0;
  }
  static const struct {
    const char* name;
    void (*run)(void);
  } kinds[] = {{"fork", Fork},
               {"raw_fork", RawFork},
               {"fork_exec", ForkExec},
               {"vfork_exec", VforkExec},
               {"vfork_alone", VforkAlone},
               {"spawn", Spawn},
               {"clone_vm", CloneVm},
               {"double_fork", DoubleFork},
               {"daemon", Daemon},
               {"session", Session},
               {"thread_exec", ThreadExec},
               {"empty_environment", EmptyEnvironment}};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    if (strcmp(kind, kinds[i].name) != 0) continue;
    Check(pipe(g_outlivers) == 0, "pipe");
    Leaf("root", getppid());
    kinds[i].run();
    Work();
    return 0;
  }
  return 2;
}
