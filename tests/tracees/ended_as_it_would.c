/* ended_as_it_would: calls of the kernel that something else than a scan ends, while the program has itself scanned every
 * few milliseconds: a signal of its own, the socket's timeout, an error. Each says what it returned.
 *
 *   ended_as_it_would
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <memtrace.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 300000, kWaitMs = 150 };
static char g_bytes[kBytes];

static void Sleep(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) != 0) {
  }
}

static void OnSignal(int number) { (void)number; }
static pthread_t g_caller;
/* When the caller waits in its call, as far as can be told. */
static void* SignalLate(void* number) {
  Sleep(kWaitMs);
  pthread_kill(g_caller, (int)(long)number);
  return NULL;
}
static pthread_t Signaled(int number) {
  pthread_t thread;
  g_caller = pthread_self();
  pthread_create(&thread, NULL, SignalLate, (void*)(long)number);
  return thread;
}

/* SIGUSR1's handler restarts calls, SIGUSR2's does not. */
static long WriteUntilSignal(int number, int by_parts) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  const pthread_t thread = Signaled(number);
  struct iovec parts[2] = {{g_bytes, 1000}, {g_bytes + 1000, kBytes - 1000}};
  const long result = by_parts ? writev(ends[1], parts, 2) : write(ends[1], g_bytes, kBytes);
  pthread_join(thread, NULL);
  return result;
}
static long WriteRestarted(void) { return WriteUntilSignal(SIGUSR1, 0); }
static long WriteEnded(void) { return WriteUntilSignal(SIGUSR2, 0); }
static long WritevEnded(void) { return WriteUntilSignal(SIGUSR2, 1); }
static long PollEnded(void) {
  const pthread_t thread = Signaled(SIGUSR1);
  const long result = poll(NULL, 0, 100 * kWaitMs) == -1 ? -errno : 0;
  pthread_join(thread, NULL);
  return result;
}
static long SleepEnded(void) {
  const pthread_t thread = Signaled(SIGUSR1);
  const struct timespec time = {100 * kWaitMs / 1000, 0};
  struct timespec left = {0, 0};
  const long result = nanosleep(&time, &left) == -1 ? -errno : 0;
  pthread_join(thread, NULL);
  return left.tv_sec > 0 && left.tv_sec < time.tv_sec ? result : left.tv_sec;
}

static void Connect(int ends[2]) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof(address);
  if (bind(listener, (struct sockaddr*)&address, bytes) != 0 || listen(listener, 1) != 0) abort();
  getsockname(listener, (struct sockaddr*)&address, &bytes);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(ends[0], (struct sockaddr*)&address, bytes) != 0) abort();
  ends[1] = accept(listener, NULL, NULL);
  close(listener);
}
static void Limit(int fd, int option) {
  const struct timeval time = {0, kWaitMs * 1000};
  setsockopt(fd, SOL_SOCKET, option, &time, sizeof(time));
}
static void* ResetLate(void* fd) {
  const struct linger at_once = {1, 0};
  Sleep(kWaitMs);
  setsockopt((int)(long)fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close((int)(long)fd);
  return NULL;
}

/* A part of what is wanted, and then nothing more until time is up. */
static long ReceivedInTime(void) {
  int ends[2];
  char buffer[100];
  Connect(ends);
  Limit(ends[0], SO_RCVTIMEO);
  if (write(ends[1], g_bytes, 7) != 7) abort();
  return recv(ends[0], buffer, sizeof(buffer), MSG_WAITALL);
}
/* The error is told by the call behind the one that it ended. */
static long ReceivedUntilReset(void) {
  int ends[2];
  char buffer[100];
  pthread_t thread;
  Connect(ends);
  if (write(ends[1], g_bytes, 7) != 7) abort();
  pthread_create(&thread, NULL, ResetLate, (void*)(long)ends[1]);
  const long received = recv(ends[0], buffer, sizeof(buffer), MSG_WAITALL);
  pthread_join(thread, NULL);
  const long next = recv(ends[0], buffer, sizeof(buffer), 0) == -1 ? errno : 0;
  return received * 1000 + next;
}
/* Descriptors may come with later bytes. */
static long ReceivedWithDescriptor(void) {
  int ends[2];
  char buffer[10];
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
  const pid_t child = fork();
  if (child == 0) {
    struct iovec part = {g_bytes, 5};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (write(ends[1], g_bytes, 5) != 5) _exit(1);
    Sleep(kWaitMs);
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &ends[0], sizeof(int));
    _exit(sendmsg(ends[1], &message, 0) != 5);
  }
  long descriptors = 0, bytes = 0;
  while (bytes < 10) {
    struct iovec part = {buffer, (size_t)(10 - bytes)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    const ssize_t got = recvmsg(ends[0], &message, MSG_WAITALL);
    if (got <= 0) break;
    bytes += got;
    descriptors += CMSG_FIRSTHDR(&message) != NULL;
  }
  waitpid(child, NULL, 0);
  return bytes * 10 + descriptors;
}

static const struct {
  const char* name;
  long (*call)(void);
} kCalls[] = {{"write, handler restarts", WriteRestarted}, {"write", WriteEnded}, {"writev", WritevEnded},
              {"poll", PollEnded}, {"nanosleep", SleepEnded}, {"recv in time", ReceivedInTime},
              {"recv until reset", ReceivedUntilReset}, {"recvmsg with a descriptor", ReceivedWithDescriptor}};

static atomic_int g_over;
static void* Scan(void* unused) {
  while (!atomic_load(&g_over)) {
    memtrace_leak_check(NULL, MEMTRACE_LEAKS_ANY, 1);
    Sleep(3);
  }
  return unused;
}

int main(void) {
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = SA_RESTART};
  pthread_t scanner;
  sigaction(SIGUSR1, &action, NULL);
  action.sa_flags = 0;
  sigaction(SIGUSR2, &action, NULL);
  pthread_create(&scanner, NULL, Scan, NULL);
  for (size_t i = 0; i < sizeof(kCalls) / sizeof(kCalls[0]); ++i) {
    printf("%s %ld\n", kCalls[i].name, kCalls[i].call());
    fflush(stdout);
  }
  atomic_store(&g_over, 1);
  pthread_join(scanner, NULL);
  return 0;
}
