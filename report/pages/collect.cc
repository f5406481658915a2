#include "report/pages/collect.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "report/base/clock.h"
#include "report/base/proc_stat.h"
#include "report/pages/page_counts.h"
#include "report/pages/regions.h"
#include "report/pressure/kernel_files.h"

namespace memtrace::report::pages {
namespace {

constexpr uint64_t kHugeBytes = 2 << 20;

using pressure::ProcPath;

std::string ReadText(uint32_t pid, const char* file) {
  const auto text = pressure::KernelFiles().Read(ProcPath(pid, file));
  return text.ok() ? *text : "";
}

// The path that the link leads to; for a file that is gone, without the kernel's " (deleted)".
std::string LinkOf(uint32_t pid, const char* link) {
  char buffer[PATH_MAX];
  const ssize_t n = readlink(ProcPath(pid, link).c_str(), buffer, sizeof(buffer));
  if (n <= 0) return "";
  const absl::string_view path(buffer, static_cast<size_t>(n));
  return std::string(absl::StripSuffix(path, " (deleted)"));
}

class Collector {
 public:
  explicit Collector(const CollectOptions& options)
      : options_(options), counts_(options.ask_counts ? PageCounts::Open() : PageCounts()) {
    snapshot_.page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    snapshot_.realtime_ns = static_cast<int64_t>(NowNs(CLOCK_REALTIME));
  }

  absl::StatusOr<PagesSnapshot> Run();

 private:
  // False: a kernel thread.
  absl::StatusOr<bool> One(uint32_t pid, ProcessPages* process);
  void ReadPages(ProcessPages* process);
  void AskCounts();

