/* signalled_as_it_ends exit | _exit | thread | hangs | long: a child ends, and is sent SIGTERM while it is
 * scanned: the process that scans is stopped for as long. Says how the child ended: "PID exit 0" or
 * "PID signal 15". Exits with 77 where there is no time at which that can be done.
 *
 * `thread`: it has another thread, which would take the signal. `hangs`: what its standard output holds
 * is for a pipe that nobody reads; libc writes that out behind all exit handlers. `long`: the process
 * that scans does not go on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The library waits for a second. */
enum { kBlocks = 100000, kAttempts = 20, kMostMs = 500, kLongestMs = 5000 };

static void *volatile blocks[kBlocks];

static void *Wait(void *nothing) {
  for (;;) pause();
  return nothing;
}

static void FillStandardOutput(void) {
  static const char bytes[4096];
  int full[2];
  if (pipe2(full, O_NONBLOCK) != 0) abort();
  while (write(full[1], bytes, sizeof(bytes)) > 0) {
  }
  while (write(full[1], bytes, 1) > 0) {
  }
  if (fcntl(full[1], F_SETFL, 0) != 0 || dup2(full[1], 1) != 1) abort();
  printf("nobody reads this");
}

static void End(const char *way) {
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(100);
  pthread_t thread;
  if (strcmp(way, "thread") == 0 && pthread_create(&thread, NULL, Wait, NULL) != 0) abort();
  if (strcmp(way, "hangs") == 0) FillStandardOutput();
  if (strcmp(way, "_exit") == 0) _exit(0);
  exit(0);
}

/* What the kernel says of a process under this name; 0 where there is none. */
static int ReadStatus(pid_t pid, const char *name, char *value, size_t bytes) {
  char text[4096];
  snprintf(text, sizeof(text), "/proc/%d/status", (int)pid);
  FILE *const file = fopen(text, "r");
  if (file == NULL) return 0;
  text[fread(text, 1, sizeof(text) - 1, file)] = 0;
  fclose(file);
  const char *const at = strstr(text, name);
  if (at == NULL) return 0;
  snprintf(value, bytes, "%s", at + strlen(name));
  return 1;
}

static int IsStopped(pid_t pid) {
  char state[2];
  return ReadStatus(pid, "State:\t", state, sizeof(state)) && state[0] == 'T';
}

static long NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The only child of the process; 0 where there is none. */
static pid_t ChildOf(pid_t pid) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
  FILE *const file = fopen(path, "r");
  if (file == NULL) return 0;
  int child = 0;
  if (fscanf(file, "%d", &child) != 1) child = 0;
  fclose(file);
  return child;
}

static int HasEnded(pid_t pid) {
  siginfo_t ended;
  ended.si_pid = 0;
  return waitid(P_PID, (id_t)pid, &ended, WNOWAIT | WNOHANG | WEXITED) != 0 || ended.si_pid != 0;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const int is_long = strcmp(argv[1], "long") == 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const pid_t child = fork();
    if (child == 0) End(argv[1]);
    const long forked = NowMs();
    long begun = forked; /* the scan, at the earliest */
    pid_t scans = 0;
    for (; !HasEnded(child) && begun - forked < kLongestMs; begun = NowMs()) {
      if ((scans = ChildOf(child)) != 0) break;
    }
    int struck = 0;
    if (scans != 0 && kill(scans, SIGSTOP) == 0) {
      while (!IsStopped(scans) && NowMs() - begun < kMostMs) {
      }
      if (IsStopped(scans)) struck = kill(child, SIGTERM) == 0;
      if (!is_long) kill(scans, SIGCONT);
    }
    if (NowMs() - begun >= kMostMs) struck = 0; /* the machine is busy */
    if (!struck) kill(child, SIGKILL);
    int end = 0;
    if (waitpid(child, &end, 0) != child) return 2;
    if (is_long && scans != 0) kill(scans, SIGKILL);
    if (!struck) continue;
    if (WIFSIGNALED(end)) printf("%d signal %d\n", (int)child, WTERMSIG(end));
    if (WIFEXITED(end)) printf("%d exit %d\n", (int)child, WEXITSTATUS(end));
    return 0;
  }
  return 77;
}
