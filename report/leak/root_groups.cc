#include "report/leak/root_groups.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/findings/analysis.h"

namespace memtrace::report::leak {
namespace {

using Kind = RootGroup::Kind;

// libc's descriptor of a thread begins at its thread pointer: struct pthread of glibc 2.36.
constexpr uint64_t kDescriptorBytes = 2304;

// Names of registers in the order that the library writes them in: x86-64's, by DWARF number.
constexpr const char* kRegisterNames[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                          "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                          "r12", "r13", "r14", "r15", "rip"};

// When it was loaded is not known then, and what lay there before has a record.
bool OnlyAMapTellsOf(const ModuleInfo& module) {
  return module.load_time_ns == 0 && module.unload_time_ns == 0 &&
         (module.flags & format::kModulePermanent) == 0;
}

}  // namespace

std::string RegisterName(const ScanThread& thread, uint64_t number) {
  if (thread.registers.size() == std::size(kRegisterNames) && number < std::size(kRegisterNames)) {
    return kRegisterNames[number];
  }
  return absl::StrCat("register ", number);
}

RootGroups::RootGroups(const Analysis& analysis, const Scan& scan, const HeapGraph& graph,
                       uint64_t time_ns, const VariableFinder& find)
    : analysis_(analysis), scan_(scan), graph_(graph) {
  std::vector<uint32_t> only_mapped;
  for (uint32_t i = 0; i < analysis.modules.size(); ++i) {
    const ModuleInfo& module = analysis.modules[i];
    const bool loaded = module.load_time_ns <= time_ns &&
                        (module.unload_time_ns == 0 || module.unload_time_ns > time_ns);
    if (!loaded && (module.flags & format::kModulePermanent) == 0) continue;
    if (OnlyAMapTellsOf(module)) {
      only_mapped.push_back(i);
      continue;
    }
    modules_.push_back(i);
    if (module.thread_local_bytes != 0) thread_locals_.push_back(i);
  }
  const std::vector<uint32_t> recorded = modules_;
  for (const uint32_t i : only_mapped) {
    const ModuleInfo& module = analysis.modules[i];
    const bool was_another = std::any_of(recorded.begin(), recorded.end(), [&](uint32_t other) {
      const ModuleInfo& there = analysis.modules[other];
      return there.start < module.end && module.start < there.end;
    });
    if (!was_another) modules_.push_back(i);
  }
  std::sort(modules_.begin(), modules_.end(), [&](uint32_t a, uint32_t b) {
    return analysis.modules[a].start < analysis.modules[b].start;
  });
  for (uint32_t i = 0; i < scan.threads.size(); ++i) {
    if (scan.threads[i].thread_pointer != 0) threads_.push_back(i);
  }
  std::sort(threads_.begin(), threads_.end(), [&](uint32_t a, uint32_t b) {
    return scan.threads[a].thread_pointer < scan.threads[b].thread_pointer;
  });

  // The variables, each module asked once for all places in it.
  struct Asked {
    std::vector<VariableQuery> queries;
    VariableAnswers answers;
    absl::flat_hash_map<std::pair<uint64_t, bool>, size_t> index;
  };
  std::map<uint32_t, Asked> asked;
  for (const RootEdge& root : graph.roots()) {
    const Raw raw = Examine(root);
    if (raw.group.kind != Kind::kVariable && raw.group.kind != Kind::kThreadLocal) continue;
    const bool local = raw.group.kind == Kind::kThreadLocal;
    Asked& of_module = asked[raw.group.module];
    if (of_module.index.try_emplace({raw.offset, local}, of_module.queries.size()).second) {
      of_module.queries.push_back({raw.offset, local});
    }
  }
  for (auto& [module, of_module] : asked) {
    if (find) of_module.answers = find(analysis.modules[module], of_module.queries);
    std::vector<Variable>& variables = of_module.answers.variables;
    variables.resize(of_module.queries.size());
    if (!of_module.answers.message.empty() &&
        std::any_of(variables.begin(), variables.end(),
                    [](const Variable& variable) { return variable.name.empty(); })) {
      unnamed_.push_back(std::move(of_module.answers.message));
    }
  }

  using Key = std::tuple<Kind, uint32_t, uint32_t, uint32_t, uint64_t, std::string>;
  std::map<Key, uint32_t> known;
  group_of_.reserve(graph.roots().size());
  for (const RootEdge& root : graph.roots()) {
    Raw raw = Examine(root);
    RootGroup& group = raw.group;
    if (group.kind == Kind::kVariable || group.kind == Kind::kThreadLocal) {
      const Asked& of_module = asked[group.module];
      const bool local = group.kind == Kind::kThreadLocal;
      const Variable& variable =
          of_module.answers.variables[of_module.index.at({raw.offset, local})];
      group.variable = variable.name;
      group.start = variable.start;
      if (variable.name.empty() && !local) group.kind = Kind::kModuleData;
    }
    const auto [at, is_new] = known.try_emplace(
        {group.kind, group.module, group.thread, group.region, group.start, group.variable},
        static_cast<uint32_t>(groups_.size()));
    if (is_new) groups_.push_back(std::move(group));
    group_of_.push_back(at->second);
  }
}

uint32_t RootGroups::ModuleAt(uint64_t address) const {
  const auto after = std::upper_bound(
      modules_.begin(), modules_.end(), address,
      [&](uint64_t value, uint32_t i) { return value < analysis_.modules[i].start; });
  if (after == modules_.begin()) return RootGroup::kNone;
  const uint32_t module = *std::prev(after);
  return address < analysis_.modules[module].end ? module : RootGroup::kNone;
}

RootGroups::Raw RootGroups::Examine(const RootEdge& root) const {
  Raw raw;
  switch (root.kind) {
    case RootEdge::Kind::kRealloc:
      raw.group.kind = Kind::kRealloc;
      return raw;
    case RootEdge::Kind::kIgnored:
      raw.group.kind = Kind::kIgnored;
      return raw;
    case RootEdge::Kind::kFreedUnseen:
      raw.group.kind = Kind::kFreedUnseen;
      return raw;
    case RootEdge::Kind::kSignalStack:
      raw.group.kind = Kind::kSignalStack;
      raw.group.thread = root.source;
      return raw;
    case RootEdge::Kind::kRegister:
      raw.group.kind = Kind::kRegisters;
      raw.group.thread = root.source;
      raw.offset = root.place;
      return raw;
    case RootEdge::Kind::kWord:
      break;
  }
  const uint64_t address = root.place;
  // A thread's variables and its descriptor are at its thread pointer, in whatever memory that is.
  const auto after = std::upper_bound(
      threads_.begin(), threads_.end(), address,
      [&](uint64_t value, uint32_t i) { return value < scan_.threads[i].thread_pointer; });
  if (after != threads_.end()) {
    for (const uint32_t i : thread_locals_) {
      const ModuleInfo& module = analysis_.modules[i];
      const uint64_t start = scan_.threads[*after].thread_pointer - module.below_thread_pointer;
      if (address - start >= module.thread_local_bytes) continue;
      raw.group.kind = Kind::kThreadLocal;
      raw.group.module = i;
      raw.group.thread = *after;
      raw.offset = address - start;
      return raw;
    }
  }
  if (after != threads_.begin()) {
    const uint32_t thread = *std::prev(after);
    const uint64_t offset = address - scan_.threads[thread].thread_pointer;
    if (offset < kDescriptorBytes) {
      raw.group.kind = Kind::kDescriptor;
      raw.group.thread = thread;
      raw.offset = offset;
      return raw;
    }
  }
  const ScanRegion* region = scan_.FindRegion(root.source);
  if (region != nullptr && region->kind == format::ScanRegionKind::kStack) {
    for (uint32_t i = 0; i < scan_.threads.size(); ++i) {
      const ScanThread& thread = scan_.threads[i];
      if (address < thread.stack_begin || address >= thread.stack_end) continue;
      raw.group.kind = Kind::kStack;
      raw.group.thread = i;
      raw.offset =
          address - (thread.stack_pointer != 0 ? thread.stack_pointer : thread.stack_begin);
      return raw;
    }
  }
  if (region != nullptr && (region->kind == format::ScanRegionKind::kModuleData ||
                            region->kind == format::ScanRegionKind::kRelro)) {
    const uint32_t module = ModuleAt(address);
    if (module != RootGroup::kNone) {
      raw.group.kind = Kind::kVariable;
      raw.group.module = module;
      raw.offset = address - analysis_.modules[module].bias;
      return raw;
    }
  }
  raw.group.kind = Kind::kMapping;
  if (region != nullptr) {
    raw.group.region = static_cast<uint32_t>(region - scan_.regions.data());
    raw.offset = address - region->start;
  }
  return raw;
}

RootPlace RootGroups::PlaceOf(size_t root) const {
  const RootEdge& edge = graph_.roots()[root];
  const Raw raw = Examine(edge);
  RootPlace place;
  place.group = group_of_[root];
  place.offset = static_cast<int64_t>(raw.offset - groups_[place.group].start);
  if (edge.kind == RootEdge::Kind::kWord) place.address = edge.place;
  return place;
}

const ModuleInfo* RootGroups::ModuleOf(const RootGroup& group) const {
  return group.module == RootGroup::kNone ? nullptr : &analysis_.modules[group.module];
}

const ScanThread* RootGroups::ThreadOf(const RootGroup& group) const {
  return group.thread == RootGroup::kNone ? nullptr : &scan_.threads[group.thread];
}

const ScanRegion* RootGroups::RegionOf(const RootGroup& group) const {
  return group.region == RootGroup::kNone ? nullptr : &scan_.regions[group.region];
}

std::string RootGroups::ThreadName(const ScanThread& thread) const {
  for (const ThreadSummary& summary : analysis_.threads) {
    if (thread.serial != 0 && summary.id.value == thread.serial) return summary.name;
  }
  return "";
}

}  // namespace memtrace::report::leak
