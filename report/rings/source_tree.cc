#include "report/rings/source_tree.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/base/path.h"

namespace memtrace::report::rings {
namespace {

constexpr absl::string_view kNoSource = "[no source]";
constexpr size_t kMostFolders = 256;  // of a path; a hostile one has as many as fit

using Fixed = Weight::Fixed;
constexpr std::pair<Fixed, absl::string_view> kFixed[] = {{Fixed::kText, "text"},
                                                          {Fixed::kData, "data"},
                                                          {Fixed::kBss, "bss"},
                                                          {Fixed::kStatic, "static"}};

Node* Child(Node* parent, absl::string_view name, Node::Kind kind) {
  std::unique_ptr<Node>& child = parent->children[std::string(name)];
  if (child == nullptr) {
    child = std::make_unique<Node>();
    child->name = std::string(name);
    child->kind = kind;
  }
  return child.get();
}

void SumUp(Node* node) {
  node->sum = node->own;
  for (auto& [name, child] : node->children) {
    SumUp(child.get());
    node->sum.Add(child->sum);
  }
}

bool IsFolder(const Node& node) { return node.kind == Node::Kind::kFolder; }

// A folder whose only child is a folder is one with it.
void Join(Node* node) {
  for (auto& [name, child] : node->children) Join(child.get());
  std::map<std::string, std::unique_ptr<Node>> joined;
  for (auto& [name, child] : node->children) {
    std::unique_ptr<Node> one = std::move(child);
    while (IsFolder(*one) && one->children.size() == 1 && one->own.empty() &&
           IsFolder(*one->children.begin()->second)) {
      std::unique_ptr<Node> below = std::move(one->children.begin()->second);
      below->name = absl::StrCat(one->name, "/", below->name);
      one = std::move(below);
    }
    const std::string key = one->name;
    joined.emplace(key, std::move(one));
  }
  node->children = std::move(joined);
}

std::string Append(const std::string& path, const Node& node) {
  if (path.empty()) return node.name;
  return absl::StrCat(path == "/" ? (absl::StartsWith(node.name, "[") ? "" : "/") : path + "/",
                      node.name);
}

void Visit(const Node& node, const std::string& path,
           const std::function<void(const Node&, const std::string&)>& visit) {
  visit(node, path);
  for (const auto& [name, child] : node.children) Visit(*child, Append(path, *child), visit);
}

}  // namespace

void Amounts::Add(const Amounts& more) {
  for (size_t i = 0; i < heap.size(); ++i) heap[i] += more.heap[i];
  fixed.Add(more.fixed);
}

bool Amounts::empty() const {
  return fixed.total() == 0 &&
         std::all_of(heap.begin(), heap.end(), [](uint64_t value) { return value == 0; });
}

uint64_t Weight::of(const Amounts& amounts) const {
  switch (fixed) {
    case Fixed::kNone: return amounts.of(measure);
    case Fixed::kText: return amounts.fixed.text;
    case Fixed::kData: return amounts.fixed.data;
    case Fixed::kBss: return amounts.fixed.bss;
    case Fixed::kStatic: return amounts.fixed.total();
  }
  return 0;
}

absl::StatusOr<Weight> ParseWeight(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const SiteMeasure measure : render::kAllSiteMeasures) {
    names.push_back(SiteMeasureName(measure));
    if (names.back() == name) return Weight{measure, Fixed::kNone};
  }
  // As its column is called where there is little room.
  if (name == "total") return Weight{SiteMeasure::kAllocated, Fixed::kNone};
  for (const auto& [fixed, text] : kFixed) {
    names.push_back(text);
    if (text == name) return Weight{SiteMeasure::kLive, fixed};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--measure: \"", name, "\" is none of ", absl::StrJoin(names, ", ")));
}

std::string WeightName(const Weight& weight) {
  for (const auto& [fixed, text] : kFixed) {
    if (fixed == weight.fixed) return std::string(text);
  }
  return std::string(SiteMeasureName(weight.measure));
}

