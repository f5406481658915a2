// The parts of `memtrace info` about single stacks: where marked stacks end, and stacks
// that libunwind did not confirm.

#ifndef MEMTRACE_REPORT_COMMAND_INFO_STACKS_H_
#define MEMTRACE_REPORT_COMMAND_INFO_STACKS_H_

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "report/analysis/analyzer.h"
#include "report/trace/stack_table.h"

namespace memtrace::report {

// Gives a text for each of the nodes: function, module and offset. Called once, with all nodes.
using NameNodes = std::function<std::vector<std::string>(const AnalyzedTrace&,
                                                         std::span<const StackNode>)>;

// Names nodes without symbols: module and offset.
std::vector<std::string> ModuleAndOffset(const AnalyzedTrace& trace,
                                         std::span<const StackNode> nodes);

// Prints nothing where there are none.
void PrintMarkedStacks(const AnalyzedTrace& trace, const NameNodes& names, std::ostream& out);
void PrintCheckedStacks(const AnalyzedTrace& trace, const NameNodes& names, std::ostream& out);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_INFO_STACKS_H_
