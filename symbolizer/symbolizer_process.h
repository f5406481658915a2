// SymbolizerProcess: a Symbolizer at a distance of one process.
//
// Which files are opened a trace says, and what is in them anybody may have written.
// elfutils checks much of it and not all, the demangler of the C++ runtime recurses as
// deep as a name tells it to, and a file that is shortened while it is mapped is a
// SIGBUS. So each module is read by a child process of its own, which sends back what
// it found. When the child crashes, runs out of memory or takes too long, the module has
// no names and its result says why; nothing else is lost.
//
// The child is forked and not executed (ask_child.h), of the caller or of its fork server
// (fork_server.h): it has the memory, limits and files of that one. What it answers is checked like
// any other input.
//
// A module of which there is no file costs no child. With Options::cache_dir only what no cache
// knows is asked of a child (symbol_cache.h).
//
// Threads: as Symbolizer; and, unless the fork server runs, no other thread of the process may be
// inside the allocator, for the child allocates.

#ifndef MEMTRACE_SYMBOLIZER_SYMBOLIZER_PROCESS_H_
#define MEMTRACE_SYMBOLIZER_SYMBOLIZER_PROCESS_H_

#include <chrono>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "symbolizer/fork_server.h"
#include "symbolizer/module_names.h"
#include "symbolizer/module_question.h"
#include "symbolizer/named_functions.h"
#include "symbolizer/static_footprint.h"
#include "symbolizer/symbol_cache.h"
#include "symbolizer/symbolizer.h"
#include "symbolizer/variables.h"

namespace memtrace::symbolizer {

class SymbolizerProcess {
 public:
  struct Limits {
    // The largest debug files there are take seconds.
    std::chrono::milliseconds module{120'000};
    std::chrono::milliseconds all{300'000};
    size_t answer_bytes = size_t{256} << 20;
    size_t modules = 2000;  // a process each; large programs have some hundred
  };
  // For --debuginfod, where a file comes through the network first.
  static Limits LimitsFor(const Options& options);

  explicit SymbolizerProcess(Options options) : SymbolizerProcess(options, LimitsFor(options)) {}
  SymbolizerProcess(Options options, const Limits& limits);
  SymbolizerProcess(const SymbolizerProcess&) = delete;
  SymbolizerProcess& operator=(const SymbolizerProcess&) = delete;

  // From now on children are forked from a process that has the memory of this moment
  // (fork_server.h). Reports call it before they read the trace.
  void StartForkServer() { fork_server_.Start(); }

  ModuleResult Symbolize(const Module& module, std::span<const Address> addresses);
  // Each does what the function of that name does (module_names.h, variables.h, named_functions.h,
  // static_footprint.h), with these options.
  ModuleNames FindNames(const Module& module, std::span<const std::string_view> names,
                        std::span<const std::string_view> texts);
  VariablesResult FindVariables(const Module& module, std::span<const VariableQuery> queries);
  std::vector<NamedRange> FindNamedFunctions(const Module& module,
                                             std::span<const std::string_view> prefixes);
  StaticFootprint FindFootprint(const Module& module);

  // The function that the child calls in place of Symbolizer::Symbolize().
  using Work = std::function<ModuleResult(const Module&, std::span<const Address>)>;
  void ReplaceWorkForTesting(Work work) { work_ = std::move(work); }
  const SymbolCache& cache() const { return cache_; }

 private:
  std::string AnswerSymbols(std::string_view question) const;
  AskReader ReaderFor(size_t work);
  ModuleResult AskProcess(const Module& module, std::span<const Address> addresses);

  const Options options_;
  SymbolCache cache_;
  Work work_;
  ForkServer fork_server_;
  const Limits limits_;
  std::chrono::milliseconds spent_{0};
  size_t asked_ = 0;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_SYMBOLIZER_PROCESS_H_
