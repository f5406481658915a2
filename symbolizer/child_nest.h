// ChildNest: where the children of AskChild() come from.
//
// A fork copies the page tables of its process, and the process then faults on each page that it
// writes: 13 ms for a report that holds a quarter of a GB, and each module of a trace costs a child
// or two. The nest is a process that is forked at the begin, when there is little to copy. Asked, it
// forks the child and hands on what that answered. Until Settle() was called, where that failed, and
// when the nest has died, the child is forked here.
//
//   ChildNest nest({read_symbols, read_names})   what children do, by number
//   nest.Settle()                                before there are threads, or much memory
//   nest.Ask(0, question, time, most_bytes)      as AskChild() of work 0 with the question
//
// What the children see of this process is what it was at Settle(). The nest ends with its owner,
// and ignores SIGINT: Ctrl-C ends the reading of a trace, not its report.
//
// Threads: one asks at a time.

#ifndef MEMTRACE_SYMBOLIZER_CHILD_NEST_H_
#define MEMTRACE_SYMBOLIZER_CHILD_NEST_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/ask_child.h"

namespace memtrace::symbolizer {

class ChildNest {
 public:
  using Work = std::function<std::string(std::string_view question)>;

  explicit ChildNest(std::vector<Work> works) : works_(std::move(works)) {}
  ~ChildNest() { Leave(); }
  ChildNest(const ChildNest&) = delete;
  ChildNest& operator=(const ChildNest&) = delete;

  void Settle();
  bool settled() const { return socket_ >= 0; }
  pid_t pid_for_testing() const { return pid_; }

  ChildAnswer Ask(size_t work, std::string_view question, std::chrono::milliseconds time,
                  size_t most_bytes);

 private:
  [[noreturn]] void BeNest(int socket, pid_t owner);
  bool AskNest(size_t work, std::string_view question, std::chrono::milliseconds time,
               size_t most_bytes, ChildAnswer* answer);
  void Leave();

  const std::vector<Work> works_;
  int socket_ = -1;
  pid_t pid_ = 0;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_CHILD_NEST_H_
