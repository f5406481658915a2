// TraceReserve: a part of the trace file that is mapped before it is needed, so that blocks
// can be written when the file can no longer be opened: after chroot, without the rights
// the process had, inside a seccomp sandbox.
//
//   file     ....written....|begin            reserve                      end|
//   memory                  |PROT_NONE|chunk being filled|PROT_NONE, no pages |
//
// The file is extended without blocks, and the mapping is address space and no memory. The
// pages of a block are made accessible and populated when it is written. Populating
// (MADV_POPULATE_WRITE, Linux 5.14) fails where touching a page would be SIGBUS, as on a
// full disk. An older kernel gets a smaller reserve, whose space is allocated beforehand.
// A chunk whose every byte was written gives its pages back, and is closed again unless it has a
// ring in it, which is still in use. It stays ours: in a hole the kernel would put mappings of the
// program, which LetFork() and Contains() would take for the reserve.
//
// PROT_NONE also keeps mlockall() of the program from populating all of it.
//
// Threads: Write() and Ring() on any thread, for space that the caller alone was given. No
// lock. Only memory calls, but in Map().

#ifndef MEMTRACE_PRELOAD_TRACE_RESERVE_H_
#define MEMTRACE_PRELOAD_TRACE_RESERVE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/trace_format.h"

namespace memtrace {

class TraceReserve {
 public:
  // A thousand million events. Sparse, so neither disk nor memory until it is used.
  static constexpr uint64_t kBytes = uint64_t{16} << 30;
  static constexpr uint64_t kAllocatedBytes = uint64_t{64} << 20;  // where it must be allocated
  static constexpr uint64_t kPopulatedBytes = uint64_t{16} << 20;  // where it is mapped by then
  static constexpr uint64_t kSmallestBytes = uint64_t{1} << 20;
  static constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
  // Kept for the records that say how it ended.
  static constexpr uint64_t kLastWordsBytes = 256 << 10;

  static constexpr long kElsewhere = 1;  // not in the reserve

  // Extends the file and maps it from `begin`, at most up to `limit`. 0, or -errno.
  long Map(long fd, uint64_t begin, uint64_t limit);

  bool mapped() const { return end_.load(std::memory_order_acquire) != 0; }
  bool Contains(const void* address) const {
    return mapped() && address >= base_ && address < base_ + (map_end_ - map_begin_);
  }
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_.load(std::memory_order_acquire); }

  // Whether a block of `bytes` at `offset` is in it. `last_words`: it may use the last bytes of the
  // reserve.
  bool HasRoom(uint64_t offset, uint64_t bytes, bool last_words) const;
  // 0, kElsewhere, or -errno: the block is lost, -ENOSPC if for want of space on the disk.
  long Write(uint64_t offset, const format::BlockHeader& header, const void* payload,
             bool last_words);
  // A block whose payload ends in a ring, which begins at the offset `ring` of the file. Null:
  // `*why` is kElsewhere or -errno.
  void* Ring(uint64_t offset, const format::BlockHeader& header, uint64_t ring, long* why);

  // There will be no MADV_POPULATE_WRITE: what Map() will map has its space, and of what is mapped
  // a small part behind `from` gets it now. False: it cannot be had.
  bool MustNotPopulate(uint64_t from);

  // Gives address space back, but for `bytes` behind `from`. For RLIMIT_AS.
  void Shrink(uint64_t from, uint64_t bytes);

  // Whether a fork child, of which the next one is made, has it mapped. Usually none has.
  void LetFork(bool yes);

  // To be called in a fork child, where it is not mapped; and before the first use.
  void Forget();

 private:
  class Use;

  enum class Tried { kMapped, kTooMuch, kCannotPopulate, kRefused };
  Tried TryMap(long fd, uint64_t bytes, char** base, long* error);
  long Populate(uint64_t offset, uint64_t bytes);
  void Put(uint64_t offset, const format::BlockHeader& header, const void* payload, size_t bytes);
  void Done(uint64_t offset, uint64_t bytes, bool ring);

  char* At(uint64_t offset) const { return base_ + (offset - map_begin_); }

  // The word of a chunk has the number of its bytes that are written, and this bit if there
  // is a ring among them.
  static constexpr uint32_t kHasRing = uint32_t{1} << 31;

  char* base_ = nullptr;
  uint64_t map_begin_ = 0;  // page of begin_
  uint64_t map_end_ = 0;
  uint64_t begin_ = 0;
  bool allocated_ = false;
  bool may_populate_ = true;
  std::atomic<uint32_t>* chunks_ = nullptr;
  size_t chunks_bytes_ = 0;
  std::atomic<uint64_t> end_{0};    // 0: there is none
  std::atomic<uint32_t> users_{0};  // writing now
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_RESERVE_H_
