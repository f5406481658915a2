// ReaderLock: while `memtrace leaks` or `memtrace report` reads a trace that `memtrace run` packs,
// nothing is taken out of the raw one. Both have the packed file open and put locks on bytes of it,
// which tell nothing of its content; they go with the open files.
//
// A follower of an earlier version does not look for readers. So one that does says so.

#ifndef MEMTRACE_REPORT_RUN_READER_LOCK_H_
#define MEMTRACE_REPORT_RUN_READER_LOCK_H_

#include <string>

#include "report/base/unique_fd.h"

namespace memtrace::report {

// The follower: `packed_fd` is its file, open for reading too. Without effect on file systems that
// have no such locks.
void PromiseToLookForReaders(int packed_fd);
bool HasReaders(int packed_fd);

// The reader: from now on, what is not in the packed file stays in the raw one. False: that is not
// promised.
bool LockForReading(int packed_fd);
// It has read what it wants. To close its file would not be enough: a child that was forked
// meanwhile has it open, too.
void UnlockForReading(int packed_fd);

// The reader of a raw trace alone, who reads it twice: the second time it has what it had the
// first time. Without effect where nobody packs it, or where that is not promised.
class RawTraceLock {
 public:
  explicit RawTraceLock(const std::string& trace);
  ~RawTraceLock() { ReadingIsOver(); }
  RawTraceLock(const RawTraceLock&) = delete;
  RawTraceLock& operator=(const RawTraceLock&) = delete;

  void ReadingIsOver();

 private:
  UniqueFd packed_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_READER_LOCK_H_
