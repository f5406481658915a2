// In which order lost blocks are looked at for who leads to whom (marker.h).
//
// Of blocks that lead to each other in a ring the first one counts as definitely lost, and the
// others hang on it. Addresses, and the order of what several threads allocate, are others in each
// run. So runs that are compared with each other have an order by the code that allocated: by the
// places of the frames in their modules, from the innermost on.
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_LEAK_LEADER_ORDER_H_
#define MEMTRACE_REPORT_LEAK_LEADER_ORDER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "report/findings/process_info.h"
#include "report/leak/heap_graph.h"
#include "report/leak/leak_options.h"
#include "report/leak/loss_records.h"
#include "report/leak/marker.h"
#include "report/trace/stack_table.h"

namespace memtrace::report::leak {

// What it is given must outlive it. `modules` is asked for when it is needed.
ArrangeBlocks OrderOfLeaders(LeaderBy by, const HeapGraph& graph, std::span<const BlockSite> sites,
                             const StackTable& stacks,
                             std::function<std::vector<ModuleInfo>()> modules);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_LEADER_ORDER_H_
