// SpoolFollower: a thread that packs every trace of a run while it is written.
//
// It looks into the spool directory a few times a second, which costs the traced
// programs nothing. A trace is finished when its process has ended; that of the
// root process when Stop() says how it ended. Stop() waits only a moment for
// processes that outlive the root: their files stay where they are.

#ifndef MEMTRACE_REPORT_RUN_SPOOL_FOLLOWER_H_
#define MEMTRACE_REPORT_RUN_SPOOL_FOLLOWER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "report/run/child_process.h"
#include "report/run/spool_directory.h"
#include "report/run/trace_follower.h"
#include "report/trace/run_record.h"

namespace memtrace::report {

struct FinishedTrace {
  std::string path;
  std::string program;
  uint32_t pid = 0;
  uint64_t bytes = 0;
  TraceCounts counts;
  bool main = false;  // has the name the user gave: what the program was at its end
};

struct RunningProgram {
  std::string program;
  std::string was;  // the traced program that became it by an exec, where there is no trace of it
};

struct RunResult {
  std::vector<FinishedTrace> traces;
  // By the pid. Their traces are in the spool, or will be.
  std::map<uint32_t, RunningProgram> still_running;
  std::vector<std::string> failures;  // one sentence each
};

struct SpoolFollowerOptions {
  RunRecord run;
  bool keep_children = true;
  bool resume = false;    // take over what an interrupted run had packed
  bool verbose = false;   // a line for each finished trace
  // Records to add to the root's trace (format/records.h), as they come and, `all`, when it has
  // ended: that once, as the last. Called by the thread, and by Stop(). Empty: there are none.
  std::function<std::vector<uint8_t>(bool all)> root_records;
};

class SpoolFollower {
 public:
  SpoolFollower(const SpoolDirectory& spool, SpoolFollowerOptions options);
  ~SpoolFollower();

  // Starts the thread. All signals must be blocked or harmless in it.
  void Start();

  // Ends the thread, finishes what can be finished, and says what became of everything.
  // `end`: how the root process ended; nullptr: not known.
  RunResult Stop(const ProgramEnd* end);

 private:
  void Loop();
  void FindNewTraces();
  void Pass(bool final, const ProgramEnd* end);
  // After an exec the same process has another trace. The newest is what a wrapper
  // script, `env` or a version manager's shim became, and so what the user asked for.
  bool IsRoot(const TraceFollower& follower) const;
  bool IsNewestOfItsProcess(const TraceFollower& follower) const;
  bool IsSuperseded(const TraceFollower& follower) const;
  void FinishOne(TraceFollower& follower, bool main, const ProgramEnd* end);
  void FinishIfEnded(std::unique_ptr<TraceFollower>& follower, bool ended, bool final,
                     const ProgramEnd* end);
  void FinishThoseOfForkedChildren(const ProgramEnd* end);
  void AddRunning(const TraceFollower& follower);
  void AddRunning(uint32_t pid, const std::string& program);
  void JudgeUnbegun();

  const SpoolDirectory& spool_;
  const SpoolFollowerOptions options_;
  absl::flat_hash_set<std::string> known_;  // raw paths that need no new look
  std::vector<std::unique_ptr<TraceFollower>> following_;  // in order of their start
  // Of those that are finished, when the newest of each process was begun: by its pid namespace, if
  // that is foreign, and pid.
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> newest_finished_;
  RunResult result_;
  bool all_root_records_taken_ = false;  // by Stop()

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // under mutex_
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_SPOOL_FOLLOWER_H_
