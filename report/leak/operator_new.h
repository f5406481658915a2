// Where operator new is, for the resolution of leaks: memcheck stands in for it, so that what
// called it is the second frame of a stack there.

#ifndef MEMTRACE_REPORT_LEAK_OPERATOR_NEW_H_
#define MEMTRACE_REPORT_LEAK_OPERATOR_NEW_H_

#include <vector>

#include "report/leak/leak_options.h"
#include "report/trace/trace_metadata.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {

// The code of operator new in the modules in which memcheck replaces it: libstdc++ and libc++,
// known by the names of their files. An operator new that a program has linked statically, or its
// own, is a frame in memcheck's stacks as it is here.
std::vector<leak::CodeRange> FindOperatorNew(const std::vector<ModuleRecord>& modules,
                                             symbolizer::SymbolizerProcess* symbolizer);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_LEAK_OPERATOR_NEW_H_
