// RootGroups: the roots of a heap graph as things that have a name.
//
//   a variable          of a module, by its symbol: all words in it
//   a thread's variable thread-local, by its symbol and its thread
//   a thread's stack, its registers, what lies at its thread pointer (libc's descriptor of it)
//   a mapping           of the program, or memory of which nothing else is known
//   declarations        memtrace.h's ignored blocks; a realloc that was under way
//
// A word of a module in which no symbol lies belongs to "data of the module": its offset is
// said, a name is not made up.
//
// Memory: 4 bytes a root, and what the groups take.

#ifndef MEMTRACE_REPORT_LEAK_ROOT_GROUPS_H_
#define MEMTRACE_REPORT_LEAK_ROOT_GROUPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "report/findings/process_info.h"
#include "report/leak/heap_graph.h"
#include "report/leak/scan_reader.h"

namespace memtrace::report {
struct Analysis;
}

namespace memtrace::report::leak {

// A variable that an offset lies in. No name: none is known there.
struct Variable {
  std::string name;
  uint64_t start = 0;  // offset of its first byte
};
struct VariableQuery {
  // Counted from the module's load bias; for a thread-local variable from the begin
  // of the module's block.
  uint64_t offset = 0;
  bool thread_local_ = false;
};
struct VariableAnswers {
  std::vector<Variable> variables;  // for each query, in their order
  std::string message;              // why some may have no name; empty: there is no more to know
};
using VariableFinder =
    std::function<VariableAnswers(const ModuleInfo&, const std::vector<VariableQuery>&)>;

struct RootGroup {
  // The kinds, those that a reader would rather hear of first.
  enum class Kind : uint8_t {
    kVariable, kThreadLocal, kStack, kRegisters, kDescriptor, kModuleData, kMapping, kRealloc,
    kIgnored, kSignalStack, kFreedUnseen,
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  Kind kind = Kind::kMapping;
  uint32_t module = kNone;  // index in Analysis::modules
  uint32_t thread = kNone;  // index in Scan::threads
  uint32_t region = kNone;  // kMapping: index in Scan::regions
  std::string variable;
  uint64_t start = 0;       // kVariable, kThreadLocal: Variable::start
};

// Where in its group a root lies.
struct RootPlace {
  uint32_t group = 0;
  // kVariable, kThreadLocal: from the variable's begin; kModuleData: from the load bias;
  // kStack: from the stack pointer, where it is known; kRegisters: number of the register;
  // kDescriptor: from the thread pointer; kMapping: from its begin; else 0.
  int64_t offset = 0;
  uint64_t address = 0;  // of the word; 0: it is none
};

class RootGroups {
 public:
  // The arguments must outlive it; `find` may be empty and is not kept.
  RootGroups(const Analysis& analysis, const Scan& scan, const HeapGraph& graph,
             uint64_t time_ns, const VariableFinder& find);

  uint32_t size() const { return static_cast<uint32_t>(groups_.size()); }
  const RootGroup& group(uint32_t i) const { return groups_[i]; }
  uint32_t GroupOf(size_t root) const { return group_of_[root]; }
  RootPlace PlaceOf(size_t root) const;
  // Why variables that point to blocks have no names, a line for each module with such.
  const std::vector<std::string>& unnamed() const { return unnamed_; }

  const ModuleInfo* ModuleOf(const RootGroup& group) const;
  const ScanThread* ThreadOf(const RootGroup& group) const;
  const ScanRegion* RegionOf(const RootGroup& group) const;
  // The name that the thread gave itself; empty: not known.
  std::string ThreadName(const ScanThread& thread) const;

 private:
  // A root before its variable is known. For kVariable and kThreadLocal `offset` is that of a
  // VariableQuery.
  struct Raw {
    RootGroup group;
    uint64_t offset = 0;
  };
  Raw Examine(const RootEdge& root) const;
  uint32_t ModuleAt(uint64_t address) const;

  const Analysis& analysis_;
  const Scan& scan_;
  const HeapGraph& graph_;
  std::vector<uint32_t> modules_;  // that were loaded at the instant, by start
  std::vector<uint32_t> thread_locals_;  // those with thread-local variables
  std::vector<uint32_t> threads_;  // whose thread pointer is known, by it
  std::vector<RootGroup> groups_;
  std::vector<uint32_t> group_of_;
  std::vector<std::string> unnamed_;
};

std::string RegisterName(const ScanThread& thread, uint64_t number);  // "rbx"

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_ROOT_GROUPS_H_
