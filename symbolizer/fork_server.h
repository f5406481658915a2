// ForkServer: forks the children of AskChild() out of a process that is small.
//
// A fork copies the page tables of its process, and the process then faults on each page that it
// writes: 13 ms for a report that holds a quarter of a GB, and each module of a trace costs a child
// or two. The server is forked at the begin, when there is little to copy. Asked, it forks the
// child and hands on what that answered. Before Start(), where that failed, and when the server has
// died, the child is forked by the process that asks.
//
//   ForkServer server({read_symbols, read_names})   what children do, by number
//   server.Start()                                  before there are threads, or much memory
//   server.Ask(0, question, time, most_bytes)       as AskChild() of work 0 with the question
//
// The children see this process as it was at Start(). The server ends with its owner, and ignores
// SIGINT: Ctrl-C ends the reading of a trace, not its report.
//
// Threads: one asks at a time.

#ifndef MEMTRACE_SYMBOLIZER_FORK_SERVER_H_
#define MEMTRACE_SYMBOLIZER_FORK_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/ask_child.h"

namespace memtrace::symbolizer {

class ForkServer {
 public:
  using Work = std::function<std::string(std::string_view question)>;

  explicit ForkServer(std::vector<Work> works) : works_(std::move(works)) {}
  ~ForkServer() { Stop(); }
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  void Start();
  bool running() const { return socket_ >= 0; }
  pid_t PidForTesting() const { return pid_; }

  ChildAnswer Ask(size_t work, std::string_view question, std::chrono::milliseconds time,
                  size_t most_bytes);

 private:
  [[noreturn]] void Serve(int socket, pid_t owner);
  bool AskServer(size_t work, std::string_view question, std::chrono::milliseconds time,
               size_t most_bytes, ChildAnswer* answer);
  void Stop();

  const std::vector<Work> works_;
  int socket_ = -1;
  pid_t pid_ = 0;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_FORK_SERVER_H_
