#include "report/run/run_session.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "report/analysis/analyzer.h"
#include "report/base/byte_size.h"
#include "report/base/clock.h"
#include "report/base/output_file.h"
#include "report/base/path.h"
#include "report/base/unique_fd.h"
#include "report/cli/refusals.h"
#include "report/pressure/oom_watch.h"
#include "report/pressure/pressure_records.h"
#include "report/pressure/pressure_sampler.h"
#include "report/run/child_process.h"
#include "report/run/closing_line.h"
#include "report/run/library_finder.h"
#include "report/run/output_name.h"
#include "report/run/preflight.h"
#include "report/run/program_search.h"
#include "report/run/spool_directory.h"
#include "report/run/spool_follower.h"
#include "report/words/escape.h"
#include "report/words/shell_words.h"
#include "report/words/units.h"

extern char** environ;

namespace memtrace::report {
namespace {

// One line, whatever the names in it hold.
void Say(absl::string_view message) {
  fprintf(stderr, "memtrace: %s\n", words::EscapeControls(message).c_str());
}

int Fail(absl::string_view message, int exit_status = kExitNotTraceable) {
  Say(message);
  return exit_status;
}

// For the time after the fork: none of this reaches the program.
void PrepareToFollow() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  for (int signal : {SIGPIPE, SIGXFSZ, SIGIO}) sigaction(signal, &ignore, nullptr);
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;  // three for each process that is traced now
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

// Something other than a trace under the name of the output is not ours to replace.
std::string CheckOutput(const std::string& output) {
  struct stat info;
  if (output.empty() || output.back() == '/') {
    return absl::StrCat("cannot write '", output, "': it names no file; give one with -o");
  }
  if (Basename(output).size() > NAME_MAX) {
    return absl::StrCat("cannot write ", output, ": its name is longer than ", NAME_MAX,
                        " bytes; give a shorter one with -o");
  }
  if (stat(output.c_str(), &info) != 0) return "";
  if (S_ISDIR(info.st_mode)) {
    return absl::StrCat("cannot write ", output, ": it is a directory; give a file name in it");
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::StrCat("cannot write ", output, ": it is no regular file; give another name");
  }
  return std::string(RefuseToReplaceNoTrace(output).message());
}

// Page faults are looked for unless somebody said otherwise. In a sampled program hardly a block is
// known that one could belong to.
std::string FaultsToLookFor(const RunOptions& options) {
  if (!options.faults.empty() || getenv("MEMTRACE_FAULTS") != nullptr) return options.faults;
  const char* variable = getenv("MEMTRACE_SAMPLE_BYTES");
  const std::string sample_bytes =
      !options.sample_bytes.empty() ? options.sample_bytes : variable != nullptr ? variable : "0";
  return sample_bytes == "0" ? "auto" : "";
}

std::vector<std::string> Environment(const RunOptions& options, const std::string& library,
                                     const std::string& out_pattern) {
  std::vector<std::pair<std::string, std::string>> set;
  const char* preloaded = getenv("LD_PRELOAD");
  const bool others = preloaded != nullptr && *preloaded != '\0';
  set.emplace_back("LD_PRELOAD", others ? absl::StrCat(library, ":", preloaded) : library);
  set.emplace_back("MEMTRACE_OUT", out_pattern);
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty()) set.emplace_back(name, value);
  };
  option("MEMTRACE_STACKS", options.stacks);
  option("MEMTRACE_FREE_STACKS", options.free_stacks ? "on" : "");
  option("MEMTRACE_CHILDREN", options.children);
  option("MEMTRACE_LEAK_CHECK", options.leak_check);
  option("MEMTRACE_FAULTS", FaultsToLookFor(options));
  option("MEMTRACE_SAMPLE_BYTES", options.sample_bytes);
  option("MEMTRACE_MAX_BYTES", options.max_bytes);
  option("MEMTRACE_KEEP", options.keep);
  option("MEMTRACE_CROSS_CHECK", options.cross_check);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const auto& [name, value] : set) {
      replaced = replaced || absl::StartsWith(*entry, absl::StrCat(name, "="));
    }
    if (!replaced) environment.emplace_back(*entry);
  }
  for (const auto& [name, value] : set) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

bool ChildrenAreFollowed(const RunOptions& options) {
  const char* variable = getenv("MEMTRACE_CHILDREN");
  if (!options.children.empty()) return options.children == "follow";
  return variable == nullptr || strcmp(variable, "off") != 0;
}

