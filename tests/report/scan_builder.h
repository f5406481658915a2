// ScanBuilder: memory scans from a script, for TraceBuilder.
//
//   ScanBuilder scan(1, trace.TicksAt(5000));
//   const uint32_t data = scan.Region(ScanRegionKind::kModuleData, ScanRegionUse::kRoot, 0x600000,
//                                     0x601000, "/usr/bin/app");
//   scan.Word(data, 0x600010, 0x10010).Done().AddTo(&trace);
//
// What a test wants to get wrong it can: Raw() writes any record.

#ifndef MEMTRACE_TESTS_REPORT_SCAN_BUILDER_H_
#define MEMTRACE_TESTS_REPORT_SCAN_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/memory_scan.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {

class ScanBuilder {
 public:
  ScanBuilder(uint32_t number, uint64_t ticks,
              format::ScanReason reason = format::ScanReason::kExitLate,
              format::ScanShow show = format::ScanShow::kAny, std::string_view label = "");
  // Without a kBegin.
  explicit ScanBuilder(uint32_t number) : number_(number) {}

  uint32_t Region(format::ScanRegionKind kind, format::ScanRegionUse use, uint64_t start,
                  uint64_t end, std::string_view path = "", uint64_t thread = 0);
  ScanBuilder& Word(uint32_t region, uint64_t address, uint64_t value);
  struct At {
    uint64_t address, value;
  };
  ScanBuilder& Words(uint32_t region, const std::vector<At>& words);  // one record
  ScanBuilder& Thread(uint32_t tid, uint32_t serial, format::ScanThreadState state,
                      const std::vector<uint64_t>& registers);
  ScanBuilder& Target(uint64_t address, uint64_t at_minus_8);
  ScanBuilder& Target(uint64_t address, uint64_t at_minus_24, uint64_t at_minus_16,
                      uint64_t at_minus_8);
  ScanBuilder& Vtable(uint64_t address);
  ScanBuilder& Hint(format::ScanHint kind, uint64_t start, uint64_t end = 0);
  ScanBuilder& Done();
  ScanBuilder& Failed(std::string_view why);
  ScanBuilder& Raw(uint64_t tag, const std::vector<uint64_t>& numbers);

  // What was written since the last call becomes the next block of the scan.
  void AddTo(TraceBuilder* trace);
  uint32_t sequence = 1;  // of the next block

  const std::string& payload() const { return payload_; }

 private:
  void Number(uint64_t value);
  void Text(std::string_view text);
  void End(format::ScanTag tag);

  uint32_t number_;
  uint32_t regions_ = 0;
  std::string body_;
  std::string payload_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_SCAN_BUILDER_H_
