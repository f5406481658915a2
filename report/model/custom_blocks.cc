#include "report/model/custom_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace memtrace::report {
namespace {

// memcheck's rule: a block without bytes has one.
uint64_t EndOf(const HeldBlock& block) {
  return block.address() + std::max<uint64_t>(block.size(), 1);
}

}  // namespace

HeldBlock* CustomBlocks::FindMallocBlock(uint64_t address, LiveTable* table) {
  for (auto at = addresses_.upper_bound(address); at != addresses_.begin();) {
    --at;
    HeldBlock* block = table->Find(*at);
    if (block != nullptr) return address < EndOf(*block) ? block : nullptr;
    at = addresses_.erase(at);
  }
  return nullptr;
}

CustomBlocks::Blocks::iterator CustomBlocks::FindHolder(uint64_t address, uint64_t size) {
  auto at = blocks_.upper_bound(Key{address, UINT64_MAX});
  if (at == blocks_.begin()) return blocks_.end();
  --at;
  while (at != blocks_.end()) {
    if (address + std::max<uint64_t>(size, 1) <= EndOf(at->second.held)) return at;
    if (at->second.holder.number == 0) break;
    at = blocks_.find(at->second.holder);
  }
  return blocks_.end();
}

CustomBlocks::Key CustomBlocks::CountedHolder(const Block& block) const {
  Key key = block.holder;
  while (key.number != 0) {
    const auto at = blocks_.find(key);
    if (at == blocks_.end()) return {};
    if (!at->second.held.has(HeldBlock::kUncounted)) break;
    key = at->second.holder;
  }
  return key;
}

CustomBlocks::Blocks::iterator CustomBlocks::Find(uint64_t address, uint64_t pool_address) {
  auto at = blocks_.upper_bound(Key{address, UINT64_MAX});
  while (at != blocks_.begin()) {
    --at;
    if (at->first.address != address) break;
    if (at->second.pool_address == pool_address) return at;
  }
  return blocks_.end();
}

CustomBlocks::Blocks::iterator CustomBlocks::Insert(const Block& block) {
  const Key key{block.held.address(), next_number_++};
  if (block.pool_address != 0) by_address_[block.pool_address].blocks.insert(key);
  return blocks_.emplace(key, block).first;
}

void CustomBlocks::Erase(Blocks::iterator block) {
  if (block->second.pool_address != 0) {
    const auto pool = by_address_.find(block->second.pool_address);
    if (pool != by_address_.end()) pool->second.blocks.erase(block->first);
  }
  blocks_.erase(block);
}

std::vector<CustomBlocks::Key> CustomBlocks::BlocksIn(uint64_t begin, uint64_t end,
                                                      uint64_t kept_end) const {
  std::vector<Key> keys;
  uint64_t last = 0;  // where the one of these ends that reaches farthest
  for (auto at = blocks_.lower_bound(Key{begin, 0}); at != blocks_.end(); ++at) {
    if (at->first.address >= end) break;
    const uint64_t block_end = EndOf(at->second.held);
    if (block_end > end || (block_end <= kept_end && block_end > last)) continue;
    keys.push_back(at->first);
    last = std::max(last, block_end);
  }
  std::reverse(keys.begin(), keys.end());
  return keys;
}

std::vector<CustomBlocks::Key> CustomBlocks::WithBlocksIn(Blocks::const_iterator block) const {
  std::vector<Key> keys = BlocksIn(block->first.address, EndOf(block->second.held));
  // Older ones at its address are not in it; they are the last.
  while (keys.back() < block->first) keys.pop_back();
  return keys;
}

std::vector<CustomBlocks::Key> CustomBlocks::WithBlocksOf(uint64_t pool_address) const {
  const auto pool = by_address_.find(pool_address);
  if (pool == by_address_.end()) return {};
  absl::btree_set<Key> keys;
  for (const Key& key : pool->second.blocks) {
    const auto block = blocks_.find(key);
    if (block == blocks_.end() || keys.contains(key)) continue;  // came with one that it lies in
    for (const Key& inner : WithBlocksIn(block)) keys.insert(inner);
  }
  return {keys.rbegin(), keys.rend()};
}

uint32_t CustomBlocks::PoolAt(uint64_t address) {
  const auto at = by_address_.find(address);
  if (at != by_address_.end()) return at->second.pool;
  // Pools of which nothing is known are no more alike than others.
  CreatePool(address, absl::StrCat("pool at 0x", absl::Hex(address)), StackId{}, 0);
  const uint32_t pool = by_address_[address].pool;
  --pools_[pool].created;  // of its creation nothing is known
  return pool;
}

void CustomBlocks::CreatePool(uint64_t address, std::string_view name, StackId stack,
                              uint64_t time_ns) {
  const auto [known, added] = by_name_and_stack_.try_emplace(
      std::pair(std::string(name), stack.value), static_cast<uint32_t>(pools_.size()));
  if (added) {
    pools_.emplace_back();
    pools_.back().name = std::string(name);
    pools_.back().stack = stack;
    pools_.back().first_created_ns = time_ns;
  }
  ++pools_[known->second].created;
  by_address_[address].pool = known->second;
}

bool CustomBlocks::ForgetPool(uint64_t address) {
  const auto at = by_address_.find(address);
  if (at == by_address_.end()) return false;
  ++pools_[at->second.pool].destroyed;
  by_address_.erase(at);
  return true;
}

}  // namespace memtrace::report
