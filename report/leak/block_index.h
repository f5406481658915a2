// BlockIndex: the blocks that were live at an instant, by address, and which of them a
// word points into.
//
// As in memcheck a block of size 0 counts as one byte, and the address behind the last
// byte is no pointer to the block. Sizes are the requested ones; what malloc gave beyond that
// is of a block where the program has asked how much it is (malloc_usable_size).
//
// A word is looked up once for each time it stands in memory: a granule of 1 MiB leads to
// its blocks, and where these are many its pages do. Memory: 32 bytes a block (HeldBlock),
// and 1 KiB a granule with many blocks.

#ifndef MEMTRACE_REPORT_LEAK_BLOCK_INDEX_H_
#define MEMTRACE_REPORT_LEAK_BLOCK_INDEX_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/model/live_table.h"

namespace memtrace::report::leak {

inline constexpr uint32_t kNoBlock = UINT32_MAX;

class BlockIndex {
 public:
  BlockIndex() = default;
  // The blocks may come in any order, at most 2^32 - 2 of them. `usable`: with
  // all that malloc gave.
  explicit BlockIndex(std::vector<HeldBlock> blocks, bool usable = false);

  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()); }
  const HeldBlock& block(uint32_t i) const { return blocks_[i]; }
  uint64_t start(uint32_t i) const { return blocks_[i].address(); }
  uint64_t bytes(uint32_t i) const { return blocks_[i].size(); }

  // The block that `value` points into, or kNoBlock.
  uint32_t Find(uint64_t value) const {
    const uint32_t i = LastAtOrBefore(value);
    if (i == kNoBlock) return kNoBlock;
    return value - start(i) < std::max<uint64_t>(Reach(i), 1) ? i : kNoBlock;
  }

  // The block that the word at `address` is content of, or kNoBlock: it must lie in it
  // wholly.
  uint32_t Holder(uint64_t address) const {
    const uint32_t i = LastAtOrBefore(address);
    if (i == kNoBlock) return kNoBlock;
    const uint64_t offset = address - start(i);
    return offset < Reach(i) && Reach(i) - offset >= 8 ? i : kNoBlock;
  }

 private:
  static constexpr unsigned kGranuleBits = 20;
  static constexpr unsigned kPageBits = 12;
  static constexpr uint32_t kPages = 1u << (kGranuleBits - kPageBits);
  static constexpr uint32_t kManyBlocks = 64;

  struct Granule {
    uint32_t first = 0, end = 0;  // its blocks
    uint32_t pages = UINT32_MAX;  // where in pages_ its table begins; kPages + 1 entries
  };

  uint32_t LastAtOrBefore(uint64_t address) const;
  uint64_t Reach(uint32_t i) const { return bytes(i) + (usable_ ? blocks_[i].waste() : 0); }

  bool usable_ = false;
  std::vector<HeldBlock> blocks_;  // by address
  absl::flat_hash_map<uint64_t, Granule> granules_;
  std::vector<uint32_t> pages_;  // the first block at or behind the start of a page
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_BLOCK_INDEX_H_
