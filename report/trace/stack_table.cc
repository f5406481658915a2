#include "report/trace/stack_table.h"

#include <algorithm>
#include <bit>
#include <random>

namespace memtrace::report {
namespace {

constexpr size_t kFirstBuckets = 1 << 12;

// The hash of a stack whose innermost node this is; `outer` is the hash of its parent.
uint64_t HashOf(uint64_t outer, uint64_t pc, uint32_t instance, uint64_t secret) {
  uint64_t h = pc ^ uint64_t { instance } << 48 ^ secret;
  h *= 0x9e3779b97f4a7c15;
  h ^= h >> 32;
  h += outer * (0xd6e8feb86659fd93 ^ secret << 1);
  h *= 0xff51afd7ed558ccd;
  return h ^ h >> 29;
}

}  // namespace

StackTable::StackTable() : nodes_(1), markers_(1), depths_(1), hashes_(1), buckets_(kFirstBuckets) {
  markers_[0] = static_cast<uint8_t>(format::StackMarker::kNotCaptured);
}

std::unique_ptr<StackTable> StackTable::FromNodes(std::vector<StackNode> nodes) {
  auto table = std::make_unique<StackTable>();
  table->markers_.resize(nodes.size());
  table->depths_.resize(nodes.size());
  for (size_t id = 1; id < nodes.size(); ++id) {
    const StackNode& node = nodes[id];
    const uint32_t parent = node.parent.value;
    if (parent >= id || table->depths_[parent] > kMaxDepth) return nullptr;
    table->depths_[id] = static_cast<uint16_t>(table->depths_[parent] + 1);
    table->markers_[id] = node.is_marker() ? static_cast<uint8_t>(std::min<uint64_t>(node.pc, 255))
                                           : (node.parent ? table->markers_[parent] : uint8_t{0});
  }
  table->nodes_ = std::move(nodes);
  return table;
}

// Where the node is, or the empty bucket that it belongs into.
size_t StackTable::BucketOf(uint64_t hash, StackId parent, uint64_t pc, uint32_t instance) const {
  const size_t mask = buckets_.size() - 1;
  size_t i = hash & mask;
  for (; buckets_[i] != 0; i = (i + 1) & mask) {
    const StackNode& node = nodes_[buckets_[i]];
    if (node.pc == pc && node.parent == parent && node.instance == instance) break;
  }
  return i;
}

void StackTable::Prefetch(StackId parent, std::span<const uint64_t> nodes) const {
  constexpr size_t kAtOnce = 32;
  const size_t mask = buckets_.size() - 1;
  const uint32_t* buckets[kAtOnce];
  uint64_t hash = hashes_[parent.value];
  const size_t count = std::min(nodes.size(), kAtOnce);
  for (size_t i = 0; i < count; ++i) {
    hash = HashOf(hash, format::NodePc(nodes[i]), format::NodeInstance(nodes[i]), secret_);
    buckets[i] = &buckets_[hash & mask];
    __builtin_prefetch(buckets[i]);
  }
  for (size_t i = 0; i < count; ++i) __builtin_prefetch(&nodes_[*buckets[i]]);
}

StackId StackTable::Intern(StackId parent, uint64_t pc, uint32_t instance) {
  if (depths_[parent.value] >= kMaxDepth) [[unlikely]] {
    parent = Intern({}, static_cast<uint64_t>(format::StackMarker::kTruncated), format::kNoModule);
  }
  const uint64_t hash = HashOf(hashes_[parent.value], pc, instance, secret_);
  const size_t bucket = BucketOf(hash, parent, pc, instance);
  if (buckets_[bucket] != 0) return StackId{buckets_[bucket]};

  const StackId id{static_cast<uint32_t>(nodes_.size())};
  nodes_.push_back({pc, parent, instance});
  uint8_t marker = parent ? markers_[parent.value] : 0;
  if (instance == format::kNoModule) marker = static_cast<uint8_t>(std::min<uint64_t>(pc, 255));
  markers_.push_back(marker);
  depths_.push_back(static_cast<uint16_t>(depths_[parent.value] + 1));
  hashes_.push_back(hash);
  buckets_[bucket] = id.value;
  if (nodes_.size() * 2 > buckets_.size()) {
    Rehash(buckets_.size() * 2);
  } else {
    const size_t probes = (bucket - hash) & (buckets_.size() - 1);
    if (probes > kMaxProbes && secret_ == 0) [[unlikely]] {
      secret_ = std::random_device()() | uint64_t{std::random_device()()} << 32 | 1;
      Rehash(buckets_.size());
    }
  }
  return id;
}

void StackTable::Rehash(size_t buckets) {
  buckets_.assign(buckets, 0);
  const size_t mask = buckets - 1;
  for (uint32_t id = 1; id < nodes_.size(); ++id) {  // parents before their children
    const StackNode& node = nodes_[id];
    hashes_[id] = HashOf(hashes_[node.parent.value], node.pc, node.instance, secret_);
    size_t i = hashes_[id] & mask;
    while (buckets_[i] != 0) i = (i + 1) & mask;
    buckets_[i] = id;
  }
}

ModuleIndex::ModuleIndex(std::span<const ModuleInfo> modules) {
  for (const ModuleInfo& module : modules) {
    by_id_[module.id.value] = &module;
    if (module.flags & format::kModulePermanent) permanent_.push_back(&module);
  }
  std::stable_sort(permanent_.begin(), permanent_.end(),
                   [](const ModuleInfo* a, const ModuleInfo* b) { return a->start < b->start; });
}

const ModuleInfo* ModuleIndex::Find(uint32_t instance, uint64_t pc) const {
  if (instance == format::kNoModule) return nullptr;
  if (instance != format::kPermanentInstance) return Instance(instance);
  // A return address may be the end of the last function of the module.
  const auto next = std::lower_bound(
      permanent_.begin(), permanent_.end(), pc,
      [](const ModuleInfo* module, uint64_t address) { return module->start < address; });
  if (next == permanent_.begin()) return nullptr;
  const ModuleInfo* module = *(next - 1);
  return pc <= module->end ? module : nullptr;
}

const ModuleInfo* ModuleIndex::Instance(uint32_t instance) const {
  const auto module = by_id_.find(instance);
  return module == by_id_.end() ? nullptr : module->second;
}

void SlotMap::Set(uint32_t slot, StackId id) {
  if (sets_ != UINT32_MAX) ++sets_;
  if (slot >= low_.size() && slot / 4 < sets_) GrowLow(slot);
  if (slot < low_.size()) {
    low_[slot] = id;
    return;
  }
  const size_t index = slot >> 2 * kBits;
  if (index >= pages_.size()) pages_.resize(index + 1);
  if (pages_[index] == nullptr) pages_[index] = std::make_unique<Pages>();
  std::unique_ptr<Page>& page = (*pages_[index])[slot >> kBits & kMask];
  if (page == nullptr) page = std::make_unique<Page>();
  (*page)[slot & kMask] = id;
}

void SlotMap::GrowLow(uint32_t slot) {
  const size_t size = std::max<size_t>(std::bit_ceil(slot + 1u), 16);
  std::vector<StackId> low(size);
  for (uint32_t i = 0; i < size && (i < low_.size() || !pages_.empty()); ++i) low[i] = Get(i);
  low_ = std::move(low);
}

void SlotMap::Forget(uint32_t first, uint32_t last) {
  const auto in_low = static_cast<uint32_t>(std::min<size_t>(last + 1, low_.size()));
  if (first < in_low) std::fill(low_.begin() + first, low_.begin() + in_low, StackId{});
  for (uint32_t slot = std::max(first, in_low); slot <= last;) {
    const size_t index = slot >> 2 * kBits;
    Page* const page = index < pages_.size() && pages_[index] != nullptr
                           ? (*pages_[index])[slot >> kBits & kMask].get()
                           : nullptr;
    const uint32_t end = std::min(last, slot | kMask) + 1;
    if (page != nullptr)
      std::fill(&(*page)[slot & kMask], &(*page)[(end - 1) & kMask] + 1, StackId{});
    slot = end;
  }
}

void SlotMap::Clear() {
  *this = {};  // and gives the memory back
}

}  // namespace memtrace::report
