/* waits_in_the_kernel: a thread in each of the calls that a signal ends with EINTR, also where its
 * handler was installed with SA_RESTART. None of them has any reason to return: one that does says so.
 *
 * And a thread whose stack has no room for a signal's frame.
 *
 *   waits_in_the_kernel MILLISECONDS    "ready", then so long an allocation every 5 ms
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kLong = 1000 };

static long Epoll(void) {
  struct epoll_event event;
  return epoll_wait(epoll_create1(0), &event, 1, -1);
}
static long Poll(void) { return poll(NULL, 0, -1); }
static long Ppoll(void) {
  const struct timespec time = {kLong, 0};
  return ppoll(NULL, 0, &time, NULL);
}
static long Select(void) {
  struct timeval time = {kLong, 0};
  return select(0, NULL, NULL, NULL, &time);
}
static long Nanosleep(void) {
  const struct timespec time = {kLong, 0};
  return nanosleep(&time, NULL);
}
static long Sleep(void) { return (long)sleep(kLong); }
static long Pause(void) { return pause(); }
static long Suspend(void) {
  sigset_t none;
  sigemptyset(&none);
  return sigsuspend(&none);
}
static long Semaphore(void) {
  sem_t semaphore;
  struct timespec until;
  sem_init(&semaphore, 0, 0);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += kLong;
  return sem_timedwait(&semaphore, &until);
}
static int Limited(int fd) {
  const struct timeval time = {kLong, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  return fd;
}
static long Receive(void) {
  int ends[2];
  char byte;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
  return recv(Limited(ends[0]), &byte, 1, 0);
}
static long Accept(void) {
  const sa_family_t anywhere = AF_UNIX;
  const int fd = Limited(socket(AF_UNIX, SOCK_STREAM, 0));
  bind(fd, (const struct sockaddr*)&anywhere, sizeof(anywhere));
  listen(fd, 1);
  return accept(fd, NULL, NULL);
}

static const struct {
  const char* name;
  long (*wait)(void);
} kWaits[] = {{"epoll_wait", Epoll}, {"poll", Poll}, {"ppoll", Ppoll}, {"select", Select},
              {"nanosleep", Nanosleep}, {"sleep", Sleep}, {"pause", Pause}, {"sigsuspend", Suspend},
              {"sem_timedwait", Semaphore}, {"recv", Receive},
              {"accept", Accept}};

static void* Wait(void* index) {
  const size_t i = (size_t)index;
  const long result = kWaits[i].wait();
  printf("%s returned %ld: %s\n", kWaits[i].name, result, strerror(errno));
  fflush(stdout);
  return NULL;
}

/* Down to where only so many bytes are left. */
enum { kRoom = 1500 };
static void* WaitOnLittleStack(void* unused) {
  pthread_attr_t attributes;
  void* base;
  size_t all;
  char here;
  (void)unused;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &base, &all);
  pthread_attr_destroy(&attributes);
  const size_t bytes = (size_t)(&here - (char*)base) - kRoom;
  volatile char* const used = __builtin_alloca(bytes);
  used[0] = used[bytes - 1] = 1;
  pause();
  puts("pause on a little stack returned");
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc != 2) return 64;
  for (size_t i = 0; i < sizeof(kWaits) / sizeof(kWaits[0]); ++i) {
    pthread_create(&thread, NULL, Wait, (void*)i);
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  if (pthread_create(&thread, &attributes, WaitOnLittleStack, NULL) != 0) return 65;
  usleep(50000);
  puts("ready");
  fflush(stdout);
  for (int i = 0; i < atoi(argv[1]); i += 5) {
    free(malloc(10));
    usleep(5000);
  }
  return 0;
}
