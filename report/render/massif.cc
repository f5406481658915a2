// --format massif: the heap over time as Massif writes it, for ms_print and
// massif-visualizer. Snapshots are the points of the timeline; those at the peak and at the
// end have a tree of who held the memory.
//
// Time is in ms. mem_heap_extra_B is 0: what the allocator adds is not part of our sizes.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/base/path.h"
#include "report/render/formats.h"
#include "report/render/selection_lines.h"
#include "report/render/valgrind_losses.h"
#include "report/words/escape.h"
#include "report/words/shell_words.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kSnapshots = 100;  // as many as Massif keeps
constexpr size_t kDepth = 30;       // Massif's default, and ms_print recurses
constexpr double kThreshold = 0.01;

struct Node {
  uint64_t bytes = 0;
  uint64_t ends_here = 0;  // of bytes: from stacks without a further frame
  std::map<std::string, std::unique_ptr<Node>> callers;
};

class HeapTree {
 public:
  void Add(const Loss& loss, uint64_t bytes) {
    if (bytes == 0) return;
    root_.bytes += bytes;
    Node* node = &root_;
    // The allocating function itself is the root's.
    for (size_t i = 1; i < loss.stack.size() && i <= kDepth; ++i) {
      std::unique_ptr<Node>& next = node->callers[LossFrameText(loss.stack[i])];
      if (next == nullptr) next = std::make_unique<Node>();
      node = next.get();
      node->bytes += bytes;
    }
    node->ends_here += bytes;
  }
  uint64_t bytes() const { return root_.bytes; }

  // `total` is the snapshot's: what is not in the tree has a line of its own.
  void Write(uint64_t total, words::Sink& out) const {
    const uint64_t rest = total - std::min(total, root_.bytes);
    Write(root_, 0, rest, total,
          "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.", out);
  }

 private:
  static void Line(size_t depth, size_t children, uint64_t bytes, absl::string_view text,
                   words::Sink& out) {
    out.Write(absl::StrCat(std::string(depth, ' '), "n", children, ": ", bytes, " ", text, "\n"));
  }

  static void Write(const Node& node, size_t depth, uint64_t rest, uint64_t total,
                    absl::string_view text, words::Sink& out) {
    std::vector<std::pair<const std::string*, const Node*>> shown;
    uint64_t small = 0, small_places = 0;
    for (const auto& [name, caller] : node.callers) {
      if (static_cast<double>(caller->bytes) >= kThreshold * static_cast<double>(total)) {
        shown.emplace_back(&name, caller.get());
      } else {
        small += caller->bytes;
        ++small_places;
      }
    }
    std::stable_sort(shown.begin(), shown.end(), [](const auto& a, const auto& b) {
      return a.second->bytes > b.second->bytes;
    });
    // A node is as large as its callers together. One that has none is whole by itself.
    const uint64_t here = node.callers.empty() ? 0 : node.ends_here;
    const size_t children = shown.size() + (small > 0) + (here > 0) + (rest > 0);
    Line(depth, children, node.bytes + rest, text, out);
    for (const auto& [name, caller] : shown) Write(*caller, depth + 1, 0, total, *name, out);
    if (small > 0) {
      Line(depth + 1, 0, small,
           absl::StrFormat("in %d place%s, all below massif's threshold (%.2f%%)", small_places,
                           small_places == 1 ? "" : "s", kThreshold * 100),
           out);
    }
    if (here > 0) Line(depth + 1, 0, here, "(the stack ends here)", out);
    if (rest > 0) Line(depth + 1, 0, rest, "(from sites that are not shown)", out);
  }

  Node root_;
};

struct Snapshot {
  uint64_t time_ns = 0;
  uint64_t bytes = 0;
  const HeapTree* tree = nullptr;
  const char* kind = "empty";
};

// The points of the timeline, at most kSnapshots: of neighbours, the one that holds most.
std::vector<Snapshot> Timeline(const Analysis& analysis) {
  const std::vector<TimelinePoint>& points = analysis.timeline;
  const size_t step = points.size() / kSnapshots + 1;
  std::vector<Snapshot> snapshots;
  for (size_t begin = 0; begin < points.size(); begin += step) {
    const TimelinePoint* most = &points[begin];
    for (size_t i = begin; i < std::min(begin + step, points.size()); ++i) {
      if (points[i].live_bytes > most->live_bytes) most = &points[i];
    }
    snapshots.push_back({.time_ns = most->time_ns, .bytes = most->live_bytes});
  }
  return snapshots;
}

}  // namespace

void RenderMassif(const ReportView& view, words::Sink& out) {
  const Analysis& analysis = view.analysis();
  HeapTree at_peak, at_end;
  for (const Site* site : view.sites()) {
    if (site->bytes_at_peak == 0 && site->live_bytes == 0) continue;
    const Loss stack = LossStack(view, site->stack, site->function);
    at_peak.Add(stack, site->bytes_at_peak);
    at_end.Add(stack, site->live_bytes);
  }
  const Totals& totals = analysis.totals;
  const Range& range = analysis.range;
  const uint64_t begin = range.from_ns;
  const uint64_t end = std::max({begin, totals.peak_time_ns,
                                 std::min(range.to_ns, analysis.process.duration_ns)});

  std::vector<Snapshot> snapshots;
  snapshots.push_back({.time_ns = begin});
  for (const Snapshot& point : Timeline(analysis)) {
    // In between; the two that are exact stand for their own instants.
    if (point.time_ns > begin && point.time_ns < end && point.bytes <= totals.peak_live_bytes) {
      snapshots.push_back(point);
    }
  }
  // Estimates of sites need not add up to the estimate of all.
  snapshots.push_back({totals.peak_time_ns, std::max(totals.peak_live_bytes, at_peak.bytes()),
                       &at_peak, "peak"});
  std::stable_sort(snapshots.begin(), snapshots.end(), [](const Snapshot& a, const Snapshot& b) {
    return a.time_ns < b.time_ns;
  });
  snapshots.push_back({end, std::max(totals.live_bytes, at_end.bytes()), &at_end, "detailed"});

  const std::string only = SelectionText(view, /*of_sites_alone=*/false);
  out.Write(absl::StrCat(
      "desc: memtrace ", words::EscapeControls(FileNameOf(analysis.file)), only.empty() ? "" : "; ",
      only, "\ncmd: ", words::ShellCommand(analysis.process.command), "\ntime_unit: ms\n"));
  for (size_t i = 0; i < snapshots.size() && !out.done(); ++i) {
    const Snapshot& snapshot = snapshots[i];
    out.Write(absl::StrFormat("#-----------\nsnapshot=%d\n#-----------\ntime=%d\nmem_heap_B=%d\n"
                              "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
                              i, snapshot.time_ns / 1'000'000, snapshot.bytes, snapshot.kind));
    if (snapshot.tree != nullptr) snapshot.tree->Write(snapshot.bytes, out);
  }
}

}  // namespace memtrace::report::render
