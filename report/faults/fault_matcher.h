// FaultMatcher: each fault of a trace to the block, mapping or place it was taken on.
//
//   FaultMatcher matcher(&reader, stacks, range);
//   before each event: matcher.Advance(its time, model, mappings)
//   behind each allocation that was applied: if (matcher.Noted(address, usable bytes, model))
//                                              matcher.Claim(*model.FindLive(address), model)
//   matcher.Finish(model, mappings, usage at the end, &details)
//
// A fault looks for its block among those that are live at its time: a block that begins up
// to kSmall bytes before it is asked of the live table, step by step; larger ones are in an
// ordered set of their own. There are few faults among very many allocations, so that these
// are put aside, and only what is still live at the next fault comes into the set. It is cleaned of
// dead ones when it has doubled, so that memory grows with the live heap.
//
// Where there is none, and no mapping of the program's either, it lies in memory of the
// allocator, which brought the page in: for the block that comes to lie there next. (So does a
// calloc that clears, a realloc that copies, and a fault whose time is not known to the event.)
// It waits for that; what waits at the end was for no block.
//
// Blocks begin kHeader bytes before their address, where glibc has its bookkeeping.

#ifndef MEMTRACE_REPORT_FAULTS_FAULT_MATCHER_H_
#define MEMTRACE_REPORT_FAULTS_FAULT_MATCHER_H_

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "report/faults/address_space.h"
#include "report/faults/fault_stream.h"
#include "report/faults/thrash.h"
#include "report/findings/fault_details.h"
#include "report/findings/over_time.h"
#include "report/findings/process_info.h"
#include "report/findings/range.h"
#include "report/model/fault_marks.h"
#include "report/model/heap_model.h"
#include "report/model/mapping_model.h"
#include "report/model/module_finder.h"
#include "report/trace/stack_table.h"

namespace memtrace::report {

class FaultMatcher {
 public:
  FaultMatcher(TraceReader* reader, StackTable* stacks, const Range& range);

  // The time of the next fault; UINT64_MAX: there is none.
  uint64_t next_ns() const { return next_ns_; }
  bool any() const { return stream_.log().known; }
  // The modules that stacks may name, and those that only memory maps tell of.
  const std::vector<ModuleInfo>& modules() const { return modules_; }

  // Takes all faults before `time_ns`.
  void Advance(uint64_t time_ns, HeapModel& model, const MappingModel& mappings) {
    if (time_ns > next_ns_) [[unlikely]] TakeBefore(time_ns, model, mappings);
  }

  // The range ends here, if not before: what comes later has not been taken.
  void EndAt(uint64_t ns) { range_.to_ns = std::min(range_.to_ns, ns); }

  // `address` is not 0; of the model only what is live is asked. True: faults may have waited
  // for this block.
  bool Noted(uint64_t address, uint64_t bytes, const HeapModel& model) {
    low_bits_ |= address;
    if (bytes >= kSmall) {
      if (next_ns_ != UINT64_MAX) PutAside(address, model);
    } else if (filter_[(address >> page_bits_) % kFilterPages] == 0) [[likely]] {
      return false;  // no part of it is further away than the next page
    }
    return MayWait(address - kHeader, address + bytes - 1);
  }
  // The faults that waited for the block are its own, but where it has little of the
  // page: the header that the allocator wrote may stand before many small blocks, and the
  // page is whose most of it is.
  void Claim(const HeldBlock& block, const HeapModel& model);

  // The marks of the program's own faults that were taken so far.
  const FaultMarks& marks() const { return marks_; }

  // `minor` and `major`: of the process at its end, as getrusage says; 0 where that is not known.
  // `samples`: how the heap went, in the order of time.
  void Finish(HeapModel& model, const MappingModel& mappings, uint64_t minor, uint64_t major,
              std::span<const UsageSample> samples, FaultDetails* details);

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);
  // Zeroes all figures and forgets the faults that wait for a block. See
  // HeapModel::ForgetFigures().
  void ForgetFigures();

 private:
  static constexpr uint64_t kSmall = 512;
  // A number of which the addresses of all blocks are multiples: 16 with glibc, 8 where small
  // blocks are closer to each other.
  uint64_t Step() const { return (low_bits_ & 15) == 0 ? 16 : 8; }
  static constexpr uint64_t kHeader = 16;
  static constexpr size_t kMostWaiting = 1 << 16;
  static constexpr size_t kMostAside = 1 << 12;
  static constexpr size_t kMostTouchers = 8;  // kept of a site

