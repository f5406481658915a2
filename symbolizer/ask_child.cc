#include "symbolizer/ask_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/whole_io.h"

namespace memtrace::symbolizer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

enum ChildExit : int { kDone = 0, kNoMemory = 3, kCannotAnswer = 4 };

[[noreturn]] void BeChild(pid_t parent, int answer, milliseconds time,
                          const std::function<std::string()>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotAnswer);  // it ended before it could tell us
  const auto seconds = static_cast<rlim_t>(time.count() / 1000 + 2);
  const struct rlimit none = {0, 0}, cpu = {seconds, seconds};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_CPU, &cpu);
#if !defined(__SANITIZE_ADDRESS__)
  // If a damaged file has damaged the heap, nobody must read what the allocator says of that.
  if (const int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0)
    dup2(null, STDERR_FILENO);
#endif
  int code = kCannotAnswer;
  try {
    if (base::WriteAll(answer, work())) code = kDone;
  } catch (const std::bad_alloc&) {
    code = kNoMemory;
  }
  _exit(code);  // nothing of the parent's is flushed or destroyed
}

enum class Received { kAll, kTooLate, kTooLong, kError };

Received Receive(int fd, Clock::time_point deadline, size_t most, std::string* bytes) {
  char buffer[1 << 16];
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Received::kTooLate;
    struct pollfd waiting = {fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return Received::kError;
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Received::kError;
    if (n == 0) return Received::kAll;
    if (bytes->size() + static_cast<size_t>(n) > most) return Received::kTooLong;
    bytes->append(buffer, static_cast<size_t>(n));
  }
}

int Reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 0;
  }
  return status;
}

// Empty: nobody knows.
std::string WhyNot(Received received, int status) {
  switch (received) {
    case Received::kTooLate: return "it took too long";
    case Received::kTooLong: return "it has too many names";
    case Received::kError: return "";
    case Received::kAll: break;
  }
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return absl::StrCat("the process that reads it was ended by ",
                        name != nullptr ? "SIG" : "signal ",
                        name != nullptr ? std::string(name) : absl::StrCat(WTERMSIG(status)));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory) return "not enough memory";
  return "";
}

}  // namespace

ChildAnswer AskChild(milliseconds time, size_t most_bytes,
                     const std::function<std::string()>& work) {
  ChildAnswer answer;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    answer.why_not = absl::StrCat("no pipe: ", strerror(errno));
    return answer;
  }
  const auto begin = Clock::now();
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    close(ends[0]);
    BeChild(parent, ends[1], time, work);
  }
  const int error = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    answer.why_not = absl::StrCat("no process: ", strerror(error));
    return answer;
  }
  const Received received = Receive(ends[0], begin + time, most_bytes, &answer.bytes);
  close(ends[0]);
  if (received != Received::kAll) kill(child, SIGKILL);
  const int status = Reap(child);
  answer.given = received == Received::kAll && WIFEXITED(status) && WEXITSTATUS(status) == kDone;
  if (std::string why = WhyNot(received, status); !why.empty()) answer.why_not = std::move(why);
  return answer;
}

}  // namespace memtrace::symbolizer