void SourceTree::Add(absl::string_view path, absl::string_view module, absl::string_view function,
                     const Amounts& amounts) {
  Node* node = &root_;
  if (path.empty()) {
    node = Child(node, kNoSource, Node::Kind::kFolder);
    if (!module.empty()) node = Child(node, FileNameOf(module), Node::Kind::kFile);
  } else {
    std::vector<absl::string_view> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
    std::erase(parts, ".");
    // A relative path, of which nobody knows to what, has a root of its own.
    if (path[0] != '/') node = Child(node, "[relative]", Node::Kind::kFolder);
    if (parts.size() > kMostFolders) parts.erase(parts.begin(), parts.end() - kMostFolders);
    for (size_t i = 0; i < parts.size(); ++i) {
      node = Child(node, parts[i],
                   i + 1 == parts.size() ? Node::Kind::kFile : Node::Kind::kFolder);
    }
  }
  if (!function.empty()) node = Child(node, function, Node::Kind::kFunction);
  node->own.Add(amounts);
}

void SourceTree::AddSites(const render::ReportView& view) {
  const std::vector<SiteMeasure> measures = render::MeasuresOf(view.analysis());
  for (const Site* site : view.sites()) {
    Amounts amounts;
    for (const SiteMeasure measure : measures) {
      amounts.heap[static_cast<size_t>(measure)] = ValueOf(view, *site, measure);
    }
    const Frame* caller = view.Caller(site->stack);
    if (caller == nullptr) {
      Add("", "", "[no stack]", amounts);
    } else {
      Add(caller->file, caller->module, render::FrameName(*caller), amounts);
    }
  }
}

void SourceTree::AddFootprint(const std::string& module,
                              const symbolizer::StaticFootprint& footprint) {
  for (const symbolizer::FootprintItem& item : footprint.items) {
    Amounts amounts;
    amounts.fixed = item.bytes;
    Add(item.unit, module, item.name, amounts);
  }
}

void SourceTree::Finish() {
  SumUp(&root_);
  Join(&root_);
}

absl::StatusOr<const Node*> SourceTree::Find(absl::string_view branch,
                                             absl::string_view directory) const {
  absl::ConsumePrefix(&branch, "./");
  while (branch.size() > 1 && absl::ConsumeSuffix(&branch, "/")) {
  }
  const std::string below = absl::StrCat(directory, "/", branch);
  const std::string ending = absl::StrCat("/", branch);
  std::vector<std::pair<const Node*, std::string>> exact, ends, inside;
  Visit(root_, "/", [&](const Node& node, const std::string& path) {
    if (path == branch || path == below) exact.emplace_back(&node, path);
    if (absl::EndsWith(path, ending)) ends.emplace_back(&node, path);
    // Within the name of a chain that was joined: the chain begins there.
    const size_t at = absl::StrCat(path, "/").find(absl::StrCat(ending, "/"));
    if (at != std::string::npos && at + ending.size() > path.size() - node.name.size()) {
      inside.emplace_back(&node, path);
    }
  });
  for (auto* found : {&exact, &ends, &inside}) {
    if (found->size() == 1) return found->front().first;
    if (found->empty()) continue;
    std::vector<std::string> some;
    for (size_t i = 0; i < std::min<size_t>(found->size(), 3); ++i)
      some.push_back((*found)[i].second);
    return absl::NotFoundError(absl::StrCat("--start: ", found->size(), " branches end in \"",
                                            branch, "\": ", absl::StrJoin(some, ", "),
                                            found->size() > 3 ? ", ..." : ""));
  }
  std::vector<std::string> first;
  for (const auto& [name, child] : root_.children) {
    if (first.size() < 3) first.push_back(Append("/", *child));
  }
  return absl::NotFoundError(absl::StrCat("--start: no branch \"", branch,
                                          "\" in the tree; it has ",
                                          first.empty() ? "nothing" : absl::StrJoin(first, ", ")));
}

std::string SourceTree::PathOf(const Node& wanted) const {
  std::string found;
  Visit(root_, "/", [&](const Node& node, const std::string& path) {
    if (&node == &wanted) found = path;
  });
  return found;
}

std::vector<const Node*> SortedChildren(const Node& node, const Weight& weight) {
  std::vector<const Node*> children;
  for (const auto& [name, child] : node.children) {
    if (!child->sum.empty()) children.push_back(child.get());
  }
  std::stable_sort(children.begin(), children.end(), [&](const Node* a, const Node* b) {
    const auto key = [&](const Node* one) {
      return std::pair(weight.of(one->sum), one->sum.of(SiteMeasure::kAllocated) +
                                                one->sum.fixed.total());
    };
    return key(a) > key(b);
  });
  return children;
}

}  // namespace memtrace::report::rings
