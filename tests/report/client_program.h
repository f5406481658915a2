// ClientProgram: the script of a program that tells of itself by memtrace.h.
//
//   ClientProgram program;
//   program.Malloc(0x10000, 100).Phase(PhaseEdge::kBegin, "load");
//   const AnalyzedTrace t = program.Analyzed();

#ifndef MEMTRACE_TESTS_REPORT_CLIENT_PROGRAM_H_
#define MEMTRACE_TESTS_REPORT_CLIENT_PROGRAM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {

// A thread that moves on a microsecond with each event, as the library's does; and others in its
// place, for On().
class ClientProgram {
 public:
  using ExtendedType = format::ExtendedType;
  using PhaseEdge = format::PhaseEdge;

  static constexpr uint64_t kPool = 0x900000;  // of AllocBoth() and FreeBoth()
  static constexpr uint64_t kMallocPc = 0x401000, kPoolPc = 0x402000, kBlockPc = 0x403000;
  static constexpr uint64_t kTwinPc = 0x404000, kReallocPc = 0x405000;

  ClientProgram() { On(1); }
  // What follows is by this thread.
  ClientProgram& On(uint32_t serial) {
    const bool known = threads_.contains(serial);
    ThreadScript*& thread = threads_[serial];
    thread_ = thread = known ? thread : &trace_.Thread(serial, 4241 + serial, "main", now_);
    if (!known) {
      thread_->Node(1, kMallocPc).Node(2, kPoolPc).Node(3, kBlockPc);
      thread_->Node(4, kTwinPc).Node(5, kReallocPc);
    }
    return *this;
  }
  ClientProgram& Wait(uint64_t ns) {
    now_ += ns;
    return *this;
  }
  ClientProgram& Malloc(uint64_t address, uint32_t size) {
    Tick().Malloc(address, size, 1);
    return *this;
  }
  ClientProgram& Free(uint64_t address) {
    Tick().Free(address);
    return *this;
  }
  ClientProgram& Realloc(uint64_t old, uint64_t address, uint32_t size) {
    Tick().Realloc(old, address, size, 1);
    return *this;
  }
  ClientProgram& CreatePool(uint64_t pool, std::string_view name) {
    return Tell(ExtendedType::kPoolCreate, {pool, 2}, name);
  }
  ClientProgram& DestroyPool(uint64_t pool) { return Tell(ExtendedType::kPoolDestroy, {pool, 2}); }
  ClientProgram& PoolAlloc(uint64_t pool, uint64_t address, uint64_t size) {
    return Tell(ExtendedType::kCustomAlloc, {address, size, pool, 2});
  }
  ClientProgram& PoolFree(uint64_t pool, uint64_t address) {
    return Tell(ExtendedType::kCustomFree, {address, pool});
  }
  // A block of the pool, and one of malloc far from it that has the same life.
  ClientProgram& AllocBoth(uint64_t address, uint32_t size) {
    PoolAlloc(kPool, address, size);
    thread_->At(now_).Malloc(TwinOf(address), size, 4);
    return *this;
  }
  ClientProgram& FreeBoth(uint64_t address) { return PoolFree(kPool, address).FreeTwin(address); }
  // Of a block that ended with the event before.
  ClientProgram& FreeTwin(uint64_t address) {
    thread_->At(now_).Free(TwinOf(address));
    return *this;
  }
  static uint64_t TwinOf(uint64_t address) { return address + 0x40000000; }
  ClientProgram& BlockAlloc(uint64_t address, uint64_t size) {
    return Tell(ExtendedType::kCustomAlloc, {address, size, 0, 3});
  }
  ClientProgram& BlockFree(uint64_t address) { return PoolFree(0, address); }
  // While the recording is stopped.
  ClientProgram& StoppedBlockAlloc(uint64_t address, uint64_t size) {
    Tell(ExtendedType::kRecordingStopped, {1, 0});
    Tell(ExtendedType::kCustomAlloc, {address, size, 0, format::kStoppedSlot});
    return Tell(ExtendedType::kRecordingStopped, {0, 0});
  }
  ClientProgram& Phase(PhaseEdge edge, std::string_view name) {
    return Tell(ExtendedType::kPhase, {static_cast<uint64_t>(edge), 0}, name);
  }
  ClientProgram& Tell(ExtendedType type, const std::vector<uint64_t>& words, std::string_view text = "") {
    Tick().Extended(type, words, text);
    return *this;
  }
  ThreadScript& Tick() { return thread_->At(now_ += 1000); }

  AnalyzedTrace Analyzed(const AnalyzeOptions& options = {}) { return Analyze(Bytes(), options); }
  std::string Bytes() {
    if (!ended_) trace_.End(0, now_ + 1000);
    ended_ = true;
    return trace_.Build();
  }
  uint64_t now() const { return now_; }

 private:
  TraceBuilder trace_;
  std::map<uint32_t, ThreadScript*> threads_;
  ThreadScript* thread_ = nullptr;
  uint64_t now_ = 0;
  bool ended_ = false;
};

// What must hold of every analysis.
inline void ExpectConsistent(const Analysis& a) {
  uint64_t live = 0, blocks = 0, at_peak = 0, allocations = 0, of_threads = 0, of_classes = 0;
  for (const Site& site : a.sites) {
    live += site.live_bytes;
    blocks += site.live_blocks;
    at_peak += site.bytes_at_peak;
    allocations += site.allocations;
  }
  for (const ThreadSummary& thread : a.threads) of_threads += thread.live_bytes;
  for (const uint64_t bytes : a.sizes.live_bytes) of_classes += bytes;
  EXPECT_EQ(live, a.totals.live_bytes);
  EXPECT_EQ(blocks, a.totals.live_blocks);
  EXPECT_EQ(at_peak, a.totals.peak_live_bytes);
  EXPECT_EQ(allocations, a.totals.allocations);
  EXPECT_EQ(of_threads, a.totals.live_bytes);
  EXPECT_EQ(of_classes, a.totals.live_bytes);
  EXPECT_EQ(a.totals.allocations - a.totals.frees, a.totals.live_blocks);
  // Over time the threads have what the sites have.
  std::vector<uint64_t> of_sites(a.held_intervals);
  for (const Site& site : a.sites) {
    EXPECT_GE(site.peak_bytes, std::max(site.live_bytes, site.bytes_at_peak));
    auto point = site.series.begin();
    uint64_t held = 0;
    for (size_t k = 0; k < of_sites.size(); ++k) {
      if (point != site.series.end() && point->interval == k) {
        EXPECT_LE(point->low_bytes, point->live_bytes);
        EXPECT_GE(point->high_bytes, point->live_bytes);
        EXPECT_LE(point->high_bytes, site.peak_bytes);
        held = (point++)->live_bytes;
      }
      of_sites[k] += held;
    }
  }
  for (size_t k = 0; k < of_sites.size(); ++k) {
    uint64_t held = 0;
    for (const ThreadSummary& thread : a.threads) held += thread.held.At(k);
    EXPECT_EQ(held, of_sites[k]) << "interval " << k;
  }
}

const Site& SiteAt(const AnalyzedTrace& trace, uint64_t pc) {
  static const Site none;
  const Site* site = FindSite(trace, pc);
  EXPECT_NE(site, nullptr) << pc;
  return site != nullptr ? *site : none;
}

const ThreadSummary& ThreadOf(const Analysis& a, uint32_t serial) {
  static const ThreadSummary none;
  for (const ThreadSummary& thread : a.threads) {
    if (thread.id.value == serial) return thread;
  }
  ADD_FAILURE() << "no thread " << serial;
  return none;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_CLIENT_PROGRAM_H_
