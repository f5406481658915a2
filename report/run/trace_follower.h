// TraceFollower: one raw trace, and the packed one that grows beside it.
//
// Follows from its first byte a file that a traced process is writing, and gives
// the space of events that are safely in the packed file back to the file system:
// a long run needs the room of its packed trace, not of its raw one. Headers,
// records and rings stay, so the raw file remains a trace, of the rest. While somebody
// reads both files (reader_lock.h) all of it stays.
//
// If the follower dies, nothing is lost: what it took is in the packed file, what
// it did not take is in the raw one, and Resume() goes on from there.
//
// One thread.

#ifndef MEMTRACE_REPORT_RUN_TRACE_FOLLOWER_H_
#define MEMTRACE_REPORT_RUN_TRACE_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/base/unique_fd.h"
#include "report/run/child_process.h"
#include "report/run/process_watch.h"
#include "report/trace/byte_source.h"
#include "report/trace/exec_attempts.h"
#include "report/trace/packer.h"

namespace memtrace::report {

// Figures that are cheap to count while packing.
struct TraceCounts {
  uint64_t allocations = 0;  // of a sample those that were recorded
  bool sampled = false;
  bool newest = false;       // a flight recorder: reports leave out what is older than its window
  uint64_t dropped_events = 0;
  int loss_error = 0;       // errno of the last loss; 0: not known
  uint64_t untraced_children = 0;  // forked, and could not create a trace
  bool stopped_at_limit = false;  // of MEMTRACE_MAX_BYTES
  bool stopped_early = false;     // for another reason, which the report tells
  bool ended_by_exec = false;  // the last kEnd, and nothing came after it
};

class TraceFollower {
 public:
  // FailedPrecondition: the file has no header yet, try again later.
  static absl::StatusOr<std::unique_ptr<TraceFollower>> Open(const std::string& raw_path);
  // The same for a file whose follower died: takes over what it had packed.
  static absl::StatusOr<std::unique_ptr<TraceFollower>> Resume(const std::string& raw_path);

  uint32_t pid() const { return pid_; }  // in its own pid namespace
  uint64_t foreign_namespace() const { return watch_->foreign_namespace(); }  // as far as was read
  // What orders the traces of a process: CLOCK_REALTIME, as the file's name says, which is there
  // before any record. 0: it is not. Where the clock was set back before an exec the order is wrong.
  uint64_t start_ns() const { return start_ns_; }
  const std::string& program() const { return program_; }
  const std::string& raw_path() const { return raw_path_; }
  const TraceCounts& counts() const { return counts_; }
  uint64_t packed_bytes() const { return packer_->bytes_written(); }
  bool ProcessEnded() const { return watch_->Ended(); }
  bool ProcessGone() const { return watch_->ProcessGone(); }
  // The process, of our pid namespace, has let go of the trace by an exec. One that failed leaves
  // it mapped.
  bool BecameAnother() const;
  // Somebody has the raw file mapped, to write to it, as far as its file system tells.
  bool IsHeld() const;

  // Packs what is there now. After an error nothing more is packed, and the two
  // files stay for Resume().
  absl::Status Advance();

  // Adds whole records of ours; none: nothing. Errors as of Advance().
  absl::Status Append(const std::vector<uint8_t>& records);

  // The process has ended: packs the rest. `end`: how, if that is known.
  absl::Status Finish(const ProgramEnd* end);

  // Gives the finished packed trace its name, and removes the raw one. Returns the name.
  absl::StatusOr<std::string> Publish(const std::string& name, bool replace);

  // Removes both files.
  void Discard();

 private:
  TraceFollower() = default;

  static absl::StatusOr<std::unique_ptr<TraceFollower>> Make(const std::string& raw_path,
                                                             bool resume);
  void ReadName();
  void Observe(const format::BlockHeader& header, std::span<const uint8_t> content);
  absl::Status WriteEnd(const ProgramEnd& end);
  void HandBack();

  std::string raw_path_, packed_path_, taken_over_path_, program_;
  UniqueFd raw_fd_, packed_fd_;
  std::unique_ptr<ByteSource> source_;  // the raw file, or the packed beginning and the rest
  std::unique_ptr<Packer> packer_;
  std::unique_ptr<ProcessWatch> watch_;
  uint32_t pid_ = 0;
  uint64_t start_ns_ = 0;
  TraceCounts counts_;
  uint64_t exec_ns_ = 0;  // when the last kEnd was written
  bool exec_failure_is_told_ = false;  // of the exec that this is of
  ExecAttempts execs_;
  absl::Status failure_;
  bool may_hand_back_ = true;
  bool keeps_newest_ = false;  // a flight recorder: packed at its end
  uint64_t handed_back_ = 0;  // the raw file is looked at up to here
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_TRACE_FOLLOWER_H_
