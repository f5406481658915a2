// The heap graph in JSON: "graph", "why", "who_points_at", "unnamed_variables" (docs/leaks.md).

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/leak/leak_kinds.h"
#include "report/render/graph_view.h"
#include "report/render/json_parts.h"

namespace memtrace::report::render {
namespace {

using leak::KeepPaths;

std::string Hex(uint64_t address) { return absl::StrFormat("0x%x", address); }

Json AmountJson(const LeakAmount& amount) {
  return {{"bytes", amount.bytes}, {"blocks", amount.blocks}};
}

class GraphJsonWriter {
 public:
  explicit GraphJsonWriter(const GraphView& graph) : graph_(graph), report_(graph.report()) {}

  Json Summary(const leak::HeapSummary& summary, size_t top) const {
    Json roots = Json::array(), sites = Json::array();
    for (size_t i = 0; i < std::min(top, summary.roots.size()); ++i) {
      Json root = GroupJson(summary.roots[i].group);
      root["words"] = summary.roots[i].words;
      root["retained"] = AmountJson(summary.roots[i].retained);
      roots.push_back(std::move(root));
    }
    for (size_t i = 0; i < std::min(top, summary.sites.size()); ++i) {
      const leak::KeptSite& kept = summary.sites[i];
      Json site = SiteJson(kept.site.site);
      site["own"] = AmountJson(kept.site.own);
      site["retained"] = AmountJson(kept.site.retained);
      site["retained_is_exact"] = kept.site.exact;
      site["kept_by"] = kept.group == KeepPaths::kNone ? Json() : GroupJson(kept.group);
      site["kept_by_bytes"] = kept.bytes_of_group;
      sites.push_back(std::move(site));
    }
    return {{"scan", report_.held().scan.number}, {"blocks", summary.blocks},
            {"pointers", summary.pointers},       {"root_words", summary.root_words},
            {"shared", AmountJson(summary.shared)}, {"lost", AmountJson(summary.lost)},
            {"roots", std::move(roots)},          {"roots_total", summary.roots.size()},
            {"sites", std::move(sites)},          {"sites_total", summary.sites.size()}};
  }

  Json Why(const leak::WhyAnswer& answer, size_t top) const {
    Json kinds = Json::object();
    for (const LeakKind kind : kScanKinds) {
      kinds[KindName(kind)] = AmountJson(answer.kinds[static_cast<size_t>(kind)]);
    }
    Json held_by = Json::array(), keepers = Json::array();
    for (const uint32_t node : answer.held_by) {
      const bool is_block = report_.nodes().IsBlock(node);
      Json holder = is_block ? BlockJson(report_.nodes().BlockOf(node))
                             : GroupJson(node - report_.nodes().NodeOfGroup(0));
      holder["retained"] = AmountJson(report_.retention().of[node]);
      held_by.push_back(std::move(holder));
    }
    for (size_t i = 0; i < std::min(top, answer.keepers.size()); ++i) {
      const leak::WhyAnswer::Keeper& keeper = answer.keepers[i];
      const uint32_t root = report_.paths().RootOf(keeper.example);
      Json chain = Json::array();
      for (const KeepPaths::Step& step : report_.paths().ChainOf(keeper.example)) {
        Json block = BlockJson(step.block);
        // The word of the block before it; the first is pointed to by the root.
        block["offset"] = chain.empty() ? Json() : Json(step.offset);
        block["pointer"] = chain.empty() && root == KeepPaths::kNone
                               ? Json() : Json(std::string(PointerName(step.how)));
        chain.push_back(std::move(block));
      }
      keepers.push_back({{"kind", std::string(KindName(keeper.kind))},
                         {"bytes", keeper.kept.bytes},
                         {"blocks", keeper.kept.blocks},
                         {"root", root == KeepPaths::kNone ? Json() : RootJson(root)},
                         {"chain", std::move(chain)}});
    }
    return {{"site", graph_.questions().why},
            {"kinds", std::move(kinds)},
            {"retained", AmountJson(answer.retained)},
            {"held_by", std::move(held_by)},
            {"keepers", std::move(keepers)},
            {"keepers_total", answer.keepers.size()}};
  }

