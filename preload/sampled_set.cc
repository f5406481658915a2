#include "preload/sampled_set.h"

#include "preload/own_memory.h"

namespace memtrace {

constinit SampledSet g_sampled{};

void SampledSet::Begin() {
  for (std::atomic<uint8_t>& each : filter_) each.store(kNone, std::memory_order_relaxed);
}

void SampledSet::Watch(const void* begin, const void* end) {
  for (auto at = static_cast<const char*>(begin); at < end; at += 64) {
    filter_[FilterIndex(at)].store(0, std::memory_order_relaxed);
  }
  if (begin != end)
    filter_[FilterIndex(static_cast<const char*>(end) - 1)].store(0, std::memory_order_relaxed);
}

void SampledSet::Count(const void* block) {
  std::atomic<uint8_t>& each = filter_[FilterIndex(block)];
  uint8_t now = each.load(std::memory_order_relaxed);
  while (now != 0 && !each.compare_exchange_weak(now, static_cast<uint8_t>(now - 1),
                                                 std::memory_order_relaxed)) {
  }
}

void SampledSet::Discount(const void* block) {
  std::atomic<uint8_t>& each = filter_[FilterIndex(block)];
  uint8_t now = each.load(std::memory_order_relaxed);
  while (now != 0 && !each.compare_exchange_weak(now, static_cast<uint8_t>(now + 1),
                                                 std::memory_order_relaxed)) {
  }
}

SampledSet::Group* SampledSet::MapLevel(size_t level) {
  const size_t bytes = Groups(level) * sizeof(Group);
  void* memory = OwnMap(bytes, /*touch=*/false);
  if (memory == nullptr) return nullptr;
  Group* existing = nullptr;
  if (levels_[level].compare_exchange_strong(existing, static_cast<Group*>(memory),
                                             std::memory_order_acq_rel)) {
    return static_cast<Group*>(memory);
  }
  OwnUnmap(memory, bytes);  // another thread was first
  return existing;
}

bool SampledSet::Insert(const void* block) {
  for (size_t level = 0; level < kLevels; ++level) {
    Group* groups = Level(level);
    if (groups == nullptr && (groups = MapLevel(level)) == nullptr) return false;
    for (std::atomic<uintptr_t>& slot : GroupOf(groups, level, block).blocks) {
      uintptr_t empty = 0;
      if (slot.load(std::memory_order_relaxed) == 0 &&
          slot.compare_exchange_strong(empty, reinterpret_cast<uintptr_t>(block),
                                       std::memory_order_relaxed)) {
        Count(block);
        return true;
      }
    }
  }
  return false;
}

bool SampledSet::Remove(const void* block) {
  if (block == nullptr) return false;  // which is what an empty slot holds
  for (size_t level = 0; level < kLevels; ++level) {
    Group* groups = Level(level);
    if (groups == nullptr) return false;
    for (std::atomic<uintptr_t>& slot : GroupOf(groups, level, block).blocks) {
      if (slot.load(std::memory_order_relaxed) != reinterpret_cast<uintptr_t>(block)) continue;
      slot.store(0, std::memory_order_relaxed);
      Discount(block);
      return true;
    }
  }
  return false;
}

}  // namespace memtrace
