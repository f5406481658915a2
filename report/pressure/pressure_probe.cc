#include "report/pressure/pressure_probe.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/base/proc_stat.h"
#include "report/pressure/cgroup_place.h"

namespace memtrace::report::pressure {
namespace {

// A tree with more would cost more than a lane is worth; its sum is then not known.
constexpr size_t kMostProcesses = 256;

std::optional<uint64_t> Sum(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  if (!a.has_value()) return b;
  return *a + b.value_or(0);
}

}  // namespace

PressureProbe::PressureProbe(KernelFiles files, uint32_t pid)
    : files_(std::move(files)), pid_(pid) {}

// Remembers, once, that `name` cannot be read, and what the lane is `without`.
std::optional<std::string> PressureProbe::ReadOf(const std::string& path, const char* name,
                                                 const char* without) {
  auto text = files_.Read(path);
  if (text.ok()) return *std::move(text);
  // A process that has just ended is no news.
  const bool of_process = path.rfind("/proc/" + std::to_string(pid_) + "/", 0) == 0;
  const bool ended = of_process && (text.status().message() == strerror(ESRCH) ||
                                    !files_.Exists(ProcPath(pid_, "stat")));
  if (!ended) {
    notes_.try_emplace(name, absl::StrCat(name, " cannot be read (", text.status().message(),
                                          "): ", without, "."));
  }
  return std::nullopt;
}

void PressureProbe::ReadCheap(PressureSample* sample) {
  ReadProcess(sample);
  ReadSystem(sample);
  ReadGroup(sample);
}

void PressureProbe::ReadProcess(PressureSample* sample) {
  if (const auto status = ReadOf(ProcPath(pid_, "status"), "/proc/PID/status",
                                 "no resident memory of the program")) {
    sample->Set(Column::kRssAnon, NumberAfter(*status, "RssAnon:"));
    sample->Set(Column::kRssFile, NumberAfter(*status, "RssFile:"));
    sample->Set(Column::kRssShmem, NumberAfter(*status, "RssShmem:"));
    sample->Set(Column::kSwap, NumberAfter(*status, "VmSwap:"));
    sample->Set(Column::kPeakRss, NumberAfter(*status, "VmHWM:"));
    sample->Set(Column::kPageTables, NumberAfter(*status, "VmPTE:"));
  }
  if (const auto stat = ReadOf(ProcPath(pid_, "stat"), "/proc/PID/stat",
                               "no faults of the program between its own samples")) {
    sample->Set(Column::kMinorFaults, OnlyNumber(ProcStatField(*stat, 10)));
    sample->Set(Column::kMajorFaults, OnlyNumber(ProcStatField(*stat, 12)));
  }
}

void PressureProbe::ReadSystem(PressureSample* sample) {
  if (const auto memory =
          ReadOf("/proc/meminfo", "/proc/meminfo", "no memory left of the system")) {
    sample->Set(Column::kAvailable, NumberAfter(*memory, "MemAvailable:"));
    sample->Set(Column::kSwapFree, NumberAfter(*memory, "SwapFree:"));
  }
  if (const auto vmstat = ReadOf("/proc/vmstat", "/proc/vmstat",
                                 "no reclaim, swapping, refaults of the system")) {
    sample->Set(Column::kMajorFaultsOfAll, NumberAfter(*vmstat, "pgmajfault"));
    sample->Set(Column::kSwapIn, NumberAfter(*vmstat, "pswpin"));
    sample->Set(Column::kSwapOut, NumberAfter(*vmstat, "pswpout"));
    sample->Set(Column::kRefaultAnon, NumberAfter(*vmstat, "workingset_refault_anon"));
    const auto refault_file = NumberAfter(*vmstat, "workingset_refault_file");
    // Before Linux 5.9 there was one count, of files alone.
    sample->Set(Column::kRefaultFile, refault_file.has_value()
                                          ? refault_file
                                          : NumberAfter(*vmstat, "workingset_refault"));
    sample->Set(Column::kScanKswapd, NumberAfter(*vmstat, "pgscan_kswapd"));
    sample->Set(Column::kScanDirect, NumberAfter(*vmstat, "pgscan_direct"));
    sample->Set(Column::kStealKswapd, NumberAfter(*vmstat, "pgsteal_kswapd"));
    sample->Set(Column::kStealDirect, NumberAfter(*vmstat, "pgsteal_direct"));
    sample->Set(Column::kOomKill, NumberAfter(*vmstat, "oom_kill"));
  }
  if (const auto stalls = ReadOf("/proc/pressure/memory", "/proc/pressure/memory",
                                 "no stalls of the system; the kernel may be told to count them "
                                 "by psi=1")) {
    sample->Set(Column::kStallSome, StallTotal(*stalls, "some"));
    sample->Set(Column::kStallFull, StallTotal(*stalls, "full"));
  }
}

void PressureProbe::ReadGroup(PressureSample* sample) {
  const auto groups = ReadCgroups(files_, pid_);
  // When the program has ended, its group is where it last was.
  if (groups.ok() && (*groups != groups_ || groups_.empty())) {
    auto found = MemoryCgroupIn(files_, *groups);
    groups_ = *groups;
    if (found.ok()) {
      cgroup_ = *std::move(found);
    } else {
      cgroup_.reset();
      notes_.try_emplace("cgroup", absl::StrCat("No figures of a control group: ",
                                                found.status().message(), "."));
    }
  }
  if (!cgroup_.has_value()) return;
  const CgroupFigures figures = ReadCgroup(files_, *cgroup_);
  sample->Set(Column::kCgroupCurrent, figures.current_bytes);
  sample->Set(Column::kCgroupLimit, figures.limit_bytes);
  sample->Set(Column::kCgroupSwap, figures.swap_bytes);
  sample->Set(Column::kCgroupHigh, figures.high);
  sample->Set(Column::kCgroupMax, figures.max);
  sample->Set(Column::kCgroupOom, figures.oom);
  sample->Set(Column::kCgroupOomKill, figures.oom_kill);
  sample->Set(Column::kCgroupStallSome, figures.stall_some_us);
  sample->Set(Column::kCgroupStallFull, figures.stall_full_us);
}

void PressureProbe::ReadCostly(PressureSample* sample) {
  if (const auto rollup = ReadOf(ProcPath(pid_, "smaps_rollup"), "/proc/PID/smaps_rollup",
                                 "no shares of shared pages")) {
    const auto number = [&](const char* name) { return NumberAfter(*rollup, name); };
    sample->Set(Column::kRollupRss, number("Rss:"));
    sample->Set(Column::kRollupPss, number("Pss:"));
    sample->Set(Column::kRollupPrivateClean, number("Private_Clean:"));
    sample->Set(Column::kRollupPrivateDirty, number("Private_Dirty:"));
    sample->Set(Column::kRollupShared, Sum(number("Shared_Clean:"), number("Shared_Dirty:")));
    sample->Set(Column::kRollupAnonymous, number("Anonymous:"));
    sample->Set(Column::kRollupHuge, number("AnonHugePages:"));
    sample->Set(Column::kRollupLazyFree, number("LazyFree:"));
    sample->Set(Column::kRollupSwapPss, number("SwapPss:"));
    sample->Set(Column::kRollupLocked, number("Locked:"));
  }
  if (cgroup_.has_value()) {
    if (const auto stat =
            ReadOf(cgroup_->directory + "/memory.stat", "memory.stat of the control group",
                   "no refaults of the control group")) {
      sample->Set(Column::kCgroupMajorFaults, NumberAfter(*stat, "pgmajfault"));
      sample->Set(Column::kCgroupRefaultAnon, NumberAfter(*stat, "workingset_refault_anon"));
      sample->Set(Column::kCgroupRefaultFile, NumberAfter(*stat, "workingset_refault_file"));
    }
  }
  ReadTree(sample);
}

// Children are listed by the thread that started them. A tree changes while it is read: who
// ends meanwhile is left out.
void PressureProbe::ReadTree(PressureSample* sample) {
  if (!files_.Exists(ProcPath(pid_, absl::StrCat("task/", pid_, "/children")))) return;
  const uint64_t page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<uint32_t> processes = {pid_};
  uint64_t rss_bytes = 0, found = 0, threads_seen = 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    const auto statm = files_.Read(ProcPath(processes[i], "statm"));
    if (!statm.ok()) continue;
    const std::vector<std::string> fields = absl::StrSplit(*statm, ' ');
    uint64_t pages = 0;
    if (fields.size() > 1 && absl::SimpleAtoi(fields[1], &pages)) {
      rss_bytes += pages * page_bytes;
      ++found;
    }
    for (const std::string& thread : files_.List(ProcPath(processes[i], "task"))) {
      if (++threads_seen > 4 * kMostProcesses) return;
      const auto children =
          files_.Read(ProcPath(processes[i], absl::StrCat("task/", thread, "/children")));
      if (!children.ok()) continue;
      for (const absl::string_view child : absl::StrSplit(*children, ' ', absl::SkipWhitespace())) {
        uint32_t pid = 0;
        if (absl::SimpleAtoi(child, &pid)) processes.push_back(pid);
        if (processes.size() > kMostProcesses) return;
      }
    }
  }
  if (found == 0) return;
  sample->Set(Column::kTreeProcesses, found);
  sample->Set(Column::kTreeRss, rss_bytes);
}

std::vector<std::string> PressureProbe::Notes() const {
  std::vector<std::string> notes;
  for (const auto& [name, note] : notes_) notes.push_back(note);
  return notes;
}

}  // namespace memtrace::report::pressure
