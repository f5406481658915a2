#include "report/stack_table.h"

#include <algorithm>

namespace memtrace::report {
namespace {

constexpr size_t kFirstBuckets = 1 << 12;

uint64_t HashOf(StackId parent, uint64_t pc, uint32_t instance) {
  uint64_t h = pc ^ (static_cast<uint64_t>(parent.value) << 32 | instance);
  h *= 0x9e3779b97f4a7c15;
  h ^= h >> 32;
  h += static_cast<uint64_t>(parent.value) * 0xd6e8feb86659fd93;
  h *= 0xff51afd7ed558ccd;
  return h ^ h >> 29;
}

}  // namespace

StackTable::StackTable() : nodes_(1), markers_(1), buckets_(kFirstBuckets) {
  markers_[0] = static_cast<uint8_t>(format::StackMarker::kNotCaptured);
}

StackId StackTable::Intern(StackId parent, uint64_t pc, uint32_t instance) {
  size_t mask = buckets_.size() - 1;
  size_t i = HashOf(parent, pc, instance) & mask;
  for (; buckets_[i] != 0; i = (i + 1) & mask) {
    const StackNode& node = nodes_[buckets_[i]];
    if (node.pc == pc && node.parent == parent && node.instance == instance) {
      return StackId{buckets_[i]};
    }
  }
  const StackId id{static_cast<uint32_t>(nodes_.size())};
  nodes_.push_back({pc, parent, instance});
  uint8_t marker = parent ? markers_[parent.value] : 0;
  if (instance == format::kNoModule) marker = static_cast<uint8_t>(std::min<uint64_t>(pc, 255));
  markers_.push_back(marker);
  buckets_[i] = id.value;
  if (nodes_.size() * 2 > buckets_.size()) Grow();
  return id;
}

void StackTable::Grow() {
  std::vector<uint32_t> larger(buckets_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (uint32_t id = 1; id < nodes_.size(); ++id) {
    const StackNode& node = nodes_[id];
    size_t i = HashOf(node.parent, node.pc, node.instance) & mask;
    while (larger[i] != 0) i = (i + 1) & mask;
    larger[i] = id;
  }
  buckets_ = std::move(larger);
}

const ModuleInfo* FindModule(std::span<const ModuleInfo> modules, const StackNode& node) {
  if (node.is_marker()) return nullptr;
  for (const ModuleInfo& module : modules) {
    if (node.instance == format::kPermanentInstance) {
      const bool permanent = (module.flags & format::kModulePermanent) != 0;
      // A return address may be the end of the last function of the module.
      if (permanent && node.pc > module.start && node.pc <= module.end) return &module;
    } else if (module.id.value == node.instance) {
      return &module;
    }
  }
  return nullptr;
}

void SlotMap::Set(uint32_t slot, StackId id) {
  const size_t index = slot >> kPageBits;
  if (index >= pages_.size()) pages_.resize(index + 1);
  auto& page = pages_[index];
  if (page == nullptr) page = std::make_unique<Page>();
  (*page)[slot & (kPageSlots - 1)] = id;
}

void SlotMap::Clear() {
  pages_.clear();
}

}  // namespace memtrace::report
