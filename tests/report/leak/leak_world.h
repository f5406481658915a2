// World: a made-up process with blocks and words, its trace with a scan, and what the
// analyzer makes of it.

#ifndef MEMTRACE_TESTS_REPORT_LEAK_LEAK_WORLD_H_
#define MEMTRACE_TESTS_REPORT_LEAK_LEAK_WORLD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/leak/leak_check.h"
#include "tests/report/scan_builder.h"
#include "tests/report/test_util.h"

namespace memtrace::report {

class World {
 public:
  static constexpr uint64_t kData = 0x600000;     // a module's
  static constexpr uint64_t kHeap = 0x10000000;
  static constexpr uint64_t kScanNs = 1'000'000;

  explicit World(const TraceBuilder::Options& options = Exact()) : trace(options) {
    scan.Region(format::ScanRegionKind::kModuleData, format::ScanRegionUse::kRoot, kData,
                kData + 0x10000, "/usr/bin/app");
    scan.Region(format::ScanRegionKind::kHeap, format::ScanRegionUse::kTerritory, kHeap,
                kHeap + 0x1000000, "[heap]");
  }

  static TraceBuilder::Options Exact() {
    TraceBuilder::Options options;
    options.stamp_rule = format::StampRule::kChangeOfOwner;
    return options;
  }

  // Allocated by the frame `pc`, or one of its own.
  World& Block(uint64_t address, uint32_t size, uint64_t pc = 0) {
    time_ += 10;
    auto& main = trace.Thread(1, 4242, "main");
    main.At(time_);
    const uint32_t slot = main.Stack({0x401000, pc != 0 ? pc : 0x402000 + address % 0x100000});
    main.Malloc(address, size, slot);
    return *this;
  }
  World& Root(uint64_t value) {
    scan.Word(1, kData + 8 * roots_++, value);
    return *this;
  }
  World& In(uint64_t address, uint64_t value) {  // a word of the heap
    scan.Word(2, address, value);
    return *this;
  }

  std::string Bytes() {
    scan.Done().AddTo(&trace);
    trace.End(0, 2 * kScanNs);
    return trace.Build();
  }

  const LeakScan& Check(const leak::LeakOptions& options = {}) {
    AnalyzeOptions analyze;
    analyze.leaks = options;
    analyze.leak_observer = [this](const leak::LeakCheck::Result& result) {
      for (uint32_t i = 0; i < result.graph.size(); ++i) {
        found.push_back({result.graph.blocks().start(i), result.graph.blocks().bytes(i),
                         result.marks.kind[i], result.marks.heuristic[i],
                         result.marks.indirect[i]});
      }
    };
    analyzed = Analyze(Bytes(), analyze);
    EXPECT_EQ(analyzed.analysis.leak_scans.size(), 1u);
    return analyzed.analysis.leak_scans.at(0);
  }
  // After Check().
  LeakKind KindOf(uint64_t address) const {
    for (const Found& each : found) {
      if (each.address == address) return each.kind;
    }
    ADD_FAILURE() << "no block at " << std::hex << address;
    return LeakKind::kUnfreed;
  }

  struct Found {
    uint64_t address, bytes;
    LeakKind kind;
    leak::Pointer heuristic;
    LeakAmount indirect;
  };

  TraceBuilder trace;
  ScanBuilder scan{1, trace.TicksAt(kScanNs)};
  AnalyzedTrace analyzed;
  std::vector<Found> found;

 private:
  uint64_t time_ = 1000;
  uint64_t roots_ = 0;
};

// Three places for blocks, and the kinds by short names.
inline constexpr uint64_t kA = World::kHeap + 0x1010, kB = World::kHeap + 0x2010,
                          kC = World::kHeap + 0x3010;
inline constexpr auto kDefinite = LeakKind::kDefinite;
inline constexpr auto kIndirect = LeakKind::kIndirect;
inline constexpr auto kPossible = LeakKind::kPossible;
inline constexpr auto kReachable = LeakKind::kReachable;

inline LeakAmount Total(const LeakScan& scan, LeakKind kind) {
  return scan.totals[static_cast<size_t>(kind)];
}

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_LEAK_LEAK_WORLD_H_