// The library's Segments::kSmallestFile.
constexpr uint64_t kSmallestFlightRecorder = 1 << 20;

bool HasRoomForTheNewest(const RunOptions& options) {
  const char* variable = getenv("MEMTRACE_MAX_BYTES");
  const std::string size = !options.max_bytes.empty() ? options.max_bytes
                           : variable != nullptr      ? variable
                                                      : "0";
  return ParseByteSize(size).value_or(0) >= kSmallestFlightRecorder;
}

// Says what the heap held when the OOM killer came. That is worth reading the trace for,
// unless it takes long.
std::string HeapThen(const RunResult& result, const pressure::Kill& kill) {
  constexpr uint64_t kLargest = 64 << 20;
  if (kill.verdict != format::KillVerdict::kOomKiller) return "";
  for (const FinishedTrace& trace : result.traces) {
    if (!trace.main || trace.bytes > kLargest) continue;
    const auto analyzed = AnalyzeTrace(trace.path, {});
    if (!analyzed.ok()) continue;
    const Totals& totals = analyzed->analysis.totals;
    return absl::StrCat("the heap held ", words::HumanBytes(totals.live_bytes), " in ",
                        words::Plural(totals.live_blocks, "block"));
  }
  return "";
}

// The lane of the pressure samples and the verdict on a SIGKILL, for one run.
class Watcher {
 public:
  Watcher(const RunOptions& options, uint32_t pid)
      : watch_(pressure::KernelFiles(), pid, pressure::OomWatch::KernelLogPath()) {
    if (options.no_samples) return;
    uint64_t interval_ns = pressure::kDefaultIntervalNs;
    if (absl::Duration asked; absl::ParseDuration(options.sample_interval, &asked)) {
      interval_ns = static_cast<uint64_t>(absl::ToInt64Nanoseconds(asked));
    }
    sampler_.emplace(pressure::KernelFiles(), pid, interval_ns, &watch_);
    sampler_->Start();
  }

  void Ended(const ProgramEnd& end) {
    if (sampler_.has_value()) sampler_->Stop();
    if (end.signaled && end.status == SIGKILL) kill_ = watch_.Judge();
    ended_ = true;
  }
  // Once the program has ended: nullptr when it was no SIGKILL.
  const pressure::Kill* kill() const { return kill_.has_value() ? &*kill_ : nullptr; }

  // For SpoolFollowerOptions::root_records: all of them once. Not all: from the follower's thread.
  std::vector<uint8_t> Records(bool all) {
    std::vector<uint8_t> records;
    if (sampler_.has_value()) records = sampler_->Take(all);
    if (!all || !ended_) return records;
    if (kill_.has_value()) {
      pressure::AppendKill(*kill_, &records);
    } else if (const uint64_t others = watch_.kills_in_group(); others != 0) {
      pressure::AppendNote(
          absl::StrCat("The OOM killer killed ", others, others == 1 ? " process" : " processes",
                       " of the program's control group; not the program."),
          &records);
    }
    return records;
  }

 private:
  pressure::OomWatch watch_;
  std::optional<pressure::PressureSampler> sampler_;
  std::optional<pressure::Kill> kill_;
  bool ended_ = false;
};

