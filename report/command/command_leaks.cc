#include "report/command/command_leaks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "format/memory_scan.h"
#include "format/trace_format.h"
#include "report/analysis/coverage.h"
#include "report/base/clock.h"
#include "report/base/page.h"
#include "report/base/unique_fd.h"
#include "report/cli/exit_status.h"
#include "report/cli/filter_options.h"
#include "report/command/command_report.h"
#include "report/command/leak_signal.h"
#include "report/command/process_status.h"
#include "report/command/running_trace.h"
#include "report/render/regex.h"
#include "report/run/trace_snapshot.h"
#include "report/trace/live_trace.h"

namespace memtrace::report {
namespace {

constexpr char kLeaksFooter[] = R"(
The process goes on while a copy of it looks through its memory. It answers at
its next allocation; started with MEMTRACE_LEAK_SIGNAL=N it answers at once.

Example:
  memtrace leaks 1234 --show-leak-kinds definite --increased)";

struct LeaksFlags : render::FilterFlags {
  int pid = 0;
  std::string kinds, output, top;
  bool only_new = false, increased = false, changed = false, full = false;
  double timeout_s = 60;
};

// The first page of a trace, shared with the process that writes it.
class StatusPage {
 public:
  static constexpr size_t kArea = sizeof(format::FileHeader) + sizeof(format::BlockHeader);

  explicit StatusPage(int fd)
      : page_(mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) {}
  ~StatusPage() {
    if (ok()) munmap(page_, kPageBytes);
  }
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  bool ok() const { return page_ != MAP_FAILED && area().magic == format::kStatusMagic; }
  format::StatusArea& area() const {
    return *reinterpret_cast<format::StatusArea*>(static_cast<char*>(page_) + kArea);
  }
  uint64_t Get(uint64_t& field) const { return std::atomic_ref(field).load(); }

 private:
  void* const page_;
};

void Pause() {
  const timespec pause = {0, 5'000'000};
  nanosleep(&pause, nullptr);
}

double Now() { return static_cast<double>(NowNs(CLOCK_MONOTONIC)) * 1e-9; }

format::ScanShow ShowOf(const LeaksFlags& flags) {
  return flags.only_new    ? format::ScanShow::kNew
         : flags.increased ? format::ScanShow::kIncreased
         : flags.changed   ? format::ScanShow::kChanged
                           : format::ScanShow::kAny;
}

std::string WhyNotAtOnce(int pid, const LeakSignal& signal) {
  if (std::string why = WhyItStands(pid); !why.empty()) return why;
  if (signal.number == 0) return "started with MEMTRACE_LEAK_SIGNAL=N it answers at once";
  if (!signal.has_handler) {
    return absl::StrCat("it has no handler any more for signal ", signal.number,
                        ", which MEMTRACE_LEAK_SIGNAL names");
  }
  if (!signal.sent) {
    return absl::StrCat("no thread takes signal ", signal.number,
                        ": each of them blocks it or waits for signals itself");
  }
  return absl::StrCat("the thread that got signal ", signal.number, " has not run since");
}

absl::Status DidNotAnswer(int pid, const RunningTrace& trace, const LeakSignal& signal) {
  const std::string silence = absl::StrCat("process ", pid, " did not answer: ");
  if (const std::string stands = WhyItStands(pid); !stands.empty()) {
    return absl::DeadlineExceededError(absl::StrCat(silence, stands, "; --timeout waits longer"));
  }
  const std::string why =
      HasAllocations(trace)
          ? "no allocation of it was recorded since it was asked, for it makes none now"
          : absl::StrCat("no allocation of it was recorded, for it made none or has a malloc of "
                         "its own, as memtrace info ",
                         trace.path, " tells");
  return absl::DeadlineExceededError(absl::StrCat(
      silence, why, "; --timeout waits longer, and ", WhyNotAtOnce(pid, signal)));
}

// An older library's area ends before it.
format::NoScans WhyNoScans(format::StatusArea& area) {
  constexpr size_t kTold = offsetof(format::StatusArea, no_scans) + sizeof(area.no_scans);
  if (area.bytes < kTold) return format::NoScans::kNone;
  return static_cast<format::NoScans>(std::atomic_ref(area.no_scans).load());
}

absl::Status MakesNoScans(int pid, const RunningTrace& trace, format::NoScans why) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no scan of process ", pid, " can be made any more: ",
      why == format::NoScans::kSeccompFilter
          ? "the program has installed a seccomp filter, which may not allow what a scan needs; "
            "memtrace_leak_check() of memtrace.h makes one before it does that, and without its "
            "filter it answers"
          : "it says so for a reason that this version does not know",
      "; memtrace report ", trace.path, " shows what it has not freed"));
}

