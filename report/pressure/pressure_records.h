// The records of the pressure lane, as `memtrace run` writes them (format/records.h).

#ifndef MEMTRACE_REPORT_PRESSURE_PRESSURE_RECORDS_H_
#define MEMTRACE_REPORT_PRESSURE_PRESSURE_RECORDS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/pressure/oom_watch.h"
#include "report/pressure/pressure_sample.h"

namespace memtrace::report::pressure {

// Appends whole records to `*records`.
void AppendSamples(std::span<const PressureSample> samples, std::vector<uint8_t>* records);
void AppendNote(absl::string_view sentence, std::vector<uint8_t>* records);
void AppendKill(const Kill& kill, std::vector<uint8_t>* records);

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_PRESSURE_RECORDS_H_
