#include "preload/leak_scan/page_plan.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "format/memory_scan.h"
#include "preload/leak_scan/scan_words.h"
#include "preload/own_proc.h"
#include "preload/sys.h"

namespace memtrace {

using format::ScanRegionKind;

namespace {

// <linux/fs.h> has them since 6.7, kScanGuard since 6.16.
struct PagemapScan {
  uint64_t size = sizeof(PagemapScan), flags, start, end, walk_end, vec, vec_len, max_pages,
           category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct PageRegion {
  uint64_t begin, end, categories;
};
constexpr long kPagemapScan = 0xc0606610;  // _IOWR('f', 16, PagemapScan)
// Of an entry of /proc/self/pagemap.
constexpr uint64_t kEntryPresent = uint64_t{1} << 63, kEntrySwapped = uint64_t{1} << 62,
                   kEntryOfFile = uint64_t{1} << 61, kEntryGuard = uint64_t{1} << 58;
constexpr uint64_t kScanFile = 1 << 2, kScanPresent = 1 << 3, kScanSwapped = 1 << 4,
                   kScanGuard = 1 << 8;
static_assert(sizeof(PagemapScan) == 0x60);

}  // namespace

PagePlan::~PagePlan() {
  if (pagemap_ >= 0) sys::Close(pagemap_);
}

bool PagePlan::Prepare() {
  entries_ = arena_.Array<uint64_t>(kEntries);
  pagemap_ = OpenOwnPagemap();
  can_scan_ = pagemap_ >= 0;
  guard_category_ = kScanGuard;
  return entries_ != nullptr && MakeRoom(16 << 10);
}

bool PagePlan::MakeRoom(size_t pages) {
  if (pages <= capacity_) return true;
  pages = std::max(pages, 2 * capacity_);
  plan_ = arena_.Array<uint8_t>(pages);
  chunks_ = arena_.Array<uint8_t>(pages / kChunk + 1);
  capacity_ = plan_ != nullptr && chunks_ != nullptr ? pages : 0;
  return capacity_ != 0;
}

// Of pages of which some are in chunks that have had none so far.
void PagePlan::Set(size_t first, size_t pages, State state) {
  for (size_t chunk = first / kChunk; chunk * kChunk < first + pages; ++chunk) {
    if (chunks_[chunk] != 0) continue;
    chunks_[chunk] = 1;
    memset(plan_ + chunk * kChunk, kAbsent, std::min(kChunk, capacity_ - chunk * kChunk));
  }
  memset(plan_ + first, state, pages);
}

// Reads `pages` entries; false: there is no pagemap for us.
bool PagePlan::Pagemap(uintptr_t begin, size_t pages) {
  if (pagemap_ < 0) return false;
  size_t done = 0;
  while (done < pages) {
    const long bytes = sys::Pread(pagemap_, entries_ + done, (pages - done) * kWord,
                                  begin / kPage * kWord + done * kWord);
    if (bytes <= 0) return false;
    done += static_cast<size_t>(bytes) / kWord;
  }
  return true;
}

// A page that is not in memory may be a guard region, which kernels before 6.14 tell so.
bool PagePlan::IsThere(uintptr_t address) const {
  uint64_t entry = 0;
  return pagemap_ >= 0 &&
         sys::Pread(pagemap_, &entry, sizeof(entry), address / kPage * kWord) == sizeof(entry) &&
         (entry & kEntryPresent) != 0 && (entry & kEntryGuard) == 0;
}

// Linux 6.7: one call that passes over what is not there, without which a reservation of 256
// GiB takes half a second.
bool PagePlan::PlanByScan(bool only_written, uintptr_t begin, size_t pages, bool* some_swapped) {
  if (!can_scan_) return false;
  memset(chunks_, 0, pages / kChunk + 1);
  auto* const regions = reinterpret_cast<PageRegion*>(entries_);
  PagemapScan scan = {};
  scan.start = begin;
  scan.end = begin + pages * kPage;
  scan.vec = reinterpret_cast<uint64_t>(regions);
  scan.vec_len = kEntries * sizeof(*entries_) / sizeof(PageRegion);
  while (scan.start < scan.end) {
    scan.category_anyof_mask = kScanPresent | kScanSwapped | guard_category_;
    scan.return_mask = scan.category_anyof_mask | kScanFile;
    const long found = sys::Call(SYS_ioctl, pagemap_, kPagemapScan, reinterpret_cast<long>(&scan));
    if (found == -EINVAL && guard_category_ != 0) {
      guard_category_ = 0;
      continue;
    }
    if (sys::Failed(found) || scan.walk_end <= scan.start) return can_scan_ = false;
    for (long i = 0; i < found; ++i) {
      const PageRegion& region = regions[i];
      if (only_written && (region.categories & kScanFile) != 0) continue;
      const bool guard = (region.categories & kScanGuard) != 0;
      may_have_guards_ |= guard;
      *some_swapped |= !guard && (region.categories & kScanPresent) == 0;
      Set((region.begin - begin) / kPage, (region.end - region.begin) / kPage,
          guard ? kGuard : kRead);
    }
    scan.start = scan.walk_end;
  }
  return true;
}

// Which pages of a file's mapping can be read: a file may be shorter than its mapping.
void PagePlan::TestPages(uintptr_t begin, size_t pages, const ScanMapping& mapping) {
  iovec* const remote = tested_parts_;
  for (size_t done = 0; done < pages;) {
    size_t count = 0;
    size_t* const from = tested_pages_;
    for (; done < pages && count < kTested; ++done) {
      done = SkipAbsent(done, pages);
      if (done == pages) break;
      if (plan_[done] != kRead) continue;
      from[count] = done;
      remote[count++] = {reinterpret_cast<void*>(begin + done * kPage), 1};
    }
    for (size_t first = 0; first < count;) {
      iovec local = {tested_bytes_, count - first};
      const long read = sys::Call(SYS_process_vm_readv, sys::Getpid(),
                                  reinterpret_cast<long>(&local), 1,
                                  reinterpret_cast<long>(remote + first),
                                  static_cast<long>(count - first), 0);
      if (sys::Failed(read) && read != -EFAULT) {
        // Not allowed here. Anonymous memory can be loaded.
        for (; first < count && !mapping.anonymous(); ++first) plan_[from[first]] = kUnreadable;
        break;
      }
      if (read > 0) first += static_cast<size_t>(read);
      if (first < count) plan_[from[first++]] = kUnreadable;
    }
  }
}

// False: there is no pagemap for us.
bool PagePlan::PlanPrivate(const ScanMapping& mapping, uintptr_t begin, size_t pages,
                           bool* some_swapped) {
  const bool only_written = mapping.kind == ScanRegionKind::kRelro ||
                            mapping.kind == ScanRegionKind::kModuleData ||
                            mapping.kind == ScanRegionKind::kFile;
  if (PlanByScan(only_written, begin, pages, some_swapped)) return true;
  *some_swapped = false;
  memset(chunks_, 1, pages / kChunk + 1);
  for (size_t done = 0; done < pages;) {
    const size_t count = pages - done < kEntries ? pages - done : kEntries;
    if (!Pagemap(begin + done * kPage, count)) return false;
    for (size_t i = 0; i < count; ++i) {
      const bool guard = (entries_[i] & kEntryGuard) != 0;
      const bool there = (entries_[i] & (kEntryPresent | kEntrySwapped)) != 0 && !guard;
      may_have_guards_ |= guard;
      *some_swapped |= there && (entries_[i] & kEntryPresent) == 0;
      plan_[done + i] = guard                                                           ? kGuard
                        : there && !(only_written && (entries_[i] & kEntryOfFile) != 0) ? kRead
                                                                                        : kAbsent;
    }
    done += count;
  }
  return true;
}

PagePlan::Result PagePlan::Make(const ScanMapping& mapping, uintptr_t begin, uintptr_t end) {
  begin = Down(begin, kPage);
  const size_t pages = (Up(end, kPage) - begin) / kPage;
  if (!MakeRoom(pages)) return kNoMemory;
  bool some_swapped = false;
  may_have_guards_ = false;
  can_load_ = !mapping.shared && PlanPrivate(mapping, begin, pages, &some_swapped);
  if (!can_load_) {
    memset(chunks_, 1, pages / kChunk + 1);
    if (!shared_.Find(mapping, begin, pages, plan_)) return kTooLarge;
    for (size_t i = 0; i < pages; ++i) {
      const State otherwise = plan_[i] == SharedPages::kMayNotRead ? kUnreadable : kAbsent;
      plan_[i] = (plan_[i] & 1) != 0 ? kRead : otherwise;
    }
  }
  if (!in_copy_ && mapping.file) can_load_ = false;
  // Pages that are the process's own can be loaded; but kernels before 6.14 tell of guard regions
  // (madvise()) that they are swapped.
  may_have_guards_ |= some_swapped;
  if (some_swapped || (!can_load_ && (mapping.file || mapping.shared)))
    TestPages(begin, pages, mapping);
  can_load_ = can_load_ || mapping.anonymous();
  return kMade;
}

}  // namespace memtrace
