// ModuleFinder: which module had an address in it, at a time.
//
// Modules come and go, and the next one is often put where the last one was. One that is met
// (when it first allocates) was there before: of several at an address it is the first that
// was not unloaded yet.
//
// One thread. Refers to the modules; they outlive it.

#ifndef MEMTRACE_REPORT_MODEL_MODULE_FINDER_H_
#define MEMTRACE_REPORT_MODEL_MODULE_FINDER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "report/findings/process_info.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

// The modules that the trace has records of, with their times.
std::vector<ModuleInfo> ModulesOf(const TraceReader& reader);

// The same modules, and behind them those that only its memory maps tell of: no stack goes through
// these, but their code may touch memory, call an allocator that is not recorded, or have one
// inside. They have no build-id, no time at which they were loaded, and numbers that no record has.
std::vector<ModuleInfo> ModulesAndMappedFiles(const TraceReader& reader);

class ModuleFinder {
 public:
  explicit ModuleFinder(std::span<const ModuleInfo> modules);

  // nullptr: none that is known. An address right behind a module is in it: a
  // return address may be.
  const ModuleInfo* Find(uint64_t address, uint64_t time_ns) const;
  // The instance that a frame at `address` names; kPermanentInstance also where no module is known.
  uint32_t InstanceAt(uint64_t address, uint64_t time_ns) const {
    const ModuleInfo* module = Find(address, time_ns);
    const bool by_number = module != nullptr && (module->flags & format::kModulePermanent) == 0;
    return by_number ? module->id.value : format::kPermanentInstance;
  }

 private:
  std::vector<const ModuleInfo*> by_start_;
  bool in_turn_ = false;  // some were where others had been
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_MODULE_FINDER_H_