  Json Pointers(const leak::PointersAnswer& answer, size_t top) const {
    Json roots = Json::array(), blocks = Json::array();
    for (size_t i = 0; i < std::min(top, answer.roots.size()); ++i) {
      Json root = RootJson(answer.roots[i]);
      root["pointer"] = PointerName(report_.graph().roots()[answer.roots[i]].how);
      roots.push_back(std::move(root));
    }
    for (size_t i = 0; i < std::min(top, answer.blocks.size()); ++i) {
      Json block = BlockJson(answer.blocks[i].block);
      block["offset"] = answer.blocks[i].offset;
      block["pointer"] = PointerName(answer.blocks[i].how);
      blocks.push_back(std::move(block));
    }
    return {{"address", Hex(answer.address)},
            {"block", BlockJson(answer.block)},
            {"roots", std::move(roots)},
            {"roots_total", answer.roots.size()},
            {"blocks", std::move(blocks)},
            {"blocks_total", answer.blocks.size()}};
  }

 private:
  Json SiteJson(const leak::BlockSite& site) const {
    return {{"fingerprint", graph_.view().Fingerprint(site.stack, site.function)},
            {"allocator", std::string(FunctionName(site.function))},
            {"stack", StackJson(graph_.view(), site.stack)}};
  }

  Json BlockJson(uint32_t block) const {
    const leak::BlockSite& site = report_.SiteOf(block);
    return {{"address", Hex(report_.graph().blocks().start(block))},
            {"bytes", report_.graph().blocks().bytes(block)},
            {"kind", std::string(KindName(report_.KindOf(block)))},
            {"fingerprint", graph_.view().Fingerprint(site.stack, site.function)},
            {"allocator", std::string(FunctionName(site.function))},
            {"caller", graph_.view().CallerText(site.stack)}};
  }

  // Unknown parts are null.
  Json GroupJson(uint32_t number) const {
    const leak::RootGroups& roots = report_.roots();
    const leak::RootGroup& group = roots.group(number);
    const ModuleInfo* module = roots.ModuleOf(group);
    const leak::ScanThread* thread = roots.ThreadOf(group);
    const leak::ScanRegion* region = roots.RegionOf(group);
    return {{"root", std::string(RootKindName(group.kind))},
            {"variable", group.variable.empty() ? Json() : Json(group.variable)},
            {"module", module == nullptr ? Json() : Json(module->path)},
            {"tid", thread == nullptr || thread->tid == 0 ? Json() : Json(thread->tid)},
            {"thread", thread == nullptr ? Json() : Json(roots.ThreadName(*thread))},
            {"mapping", region == nullptr ? Json() : Json(region->path)},
            {"text", RootGroupText(roots, number)}};
  }

  Json RootJson(size_t root) const {
    const leak::RootGroups& roots = report_.roots();
    const leak::RootPlace place = roots.PlaceOf(root);
    const leak::RootGroup& group = roots.group(place.group);
    Json json = GroupJson(place.group);
    const bool in_register = group.kind == leak::RootGroup::Kind::kRegisters;
    json["register"] =
        in_register
            ? Json(leak::RegisterName(*roots.ThreadOf(group), static_cast<uint64_t>(place.offset)))
            : Json();
    json["offset"] = place.address == 0 ? Json() : Json(place.offset);
    json["address"] = place.address == 0 ? Json() : Json(Hex(place.address));
    json["text"] = RootText(roots, root);
    return json;
  }

  const GraphView& graph_;
  leak::GraphReport& report_;
};

}  // namespace

void WriteGraphJson(const GraphView& graph, size_t top, words::Sink& out) {
  const GraphJsonWriter writer(graph);
  const MemberWriter member(&out);
  if (graph.summary().has_value()) member("graph", writer.Summary(*graph.summary(), top));
  if (graph.why().has_value()) member("why", writer.Why(*graph.why(), top));
  if (graph.pointers().has_value())
    member("who_points_at", writer.Pointers(*graph.pointers(), top));
  member("unnamed_variables", Json(graph.report().roots().unnamed()));
}

}  // namespace memtrace::report::render
