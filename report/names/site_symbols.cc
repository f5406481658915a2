#include "report/names/site_symbols.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "format/checksum.h"
#include "format/imported.h"
#include "format/trace_format.h"
#include "report/base/path.h"
#include "report/findings/analysis.h"
#include "report/names/frames_filter.h"
#include "report/words/escape.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using format::StackMarker;

absl::string_view MarkerText(uint64_t marker) {
  switch (static_cast<StackMarker>(marker)) {
    case StackMarker::kNone:
      break;
    case StackMarker::kNoUnwindInfo:
      return "[no unwind info: JIT or assembly without CFI]";
    case StackMarker::kTruncated:
      return "[truncated: deeper than the limit]";
    case StackMarker::kUnreadable:
      return "[stack memory was not readable]";
    case StackMarker::kInconsistent:
      return "[unwind info is wrong or the stack is damaged]";
    case StackMarker::kUnsupported:
      return "[unwind info of a kind that is not evaluated]";
    case StackMarker::kNotCaptured:
      return "[stack not captured]";
    case StackMarker::kContextEnd:
      return "[start of a context]";
    case StackMarker::kOtherStack:
      return "[goes over to another stack, to code without unwind info]";
    case StackMarker::kLost:
      return "[frames lost: what defines them is not in the trace]";
  }
  return "[stack ends for an unknown reason]";
}

// A function of memtrace.h that was inlined into its caller is no frame of the program's.
bool IsApiWrapper(const symbolizer::Frame& frame) {
  return frame.inlined && absl::StartsWith(frame.function, "memtrace_") &&
         absl::EndsWith(frame.file, "memtrace.h");
}

// No compiler inlines so deep, no name that is longer was meant to be read.
constexpr size_t kMostInlined = 256;
constexpr size_t kLongestName = 8192;

std::string Shortened(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  return absl::StrCat(words::CutUtf8(name, kLongestName - 3), "...");
}

// The name of such a module says all that is known.
Frame FrameOfFunctionModule(const ModuleInfo& module, uint64_t pc) {
  const size_t slash = module.path.find("]/") + 1;
  Frame frame;
  frame.function = Shortened(module.path.substr(slash + 1));
  frame.module = module.path.substr(0, slash);
  frame.offset = pc - module.bias;
  return frame;
}

// Of code that is outside of every file, made at run time; or of a file whose record was lost, which
// may be the program's own: not to be passed over in silence.
Frame FrameWithoutModule(uint32_t instance, uint64_t pc) {
  Frame frame;
  frame.offset = pc;
  frame.role = instance == format::kPermanentInstance ? names::RoleOf(frame, 0)
                                                      : FrameRole::kProject;
  return frame;
}

// Code that touched memory.
template <typename Visit>
void ForEachToucher(const Analysis& analysis, Visit visit) {
  const FaultDetails& details = analysis.fault_details;
  for (const FaultSite& site : details.sites) {
    for (const FaultToucher& toucher : site.touchers) visit(toucher);
  }
  for (const FaultMapping& mapping : details.mappings) {
    for (const FaultToucher& toucher : mapping.touchers) visit(toucher);
  }
  for (const FaultToucher& toucher : details.touchers) visit(toucher);
}

// visit(StackId), of each stack that a report may show; some are none, and many come again.
template <typename Visit>
void ForEachStack(const Analysis& analysis, Visit visit) {
  for (const Site& site : analysis.sites) visit(site.stack);
  for (const MappingSite& site : analysis.mappings) visit(site.stack);
  for (const Pool& pool : analysis.pools) visit(pool.stack);
  for (const RssBridge* bridge : {analysis.resident.Peak(), analysis.resident.End()}) {
    if (bridge == nullptr) continue;
    for (const ResidentSite& site : bridge->sites) visit(site.stack);
  }
  for (const FaultSite& site : analysis.fault_details.sites) visit(site.stack);
  for (const FaultMapping& mapping : analysis.fault_details.mappings) visit(mapping.stack);
  ForEachToucher(analysis, [&visit](const FaultToucher& toucher) { visit(toucher.code); });
  for (const BlockEnds& ends : analysis.block_ends) visit(ends.to);
  for (const InvalidFree& story : analysis.invalid_frees.stories) {
    for (const auto* moment : {&story.allocated, &story.freed, &story.again}) visit(moment->stack);
  }
}

}  // namespace