  const CollectOptions& options_;
  const PageCounts counts_;
  PagesSnapshot snapshot_;
  bool frames_seen_ = false;
};

absl::StatusOr<bool> Collector::One(uint32_t pid, ProcessPages* process) {
  process->pid = pid;
  process->name = std::string(absl::StripSuffix(ReadText(pid, "comm"), "\n"));
  process->command = absl::StrReplaceAll(absl::StripSuffix(ReadText(pid, "cmdline"),
                                                           absl::string_view("\0", 1)),
                                         {{absl::string_view("\0", 1), " "}});
  process->executable = LinkOf(pid, "exe");
  std::vector<Mapping> mappings;
  absl::Status read = ReadMaps(ProcPath(pid, "smaps"), &mappings);
  if (!read.ok()) return read;
  if (mappings.empty()) {
    // A kernel thread has no memory of its own, and what has ended has no more.
    const std::string stat = ReadText(pid, "stat");
    if (stat.empty()) return absl::NotFoundError("it has ended");
    if (IsZombieStat(stat)) return absl::NotFoundError("it has ended (a zombie)");
    return false;
  }
  process->mappings = Classify(std::move(mappings), process->executable);
  ReadPages(process);
  return true;
}

void Collector::ReadPages(ProcessPages* process) {
  const auto table =
      PageTable::Open(ProcPath(process->pid, "pagemap"), snapshot_.page_bytes, options_.scan);
  if (!table.ok()) {
    process->problem = absl::StrCat("its pages are not known: ", table.status().message());
    return;
  }
  for (MappedRegion& region : process->mappings) {
    const Mapping& m = region.mapping;
    const uint64_t expected = (m.rss + m.swap + m.hugetlb) / snapshot_.page_bytes;
    const auto whole =
        table->Read(m.start, m.end, expected, [&](uint64_t address, PageEntry entry) {
          Page page;
          page.address = address;
          page.frame = entry.frame();
          page.bits = static_cast<uint8_t>(
              (entry.present() ? Page::kPresent : 0) | (entry.swapped() ? Page::kSwapped : 0) |
              (entry.of_file() ? Page::kOfFile : 0) | (entry.exclusive() ? Page::kExclusive : 0));
          frames_seen_ |= page.frame != 0;
          region.pages.push_back(page);
        });
    if (!whole.ok()) {
      process->problem = absl::IsNotFound(whole.status())
                             ? "it ended while it was read"
                             : absl::StrCat("its pages are not known: ", whole.status().message());
      return;
    }
    region.pages_known = *whole;
    if (!*whole) process->problem = "of a large mapping only a part of the pages was looked at";
    if (m.hugetlb != 0) {
      for (Page& page : region.pages) page.bits |= Page::kHuge;
    }
    MarkHuge(&region, snapshot_.page_bytes);
  }
}

void Collector::AskCounts() {
  if (!options_.ask_counts) {
    snapshot_.not_counted_because = "not asked for";
  } else if (!counts_.usable()) {
    snapshot_.not_counted_because = counts_.why_not();
  } else if (!frames_seen_) {
    snapshot_.not_counted_because = "pagemap hides the frame numbers";
  } else {
    snapshot_.counted = true;
  }
  if (!snapshot_.counted) return;
  std::vector<uint64_t> frames;
  for (const ProcessPages& process : snapshot_.processes) {
    for (const MappedRegion& region : process.mappings) {
      for (const Page& page : region.pages) {
        if (page.frame != 0) frames.push_back(page.frame);
      }
    }
  }
  absl::flat_hash_map<uint64_t, FrameFacts> facts;
  counts_.Look(frames, &facts);
  for (ProcessPages& process : snapshot_.processes) {
    for (MappedRegion& region : process.mappings) {
      for (Page& page : region.pages) {
        const auto known = facts.find(page.frame);
        if (page.frame == 0 || known == facts.end()) continue;
        page.mapped = static_cast<uint32_t>(std::min<uint64_t>(known->second.mapped, UINT32_MAX));
        page.bits |= Page::kCounted;
        if (known->second.zero()) page.bits |= Page::kZero;
      }
    }
  }
}

absl::StatusOr<PagesSnapshot> Collector::Run() {
  const std::vector<uint32_t> pids =
      options_.pids.empty() ? pressure::KernelFiles().Pids() : options_.pids;
  for (const uint32_t pid : pids) {
    ProcessPages process;
    const auto read = One(pid, &process);
    if (!read.ok() && !options_.pids.empty() && options_.pids.size() == 1) {
      if (absl::IsNotFound(read.status())) {
        return absl::NotFoundError(absl::StrCat("there is no process ", pid, ", or it has ended"));
      }
      return absl::Status(
          read.status().code(),
          absl::StrCat("process ", pid, " cannot be read (", read.status().message(),
                       "): it is another user's, or it may not be looked into; run "
                       "memtrace pages as root"));
    }
    if (!read.ok()) {
      snapshot_.skipped.push_back({pid, process.name, std::string(read.status().message())});
    } else if (!*read) {
      ++snapshot_.kernel_threads;
    } else {
      snapshot_.processes.push_back(std::move(process));
    }
  }
  if (snapshot_.processes.empty()) {
    if (snapshot_.kernel_threads != 0 && !options_.pids.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("process ", options_.pids[0], " is a kernel thread: it has no user pages"));
    }
    return absl::NotFoundError(absl::StrCat(
        "no process could be read",
        snapshot_.skipped.empty() ? "" : absl::StrCat(": ", snapshot_.skipped[0].why)));
  }
  AskCounts();
  return std::move(snapshot_);
}

}  // namespace

void MarkHuge(MappedRegion* region, uint64_t page_bytes) {
  const Mapping& m = region->mapping;
  if (m.huge == 0) return;
  std::vector<Page>& pages = region->pages;
  const size_t pages_each = kHugeBytes / page_bytes;
  std::vector<size_t> whole;  // where one may begin
  for (size_t i = 0; i + pages_each <= pages.size();) {
    const bool begins = pages[i].address % kHugeBytes == 0 && pages[i].is(Page::kPresent);
    const Page& last = pages[i + pages_each - 1];
    const bool in_one_piece =
        last.address == pages[i].address + kHugeBytes - page_bytes && last.is(Page::kPresent) &&
        (pages[i].frame == 0 || (pages[i].frame % pages_each == 0 &&
                                 last.frame == pages[i].frame + pages_each - 1));
    if (begins && in_one_piece) {
      whole.push_back(i);
      i += pages_each;
    } else {
      ++i;
    }
  }
  // Without frames, small pages that fill such a place look the same: then nothing is said.
  if (whole.size() * kHugeBytes != m.huge) return;
  for (const size_t first : whole) {
    for (size_t i = first; i < first + pages_each; ++i) pages[i].bits |= Page::kHuge;
  }
}

absl::StatusOr<PagesSnapshot> Collect(const CollectOptions& options) {
  return Collector(options).Run();
}

}  // namespace memtrace::report::pages
