#include "report/leak/heap_graph.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "report/base/path.h"

namespace memtrace::report::leak {
namespace {

constexpr uint64_t kWord = 8;
constexpr uint64_t kLoaderAlignment = 128;  // cache_line_size_estimate of elf/dl-find_object.c
constexpr uint64_t kRedZoneBytes = 128;  // of x86-64's ABI

// The data of glibc's libc, which also has its allocator's.
bool IsLibcData(const ScanRegion& region) {
  if (region.kind != format::ScanRegionKind::kModuleData) return false;
  const absl::string_view name = FileNameOf(region.path);
  return absl::StartsWith(name, "libc.so") || absl::StartsWith(name, "libc-2");
}

bool IsLoaderData(const ScanRegion& region) {
  return (region.kind == format::ScanRegionKind::kModuleData ||
          region.kind == format::ScanRegionKind::kRelro) &&
         absl::StartsWith(FileNameOf(region.path), "ld-linux");
}

}  // namespace

HeapGraphBuilder::HeapGraphBuilder(BlockIndex blocks, const Heuristics& heuristics,
                                   const Scan& scan, GraphBasis basis)
    : heuristics_(heuristics), scan_(scan), basis_(std::move(basis)) {
  graph_.blocks_ = std::move(blocks);
  for (const ScanThread& thread : scan.threads) {
    if (thread.state == format::ScanThreadState::kAsking) {
      caller_stack_pointer_ = thread.stack_pointer;
    }
  }
}

Pointer HeapGraphBuilder::How(uint32_t to, uint64_t value) const {
  const uint64_t start = graph_.blocks_.start(to);
  if (value == start) return Pointer::kStart;
  return heuristics_.Of(value, start, graph_.blocks_.bytes(to));
}

bool HeapGraphBuilder::InHint(format::ScanHint kind, uint64_t address) const {
  for (const ScanHintRange& hint : scan_.hints) {
    if (hint.kind == kind && address >= hint.start && address < hint.end) return true;
  }
  return false;
}

bool HeapGraphBuilder::IsChunkHeader(uint32_t to, uint64_t value) const {
  const HeldBlock& block = graph_.blocks_.block(to);
  uint64_t usable = block.size() + block.waste();
  if (block.waste() == 0) {  // or not known: then what glibc gives for such a size
    usable = std::max<uint64_t>(24, ((block.size() + 8 + 15) & ~uint64_t{15}) - 8);
  }
  return value == block.address() + usable - kWord;
}

// Behind what was asked for a header's address is more likely than the program's.
uint32_t HeapGraphBuilder::BlockAt(uint64_t value) const {
  const uint32_t to = graph_.blocks_.Find(value);
  if (to == kNoBlock) return to;
  const bool is_behind =
      value - graph_.blocks_.start(to) >= std::max<uint64_t>(graph_.blocks_.bytes(to), 1);
  return is_behind && IsChunkHeader(to, value) ? kNoBlock : to;
}

// glibc leaves a free chunk that is the only large one of its size linked to itself, by words 2 and
// 3 (fd_nextsize, bk_nextsize), and who gets it next may write neither. One header's address alone
// is no sign of glibc: objects may be linked by their last words.
bool HeapGraphBuilder::EndsLinkToItself(uint32_t from, uint64_t word, uint32_t to, uint64_t value) {
  constexpr uint64_t kFirst = 2, kSecond = 3;
  if (word != kFirst && word != kSecond) return false;
  if (!basis_.is_glibc || value != graph_.blocks_.start(from) - 2 * kWord ||
      !IsChunkHeader(to, value) || How(to, value) != Pointer::kInterior) {
    return false;
  }
  if (word == kFirst) linked_to_itself_ = from;
  return word == kSecond && linked_to_itself_ == from && !from_.empty() && from_.back() == from &&
         graph_.edges_.back().word == kFirst;
}

void HeapGraphBuilder::Word(const ScanRegion& region, uint64_t address, uint64_t value) {
  if (address % kWord != 0) return;
  const uint32_t to = BlockAt(value);
  if (to == kNoBlock) return;
  if (region.number != region_) {
    region_ = region.number;
    region_is_libc_ = IsLibcData(region);
    region_is_loader_ = IsLoaderData(region);
  }
  bool is_beside_blocks = false;  // a root because of basis_.all_roots
  const uint32_t from = graph_.blocks_.Holder(address);
  if (from != kNoBlock) {
    const uint64_t word = (address - graph_.blocks_.start(from)) / kWord;
    const bool is_root = !scan_.hints.empty() && InHint(format::ScanHint::kRootRegion, address);
    if (!is_root && EndsLinkToItself(from, word, to, value)) {
      graph_.edges_.pop_back();
      from_.pop_back();
      return;
    }
    graph_.edges_.emplace_back(to, How(to, value), word);
    from_.push_back(from);
    if (!is_root) return;
  } else if (region.kind == format::ScanRegionKind::kStack && address < caller_stack_pointer_ &&
             caller_stack_pointer_ - address <= kRedZoneBytes) {
    return;
  } else if (region.use != format::ScanRegionUse::kRoot &&
             !InHint(format::ScanHint::kRootRegion, address) &&
             !InHint(format::ScanHint::kProgramBreak, address)) {
    is_beside_blocks = basis_.all_roots && region.use == format::ScanRegionUse::kTerritory &&
                       (basis_.allocated == nullptr || !basis_.allocated->HasWord(address));
    if (!is_beside_blocks) return;
  }
  if ((region_is_libc_ || (is_beside_blocks && basis_.is_glibc)) &&
      value != graph_.blocks_.start(to) && IsChunkHeader(to, value)) {
    return;
  }
  Pointer how = How(to, value);
  // The loader puts tables of its own at the first such address in a block, and keeps them as long
  // as the process lives (_dlfo_mappings_segment_allocate).
  if (region_is_loader_ && how == Pointer::kInterior &&
      value - graph_.blocks_.start(to) < kLoaderAlignment && value % kLoaderAlignment == 0) {
    how = Pointer::kStart;
  }
  graph_.roots_.push_back({to, how, RootEdge::Kind::kWord, region.number, address});
}

// The thread will run there, wherever in a block that is. But the stack may have been freed, and be
// other blocks now.
void HeapGraphBuilder::AddSignalStack(uint32_t of_thread) {
  const ScanThread& thread = scan_.threads[of_thread];
  const uint64_t begin = thread.signal_stack_begin, end = thread.signal_stack_end;
  const uint32_t to = graph_.blocks_.Find(begin);
  if (begin >= end || to == kNoBlock) return;
  const HeldBlock& block = graph_.blocks_.block(to);
  if (end - block.address() > block.size() + block.waste()) return;
  graph_.roots_.push_back({to, Pointer::kStart, RootEdge::Kind::kSignalStack, of_thread, begin});
}

HeapGraph HeapGraphBuilder::Finish() {
  for (size_t i = 0; i < scan_.threads.size(); ++i) {
    const ScanThread& thread = scan_.threads[i];
    for (size_t j = 0; j < thread.registers.size(); ++j) {
      const uint64_t value = thread.registers[j];
      const uint32_t to = BlockAt(value);
      if (to == kNoBlock) continue;
      graph_.roots_.push_back({to, How(to, value), RootEdge::Kind::kRegister,
                               static_cast<uint32_t>(i), j});
    }
    AddSignalStack(static_cast<uint32_t>(i));
  }
  for (const ScanHintRange& hint : scan_.hints) {
    const uint32_t to = graph_.blocks_.Find(hint.start);
    if (hint.kind != format::ScanHint::kIgnored || to == kNoBlock) continue;
    graph_.roots_.push_back({to, Pointer::kStart, RootEdge::Kind::kIgnored, 0, hint.start});
  }
  const uint32_t n = graph_.size();
  for (uint32_t i = 0; i < n; ++i) {
    const HeldBlock& block = graph_.blocks_.block(i);
    if (block.has(HeldBlock::kLimbo)) {
      graph_.roots_.push_back({i, Pointer::kStart, RootEdge::Kind::kRealloc, 0, block.address()});
    }
    if (block.has(HeldBlock::kIgnored) || block.has(HeldBlock::kStopped)) {
      graph_.roots_.push_back({i, Pointer::kStart, RootEdge::Kind::kIgnored, 0, block.address()});
    }
    // This interior pointer makes the block possibly lost if it would be lost otherwise.
    if (block.site < basis_.freed_unseen.size() && basis_.freed_unseen[block.site]) {
      graph_.roots_.push_back(
          {i, Pointer::kInterior, RootEdge::Kind::kFreedUnseen, 0, block.address()});
    }
  }

  // Edges by the block they are in. Regions come in the order of their addresses, so they
  // mostly are.
  graph_.first_.assign(size_t{n} + 1, 0);
  bool sorted = true;
  for (size_t i = 0; i < from_.size(); ++i) {
    ++graph_.first_[from_[i] + 1];
    sorted &= i == 0 || from_[i - 1] <= from_[i];
  }
  for (uint32_t i = 0; i < n; ++i) graph_.first_[i + 1] += graph_.first_[i];
  if (!sorted) {
    std::vector<uint64_t> next(graph_.first_.begin(), graph_.first_.end() - 1);
    std::vector<HeapEdge> edges(graph_.edges_.size());
    for (size_t i = 0; i < from_.size(); ++i) edges[next[from_[i]]++] = graph_.edges_[i];
    graph_.edges_ = std::move(edges);
  }
  from_ = {};
  return std::move(graph_);
}

}  // namespace memtrace::report::leak
