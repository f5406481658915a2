/* gone_on_with: calls of the kernel that a program without signal handlers has done to it in whole, or that end when
 * their time is up, while it has itself scanned every few milliseconds. Each says what it returned.
 *
 *   gone_on_with
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <memtrace.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 600000, kWaitMs = 150 };

static char g_bytes[kBytes]; /* a pattern, to be received as it is */

/* Takes what it is sent, slowly, until the end; and says when it is not the pattern. */
static void* Drain(void* end) {
  static const struct timespec kPause = {0, 20000000};
  const int fd = (int)(long)end;
  char buffer[65536];
  size_t all = 0;
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got <= 0) break;
    if (memcmp(buffer, g_bytes + all, (size_t)got) != 0) puts("other bytes than were sent");
    all += (size_t)got;
    nanosleep(&kPause, NULL);
  }
  if (all != kBytes) printf("%zu bytes arrived\n", all);
  return NULL;
}

/* A descriptor whose other end is drained. */
static int Drained(int of_sockets, pthread_t* drain) {
  int ends[2];
  if ((of_sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) != 0) abort();
  pthread_create(drain, NULL, Drain, (void*)(long)ends[0]);
  return ends[1];
}

static void* Feed(void* end) {
  static const struct timespec kPause = {0, 5000000};
  const int fd = (int)(long)end;
  for (size_t at = 0; at < 20000; at += 500) {
    if (write(fd, g_bytes + at, 500) != 500) puts("not fed");
    nanosleep(&kPause, NULL);
  }
  return NULL;
}

static int Fed(pthread_t* feed) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
  pthread_create(feed, NULL, Feed, (void*)(long)ends[1]);
  return ends[0];
}

static long Put(int of_sockets, ssize_t (*put)(int)) {
  pthread_t drain;
  const int fd = Drained(of_sockets, &drain);
  const long result = put(fd);
  close(fd);
  pthread_join(drain, NULL);
  return result;
}

static void Parts(struct iovec parts[3]) {
  parts[0] = (struct iovec){g_bytes, 1};
  parts[1] = (struct iovec){g_bytes + 1, 300000};
  parts[2] = (struct iovec){g_bytes + 300001, kBytes - 300001};
}
static ssize_t ByWrite(int fd) { return write(fd, g_bytes, kBytes); }
static ssize_t BySend(int fd) { return send(fd, g_bytes, kBytes, 0); }
static ssize_t ByWritev(int fd) {
  struct iovec parts[3];
  Parts(parts);
  return writev(fd, parts, 3);
}
static ssize_t BySendmsg(int fd) {
  struct iovec parts[3];
  Parts(parts);
  const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
  return sendmsg(fd, &message, 0);
}
static long Write(void) { return Put(0, ByWrite); }
static long Writev(void) { return Put(0, ByWritev); }
static long Send(void) { return Put(1, BySend); }
static long Sendmsg(void) { return Put(1, BySendmsg); }

static long Receive(void) {
  pthread_t feed;
  char buffer[20000];
  const int fd = Fed(&feed);
  const long result = recv(fd, buffer, sizeof(buffer), MSG_WAITALL);
  if (memcmp(buffer, g_bytes, sizeof(buffer)) != 0) puts("other bytes than were fed");
  pthread_join(feed, NULL);
  return result;
}
static long Receivemsg(void) {
  pthread_t feed;
  char buffer[20000];
  const int fd = Fed(&feed);
  struct iovec parts[2] = {{buffer, 1000}, {buffer + 1000, 19000}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  const long result = recvmsg(fd, &message, MSG_WAITALL);
  if (memcmp(buffer, g_bytes, sizeof(buffer)) != 0) puts("other bytes than were fed");
  pthread_join(feed, NULL);
  return result;
}
static long Random(void) {
  static char buffer[kBytes];
  for (int i = 0; i < 200; ++i) {
    const ssize_t got = getrandom(buffer, sizeof(buffer), 0);
    if (got != kBytes) return got;
  }
  return kBytes;
}
static long RandomDevice(void) {
  static char buffer[kBytes];
  const int fd = open("/dev/urandom", O_RDONLY);
  for (int i = 0; i < 200; ++i) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got != kBytes) return got;
  }
  return kBytes;
}

