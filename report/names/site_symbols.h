// SiteSymbols: the frames of every stack that a report shows.
//
// Collects the distinct (module instance, pc) of all stacks of an Analysis, asks
// the symbolizer once per file for all of its addresses, and expands a stack
// to frames when asked. A frame is stored once per address, however many stacks
// pass through it; a stack's frames are names (FrameId) of those.
//
// One thread. Holds a reference to the table of the stacks.

#ifndef MEMTRACE_REPORT_NAMES_SITE_SYMBOLS_H_
#define MEMTRACE_REPORT_NAMES_SITE_SYMBOLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "report/base/strong_id.h"
#include "report/findings/process_info.h"
#include "report/names/frame.h"
#include "report/names/symbol_notes.h"
#include "report/trace/stack_table.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {
class SymbolizerProcess;
}  // namespace memtrace::symbolizer

namespace memtrace::report {

struct Analysis;

using SymbolizeModule = std::function<symbolizer::ModuleResult(
    const symbolizer::Module&, std::span<const symbolizer::Address>)>;

// By the children of `process`, which stays the caller's.
SymbolizeModule SymbolizeBy(symbolizer::SymbolizerProcess* process);

using FrameId = StrongId<struct FrameTag>;  // an element of SiteSymbols' frames

class SiteSymbols {
 public:
  // `progress` (may be empty) hears the share done, 0 to 1. `more`: stacks to expand
  // besides those of the analysis.
  SiteSymbols(const Analysis& analysis, const StackTable& stacks, const SymbolizeModule& symbolize,
              const std::function<void(double)>& progress = {},
              std::span<const StackId> more = {});

  // When a module was loaded, by the wall clock (symbolizer::Module::loaded_ns), in a process that
  // began at `start_realtime_ns`; 0: not known.
  static int64_t LoadedNs(int64_t start_realtime_ns, const ModuleInfo& module);

  // Innermost first, inlined frames expanded, a marker last. Empty: no stack.
  std::vector<FrameId> Stack(StackId stack) const;
  const Frame& frame(FrameId id) const { return frames_[id.value]; }
  // visit(const Frame&), of each of Stack().
  template <typename Visit>
  void ForEachFrame(StackId stack, Visit visit) const {
    for (; stack; stack = stacks_.node(stack).parent) {
      for (const Frame& frame : FramesOf(stacks_.node(stack))) visit(frame);
    }
  }
  // The frames of one step of a stack: several where functions are inlined.
  absl::Span<const Frame> FramesOf(const StackNode& node) const {
    const Run run = RunOf(node);
    return absl::MakeConstSpan(frames_).subspan(run.begin, run.count);
  }
  const StackTable& stacks() const { return stacks_; }
  size_t frame_count() const { return frames_.size(); }

  // The innermost calls of a stack, those of inlined functions too: the function that each is in,
  // and the one that it calls, which need not be on the stack (symbolizer/call_targets.h) and is
  // known of the stacks in Analysis::block_ends and of invalid frees of a trace that has the stacks
  // of frees. Mangled where they are C++; empty: not known.
  struct Call {
    std::string function, called;
    bool in_cxx_runtime = false;  // in libstdc++ or libc++ as a library
  };
  static constexpr size_t kInnermostCalls = 3;  // not counting inlined ones
  std::vector<Call> InnermostCalls(StackId stack) const;
  // The operator new[] that the program called where a stack begins in an operator new: the one
  // jumps to the other, which is no caller then. Mangled; empty: there is none, or it is not known.
  // Of blocks that were not freed, of those that were freed wrongly, and of `more`.
  std::string_view NewArrayCalled(StackId stack) const;
  // libstdc++ or libc++, by the name of the file.
  static bool IsCxxRuntime(absl::string_view module);

  // A checksum of the names of all frames and of where they are. What was worked out from them
  // stays true as long as it is the same.
  uint64_t checksum() const { return checksum_; }

  // SymbolNotes::texts() and replaced().
  const std::vector<std::string>& notes() const { return notes_.texts(); }
  const std::set<std::string>& replaced() const { return notes_.replaced(); }

 private:
  struct Run {  // frames of one address
    uint32_t begin = 0;
    uint32_t count = 0;
  };
  using Address = std::pair<uint32_t, uint64_t>;

  Address AddressOf(const StackNode& node) const;
  Run RunOf(const StackNode& node) const;  // count 0: none
  // The distinct addresses of all stacks, by instance; both ascending, so that notes and numbers of
  // frames do not depend on hashing.
  std::map<uint32_t, std::vector<uint64_t>> CollectAddresses(const Analysis& analysis,
                                                             std::span<const StackId> more) const;
  // Markers, code that was made at run time, functions that are modules of their own. False: the
  // module is a file.
  bool NameFileless(uint32_t instance, const ModuleInfo* module, const std::vector<uint64_t>& pcs);
  std::vector<Address> InnermostAddresses(StackId stack) const;
  void AddMarker(const Address& address);
  // An instance of a module, with the addresses in it that stacks have.
  struct Asked {
    const ModuleInfo* module;
    std::vector<uint64_t> pcs;
  };
  // All instances are of one file.
  void AddModule(std::span<const Asked> instances, const SymbolizeModule& symbolize);
  void AddFrame(Frame frame);
  // The frames of `address` are those from frame `begin` to the last one.
  void SetRun(const Address& address, uint32_t begin);
  uint32_t next_frame() const { return static_cast<uint32_t>(frames_.size()); }
  // For the stacks that begin in an operator new, the stacks of the function that called it.
  std::vector<StackId> CallersOfNew(const Analysis& analysis, std::span<const StackId> more) const;
  bool IsInOperatorNew(StackId stack) const;
  void FindCalled(const Analysis& analysis, const std::vector<StackId>& callers,
                  const SymbolizeModule& symbolize);

  const StackTable& stacks_;
  const int64_t start_realtime_ns_;
  const ModuleIndex modules_;
  absl::flat_hash_map<Address, Run> runs_;
  absl::flat_hash_map<Address, std::string> called_;
  // Of FaultTouchers: code that touched memory is the tracer's where that was its own.
  absl::flat_hash_set<Address> touching_;
  // The latest answers of RunOf(): stacks have most of their steps in common.
  struct Memo {
    uint64_t pc = 0;
    uint32_t instance = 0;
    Run run;
  };
  static constexpr unsigned kMemoBits = 14;
  static size_t MemoIndex(const StackNode& node) {
    return (node.pc + node.instance) * 0x9e3779b97f4a7c15 >> (64 - kMemoBits);
  }
  mutable std::vector<Memo> memo_{size_t{1} << kMemoBits};
  std::vector<Frame> frames_;  // [0] is not used
  absl::flat_hash_map<std::string, uint32_t> identities_;
  uint64_t checksum_ = 0;
  SymbolNotes notes_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_SITE_SYMBOLS_H_
