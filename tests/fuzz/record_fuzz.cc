// libFuzzer target: the records of a metadata payload, which a mutated trace file
// reaches only through its blocks; and the text of the memory map in them.
//
//   build-asan/tests/record_fuzz -max_len=4096 -timeout=10 new/ tests/fuzz/records

#include <cstddef>
#include <cstdint>

#include "report/model/memory_map.h"
#include "report/trace/clock_map.h"
#include "report/trace/trace_metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace report = memtrace::report;
  report::TraceMetadata metadata;
  report::ClockMap clock;
  metadata.Read({data, size}, &clock);
  clock.Build(metadata.start_monotonic_ns, metadata.ticks_per_second);
  uint64_t before = 0;
  for (uint64_t ticks = 1; ticks != 0; ticks <<= 1) {
    const uint64_t ns = clock.ToNs(ticks);
    if (ns < before) __builtin_trap();  // promised: never decreases
    before = ns;
  }
  report::MemoryMapSummary summary;
  report::ExplainMemoryMap(metadata, &summary);
  return 0;
}
