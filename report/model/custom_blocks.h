// CustomBlocks: blocks that the program's own allocators gave out (memtrace.h), and what
// they lie in.
//
// Blocks nest: a block of a pool in a block of malloc, one of another allocator in that. The
// innermost that counts has the bytes; the site and the thread of the next one further out that
// does keep what it did not give out. A block cannot outlive the memory it lies in: when a holder
// ends, so do those in it.
//
// What HeapModel counts, this only places: it knows the tree, not the figures.
//
// The holder of a new block is found by the block in front of it: that one, or one that holds that
// one, for a block that begins further left and reaches over it holds it too. For the blocks of
// malloc an ordered set of addresses is kept beside LiveTable from the first custom block on; it
// may name blocks that have ended, which are taken out when met.

#ifndef MEMTRACE_REPORT_MODEL_CUSTOM_BLOCKS_H_
#define MEMTRACE_REPORT_MODEL_CUSTOM_BLOCKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "report/base/strong_id.h"
#include "report/model/live_table.h"

namespace memtrace::report {

class CustomBlocks {
 public:
  // Numbers count up: of two blocks at one address the holder has the smaller one.
  struct Key {
    uint64_t address = 0;
    uint64_t number = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Block {
    HeldBlock held;
    uint64_t pool_address = 0;   // 0: of no pool
    uint32_t pool = 0;           // index in pools() plus 1, 0 of none
    // The key of the block that it lies in: a custom block, or a block of malloc
    // (number 0), or none.
    Key holder;
    // Of its bytes, taken off the site and the thread of its counted holder. These are kept: at the
    // holder's address there may be another block meanwhile.
    uint64_t taken_bytes = 0;
    uint32_t taken_site = 0, taken_thread = 0;
  };
  using Blocks = absl::btree_map<Key, Block>;

  struct Pool {
    std::string name;
    StackId stack;
    uint64_t created = 0, destroyed = 0, first_created_ns = 0;
    uint64_t allocations = 0, frees = 0, bytes_allocated = 0;
    uint64_t live_bytes = 0, live_blocks = 0, peak_bytes = 0;
  };

  // To be called, from the first custom block on, with every live block of malloc, and
  // then with every new one.
  void AddMallocBlock(uint64_t address) { addresses_.insert(address); }

  // The block of malloc that has this address in it; null: none.
  HeldBlock* FindMallocBlock(uint64_t address, LiveTable* table);
  // The innermost custom block with all of [address, address + size) in it; end(): none.
  Blocks::iterator FindHolder(uint64_t address, uint64_t size);
  // Of what `block` lies in, from the innermost on, the first custom block that counts; else the
  // block of malloc, counted or not, or no key.
  Key CountedHolder(const Block& block) const;
  // The live block of this pool at this address; end(): none.
  Blocks::iterator Find(uint64_t address, uint64_t pool_address);

  Blocks::iterator Insert(const Block& block);
  void Erase(Blocks::iterator block);
  // The blocks that begin and end in [begin, end), without those in [begin, kept_end) that lie in
  // no other of these; one that lies in another comes before that one.
  std::vector<Key> BlocksIn(uint64_t begin, uint64_t end, uint64_t kept_end = 0) const;
  // A block, or the blocks of a pool, with all that end with them; in the same order.
  std::vector<Key> WithBlocksIn(Blocks::const_iterator block) const;
  std::vector<Key> WithBlocksOf(uint64_t pool_address) const;

  // Index in pools() of what is at `address`; made, and named after that, when it is not known: its
  // creation is not in the trace, as in a fork child that of its parent's pools.
  uint32_t PoolAt(uint64_t address);
  // Pools of one name made at one place are counted as one.
  void CreatePool(uint64_t address, std::string_view name, StackId stack, uint64_t time_ns);
  // False: it is not known.
  bool ForgetPool(uint64_t address);

  Blocks& blocks() { return blocks_; }
  const Blocks& blocks() const { return blocks_; }
  std::vector<Pool>& pools() { return pools_; }
  const std::vector<Pool>& pools() const { return pools_; }

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);
  // Zeroes the figures but keeps the live blocks, which then count for nothing, and how many pools
  // were created and destroyed. See HeapModel::ForgetFigures().
  void ForgetFigures();

 private:
  struct PoolInstance {
    uint32_t pool = 0;
    absl::btree_set<Key> blocks;
  };

  Blocks blocks_;
  uint64_t next_number_ = 1;
  absl::btree_set<uint64_t> addresses_;
  std::vector<Pool> pools_;
  absl::flat_hash_map<uint64_t, PoolInstance> by_address_;
  absl::flat_hash_map<std::pair<std::string, uint32_t>, uint32_t> by_name_and_stack_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_CUSTOM_BLOCKS_H_