static int Limited(int type) {
  const struct timeval time = {0, kWaitMs * 1000};
  const int fd = socket(AF_UNIX, type, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  return fd;
}
static long Poll(void) { return poll(NULL, 0, kWaitMs); }
static long Epoll(void) {
  struct epoll_event event;
  return epoll_wait(epoll_create1(0), &event, 1, kWaitMs);
}
static long Usleep(void) { return usleep(kWaitMs * 1000); }
static long Nanosleep(void) {
  const struct timespec time = {0, kWaitMs * 1000000};
  struct timespec left = {0, 0};
  return nanosleep(&time, &left);
}
static long ClockNanosleep(void) {
  const struct timespec time = {0, kWaitMs * 1000000};
  return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}
static long Semaphore(void) {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  struct sembuf take = {0, -1, 0};
  const struct timespec time = {0, kWaitMs * 1000000};
  const int result = semtimedop(set, &take, 1, &time);
  const int error = errno;
  semctl(set, 0, IPC_RMID);
  return result == -1 ? -error : result;
}
static long Futex(void) {
  static int word = 7;
  const struct timespec time = {0, kWaitMs * 1000000};
  return syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 7, &time) == -1 ? -errno : 0;
}
static long ReceiveInTime(void) {
  const struct sockaddr anywhere = {.sa_family = AF_UNIX};
  char byte;
  const int fd = Limited(SOCK_DGRAM);
  bind(fd, &anywhere, sizeof(sa_family_t));
  return recv(fd, &byte, 1, 0) == -1 ? -errno : 0;
}
static long AcceptInTime(void) {
  const struct sockaddr anywhere = {.sa_family = AF_UNIX};
  const int fd = Limited(SOCK_STREAM);
  bind(fd, &anywhere, sizeof(sa_family_t));
  listen(fd, 1);
  return accept(fd, NULL, NULL) == -1 ? -errno : 0;
}
/* One that ends before its time, as it would. */
static void* FeedLate(void* end) {
  static const struct timespec kPause = {0, 60000000};
  nanosleep(&kPause, NULL);
  if (write((int)(long)end, "x", 1) != 1) puts("not fed");
  return NULL;
}
static long PollForSomething(void) {
  pthread_t feed;
  int ends[2];
  if (pipe(ends) != 0) abort();
  pthread_create(&feed, NULL, FeedLate, (void*)(long)ends[1]);
  struct pollfd file = {ends[0], POLLIN, 0};
  const long result = poll(&file, 1, 10 * kWaitMs);
  pthread_join(feed, NULL);
  return result;
}

static const struct {
  const char* name;
  long (*call)(void);
} kCalls[] = {{"write", Write}, {"writev", Writev}, {"send", Send}, {"sendmsg", Sendmsg},
              {"recv", Receive}, {"recvmsg", Receivemsg}, {"getrandom", Random}, {"urandom", RandomDevice},
              {"poll", Poll}, {"epoll_wait", Epoll}, {"usleep", Usleep}, {"nanosleep", Nanosleep},
              {"clock_nanosleep", ClockNanosleep}, {"semtimedop", Semaphore}, {"futex", Futex},
              {"recv in time", ReceiveInTime}, {"accept in time", AcceptInTime}, {"poll for something", PollForSomething}};
enum { kCallCount = sizeof(kCalls) / sizeof(kCalls[0]) };

static long g_results[kCallCount];
static atomic_int g_done;

static void* Call(void* index) {
  const size_t i = (size_t)index;
  g_results[i] = kCalls[i].call();
  atomic_fetch_add(&g_done, 1);
  return NULL;
}

int main(void) {
  pthread_t threads[kCallCount];
  for (size_t i = 0; i < kBytes; ++i) g_bytes[i] = (char)(i * i >> 7);
  for (size_t i = 0; i < kCallCount; ++i) pthread_create(&threads[i], NULL, Call, (void*)i);
  for (int scans = 0; atomic_load(&g_done) < kCallCount;) {
    static const struct timespec kPause = {0, 3000000};
    scans += memtrace_leak_check(NULL, MEMTRACE_LEAKS_ANY, 1) > 0;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &kPause, NULL);
  }
  for (size_t i = 0; i < kCallCount; ++i) {
    pthread_join(threads[i], NULL);
    printf("%s %ld\n", kCalls[i].name, g_results[i]);
  }
  return 0;
}
