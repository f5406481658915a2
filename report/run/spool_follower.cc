#include "report/run/spool_follower.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "format/record_encoder.h"
#include "report/run/output_name.h"
#include "report/run/trace_holders.h"
#include "report/words/escape.h"

namespace memtrace::report {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(50);
// Children often end a moment after the root: pipelines, a shell's background jobs.
constexpr auto kGrace = std::chrono::milliseconds(200);
constexpr auto kGracePeriod = std::chrono::milliseconds(5);
constexpr int kNice = 5;  // the traced program comes first

// What nobody will be able to write into a trace that is finished, as a record of it.
std::vector<uint8_t> NoteOf(const std::vector<TraceHolder>& children) {
  constexpr size_t kMostNamed = 3;
  std::string names;
  for (size_t i = 0; i < std::min(children.size(), kMostNamed); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ", children[i].program, " ", children[i].pid);
  }
  if (children.size() > kMostNamed) {
    absl::StrAppend(&names, " and ", children.size() - kMostNamed, " more");
  }
  const bool is_one = children.size() == 1;
  const std::string text = absl::StrCat(
      is_one ? "1 forked child" : absl::StrCat(children.size(), " forked children"), " (", names,
      ") ran on when this trace was finished and had recorded nothing: ",
      is_one ? "if it has no trace of its own, it" : "each of them that has no trace of its own",
      " allocated nothing or could not create one.");
  std::vector<uint8_t> record(text.size() + 64);
  format::RecordEncoder encoder(record.data(), record.size());
  encoder.Begin(format::RecordTag::kNote);
  encoder.Bytes(text);
  encoder.End();
  record.resize(encoder.size());
  return record;
}

}  // namespace

SpoolFollower::SpoolFollower(const SpoolDirectory& spool, SpoolFollowerOptions options)
    : spool_(spool), options_(std::move(options)) {}

SpoolFollower::~SpoolFollower() {
  if (thread_.joinable()) Stop(nullptr);
}

void SpoolFollower::Start() {
  try {
    thread_ = std::thread(&SpoolFollower::Loop, this);
  } catch (const std::system_error&) {
    // No more tasks for this user, or none for a process whose children are of another PID
    // namespace: the program runs all the same, and what it writes is packed when it has ended.
  }
}

void SpoolFollower::Loop() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    Pass(false, nullptr);
    lock.lock();
    wake_.wait_for(lock, kPeriod, [this] { return stopping_; });
  }
}

RunResult SpoolFollower::Stop(const ProgramEnd* end) {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  while (true) {
    Pass(true, end);
    // A forked child lets go of its parent's trace when its own is begun. So first that nobody has
    // one, then whether there is a new one: it may have come since the pass looked.
    if (following_.empty()) FindNewTraces();
    if (following_.empty() || std::chrono::steady_clock::now() > deadline) break;
    std::this_thread::sleep_for(kGracePeriod);
  }
  FinishThoseOfForkedChildren(end);
  for (const auto& follower : following_) AddRunning(*follower);
  following_.clear();
  JudgeUnbegun();
  // An older trace of the same process that --finish finds must not take the name.
  if (!result_.still_running.empty() &&
      std::any_of(result_.traces.begin(), result_.traces.end(),
                  [](const FinishedTrace& trace) { return trace.main; })) {
    spool_.WriteRunRecord({options_.run.output, 0}).IgnoreError();
  }
  return std::move(result_);
}

void SpoolFollower::FindNewTraces() {
  for (const std::string& path : spool_.RawTraces()) {
    if (known_.contains(path)) continue;
    auto follower = options_.resume ? TraceFollower::Resume(path) : TraceFollower::Open(path);
    if (absl::IsFailedPrecondition(follower.status())) continue;  // being created
    known_.insert(path);
    if (!follower.ok()) {
      result_.failures.emplace_back(follower.status().message());
      continue;
    }
    (*follower)->Advance().IgnoreError();  // for its pid namespace
    if (!options_.keep_children && !IsRoot(**follower)) {
      (*follower)->Discard();
      continue;
    }
    following_.push_back(*std::move(follower));
  }
  std::stable_sort(following_.begin(), following_.end(),
                   [](const auto& a, const auto& b) { return a->start_ns() < b->start_ns(); });
}

// In a pid namespace of its own (a sandbox, a container) another process may have the same number.
bool SpoolFollower::IsRoot(const TraceFollower& follower) const {
  return follower.pid() == options_.run.root_pid && follower.foreign_namespace() == 0;
}

bool SpoolFollower::IsNewestOfItsProcess(const TraceFollower& follower) const {
  const auto finished = newest_finished_.find({follower.foreign_namespace(), follower.pid()});
  if (finished != newest_finished_.end() && finished->second > follower.start_ns()) return false;
  return std::none_of(following_.begin(), following_.end(), [&](const auto& other) {
    return other != nullptr && other->pid() == follower.pid() &&
           other->foreign_namespace() == follower.foreign_namespace() &&
           other->start_ns() > follower.start_ns();
  });
}

bool SpoolFollower::IsSuperseded(const TraceFollower& follower) const {
  return !IsNewestOfItsProcess(follower) && follower.counts().ended_by_exec;
}

