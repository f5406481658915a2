// AskChild: work on files that anybody may have written, at a distance of one process.
//
// elfutils checks much of a file and not all, and a file that is shortened while it is mapped
// is a SIGBUS. The child is forked and not executed: it has the caller's memory, limits and
// files. It keeps nothing after its answer, dies with its parent, leaves no core, and its
// standard error is closed to it. What it answers is to be checked like any other input.
//
// Threads: no other thread of the process may be inside the allocator, for the child allocates.

#ifndef MEMTRACE_SYMBOLIZER_ASK_CHILD_H_
#define MEMTRACE_SYMBOLIZER_ASK_CHILD_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace memtrace::symbolizer {

struct ChildAnswer {
  bool given = false;
  std::string bytes;  // what `work` returned, if it was given
  // Why there is none: it crashed, took too long, ran out of memory, ... And what to say of bytes
  // that cannot be decoded.
  std::string why_not = "no answer from the process that reads it";
};

// Runs `work` in a child that has `time`, and may answer with `most_bytes`.
ChildAnswer AskChild(std::chrono::milliseconds time, size_t most_bytes,
                     const std::function<std::string()>& work);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ASK_CHILD_H_
