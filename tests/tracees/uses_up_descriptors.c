/* uses_up_descriptors: a program that leaks descriptors until there are none, and lives on: threads
 * come, a child is forked, memory is lost, its process group gets signals.
 *
 *   uses_up_descriptors LOCKED-FILE
 *
 * Says what a tracer would spoil that takes, closes or changes something of it: the number of open
 * descriptors, its lock on LOCKED-FILE, the children and the signals that it has seen. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kDescriptors = 64, kPairs = 100000, kSignals = 500 };

static pthread_barrier_t g_worked;
static pthread_t g_main;
static volatile sig_atomic_t g_signals, g_elsewhere;
static pid_t g_pid;

static void OnSignal(int signal) {
  (void)signal;
  if (getpid() == g_pid) ++g_signals; else ++g_elsewhere;
}

__attribute__((noinline)) static void Pairs(void) {
  for (int i = 0; i < kPairs; ++i) {
    void* volatile block = malloc(16 + (size_t)i % 32);
    free(block);
  }
}

__attribute__((noinline)) static void Lose(size_t bytes) {
  void* volatile lost = malloc(bytes);
  lost = NULL;
  (void)lost;
}

static void* Work(void* unused) {
  Pairs();
  Lose(321);
  pthread_barrier_wait(&g_worked);
  for (;;) pause();
  return unused;
}

static void* Disturb(void* unused) {
  for (int i = 0; i < kSignals; ++i) {
    kill(0, SIGUSR1);
    usleep(200);
  }
  return unused;
}

static int OpenDescriptors(void) {
  int open = 0;
  for (int fd = 0; fd < kDescriptors; ++fd) open += fcntl(fd, F_GETFD) >= 0;
  return open;
}

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  setpgid(0, 0);
  g_pid = getpid();
  g_main = pthread_self();
  signal(SIGUSR1, OnSignal);
  const struct rlimit limit = {kDescriptors, kDescriptors};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 65;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(open(argv[1], O_RDWR | O_CREAT, 0600), F_SETLK, &lock) != 0) return 66;
  int last;
  while ((last = open("/dev/null", O_RDONLY)) >= 0) {
  }

  pthread_t thread, disturber;
  pthread_barrier_init(&g_worked, NULL, 2);
  pthread_create(&disturber, NULL, Disturb, NULL);
  pthread_create(&thread, NULL, Work, NULL);
  Pairs();
  pthread_barrier_wait(&g_worked);
  pthread_join(disturber, NULL);

  const pid_t child = fork();
  if (child == 0) {
    Pairs();
    Lose(654);
    if (fcntl(kDescriptors - 1, F_GETFD) < 0) _exit(1);
    lock.l_type = F_WRLCK;
    lock.l_pid = 0;
    /* The descriptor of the file is the first that was opened. */
    const int file = 3;
    exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid == g_pid ? 0 : 2);
  }
  int children = 0, status = 0, all = 0;
  while (waitpid(-1, &status, 0) > 0) {
    ++children;
    all |= status;
  }
  Lose(987);
  printf("%d descriptors, %d children, status %d, signals %s, %d elsewhere\n", OpenDescriptors(),
         children, all, g_signals > 0 ? "seen" : "not seen", (int)g_elsewhere);
  return 0;
}
