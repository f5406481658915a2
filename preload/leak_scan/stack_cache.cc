#include "preload/leak_scan/stack_cache.h"

#include <algorithm>

#include "preload/leak_scan/scan_words.h"

namespace memtrace {
namespace {

// A node, and the head of a list, is the address of the next and of the one before.
constexpr uintptr_t kNodeBytes = 2 * kWord;
constexpr size_t kMostKept = 1 << 20;

uintptr_t NextOf(uintptr_t node) { return Load(node); }
uintptr_t BeforeOf(uintptr_t node) { return Load(node + kWord); }

}  // namespace

bool StackCache::IsReadable(uintptr_t node, const PagePlan& pages) const {
  if (node % kWord != 0 || node >= kAddresses) return false;
  const auto has = [node](const ScanMapping& mapping) {
    return node >= mapping.begin && node < mapping.end && mapping.end - node >= kNodeBytes;
  };
  if (has(*data_)) return true;
  const ScanMapping* const mapping = mappings_.Find(node);
  return mapping != nullptr && mapping->part == ScanMapping::Part::kRead && mapping->anonymous() &&
         has(*mapping) && pages.IsThere(node) && pages.IsThere(node + kNodeBytes - 1);
}

bool StackCache::IsList(uintptr_t head, const PagePlan& pages) const {
  if (head < data_->begin || head > data_->end - kNodeBytes) return false;
  const uintptr_t next = NextOf(head), last = BeforeOf(head);
  return IsReadable(next, pages) && IsReadable(last, pages) && BeforeOf(next) == head &&
         NextOf(last) == head;
}

// A descriptor begins with its own address, and has it again behind a word.
bool StackCache::IsOfDescriptor(uintptr_t node, const PagePlan& pages) const {
  const uintptr_t descriptor = node - list_offset_;
  return IsReadable(descriptor, pages) && IsReadable(descriptor + 2 * kWord, pages) &&
         Load(descriptor) == descriptor && Load(descriptor + 2 * kWord) == descriptor;
}

// Three and no more, and what is in them are descriptors.
bool StackCache::AreLists(uintptr_t first, const PagePlan& pages) const {
  bool some = false;
  for (int i = 0; i < 3; ++i) {
    const uintptr_t head = first + i * kNodeBytes;
    if (!IsList(head, pages)) return false;
    if (NextOf(head) == head) continue;
    if (!IsOfDescriptor(NextOf(head), pages)) return false;
    some = true;
  }
  return some && !IsList(first - kNodeBytes, pages) && !IsList(first + 3 * kNodeBytes, pages);
}

void StackCache::ReadKept(uintptr_t head, const PagePlan& pages) {
  uintptr_t before = head;
  for (uintptr_t node = NextOf(head); node != head && kept_.size() < kMostKept;) {
    if (!IsReadable(node, pages) || BeforeOf(node) != before) break;
    if (!kept_.Add(node - list_offset_)) break;
    before = node;
    node = NextOf(node);
  }
  if (kept_.size() != 0) std::sort(&kept_[0], &kept_[0] + kept_.size());
}

bool StackCache::Find(const ScanMapping& data, uintptr_t tid_offset, const PagePlan& pages) {
  if (found_ || tid_offset < kNodeBytes || data.end - data.begin < 3 * kNodeBytes) return found_;
  data_ = &data;
  list_offset_ = tid_offset - kNodeBytes;
  for (uintptr_t at = Up(data.begin, kWord); at <= data.end - 3 * kNodeBytes; at += kWord) {
    if (!AreLists(at, pages)) continue;
    found_ = true;
    ReadKept(at + 2 * kNodeBytes, pages);
    break;
  }
  return found_;
}

bool StackCache::HasDoneWith(uintptr_t descriptor, const PagePlan& pages) const {
  if (!found_) return false;
  if (kept_.size() != 0 && std::binary_search(&kept_[0], &kept_[0] + kept_.size(), descriptor)) {
    return true;
  }
  const uintptr_t node = descriptor + list_offset_;
  if (!IsReadable(node, pages)) return false;
  const uintptr_t next = NextOf(node), before = BeforeOf(node);
  return IsReadable(next, pages) && IsReadable(before, pages) && BeforeOf(next) != node &&
         NextOf(before) != node;
}

}  // namespace memtrace