SymbolizeModule SymbolizeBy(symbolizer::SymbolizerProcess* process) {
  return [process](const symbolizer::Module& module,
                   std::span<const symbolizer::Address> addresses) {
    return process->Symbolize(module, addresses);
  };
}

SiteSymbols::SiteSymbols(const Analysis& analysis, const StackTable& stacks,
                         const SymbolizeModule& symbolize,
                         const std::function<void(double)>& progress,
                         std::span<const StackId> more)
    : stacks_(stacks),
      start_realtime_ns_(analysis.process.start_realtime_ns),
      modules_(analysis.modules) {
  frames_.emplace_back();
  ForEachToucher(analysis, [this](const FaultToucher& toucher) {
    if (toucher.code) touching_.insert(AddressOf(stacks_.node(toucher.code)));
  });

  // A file that was loaded more than once is asked once.
  absl::flat_hash_map<std::pair<absl::string_view, absl::string_view>, size_t> file_index;
  std::vector<std::vector<Asked>> files;
  for (auto& [instance, pcs] : CollectAddresses(analysis, more)) {
    const ModuleInfo* const module = modules_.Instance(instance);
    if (NameFileless(instance, module, pcs)) continue;
    const auto [at, is_new] =
        file_index.try_emplace({module->path, module->build_id}, files.size());
    if (is_new) files.emplace_back();
    files[at->second].push_back({module, std::move(pcs)});
  }
  for (size_t i = 0; i < files.size(); ++i) {
    AddModule(files[i], symbolize);
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(files.size()));
  }
  FindCalled(analysis, CallersOfNew(analysis, more), symbolize);
  notes_.Finish();
  // Needed while frames are added, large, and never again.
  absl::flat_hash_map<std::string, uint32_t>().swap(identities_);
}

std::map<uint32_t, std::vector<uint64_t>> SiteSymbols::CollectAddresses(
    const Analysis& analysis, std::span<const StackId> more) const {
  std::vector<bool> seen(stacks_.size() + 1);
  absl::flat_hash_set<Address> addresses;
  std::vector<StackId> latest(memo_.size());  // that had an address with this hash
  const auto collect = [&](StackId stack) {
    for (; stack && !seen[stack.value]; stack = stacks_.node(stack).parent) {
      seen[stack.value] = true;
      const StackNode& node = stacks_.node(stack);
      StackId& before = latest[MemoIndex(node)];
      const StackNode& other = stacks_.node(before);
      if (before && other.pc == node.pc && other.instance == node.instance) continue;
      before = stack;
      addresses.insert(AddressOf(node));
    }
  };
  ForEachStack(analysis, collect);
  for (const StackId stack : more) collect(stack);

  std::map<uint32_t, std::vector<uint64_t>> by_instance;
  for (const Address& address : addresses) by_instance[address.first].push_back(address.second);
  for (auto& [instance, pcs] : by_instance) std::sort(pcs.begin(), pcs.end());
  return by_instance;
}

bool SiteSymbols::NameFileless(uint32_t instance, const ModuleInfo* module,
                               const std::vector<uint64_t>& pcs) {
  const bool is_marker = instance == format::kNoModule;
  if (!is_marker && module != nullptr && !format::IsFunctionModule(module->path)) return false;
  for (const uint64_t pc : pcs) {
    if (is_marker) {
      AddMarker({instance, pc});
      continue;
    }
    const uint32_t begin = next_frame();
    AddFrame(module == nullptr ? FrameWithoutModule(instance, pc)
                               : FrameOfFunctionModule(*module, pc));
    SetRun({instance, pc}, begin);
  }
  return true;
}

// With the instance that it belongs to: 0 is short for the permanent module around pc.
SiteSymbols::Address SiteSymbols::AddressOf(const StackNode& node) const {
  if (node.instance != format::kPermanentInstance) return {node.instance, node.pc};
  const ModuleInfo* const module = modules_.Find(node);
  return {module != nullptr ? module->id.value : format::kPermanentInstance, node.pc};
}

std::vector<SiteSymbols::Address> SiteSymbols::InnermostAddresses(StackId stack) const {
  std::vector<Address> addresses;
  for (; stack && addresses.size() < kInnermostCalls; stack = stacks_.node(stack).parent) {
    addresses.push_back(AddressOf(stacks_.node(stack)));
  }
  return addresses;
}

void SiteSymbols::AddMarker(const Address& address) {
  Frame frame;
  frame.function = std::string(MarkerText(address.second));
  frame.role = FrameRole::kMarker;
  const uint32_t begin = next_frame();
  AddFrame(std::move(frame));
  SetRun(address, begin);
}

