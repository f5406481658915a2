// What the tests of the formats of Valgrind's have in common: a program with one leak of each
// kind, as a scan found them.

#ifndef MEMTRACE_TESTS_REPORT_VALGRIND_VALGRIND_MADE_UP_H_
#define MEMTRACE_TESTS_REPORT_VALGRIND_VALGRIND_MADE_UP_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/report/render/render_made_up.h"

namespace memtrace::report {

class MadeUpLeaks : public MadeUp {
 public:
  MadeUpLeaks() {
    ModuleInfo tracer;
    tracer.id = {9};
    tracer.flags = format::kModulePermanent | format::kModuleTracer;
    tracer.start = tracer.bias = 0x7f2000000000;
    tracer.end = tracer.start + 0x1000;
    tracer.path = "/usr/lib/libmemtrace.so";
    analysis.modules.push_back(tracer);

    const StackId node = Stack({{"MakeNode(int)", "/src/tree.cc", 6}, {"Lose()", "/src/tree.cc", 8},
                                {"main", "/src/main.cc", 9}, Libc("__libc_start_call_main")});
    const StackId table = Stack({{"operator new(unsigned long)", "", 0, kLibc},
                                 {"Inlined<int>::Make()", "/src/tree.h", 7, kApp, true},
                                 {"Table::Grow(unsigned int)", "/src/a<b>&c.cc", 17},
                                 {"main", "/src/main.cc", 10}});
    const StackId cache = Stack({{"Cache::Get()", "/src/cache.cc", 30}, {"main", "/src/main.cc", 11}});
    AddSite(node, 10, 32, 6);
    AddSite(table, 5, 1000, 1);
    AddSite(cache, 100, 16, 2);
    analysis.totals.peak_live_bytes = 6 * 32 + 1000 + 2 * 16;
    analysis.totals.peak_time_ns = 1'000'000'000;

    LeakScan scan;
    scan.state = LeakScan::State::kDone;
    const auto add = [&](LeakKind kind, StackId stack, uint64_t bytes, uint64_t blocks,
                         uint64_t indirect) {
      LossRecord record;
      record.kind = kind;
      record.stack = stack;
      record.bytes = bytes;
      record.blocks = blocks;
      record.indirect_bytes = indirect;
      scan.records.push_back(record);
      LeakAmount& total = scan.totals[static_cast<size_t>(kind)];
      total.bytes += bytes;
      total.blocks += blocks;
    };
    add(LeakKind::kPossible, cache, 16, 1, 0);
    add(LeakKind::kReachable, cache, 16, 1, 0);
    add(LeakKind::kIndirect, node, 96, 3, 0);
    add(LeakKind::kDefinite, node, 96, 3, 96);
    add(LeakKind::kDefinite, table, 1000, 1, 0);
    analysis.leak_scans.push_back(std::move(scan));
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_VALGRIND_VALGRIND_MADE_UP_H_
