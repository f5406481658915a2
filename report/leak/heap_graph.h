// HeapGraph: who points to whom at the instant of a scan.
//
//   nodes   the live blocks (BlockIndex), by number in ascending order of their addresses
//   edges   words within a block that point into a block
//   roots   words elsewhere, registers and the program's own declarations that do
//
// A word belongs to the live block that holds it wholly, whatever region it is in. Outside
// of live blocks it is a root when its region is one, or when the program declared a root
// region there (memtrace.h).
//
// libc's own data holds addresses of chunk headers: of a header that lies in the last eight
// usable bytes of the block in front of it. Such a word, in libc's data, is no pointer to
// that block; nor is it in free memory of the heap, where that counts as roots. Of what glibc
// has left within a block only a chunk's links to itself are told from the program's pointers.
//
// Memory: 8 bytes an edge and 8 a block, 24 a root; 12 an edge while it is built.

#ifndef MEMTRACE_REPORT_LEAK_HEAP_GRAPH_H_
#define MEMTRACE_REPORT_LEAK_HEAP_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "report/leak/allocated_ranges.h"
#include "report/leak/block_index.h"
#include "report/leak/heuristics.h"
#include "report/leak/scan_reader.h"

namespace memtrace::report::leak {

struct HeapEdge {
  static constexpr uint64_t kMostWords = (uint64_t{1} << 29) - 1;

  HeapEdge() = default;
  HeapEdge(uint32_t to_block, Pointer pointer, uint64_t at_word)
      : to(to_block), how_(static_cast<uint8_t>(pointer) & 7),
        word(static_cast<uint32_t>(std::min(at_word, kMostWords)) & kMostWords) {}
  Pointer how() const { return static_cast<Pointer>(how_); }
  void set_how(Pointer pointer) { how_ = static_cast<uint8_t>(pointer) & 7; }

  uint32_t to = 0;
  uint32_t how_ : 3 = 0;
  uint32_t word : 29 = 0;  // of the block it is in; the highest stands for all behind it, too
};
static_assert(sizeof(HeapEdge) == 8);

struct RootEdge {
  // kRealloc: a block whose realloc was under way, and so was its pointer. kIgnored: the
  // program declared it no leak (memtrace.h), or had stopped the recording.
  // kSignalStack: the kernel has it, for a thread. kFreedUnseen: it may have been freed
  // by who frees past the library.
  enum class Kind : uint8_t { kWord, kRegister, kRealloc, kIgnored, kSignalStack, kFreedUnseen };
  uint32_t to = 0;
  Pointer how = Pointer::kStart;
  Kind kind = Kind::kWord;
  uint32_t source = 0;  // kWord: number of the region; kRegister, kSignalStack: index of the thread
  uint64_t place = 0;    // kWord: address of the word; kRegister: index of the register
};
static_assert(sizeof(RootEdge) == 24);

class HeapGraph {
 public:
  const BlockIndex& blocks() const { return blocks_; }
  uint32_t size() const { return blocks_.size(); }
  std::span<const HeapEdge> EdgesOf(uint32_t block) const {
    return {edges_.data() + first_[block], edges_.data() + first_[block + 1]};
  }
  // The offset in `block` of the word that `edge` comes from. Words lie at multiples of 8; blocks
  // of the program's own allocators need not.
  uint64_t OffsetOf(uint32_t block, const HeapEdge& edge) const {
    return uint64_t{edge.word} * 8 + (-blocks_.start(block) & 7);
  }
  std::span<const RootEdge> roots() const { return roots_; }
  size_t edge_count() const { return edges_.size(); }
  // Interior pointers are what `of(block that they point into)` says: a heuristic,
  // or kInterior as before.
  template <typename Of>
  void TakeInteriorPointers(Of of) {
    for (HeapEdge& edge : edges_) {
      if (edge.how() == Pointer::kInterior) edge.set_how(of(edge.to));
    }
    for (RootEdge& root : roots_) {
      if (root.how == Pointer::kInterior) root.how = of(root.to);
    }
  }

 private:
  friend class HeapGraphBuilder;
  BlockIndex blocks_;
  std::vector<uint64_t> first_;  // by block, into edges_; one more at the end
  std::vector<HeapEdge> edges_;
  std::vector<RootEdge> roots_;  // words in the order of the scan, then registers, then others
};

// What the graph depends on besides the blocks and the words.
struct GraphBasis {
  // Words of the heap outside of known blocks are roots as well, because there are blocks that
  // the trace does not know.
  bool all_roots = false;
  // But not words that these had: where they are, no such block can be. May be null.
  const AllocatedRanges* allocated = nullptr;
  bool is_glibc = true;  // the allocator whose heap it is
  // By HeldBlock::site: its blocks may have been freed; may be shorter.
  std::vector<bool> freed_unseen;
};

// Takes the words of a scan and makes the graph of them. The scan's regions, threads and
// hints must be known: it is read once for these, and again for the words.
class HeapGraphBuilder : public ScanVisitor {
 public:
  // The arguments must outlive the builder.
  HeapGraphBuilder(BlockIndex blocks, const Heuristics& heuristics, const Scan& scan,
                   GraphBasis basis);

  void Word(const ScanRegion& region, uint64_t address, uint64_t value) override;
  HeapGraph Finish();

 private:
  Pointer How(uint32_t to, uint64_t value) const;
  bool InHint(format::ScanHint kind, uint64_t address) const;
  void AddSignalStack(uint32_t of_thread);
  bool IsChunkHeader(uint32_t to, uint64_t value) const;
  // Whether `value` is the second of two links to itself that block `from` had when it was free;
  // the first is the latest edge.
  bool EndsLinkToItself(uint32_t from, uint64_t word, uint32_t to, uint64_t value);
  // The block that `value` is a pointer into, or kNoBlock.
  uint32_t BlockAt(uint64_t value) const;

  const Heuristics& heuristics_;
  const Scan& scan_;
  const GraphBasis basis_;
  // The stack pointer of the thread that asked for the scan: it was in a call, so
  // it uses nothing below.
  uint64_t caller_stack_pointer_ = 0;
  HeapGraph graph_;
  std::vector<uint32_t> from_;  // by edge
  uint32_t linked_to_itself_ = kNoBlock;  // the latest block whose word 2 may be such a link
  uint32_t region_ = 0;  // of the latest word
  bool region_is_libc_ = false;
  bool region_is_loader_ = false;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_HEAP_GRAPH_H_