int64_t SiteSymbols::LoadedNs(int64_t start_realtime_ns, const ModuleInfo& module) {
  if (start_realtime_ns == 0) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(start_realtime_ns) + module.load_time_ns);
}

void SiteSymbols::AddModule(std::span<const Asked> instances, const SymbolizeModule& symbolize) {
  std::vector<symbolizer::Address> asked;
  for (const auto& [module, pcs] : instances) {
    for (const uint64_t pc : pcs) asked.push_back({pc - module->bias, true});
  }
  const ModuleInfo& file = *instances.front().module;
  int64_t loaded_ns = 0;
  for (const Asked& instance : instances) {
    const int64_t loaded = LoadedNs(start_realtime_ns_, *instance.module);
    loaded_ns = loaded_ns == 0 ? loaded : std::min(loaded_ns, loaded);
  }
  const symbolizer::ModuleResult result = symbolize({file.path, file.build_id, loaded_ns}, asked);
  size_t i = 0;
  for (const auto& [module, pcs] : instances) {
    notes_.Add(*module, result);
    for (const uint64_t pc : pcs) {
      // Wrappers of functions that call back, as dlclose() and fork() do: no
      // frames of the program's.
      if ((module->flags & format::kModuleTracer) != 0 &&
          !touching_.contains({module->id.value, pc})) {
        ++i;
        continue;
      }
      const uint32_t begin = next_frame();
      const auto add = [&, instance = module](Frame frame) {
        frame.module = instance->path;
        frame.offset = instance->path == format::kKernelModule
                           ? format::KernelAddress(asked[i].offset)
                           : asked[i].offset;
        frame.role = names::RoleOf(frame, instance->flags);
        AddFrame(std::move(frame));
      };
      if (i < result.frames.size()) {
        for (const symbolizer::Frame& found : result.frames[i]) {
          if (frames_.size() - begin == kMostInlined) break;
          if (IsApiWrapper(found)) continue;
          const bool mangled = !found.function.empty() && found.linkage_name != found.function &&
                               found.linkage_name.size() <= kLongestName;
          add({.function = Shortened(found.function.empty() ? found.linkage_name : found.function),
               .linkage_name = mangled ? found.linkage_name : "",
               .file = Shortened(found.file),
               .line = found.line,
               .inlined = found.inlined});
        }
      }
      if (frames_.size() == begin) add({});
      SetRun({module->id.value, pc}, begin);
      ++i;
    }
  }
}

bool SiteSymbols::IsInOperatorNew(StackId stack) const {
  const absl::Span<const Frame> frames = FramesOf(stacks_.node(stack));
  return !frames.empty() && absl::StartsWith(frames.back().linkage_name, "_Znw");
}

std::vector<StackId> SiteSymbols::CallersOfNew(const Analysis& analysis,
                                               std::span<const StackId> more) const {
  absl::flat_hash_set<StackId> seen;
  std::vector<StackId> callers;
  const auto collect = [&](StackId stack) {
    if (!stack || !seen.insert(stack).second || !IsInOperatorNew(stack)) return;
    if (const StackId caller = stacks_.node(stack).parent) callers.push_back(caller);
  };
  for (const Site& site : analysis.sites) {
    if (site.live_blocks != 0) collect(site.stack);
  }
  for (const LeakScan& scan : analysis.leak_scans) {
    for (const LossRecord& record : scan.records) collect(record.stack);
  }
  for (const InvalidFree& story : analysis.invalid_frees.stories) collect(story.allocated.stack);
  for (const StackId stack : more) collect(stack);
  return callers;
}

std::string_view SiteSymbols::NewArrayCalled(StackId stack) const {
  if (!stack || !IsInOperatorNew(stack)) return {};
  const StackId caller = stacks_.node(stack).parent;
  const auto at = caller ? called_.find(AddressOf(stacks_.node(caller))) : called_.end();
  return at != called_.end() && absl::StartsWith(at->second, "_Zna") ? std::string_view(at->second)
                                                                     : std::string_view();
}

