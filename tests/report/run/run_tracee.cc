// A program for the tests of `memtrace run`: does what its first argument says.
//
//   exit N         allocates a little and ends with status N
//   kill N         kills itself with signal N
//   allocate N     N allocations that are never freed, then exit 0
//   echo           standard input to standard output, byte for byte
//   env            its environment, one variable a line
//   fds            the numbers of its open descriptors
//   signals        its blocked and ignored signals
//   wait N         says "ready", then exits N on the first SIGTERM, 1 after ten seconds
//   grow N         touches N MiB in blocks of one, says "ready" and the KiB it then has resident,
//                  and waits so for a minute, to exit with 0

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

extern char** environ;

static int WaitForTermination(const char* ready, int status, int seconds) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  puts(ready);
  fflush(stdout);
  const timespec limit = {seconds, 0};
  return sigtimedwait(&set, nullptr, &limit) == SIGTERM ? status : 1;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "exit";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  char* volatile block = static_cast<char*>(malloc(100));
  block[0] = 1;
  free(block);
  if (strcmp(what, "exit") == 0) return number;
  if (strcmp(what, "kill") == 0) {
    kill(getpid(), number);
    pause();
  }
  if (strcmp(what, "allocate") == 0) {
    for (int i = 0; i < number; ++i) {
      static char* volatile leaked;
      leaked = static_cast<char*>(malloc(24));
    }
    return 0;
  }
  if (strcmp(what, "grow") == 0) {
    constexpr size_t kMiB = 1 << 20;
    for (int i = 0; i < number; ++i) {
      static char* volatile grown;
      grown = static_cast<char*>(malloc(kMiB));
      for (size_t at = 0; at < kMiB; at += 4096) grown[at] = 1;
    }
    long kib = 0;
    char line[256];
    FILE* const status = fopen("/proc/self/smaps_rollup", "r");
    while (status != nullptr && fgets(line, sizeof(line), status) != nullptr) {
      sscanf(line, "Rss: %ld", &kib);
    }
    if (status != nullptr) fclose(status);
    return WaitForTermination(("ready " + std::to_string(kib)).c_str(), 0, 60);
  }
  if (strcmp(what, "echo") == 0) {
    char buffer[4096];
    ssize_t n;
    while ((n = read(0, buffer, sizeof(buffer))) > 0) {
      if (write(1, buffer, static_cast<size_t>(n)) != n) return 1;
    }
    return n == 0 ? 0 : 1;
  }
  if (strcmp(what, "env") == 0) {
    for (char** entry = environ; *entry != nullptr; ++entry) puts(*entry);
    return 0;
  }
  if (strcmp(what, "fds") == 0) {
    DIR* directory = opendir("/proc/self/fd");
    while (const dirent* entry = readdir(directory)) {
      const int fd = atoi(entry->d_name);
      if (entry->d_name[0] != '.' && fd != dirfd(directory)) printf("%d\n", fd);
    }
    closedir(directory);
    return 0;
  }
  if (strcmp(what, "signals") == 0) {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, nullptr, &blocked);
    for (int signal = 1; signal < 32; ++signal) {
      struct sigaction action;
      sigaction(signal, nullptr, &action);
      if (sigismember(&blocked, signal) == 1) printf("blocked %d\n", signal);
      if (action.sa_handler == SIG_IGN) printf("ignored %d\n", signal);
    }
    return 0;
  }
  if (strcmp(what, "wait") == 0) return WaitForTermination("ready", number, 10);
  return 99;
}