absl::Status HasEnded(int pid) {
  return absl::NotFoundError(absl::StrCat("process ", pid,
                                          " ended before its scan was done; memtrace report of its "
                                          "trace says what it left behind"));
}

// The number of the scan, when it is over.
absl::StatusOr<uint32_t> Scan(const LeaksFlags& flags, const RunningTrace& trace) {
  const UniqueFd fd(open(trace.path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write ", trace.path, ": ", strerror(errno)));
  }
  const StatusPage page(fd.get());
  if (!page.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        trace.path,
        " has no place for a request: an older library wrote it; start the program with this one"));
  }
  format::StatusArea& area = page.area();
  if (const format::NoScans why = WhyNoScans(area); why != format::NoScans::kNone) {
    return MakesNoScans(flags.pid, trace, why);
  }
  uint64_t before = page.Get(area.scan_request);
  uint64_t request;
  do {
    request = ((before + 1) & 0xffffffff) | static_cast<uint64_t>(ShowOf(flags)) << 32;
  } while (!std::atomic_ref(area.scan_request).compare_exchange_strong(before, request));
  const LeakSignal signal = SendLeakSignal(flags.pid, area);
  const double began = Now();
  bool told = false;
  const auto alive = [&] { return kill(flags.pid, 0) == 0 || errno == EPERM; };
  uint64_t answer = 0;
  for (;; Pause()) {
    const bool lives = alive();  // before: what it answers last counts
    const format::NoScans no_scans = WhyNoScans(area);  // as well
    answer = page.Get(area.scan_answer);
    // Where somebody else asked meanwhile, one scan answers both.
    if (static_cast<int32_t>(static_cast<uint32_t>(answer) - static_cast<uint32_t>(request)) >= 0)
      break;
    if (!lives) return HasEnded(flags.pid);
    if (no_scans != format::NoScans::kNone) return MakesNoScans(flags.pid, trace, no_scans);
    const double waited = Now() - began;
    const uint32_t stopped = std::atomic_ref(area.stop_why).load();
    if (stopped != 0 && waited > 1) {
      return absl::FailedPreconditionError(absl::StrCat("process ", flags.pid,
                                                        " answers no more: its recording stopped ",
                                                        WhyRecordingStopped(stopped)));
    }
    if (!told && waited > 1) {
      told = true;
      fprintf(stderr,
              "memtrace: no allocation of process %d was recorded since; it answers at the next "
              "one; %s\n",
              flags.pid, WhyNotAtOnce(flags.pid, signal).c_str());
    }
    if (waited > flags.timeout_s) return DidNotAnswer(flags.pid, trace, signal);
  }
  const auto number = static_cast<uint32_t>(answer >> 32);
  for (double died = 0;; Pause()) {
    const bool lives = alive();
    if (page.Get(area.scan_finished) >= number) break;
    // It waits for its scans when it ends in order; of one that was killed the copy may
    // still come to its end.
    if (!lives && died == 0) died = Now();
    if (!lives && Now() - died > 2) return HasEnded(flags.pid);
    if (Now() - began > flags.timeout_s + 600) {
      return absl::DeadlineExceededError(absl::StrCat(
          "process ", flags.pid, " has been looking through its memory for ", flags.timeout_s + 600,
          " s and is not done; --timeout waits longer"));
    }
  }
  return number;
}

// By the command `report`, in this process: what it reads is open here, and need not have a name.
// Ctrl-C ends its reading, and not the report.
absl::StatusOr<int> Report(const LeaksFlags& flags, const std::string& trace,
                           const std::string& root, uint32_t scan) {
  std::vector<std::string> words = {"report", trace, "--tables=leaks",
                                    absl::StrCat("--scan=", scan), "--index=off"};
  if (!flags.kinds.empty()) words.push_back(absl::StrCat("--show-leak-kinds=", flags.kinds));
  if (!flags.output.empty()) words.push_back(absl::StrCat("--output=", flags.output));
  if (!flags.top.empty()) words.push_back(absl::StrCat("--top=", flags.top));
  if (flags.full) words.push_back("--full");
  for (const GivenFilter& filter : GivenFilters(flags)) {
    words.push_back(absl::StrCat(filter.option, "=", filter.value));
  }
  // It is not there any more when the process has ended.
  if (!root.empty() && access(root.c_str(), F_OK) == 0) {
    words.push_back(absl::StrCat("--sysroot=", root));
  }
  CLI::App app;
  int exit_code = 0;
  RegisterReportCommand(app, &exit_code);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return absl::InternalError(error.what());
  }
  return exit_code;
}

