// AlertTexts: what a server that makes an alert of each leak shows of it, on one line without its
// stack.
//
// Many leaks may come by one function that allocates for others, and be at one place: of these each
// is told by the first of its callers that no other one has.

#ifndef MEMTRACE_REPORT_GATE_ALERT_TEXT_H_
#define MEMTRACE_REPORT_GATE_ALERT_TEXT_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "report/gate/formats.h"

namespace memtrace::report::gate {

class AlertTexts {
 public:
  // Of the leaks that fail. `report` outlives this.
  explicit AlertTexts(const GateReport& report);

  // "app: definitely lost: 256 bytes in 1 block, allocated by calloc in Make, on behalf
  // of Load (new: not in the baseline)".
  std::string Of(const GateLeak& leak) const;

 private:
  using Names = std::vector<std::string>;  // of frames, from the caller outwards
  Names NamesOf(const GateLeak& leak) const;
  std::string CallerThatTells(const GateLeak& leak) const;

  const GateReport& report_;
  // By the caller that they share, and with how many of its first frames another one begins.
  std::map<std::string, std::map<Names, size_t>> by_caller_;
};

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_ALERT_TEXT_H_
