// SourceTree: memory by source folder, file and function: what was allocated there, and what
// the code itself takes.
//
//   /home/user/app            folder: its path from the one above it
//     src/net                 folders with one child are one node
//       socket.cc             file
//         Connect(int)        function
//   [no source]               what has no source file: by module
//
// An allocation belongs to the caller that the report's tables name: the innermost frame of the
// project. The static footprint of a function or variable belongs to the source file of its
// compilation unit. One thread.

#ifndef MEMTRACE_REPORT_RINGS_SOURCE_TREE_H_
#define MEMTRACE_REPORT_RINGS_SOURCE_TREE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/render/site_measure.h"
#include "report/render/view.h"
#include "symbolizer/static_footprint.h"

namespace memtrace::report::rings {

using render::kSiteMeasures;
using render::SiteMeasure;

struct Amounts {
  std::array<uint64_t, kSiteMeasures> heap{};  // by SiteMeasure
  symbolizer::FootprintBytes fixed;

  uint64_t of(SiteMeasure measure) const { return heap[static_cast<size_t>(measure)]; }
  void Add(const Amounts& more);
  bool empty() const;
};

struct Node {
  enum class Kind { kFolder, kFile, kFunction };

  std::string name;
  Kind kind = Kind::kFolder;
  Amounts sum;  // of itself and all below
  Amounts own;  // of itself alone
  std::map<std::string, std::unique_ptr<Node>> children;  // by name
};

// The amount that the tree is sorted by: a measure of the heap, or a part of the static footprint.
struct Weight {
  enum class Fixed { kNone, kText, kData, kBss, kStatic };
  SiteMeasure measure = SiteMeasure::kLive;
  Fixed fixed = Fixed::kNone;

  uint64_t of(const Amounts& amounts) const;
};
// The names of measures, and "text", "data", "bss", "static" (the three together).
absl::StatusOr<Weight> ParseWeight(absl::string_view name);
std::string WeightName(const Weight& weight);

class SourceTree {
 public:
  SourceTree() { root_.name = "/"; }

  // `path` empty: of no source file. `module`: a path, or empty.
  void Add(absl::string_view path, absl::string_view module, absl::string_view function,
           const Amounts& amounts);
  void AddSites(const render::ReportView& view);
  void AddFootprint(const std::string& module, const symbolizer::StaticFootprint& footprint);

  // After the last Add(): sums, and chains of folders become one node.
  void Finish();
  const Node& root() const { return root_; }

  // The branch that a user names: "/home/user/app/src", "src/net", "socket.cc", a path below
  // `directory`. An error (NotFound) that lists some where none or several fit.
  absl::StatusOr<const Node*> Find(absl::string_view branch, absl::string_view directory) const;
  // The path of a node of this tree: "/home/user/app/src/net".
  std::string PathOf(const Node& node) const;

 private:
  Node root_;
};

// The children by weight, the heaviest first; equal ones by name. Those without
// any amount are left out.
std::vector<const Node*> SortedChildren(const Node& node, const Weight& weight);

}  // namespace memtrace::report::rings

#endif  // MEMTRACE_REPORT_RINGS_SOURCE_TREE_H_