// What was no trace yet when it was last looked for one. Its process was killed between creating it
// and writing the header, or is about to write that.
void SpoolFollower::JudgeUnbegun() {
  for (const std::string& path : spool_.RawTraces()) {
    struct stat info;
    if (known_.contains(path) || stat(path.c_str(), &info) != 0) continue;
    const std::string name(Basename(path));
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    uint32_t pid = 0;  // of PROGRAM.PID.START.mtr
    if (parts.size() < 4 || !absl::SimpleAtoi(parts[parts.size() - 3], &pid) || pid == 0) continue;
    const bool gone = kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    if (gone && info.st_size == 0) {
      unlink(path.c_str());
    } else if (!options_.keep_children && pid != options_.run.root_pid) {
      continue;  // nobody asked for it
    } else if (gone) {
      result_.failures.push_back(absl::StrCat(path, " was begun when the run had ended"));
    } else {
      AddRunning(pid, name.substr(0, name.rfind(absl::StrCat(".", pid, "."))));
    }
  }
}

void SpoolFollower::Pass(bool final, const ProgramEnd* end) {
  FindNewTraces();
  for (auto& follower : following_) {
    // First whether it has ended, then what it wrote: nothing can come in between.
    // A child that cannot begin a trace tells it in this one, of which it has the first page.
    const bool superseded = IsSuperseded(*follower) && !follower->IsHeld();
    const bool ended = superseded || ((final || !IsRoot(*follower)) && follower->ProcessEnded());
    FinishIfEnded(follower, ended, final, end);
  }
  std::erase(following_, nullptr);
}

void SpoolFollower::FinishIfEnded(std::unique_ptr<TraceFollower>& follower, bool ended, bool final,
                                  const ProgramEnd* end) {
  const bool main = IsRoot(*follower) && IsNewestOfItsProcess(*follower);
  follower->Advance().IgnoreError();  // told when its process has ended
  if (main && options_.root_records && !all_root_records_taken_) {
    all_root_records_taken_ = final;  // also where the trace is held on and looked at again
    follower->Append(options_.root_records(final)).IgnoreError();  // likewise
  }
  if (!ended) return;
  // If the process became an untraced program by an exec, the end of that is not this trace's
  // end. A signal is: nobody can tell it from an exec that had failed before.
  const bool became_another = follower->counts().ended_by_exec && end != nullptr && !end->signaled;
  FinishOne(*follower, main, main && !became_another ? end : nullptr);
  uint64_t& newest = newest_finished_[{follower->foreign_namespace(), follower->pid()}];
  newest = std::max(newest, follower->start_ns());
  follower.reset();
}

// A process that is gone, whose trace is held by nobody but children that it forked, which record
// nothing there: it is whole. They run on, and what they record later goes to the spool.
void SpoolFollower::FinishThoseOfForkedChildren(const ProgramEnd* end) {
  for (auto& follower : following_) {
    if (!follower->ProcessGone() && !IsSuperseded(*follower)) continue;
    const std::vector<TraceHolder> holders = HoldersOf(follower->raw_path());
    if (holders.empty() ||
        std::any_of(holders.begin(), holders.end(),
                    [](const TraceHolder& holder) { return holder.may_write; })) {
      continue;
    }
    follower->Append(NoteOf(holders)).IgnoreError();  // an error is told by Finish()
    FinishIfEnded(follower, true, true, end);
    for (const TraceHolder& holder : holders) AddRunning(holder.pid, holder.program);
  }
  std::erase(following_, nullptr);
  // Nothing is there yet of whoever runs still.
  if (options_.resume && following_.empty() && result_.traces.empty()) {
    for (const TraceHolder& process : ProcessesOf(spool_))
      AddRunning(process.pid, process.program);
  }
}

// The trace has the name of what was run before an exec.
void SpoolFollower::AddRunning(const TraceFollower& follower) {
  const std::string now = follower.BecameAnother() ? ProgramRunBy(follower.pid()) : "";
  if (now.empty() || now == follower.program()) {
    AddRunning(follower.pid(), follower.program());
  } else {
    result_.still_running.emplace(follower.pid(), RunningProgram{now, follower.program()});
  }
}

void SpoolFollower::AddRunning(uint32_t pid, const std::string& program) {
  result_.still_running.emplace(pid, RunningProgram{program, ""});
}

void SpoolFollower::FinishOne(TraceFollower& follower, bool main, const ProgramEnd* end) {
  const std::string name =
      main ? options_.run.output
           : ChildOutputName(options_.run.output, follower.program(), follower.pid());
  const absl::Status finished = follower.Finish(end);
  const auto published = finished.ok() ? follower.Publish(name, main) : finished;
  if (!published.ok()) {
    result_.failures.emplace_back(published.status().message());
    return;
  }
  FinishedTrace trace;
  trace.path = *published;
  trace.program = follower.program();
  trace.pid = follower.pid();
  trace.bytes = follower.packed_bytes();
  trace.counts = follower.counts();
  trace.main = main;
  if (options_.verbose) {
    const std::string line =
        absl::StrCat(trace.path, ": ", trace.program, " (pid ", trace.pid, "), ", trace.bytes);
    fprintf(stderr, "memtrace: %s bytes\n", words::EscapeControls(line).c_str());
  }
  result_.traces.push_back(std::move(trace));
}

}  // namespace memtrace::report
