// FaultMarks: when the page faults of a run were taken, as far as each was told: at some thousand
// marks, however many there are.
//
// Usage samples have all faults, at a few times; what lies between two of them is
// shared out by these.
//
// Single-threaded.

#ifndef MEMTRACE_REPORT_MODEL_FAULT_MARKS_H_
#define MEMTRACE_REPORT_MODEL_FAULT_MARKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtrace::report {

class FaultMarks {
 public:
  // How many faults were taken until `time_ns`.
  struct Mark {
    uint64_t time_ns = 0, minor = 0, major = 0;
  };
  static constexpr size_t kMost = 4096;

  // Faults are added in about the order of time; one that is late counts at the latest time so far.
  void Add(uint64_t time_ns, bool major) {
    now_.time_ns = std::max(now_.time_ns, time_ns);
    ++(major ? now_.major : now_.minor);
    if ((now_.minor + now_.major) % stride_ != 0) return;
    marks_.push_back(now_);
    if (marks_.size() < kMost) return;
    for (size_t i = 0; i < kMost / 2; ++i) marks_[i] = marks_[2 * i + 1];
    marks_.resize(kMost / 2);
    stride_ *= 2;
  }

  // All marks; the last one also counts the faults that came after the mark before it.
  std::vector<Mark> All() const {
    std::vector<Mark> all = marks_;
    if (all.empty() || now_.minor + now_.major != all.back().minor + all.back().major)
      all.push_back(now_);
    return all;
  }

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

 private:
  Mark now_;
  uint64_t stride_ = 1;
  std::vector<Mark> marks_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_FAULT_MARKS_H_
