#include "preload/leak_scan/page_plan.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "format/memory_scan.h"
#include "preload/leak_scan/scan_words.h"
#include "preload/sys.h"

namespace memtrace {

using format::ScanRegionKind;

PagePlan::~PagePlan() {
  if (pagemap_ >= 0) sys::Close(pagemap_);
}

bool PagePlan::Prepare() {
  entries_ = arena_.Array<uint64_t>(kEntries);
  capacity_ = 16 << 10;
  plan_ = arena_.Array<uint8_t>(capacity_);
  pagemap_ = sys::Open("/proc/self/pagemap", O_RDONLY);
  return entries_ != nullptr && plan_ != nullptr;
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

// Which pages of a file's mapping can be read: a file may be shorter than its mapping.
void PagePlan::TestPages(uintptr_t begin, size_t pages, const ScanMapping& mapping) {
  iovec* const remote = tested_parts_;
  for (size_t done = 0; done < pages;) {
    size_t count = 0;
    size_t* const from = tested_pages_;
    for (; done < pages && count < kTested; ++done) {
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
      if (sys::Failed(read) && read != -14 /* EFAULT */) {
        // Not allowed here. Anonymous memory can be loaded.
        for (; first < count && !mapping.anonymous(); ++first) plan_[from[first]] = kUnreadable;
        break;
      }
      if (read > 0) first += static_cast<size_t>(read);
      if (first < count) plan_[from[first++]] = kUnreadable;
    }
  }
}

bool PagePlan::Make(const ScanMapping& mapping, uintptr_t begin, uintptr_t end) {
  begin = Down(begin, kPage);
  const size_t pages = (Up(end, kPage) - begin) / kPage;
  if (pages > capacity_) {
    plan_ = arena_.Array<uint8_t>(pages);
    capacity_ = plan_ != nullptr ? pages : 0;
    if (plan_ == nullptr) return false;
  }
  constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62,
                     kOfFile = uint64_t{1} << 61, kGuard = uint64_t{1} << 58;
  const bool only_written = mapping.kind == ScanRegionKind::kRelro ||
                            mapping.kind == ScanRegionKind::kModuleData ||
                            mapping.kind == ScanRegionKind::kFile;
  bool some_swapped = false;
  for (size_t done = 0; done < pages;) {
    const size_t count = pages - done < kEntries ? pages - done : kEntries;
    const uintptr_t at = begin + done * kPage;
    can_load_ = !mapping.shared && Pagemap(at, count);
    if (can_load_) {
      for (size_t i = 0; i < count; ++i) {
        const bool there =
            (entries_[i] & (kPresent | kSwapped)) != 0 && (entries_[i] & kGuard) == 0;
        some_swapped |= there && (entries_[i] & kPresent) == 0;
        plan_[done + i] =
            there && !(only_written && (entries_[i] & kOfFile) != 0) ? kRead : kAbsent;
      }
    } else {
      // In a copy the pages of shared mappings are not in its tables yet; the kernel tells
      // which of them it has in memory.
      auto* const resident = reinterpret_cast<uint8_t*>(entries_);
      const bool known = !sys::Failed(sys::Call(SYS_mincore, static_cast<long>(at),
                                                static_cast<long>(count * kPage),
                                                reinterpret_cast<long>(resident)));
      for (size_t i = 0; i < count; ++i) {
        plan_[done + i] = !known || (resident[i] & 1) != 0 ? kRead : kAbsent;
      }
    }
    done += count;
  }
  // What is the process's own can be loaded; but kernels before 6.14 tell of guard regions (madvise()) that
  // they are swapped.
  if (some_swapped || (!can_load_ && (mapping.file || mapping.shared))) TestPages(begin, pages, mapping);
  can_load_ = can_load_ || mapping.anonymous();
  return true;
}

}  // namespace memtrace
