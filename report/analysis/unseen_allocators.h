// Unseen allocators: code in the traced process that hands out memory past the functions
// that libmemtrace.so stands in for, and what of it is therefore not in the trace.
//
// Found in the files of the process's modules, offline: it costs the program nothing. Three
// ways past us:
//
//   a malloc that comes first    of the executable, or of a library that was preloaded
//                                before us. The library notices that itself and says so.
//   hidden names                 an allocator linked into a module that does not export it
//   names of its own             jemalloc's mallocx, and C++'s operator new where jemalloc,
//                                tcmalloc or mimalloc define it, or any other library that has a
//                                malloc as well: no malloc is called by its name then. And
//                                jemalloc's sdallocx, by which blocks of malloc end unseen
//
// CPython has mimalloc inside and seldom uses it: that is told where code of CPython's mapped
// memory as mimalloc does (Analysis::large_mappers), or where it is not known what was mapped. Its
// pymalloc is no unseen allocator, for the arenas are in the trace; but they hide leaks.
//
// Only what somebody calls is told: an allocator's own names count where a module asks for
// them. The modules are those that stacks or memory maps tell of. Where a module asks for dlopen
// there may have been more, which were unloaded, or in a process that was killed: then it is not
// known that nobody called an allocator's operator new, and what looks like a second free may be of
// a block from there.

#ifndef MEMTRACE_REPORT_ANALYSIS_UNSEEN_ALLOCATORS_H_
#define MEMTRACE_REPORT_ANALYSIS_UNSEEN_ALLOCATORS_H_

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/findings/analysis.h"
#include "symbolizer/module_names.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {

// What Coverage::pymalloc means for a memory scan.
inline constexpr char kPymallocHides[] =
    "Python's small objects lie in arenas of pymalloc: one that is lost is not seen, and what it "
    "points to counts as reachable. With PYTHONMALLOC=malloc in the program's environment each is "
    "a block";

using FindModuleNames = std::function<symbolizer::ModuleNames(
    const symbolizer::Module&, std::span<const std::string_view> names,
    std::span<const std::string_view> texts)>;

// Fills Coverage::unseen_allocators, ::own_operator_delete, ::pymalloc and ::modules_not_examined,
// and adds its notes. Takes those invalid frees back that may be of blocks which an unseen allocator
// gave out, and counts them as InvalidFrees::of_unseen_blocks.
void FillUnseenAllocators(const FindModuleNames& find, Analysis* analysis);

// The same of many traces: a program, with its modules and what it used of them, is looked at once,
// for that means reading its files.
class UnseenAllocatorsByProgram {
 public:
  explicit UnseenAllocatorsByProgram(FindModuleNames find) : find_(std::move(find)) {}
  void Fill(Analysis* analysis);

 private:
  struct Found {
    std::vector<UnseenAllocator> allocators;
    std::vector<CoverageNote> notes;
    std::string shares_free;  // who may have given out blocks of which only a free() is seen
    uint64_t modules_not_examined = 0;
    bool own_operator_delete = false;
    bool pymalloc = false;
  };
  const FindModuleNames find_;
  // By the modules, of which one is the program, and what allocators of CPython's it used.
  std::map<std::string, Found> found_;
};

// Lets the children of `process` look up names. `process` stays the caller's.
FindModuleNames ModuleNamesBy(symbolizer::SymbolizerProcess* process);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_UNSEEN_ALLOCATORS_H_
