// The key "pressure" of the JSON report, and what is told of a SIGKILL.

#ifndef MEMTRACE_REPORT_RENDER_JSON_PRESSURE_H_
#define MEMTRACE_REPORT_RENDER_JSON_PRESSURE_H_

#include "report/findings/analysis.h"
#include "report/render/json_parts.h"

namespace memtrace::report::render {

// "oom_killed", "oom_evidence" and "memory_limit_bytes" of "process"; null where nothing is known.
void AddKillJson(const ProcessInfo& process, Json* json);

// The member with its comma; null where nothing was sampled. Of a point, only what is known.
void WritePressure(const PressureLane& lane, words::Sink& out);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_JSON_PRESSURE_H_
