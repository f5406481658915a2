// MadeUp: an Analysis that a test writes down, with stacks whose frames have the
// names the test gives. What the analyzer and the symbolizer would have found.

#ifndef MEMTRACE_TESTS_REPORT_RENDER_RENDER_MADE_UP_H_
#define MEMTRACE_TESTS_REPORT_RENDER_RENDER_MADE_UP_H_

#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "format/records.h"
#include "format/trace_format.h"
#include "report/findings/analysis.h"
#include "report/names/site_symbols.h"
#include "report/render/view.h"

namespace memtrace::report {

inline constexpr uint32_t kApp = 1;   // module instances of MadeUp
inline constexpr uint32_t kLibc = 2;
inline constexpr uint32_t kPlugin = 3;
inline constexpr uint32_t kMadeCode = 99;  // a just-in-time compiler's, in no module

struct Step {
  std::string function;
  std::string file;
  uint32_t line = 0;
  uint32_t module = kApp;
  bool inlined = false;
};
inline Step Libc(std::string function) { return {std::move(function), "", 0, kLibc}; }

class MadeUp {
 public:
  // A step as the trace has it.
  struct RawFrame {
    uint32_t instance = 0;
    uint64_t pc = 0;
  };

  MadeUp() {
    analysis.file = "app.42.mtr";
    analysis.process.pid = 42;
    analysis.process.command = {"./app", "--fast", "two words"};
    analysis.process.executable = "/work/app";
    analysis.process.build_id = "00112233";
    analysis.process.working_directory = "/work";
    analysis.process.host = "target";
    analysis.process.start_realtime_ns = 1763712603000000000;
    analysis.process.duration_ns = 2'000'000'000;
    analysis.process.end = ProcessInfo::End::kExit;
    AddModule(kApp, "/work/app", 0x400000, format::kModulePermanent | format::kModuleExecutable);
    AddModule(kLibc, "/lib/x86_64-linux-gnu/libc.so.6", 0x7f0000000000, format::kModulePermanent);
    AddModule(kPlugin, "/work/plugin.so", 0x7f1000000000, 0);
  }

  // The next number: 4, 5, ...
  void AddModule(uint32_t id, std::string path, uint64_t start, uint32_t flags) {
    ModuleInfo module;
    module.id = {id};
    module.flags = flags;
    module.start = start;
    module.end = start + 0x1000000;
    module.bias = start;
    module.path = std::move(path);
    analysis.modules.push_back(std::move(module));
  }

  // Innermost first. Inlined steps share the address of the next that is not.
  StackId Stack(const std::vector<Step>& steps) {
    std::vector<RawFrame> raw;
    std::vector<symbolizer::Frame> frames;
    for (const Step& step : steps) {
      frames.push_back({.function = step.function, .file = step.file, .line = step.line,
                        .inlined = step.inlined});
      if (step.inlined) continue;
      const uint64_t offset = 0x1000 + 16 * addresses_.size();
      addresses_.push_back(std::move(frames));
      frames.clear();
      raw.push_back({step.module == kMadeCode ? format::kPermanentInstance : step.module,
                     BiasOf(step.module) + offset});
    }
    stacks_.push_back(std::move(raw));
    return {static_cast<uint32_t>(stacks_.size()) * kMostSteps};
  }

  void EndWithMarker(StackId stack, format::StackMarker marker) {
    raw(stack).push_back({format::kNoModule, static_cast<uint64_t>(marker)});
  }

  std::vector<RawFrame>& raw(StackId stack) { return stacks_[stack.value / kMostSteps - 1]; }

  Site& AddSite(StackId stack, uint64_t allocations, uint64_t size, uint64_t live_blocks) {
    Site site;
    site.stack = stack;
    site.allocations = allocations;
    site.frees = allocations - live_blocks;
    site.bytes_allocated = allocations * size;
    site.live_blocks = live_blocks;
    site.live_bytes = live_blocks * size;
    site.peak_bytes = site.bytes_at_peak = live_blocks * size;
    site.blocks_at_peak = live_blocks;
    site.largest_bytes = size;
    site.first_time_ns = site.live_first_time_ns = 100'000'000;
    site.last_time_ns = site.live_last_time_ns = 1'500'000'000;
    analysis.sites.push_back(site);
    analysis.totals.allocations += site.allocations;
    analysis.totals.frees += site.frees;
    analysis.totals.bytes_allocated += site.bytes_allocated;
    analysis.totals.live_blocks += site.live_blocks;
    analysis.totals.live_bytes += site.live_bytes;
    return analysis.sites.back();
  }

  // The symbols and the view of what was written down so far.
  const SiteSymbols& symbols() {
    table_ = Table();
    symbols_ = std::make_unique<SiteSymbols>(
        analysis, *table_,
        [this](const symbolizer::Module& module, std::span<const symbolizer::Address> asked) {
          ++symbolize_calls;
          loaded_ns[module.path] = module.loaded_ns;
          return Symbolize(module, asked);
        });
    return *symbols_;
  }
  render::ReportView View(const std::string& match = "") {
    return *render::ReportView::Create(analysis, symbols(), match);
  }

  Analysis analysis;
  int symbolize_calls = 0;
  std::map<std::string, int64_t> loaded_ns;  // as symbolize() was told
  symbolizer::ModuleState plugin_state = symbolizer::ModuleState::kDebugInfo;
  std::string plugin_missed;  // ModuleResult::missed

 private:
  // Each stack has so many nodes of the table for itself, the last is its innermost frame: so what
  // it consists of may be changed after its id was given out.
  static constexpr uint32_t kMostSteps = 64;

  std::unique_ptr<StackTable> Table() const {
    std::vector<StackNode> nodes(1);
    for (const std::vector<RawFrame>& stack : stacks_) {
      if (stack.size() > kMostSteps) throw std::length_error("MadeUp: a stack of too many steps");
      nodes.resize(nodes.size() + kMostSteps - stack.size());
      StackId parent;
      for (auto step = stack.rbegin(); step != stack.rend(); ++step) {
        nodes.push_back({.pc = step->pc, .parent = parent, .instance = step->instance});
        parent = {static_cast<uint32_t>(nodes.size() - 1)};
      }
    }
    return StackTable::FromNodes(std::move(nodes));
  }

  uint64_t BiasOf(uint32_t module) const {
    return module == kMadeCode ? 0x7e0000000000 : analysis.modules[module - 1].bias;
  }

  symbolizer::ModuleResult Symbolize(const symbolizer::Module& module,
                                     std::span<const symbolizer::Address> asked) {
    symbolizer::ModuleResult result;
    result.state = symbolizer::ModuleState::kDebugInfo;
    if (absl::StartsWith(module.path, "/work/plugin")) {
      result.state = plugin_state;
      result.missed = plugin_missed;
      if (plugin_state == symbolizer::ModuleState::kUnreadable) result.message = module.path + ": not an ELF file";
    }
    for (const symbolizer::Address& address : asked) {
      const size_t index = (address.offset - 0x1000) / 16;
      const bool known = result.state == symbolizer::ModuleState::kDebugInfo &&
                         index < addresses_.size();
      result.frames.push_back(known ? addresses_[index] : std::vector<symbolizer::Frame>());
    }
    return result;
  }

  std::vector<std::vector<symbolizer::Frame>> addresses_;
  std::vector<std::vector<RawFrame>> stacks_;
  std::unique_ptr<StackTable> table_;
  std::unique_ptr<SiteSymbols> symbols_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_RENDER_RENDER_MADE_UP_H_
