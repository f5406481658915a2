// An analyzed trace as bytes, and back: every member of the Analysis, and the stacks.
//
// The bytes are for the build of the program that wrote them: nothing in them says what they are.

#ifndef MEMTRACE_REPORT_INDEX_ANALYSIS_CODEC_H_
#define MEMTRACE_REPORT_INDEX_ANALYSIS_CODEC_H_

#include <string>
#include <string_view>

#include "report/analysis/analyzer.h"

namespace memtrace::report::index {

std::string EncodeTrace(const AnalyzedTrace& trace);

// False: these are no such bytes; `trace` is of no use then.
bool DecodeTrace(std::string_view bytes, AnalyzedTrace* trace);

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_INDEX_ANALYSIS_CODEC_H_
