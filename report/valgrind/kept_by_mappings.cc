#include "report/valgrind/kept_by_mappings.h"

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "report/leak/graph_report.h"

namespace memtrace::report::valgrind {
namespace {

// Not the heap, nor what a module or a thread has for itself.
bool IsOfTheProgramsMapping(const leak::RootGroups& roots, const leak::RootGroup& group) {
  if (group.kind != leak::RootGroup::Kind::kMapping) return false;
  const leak::ScanRegion* region = roots.RegionOf(group);
  if (region == nullptr) return false;
  switch (region->kind) {
    case format::ScanRegionKind::kAnonymous:
    case format::ScanRegionKind::kFile:
    case format::ScanRegionKind::kShared:
      return true;
    default:
      return false;
  }
}

}  // namespace

void MarkKeptByMappings(const Analysis& analysis, const leak::HeldScan& held,
                        render::LossList* losses) {
  if (losses->scan == nullptr || losses->scan->number != held.scan.number) return;
  leak::GraphReport report(analysis, held, {});
  const leak::RootGroups& roots = report.roots();
  std::vector<bool> is_mapping(roots.size());
  for (uint32_t i = 0; i < roots.size(); ++i) {
    is_mapping[i] = IsOfTheProgramsMapping(roots, roots.group(i));
  }
  absl::flat_hash_set<std::tuple<uint32_t, format::AllocFunction, LeakKind>> kept;
  for (uint32_t block = 0; block < report.graph().size(); ++block) {
    const uint32_t root = report.paths().RootOf(block);
    if (root == leak::KeepPaths::kNone || !is_mapping[roots.GroupOf(root)]) continue;
    const leak::BlockSite& site = report.SiteOf(block);
    kept.emplace(site.stack.value, site.function, report.KindOf(block));
  }
  for (render::Loss& loss : losses->losses) {
    loss.kept_by_mapping = kept.contains({loss.site_stack.value, loss.allocator, loss.kind});
  }
}

}  // namespace memtrace::report::valgrind
