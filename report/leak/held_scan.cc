#include "report/leak/held_scan.h"

#include <memory>
#include <utility>

#include "report/leak/leak_scans.h"

namespace memtrace::report::leak {

LeakCheck::Observer HoldScan(uint32_t number, std::optional<HeldScan>* held) {
  const auto at_exit = std::make_shared<bool>(false);  // what is held is of an exit
  return [number, held, at_exit](const LeakCheck::Result& result) {
    const bool is_better = number != 0 ? result.found.number == number
                                       : IsAtExit(result.found) || !*at_exit;
    if (!is_better) return;
    *at_exit = IsAtExit(result.found);
    held->reset();  // first, so that there is never memory for two
    held->emplace(HeldScan{std::move(result.scan), std::move(result.graph),
                           std::move(result.marks), std::move(result.sites),
                           result.found.time_ns});
  };
}

}  // namespace memtrace::report::leak