absl::Status CheckFilters(const LeaksFlags& flags) {
  for (const GivenFilter& filter : GivenFilters(flags)) {
    if (!filter.of_sites) continue;
    render::Regex regex(filter.option);
    if (const absl::Status status = regex.Compile(filter.value); !status.ok()) return status;
  }
  render::ReportFlags report{flags};
  report.leak_kinds = flags.kinds;
  return render::ParseReportFlags(report).status();
}

absl::StatusOr<int> Leaks(const LeaksFlags& flags) {
  const auto trace = FindRunningTrace(flags.pid);
  if (!trace.ok()) return trace.status();
  // A scan that is made in vain would be what the next one is compared with.
  const absl::Status filters = CheckFilters(flags);
  if (!filters.ok()) return filters;
  const auto scan = Scan(flags, *trace);
  if (!scan.ok()) return scan.status();
  auto snapshot = TakeSnapshot(trace->path);
  if (!snapshot.ok()) {
    // memtrace run packs what it left, under another name.
    return access(trace->path.c_str(), F_OK) == 0 ? snapshot.status() : HasEnded(flags.pid);
  }
  const LiveTrace live(trace->path, std::move(snapshot->source), snapshot->opened_ns,
                       std::move(snapshot->reading_is_over));
  return Report(flags, trace->path, trace->root, *scan);
}

}  // namespace

void RegisterLeaksCommand(CLI::App& app, int* exit_code) {
  CLI::App* leaks = app.add_subcommand("leaks", "Ask a running program for its leaks");
  auto flags = std::make_shared<LeaksFlags>();
  leaks->footer(kLeaksFooter);
  leaks->add_option("PID", flags->pid, "The process")
      ->required()
      ->type_name("")
      ->check([](const std::string& text) {
        int pid = 0;
        return absl::SimpleAtoi(text, &pid) && pid > 0
                   ? std::string()
                   : absl::StrCat("\"", text,
                                  "\" is no number of a process; memtrace report reads traces");
      }, "");
  leaks->add_option("-o,--output", flags->output,
                    "Where the report goes; standard output if not\ngiven")
      ->type_name("FILE");
  leaks->add_option("--show-leak-kinds", flags->kinds,
                    "Which leaks: definite, indirect, possible,\n"
                    "reachable, several with commas, or all, none;\n"
                    "definite,possible by default")
      ->type_name("KINDS");
  leaks->add_option("--top", flags->top, "Records to show; 10 by default")
      ->type_name("N")
      ->check([](const std::string& text) {
        uint64_t rows = 0;
        return absl::SimpleAtoi(text, &rows) && rows > 0 ? std::string()
                                                         : std::string("a number above 0");
      }, "");
  AddBlockFilters(leaks, flags.get());
  leaks->add_flag("--full", flags->full, "Every record, every frame, nothing shortened");
  auto* only_new =
      leaks->add_flag("--new", flags->only_new, "Only leaks that the scan before had not");
  auto* increased =
      leaks->add_flag("--increased", flags->increased, "Only leaks that have grown since");
  auto* changed =
      leaks->add_flag("--changed", flags->changed, "Only leaks that have changed since");
  only_new->excludes(increased)->excludes(changed);
  increased->excludes(changed);
  leaks->add_option("--timeout", flags->timeout_s, "How long to wait for an answer, 60 by default")
      ->type_name("SECONDS")
      ->check([](const std::string& text) {
        double seconds = 0;
        return absl::SimpleAtod(text, &seconds) && seconds > 0 && seconds < 1e9
                   ? std::string()
                   : std::string("a number of seconds above 0");
      }, "");
  leaks->callback([flags, exit_code] {
    const absl::StatusOr<int> result = Leaks(*flags);
    *exit_code = result.ok() ? *result : ExitCodeOf(result.status());
  });
}

}  // namespace memtrace::report
