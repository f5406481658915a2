// The two directions of an analyzer's state in the middle of a pass: a class's Fold() names its
// members once, for a writer that puts them down and for a reader that takes them up again.
//
//   template <typename Archive> void Model::Fold(Archive& archive) {
//     archive(a_, b_);
//     archive.Check(a_ < b_.size());   what later code relies on; a writer does not ask
//   }
//
// A reader that met something wrong says so by ok(); what it filled is of no use then, and safe to
// destroy.

#ifndef MEMTRACE_REPORT_STATE_STATE_ARCHIVE_H_
#define MEMTRACE_REPORT_STATE_STATE_ARCHIVE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "report/state/packed_bytes.h"
#include "report/state/packed_values.h"

namespace memtrace::report::index {

class StateWriter {
 public:
  static constexpr bool kReads = false;

  template <typename... T>
  void operator()(const T&... values) {
    (Put(values, out_), ...);
  }
  void Check(bool) {}
  bool ok() const { return true; }

  std::string Take() { return out_.Take(); }

 private:
  PackedWriter out_;
};

class StateReader {
 public:
  static constexpr bool kReads = true;

  explicit StateReader(std::string_view bytes) : source_{PackedReader(bytes), 0} {}
  // StackIds that are read from now on are at most this.
  void set_stacks(size_t stacks) { source_.stacks = stacks; }

  template <typename... T>
  void operator()(T&... values) {
    (Get(values, source_), ...);
  }
  void Check(bool right) {
    if (!right) source_.in.Fail();
  }
  bool ok() const { return source_.in.ok(); }
  bool at_end() const { return source_.in.left() == 0; }

 private:
  PackedSource source_;
};

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_STATE_STATE_ARCHIVE_H_