  // A block that a fault may count for.
  struct Claimant {
    uint32_t stack = 0;      // of its site
    uint8_t function = 0;
    uint64_t block = 0;      // one number of it
    uint64_t page_bytes = 0;  // of the page it has; 0: nobody
  };
  struct Waiting {
    uint64_t time_ns;
    uint32_t tid;
    uint32_t code;  // StackId of the toucher
    bool major;
    bool in_kernel;
    Claimant largest;  // of the blocks that came to lie in the page so far
  };
  using Touchers = absl::flat_hash_map<uint32_t, FaultSums>;  // by StackId, 0: the kernel
  struct SiteState {
    FaultSums faults;
    uint64_t by_allocator = 0;
    uint64_t blocks = 0;
    uint64_t last_block = 0;
    uint64_t first_time_ns = UINT64_MAX, last_time_ns = 0;
    Touchers touchers;
  };

  void TakeBefore(uint64_t time_ns, HeapModel& model, const MappingModel& mappings);
  void Take(const Fault& fault, bool own, HeapModel& model, const MappingModel& mappings);
  const HeldBlock* FindBlock(uint64_t address, HeapModel& model);
  void SortIn(const HeapModel& model);
  // Most large blocks come again and again to where one was before.
  void PutAside(uint64_t address, const HeapModel& model) {
    uint64_t& latest = LatestAside(address);
    if (latest == address) return;
    latest = address;
    aside_.push_back(address);
    if (aside_.size() >= kMostAside) [[unlikely]] SortIn(model);
  }
  uint64_t& LatestAside(uint64_t address) { return latest_aside_[address / 16 % kLatestAside]; }
  // It is in large_ no more.
  void ForgetAside(uint64_t address) {
    uint64_t& latest = LatestAside(address);
    if (latest == address) latest = 0;
  }

  // A filter by page: most blocks are in pages that nobody waits for.
  enum Waits : uint8_t { kInThisPage = 1, kBesides = 2 };
  void AddToFilter(uint64_t address) {
    const uint64_t page = address >> page_bits_;
    filter_[page % kFilterPages] |= kInThisPage;
    filter_[(page - 1) % kFilterPages] |= kBesides;
    filter_[(page + 1) % kFilterPages] |= kBesides;
  }
  [[gnu::noinline]] bool MayWait(uint64_t first, uint64_t last) const {
    const uint64_t begin = first >> page_bits_, end = last >> page_bits_;
    if (end - begin >= kFilterPages) return true;
    for (uint64_t page = begin; page <= end; ++page) {
      if ((filter_[page % kFilterPages] & kInThisPage) != 0) return true;
    }
    return false;
  }
  static Claimant ClaimantOf(const HeldBlock& block, const HeapModel& model, uint64_t page_bytes);
  void AddToSite(const Claimant& owner, const Waiting& fault, bool by_allocator);
  void AddToPlace(uint64_t address, const Waiting& fault);
  // To the block or place that has it: nobody else will claim it.
  void Attribute(uint64_t address, const Waiting& fault);
  uint32_t CodeOf(const Fault& fault);
  std::vector<FaultToucher> Sorted(const Touchers& touchers, size_t most) const;

  static constexpr uint64_t kFilterPages = 1 << 15;  // thousands of pages may be waited for

  const int page_bits_;  // of addresses within a page of the program's machine
  StackTable* const stacks_;
  Range range_;
  FaultStream stream_;
  AddressSpace space_;
  std::vector<ModuleInfo> modules_;
  ModuleFinder finder_;
  uint64_t next_ns_ = UINT64_MAX;
  uint64_t low_bits_ = 0;  // of any block's address
  absl::btree_set<uint64_t> large_;
  std::vector<uint64_t> aside_;  // not in large_ yet
  static constexpr size_t kLatestAside = 1024;
  std::array<uint64_t, kLatestAside> latest_aside_{};  // these are in one of the two
  size_t clean_at_ = 1024;
  std::multimap<uint64_t, Waiting> waiting_;  // by address
  // By page, modulo their number: Waits. A byte is looked up at once.
  std::array<uint8_t, kFilterPages> filter_{};
  size_t filtered_ = 0;  // waiting since the filter was empty
  std::map<uint32_t, std::string> threads_;   // tid -> name
  uint32_t main_tid_ = 0;

  ThrashDetector thrash_;
  FaultMarks marks_;
  FaultSums told_, in_kernel_;
  std::array<FaultSums, kMemoryKinds> by_kind_{};
  absl::flat_hash_map<std::pair<uint32_t, uint8_t>, SiteState> sites_;  // stack, function
  absl::flat_hash_map<std::pair<uint32_t, std::string>, SiteState> mappings_;
  absl::flat_hash_map<std::pair<uint8_t, std::string>, FaultSums> places_;
  Touchers touchers_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_FAULT_MATCHER_H_
