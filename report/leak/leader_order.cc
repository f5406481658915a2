#include "report/leak/leader_order.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "report/base/path.h"
#include "report/model/module_finder.h"

namespace memtrace::report::leak {
namespace {

// Places of code that are the same in each run of a program.
class CodePlaces {
 public:
  explicit CodePlaces(std::vector<ModuleInfo> modules)
      : modules_(std::move(modules)), permanent_(Permanent(modules_)), finder_(permanent_) {
    for (const ModuleInfo& module : modules_) by_number_.emplace(module.id.value, &module);
  }

  // The module's file name and the offset in it; of code of no module its address.
  std::pair<absl::string_view, uint64_t> Of(const StackNode& node) const {
    if (node.is_marker()) return {"", node.pc};
    const ModuleInfo* module = nullptr;
    if (node.instance == format::kPermanentInstance) {
      module = finder_.Find(node.pc, 0);
    } else if (const auto found = by_number_.find(node.instance); found != by_number_.end()) {
      module = found->second;
    }
    if (module == nullptr) return {"", node.pc};
    return {FileNameOf(module->path), node.pc - module->bias};
  }

 private:
  static std::vector<ModuleInfo> Permanent(const std::vector<ModuleInfo>& all) {
    std::vector<ModuleInfo> permanent;
    for (const ModuleInfo& module : all) {
      if ((module.flags & format::kModulePermanent) != 0) permanent.push_back(module);
    }
    return permanent;
  }

  const std::vector<ModuleInfo> modules_, permanent_;
  const ModuleFinder finder_;  // of permanent_
  absl::flat_hash_map<uint32_t, const ModuleInfo*> by_number_;
};

// By the innermost frames that differ; a stack that ends there comes first.
bool IsBefore(const CodePlaces& places, const StackTable& stacks, const BlockSite& a,
              const BlockSite& b) {
  StackId left = a.stack, right = b.stack;
  for (; left && right && left != right;
       left = stacks.node(left).parent, right = stacks.node(right).parent) {
    const auto left_place = places.Of(stacks.node(left)),
               right_place = places.Of(stacks.node(right));
    if (left_place != right_place) return left_place < right_place;
  }
  if (left != right) return !left;
  return a.function < b.function;
}

void ArrangeByCode(const HeapGraph& graph, std::span<const BlockSite> sites,
                   const StackTable& stacks, const CodePlaces& places,
                   std::vector<uint32_t>* blocks) {
  const auto site_of = [&graph](uint32_t block) { return graph.blocks().block(block).site; };
  std::vector<uint32_t> numbers;
  for (const uint32_t block : *blocks) numbers.push_back(site_of(block));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::stable_sort(numbers.begin(), numbers.end(), [&](uint32_t a, uint32_t b) {
    return IsBefore(places, stacks, sites[a], sites[b]);
  });
  absl::flat_hash_map<uint32_t, uint32_t> ranks;
  for (const uint32_t number : numbers) {
    ranks.emplace(number, static_cast<uint32_t>(ranks.size()));
  }
  std::stable_sort(blocks->begin(), blocks->end(), [&](uint32_t a, uint32_t b) {
    return std::pair(ranks.at(site_of(a)), graph.blocks().block(a).time_ns) <
           std::pair(ranks.at(site_of(b)), graph.blocks().block(b).time_ns);
  });
}

}  // namespace

ArrangeBlocks OrderOfLeaders(LeaderBy by, const HeapGraph& graph, std::span<const BlockSite> sites,
                             const StackTable& stacks,
                             std::function<std::vector<ModuleInfo>()> modules) {
  switch (by) {
    case LeaderBy::kAddress:
      break;
    case LeaderBy::kSequence:
      return [&graph](std::vector<uint32_t>* blocks) {
        std::stable_sort(blocks->begin(), blocks->end(), [&](uint32_t a, uint32_t b) {
          return graph.blocks().block(a).time_ns < graph.blocks().block(b).time_ns;
        });
      };
    case LeaderBy::kCode:
      return [&graph, sites, &stacks, find = std::move(modules)](std::vector<uint32_t>* blocks) {
        if (blocks->size() < 2) return;
        ArrangeByCode(graph, sites, stacks, CodePlaces(find()), blocks);
      };
  }
  return {};
}

}  // namespace memtrace::report::leak
