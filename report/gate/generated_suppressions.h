// The suppressions of --gen-suppressions: an entry for each stack of what fails the gate.

#ifndef MEMTRACE_REPORT_GATE_GENERATED_SUPPRESSIONS_H_
#define MEMTRACE_REPORT_GATE_GENERATED_SUPPRESSIONS_H_

#include <string>

#include "report/gate/formats.h"

namespace memtrace::report::gate {

// Every suppression's name says where it came from. No entry is there that one before it covers.
std::string GeneratedSuppressions(const GateReport& report);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_GENERATED_SUPPRESSIONS_H_
