#include "report/leak/held_scan.h"

#include <utility>

namespace memtrace::report::leak {

LeakCheck::Observer HoldScan(uint32_t number, std::optional<HeldScan>* held) {
  return [number, held](const LeakCheck::Result& result) {
    if (number != 0 && result.found.number != number) return;
    held->reset();  // first, so that there is never memory for two
    held->emplace(HeldScan{std::move(result.scan), std::move(result.graph),
                           std::move(result.marks), std::move(result.sites),
                           result.found.time_ns});
  };
}

}  // namespace memtrace::report::leak