// Asked for apart, because few addresses are.
void SiteSymbols::FindCalled(const Analysis& analysis, const std::vector<StackId>& callers,
                             const SymbolizeModule& symbolize) {
  absl::flat_hash_set<StackId> seen;
  std::map<uint32_t, std::vector<uint64_t>> by_module;
  const auto ask = [&](const Address& address) {
    if (modules_.Instance(address.first) == nullptr || !called_.try_emplace(address).second) return;
    by_module[address.first].push_back(address.second);
  };
  const auto collect = [&](StackId stack) {
    if (!stack || !seen.insert(stack).second) return;
    for (const Address& address : InnermostAddresses(stack)) ask(address);
  };
  if (analysis.frees_with_stack != 0) {
    for (const BlockEnds& ends : analysis.block_ends) {
      collect(ends.from);
      collect(ends.to);
    }
    for (const InvalidFree& story : analysis.invalid_frees.stories) {
      collect(story.freed.stack);
      collect(story.again.stack);
    }
  }
  for (const StackId caller : callers) ask(AddressOf(stacks_.node(caller)));
  for (auto& [instance, pcs] : by_module) {
    const ModuleInfo& module = *modules_.Instance(instance);
    if (format::IsFunctionModule(module.path)) continue;
    std::vector<symbolizer::Address> asked;
    for (const uint64_t pc : pcs) {
      asked.push_back({.offset = pc - module.bias, .called = true});
    }
    const symbolizer::ModuleResult result =
        symbolize({module.path, module.build_id, LoadedNs(start_realtime_ns_, module)}, asked);
    for (size_t i = 0; i < std::min(asked.size(), result.frames.size()); ++i) {
      if (result.frames[i].empty()) continue;
      const symbolizer::Frame& found = result.frames[i].front();
      called_[{instance, pcs[i]}] =
          Shortened(found.linkage_name.empty() ? found.function : found.linkage_name);
    }
  }
}

std::vector<SiteSymbols::Call> SiteSymbols::InnermostCalls(StackId stack) const {
  std::vector<Call> calls;
  const auto name = [](const Frame& frame) {
    return frame.linkage_name.empty() ? frame.function : frame.linkage_name;
  };
  for (const Address& address : InnermostAddresses(stack)) {
    const auto at = called_.find(address);
    std::string called = at == called_.end() ? "" : at->second;
    const auto found = runs_.find(address);
    const Run run = found == runs_.end() ? Run{} : found->second;
    for (uint32_t k = 0; k < run.count; ++k) {
      const Frame& frame = frames_[run.begin + k];
      calls.push_back({name(frame), std::move(called), IsCxxRuntime(frame.module)});
      called = name(frame);  // an inlined function is called by the next frame
    }
  }
  return calls;
}

bool SiteSymbols::IsCxxRuntime(absl::string_view module) {
  const absl::string_view file = FileNameOf(module);
  return absl::StartsWith(file, "libstdc++.so") || absl::StartsWith(file, "libc++.so") ||
         absl::StartsWith(file, "libc++abi.so");
}

void SiteSymbols::AddFrame(Frame frame) {
  const std::string key =
      frame.function.empty()
          ? absl::StrCat("\n", frame.module, "\n", frame.offset)
          : absl::StrCat(frame.function, "\n", frame.module, "\n", frame.file, "\n", frame.line);
  frame.identity =
      identities_.try_emplace(key, static_cast<uint32_t>(identities_.size() + 1)).first->second;
  const uint64_t parts[] = {checksum_, format::Checksum(key.data(), key.size()),
                            static_cast<uint64_t>(frame.role), uint64_t{frame.inlined}};
  checksum_ = format::Checksum(parts, sizeof(parts));
  frames_.push_back(std::move(frame));
}

void SiteSymbols::SetRun(const Address& address, uint32_t begin) {
  const Run run = {begin, next_frame() - begin};
  runs_[address] = run;
  const uint64_t parts[] = {checksum_, address.first, address.second, run.begin, run.count};
  checksum_ = format::Checksum(parts, sizeof(parts));
}

std::vector<FrameId> SiteSymbols::Stack(StackId stack) const {
  std::vector<FrameId> ids;
  ForEachFrame(stack, [&](const Frame& frame) {
    ids.push_back({static_cast<uint32_t>(&frame - frames_.data())});
  });
  return ids;
}

SiteSymbols::Run SiteSymbols::RunOf(const StackNode& node) const {
  Memo& memo = memo_[MemoIndex(node)];
  if (memo.run.count == 0 || memo.pc != node.pc || memo.instance != node.instance) {
    const auto found = runs_.find(AddressOf(node));
    memo = {node.pc, node.instance, found == runs_.end() ? Run{} : found->second};
  }
  return memo.run;
}

}  // namespace memtrace::report