// Prints what there is to say; true: the program was traced.
bool Close(const RunOptions& options, const SpoolDirectory& spool, const RunResult& result,
           const ProgramEnd* end, const pressure::Kill* kill, absl::string_view program) {
  std::string left;
  // Who runs on may still begin a trace there.
  if (!result.still_running.empty() || !spool.RemoveIfEmpty()) {
    const std::string finish =
        absl::StrCat("memtrace run --finish ", words::ShellWord(spool.path()));
    if (!result.failures.empty()) {
      left = absl::StrJoin(result.failures, "; ");
      if (!options.passing) {
        absl::StrAppend(&left, "; the trace is in ", spool.path(), ", to try again: ", finish);
      }
    } else if (!result.still_running.empty()) {
      const auto name = [](std::string* out, const auto& one) {
        absl::StrAppend(out, one.second.program, " (", one.first, ")");
      };
      left = absl::StrCat("still running: ", absl::StrJoin(result.still_running, ", ", name));
      absl::StrAppend(&left,
                      options.passing ? ": not looked at" : absl::StrCat("; when ended: ", finish));
    } else if (!options.passing) {
      left = absl::StrCat("files are left in ", spool.path());
    }
  } else if (!result.failures.empty()) {
    left = absl::StrJoin(result.failures, "; ");
  }
  if (!result.traces.empty()) {
    KillFacts facts;
    if (kill != nullptr) facts = {*kill, HeapThen(result, *kill)};
    const std::string line = ClosingLine(result, end, kill != nullptr ? &facts : nullptr);
    if (options.passing && !left.empty()) {
      Say(left);
    } else if (!options.quiet || !left.empty()) {
      Say(absl::StrCat(line, left.empty() ? "" : "; ", left));
    }
  } else if (!left.empty()) {
    Fail(left);
  }
  const bool any = !result.traces.empty() || !result.failures.empty() ||
                   !result.still_running.empty();
  if (!any) {
    Fail(absl::StrCat(program, " was not traced: it ran without libmemtrace.so or that could not "
                      "write in ", DirectoryOf(spool.path()),
                      "; LD_DEBUG=libs shows what was loaded"));
  }
  return any;
}

// The run record says whose the directory is: held for as long as somebody follows.
UniqueFd Lock(const SpoolDirectory& spool) {
  UniqueFd fd(open(spool.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.ok() && flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.Close();
  return fd;
}

int FinishLeftovers(const RunOptions& options) {
  if (!options.command.empty()) return Fail("--finish runs no program; leave " +
                                            options.command.front() + " out");
  const auto spool = SpoolDirectory::Open(options.finish);
  if (!spool.ok()) return Fail(spool.status().message());
  const auto record = spool->ReadRunRecord();
  if (!record.ok()) return Fail(record.status().message());
  const UniqueFd lock = Lock(*spool);
  if (!lock.ok()) {
    return Fail(absl::StrCat(spool->path(), " is in use by a memtrace run that has not ended"));
  }
  PrepareToFollow();
  SpoolFollowerOptions follow;
  follow.run = *record;
  follow.resume = true;
  follow.verbose = options.verbose;
  SpoolFollower follower(*spool, follow);
  const RunResult result = follower.Stop(nullptr);
  if (result.traces.empty() && result.failures.empty() && result.still_running.empty()) {
    if (!spool->RemoveIfEmpty()) return Fail(absl::StrCat("there is no trace in ", spool->path()));
    Say(absl::StrCat("nothing more was recorded; ", spool->path(), " is removed"));
    return 0;
  }
  Close(options, *spool, result, nullptr, nullptr, "");
  return result.failures.empty() && result.still_running.empty() ? 0 : kExitNotTraceable;
}

// What the name of the output may have in it, but for the pid: there is no process yet.
OutputFields FieldsOfRun(const std::string& name) {
  OutputFields fields;
  fields.program = std::string(Basename(name));
  fields.start_ns = NowNs(CLOCK_REALTIME);
  return fields;
}

// The file that `pattern` means as far as it is known before the program has a pid: its directory
// is the one of the output. An error where no output can be written there.
absl::StatusOr<std::string> PlaceOutput(const std::string& pattern, const OutputFields& fields) {
  const auto slash = pattern.rfind('/');
  const std::string directory = slash == pattern.npos ? "" : pattern.substr(0, slash);
  OutputFields some = fields;
  some.pid = 1;
  if (ExpandOutputName(directory + "/x", fields) != ExpandOutputName(directory + "/x", some)) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o ", pattern, ": %p can be in the name of the file, not of its directory"));
  }
  // A link stays one.
  const auto behind = BehindLinks(ExpandOutputName(pattern, fields));
  if (!behind.ok()) return behind.status();
  some.pid = 1 << 22;  // as long as they become
  for (const std::string& name : {*behind, ExpandOutputName(pattern, some)}) {
    const std::string problem = CheckOutput(name);
    if (!problem.empty()) return absl::InvalidArgumentError(problem);
  }
  return *behind;
}

void FillOutcome(const RunResult& result, bool traced, RunOutcome* outcome) {
  outcome->is_the_programs = traced;
  for (const FinishedTrace& trace : result.traces) outcome->traces.push_back(trace.path);
  for (const std::string& failure : result.failures) outcome->missing.push_back({"", failure});
  outcome->failed = !result.failures.empty();
  for (const auto& [pid, running] : result.still_running) {
    const auto& [program, was] = running;
    const std::string why =
        was.empty() ? ": it still runs, and no trace of its end is there"
                    : absl::StrCat(": it became ", program,
                                   " (exec), which still runs, and of which no trace is there");
    outcome->missing.push_back(
        {program, absl::StrCat(was.empty() ? program : was, " (", pid, ")", why), pid, was});
  }
}

}  // namespace

int RunSession(const RunOptions& options, RunOutcome* outcome) {
  if (outcome != nullptr) *outcome = {};
  if (!options.finish.empty()) return FinishLeftovers(options);
  const auto refuse = [outcome](absl::string_view why, int exit_status = kExitNotTraceable) {
    if (outcome != nullptr) outcome->missing.push_back({"", std::string(why)});
    return Fail(why, exit_status);
  };
  if (options.command.empty()) {
    return refuse("nothing to run: memtrace run -o FILE -- PROGRAM ARGUMENTS");
  }
  if (options.keep == "newest" && !HasRoomForTheNewest(options)) {
    return refuse(
        "--keep newest needs --max-bytes of 1M or more: the rings of the threads and the "
        "newest events have to fit");
  }
  const std::string& name = options.command.front();
  const FoundProgram program = FindProgram(name, getenv("PATH"));
  if (program.path.empty()) {
    const Refusal refusal = ExplainNotFound(name, program.error);
    return refuse(refusal.message, refusal.exit_status);
  }
  const auto library = FindPreloadLibrary(options.library);
  if (!library.ok()) return refuse(library.status().message());
  if (const auto refusal = CheckPreloaded(getenv("LD_PRELOAD"))) return refuse(refusal->message);
  if (const auto refusal = CheckTraceable(program.path, library->facts)) {
    return refuse(refusal->message, refusal->exit_status);
  }

  OutputFields fields = FieldsOfRun(name);
  const std::string pattern = options.output.empty() ? std::string(kDefaultOutput) : options.output;
  const auto place = PlaceOutput(pattern, fields);
  if (!place.ok()) return refuse(place.status().message());
  const std::string& near = *place;
  const auto spool = SpoolDirectory::Create(near);
  if (!spool.ok()) return refuse(spool.status().message());
  const UniqueFd lock = Lock(*spool);
  absl::Status recorded = spool->WriteRunRecord({near, 0});
  if (!recorded.ok()) {
    spool->RemoveIfEmpty();
    return refuse(recorded.message());
  }
  if (options.verbose) {
    Say(absl::StrCat("preloading ", library->path, " into ", program.path, ", spooling to ",
                     spool->path()));
  }

  int exec_error = 0;
  auto child = ChildProcess::Start(
      {program.path, options.command, Environment(options, library->path, spool->OutPattern())},
      &exec_error);
  if (!child.ok()) {
    spool->RemoveIfEmpty();
    const int status = exec_error == 0        ? kExitNotTraceable
                       : exec_error == ENOENT ? kExitNotFound
                                              : kExitNotExecutable;
    return refuse(child.status().message(), status);
  }
  if (outcome != nullptr) outcome->started = true;
  PrepareToFollow();
  fields.pid = static_cast<uint32_t>(child->pid());
  SpoolFollowerOptions follow;
  // The name stays as the user wrote it, in messages too; only the record needs an absolute path.
  const std::string named = ExpandOutputName(pattern, fields);
  follow.run = {BehindLinks(named).value_or(named), fields.pid};
  follow.keep_children = ChildrenAreFollowed(options);
  follow.verbose = options.verbose;
  spool->WriteRunRecord({absl::StrCat(DirectoryOf(spool->path()), "/", Basename(follow.run.output)),
                         fields.pid}).IgnoreError();
  Watcher watcher(options, fields.pid);
  follow.root_records = [&watcher](bool all) { return watcher.Records(all); };
  SpoolFollower follower(*spool, follow);
  follower.Start();
  const ProgramEnd end = child->WaitForEnd();
  watcher.Ended(end);
  const RunResult result = follower.Stop(&end);
  const bool traced = Close(options, *spool, result, &end, watcher.kill(), program.path);
  child->TakeSignalsAgain();
  if (outcome != nullptr) {
    FillOutcome(result, traced, outcome);
    if (end.signaled) outcome->end_signal = end.status;
  }
  return traced ? end.exit_status() : kExitNotTraceable;
}

}  // namespace memtrace::report
