// A tree with a row for each node: amounts to the left, names to the right, behind lines that
// show what belongs to what.

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/render/short_name.h"
#include "report/render/text_report.h"
#include "report/rings/rings_formats.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::rings {
namespace {

class Tree {
 public:
  explicit Tree(const RingsOptions& options)
      : options_(options), wide_(options.style.wide()), cell_(wide_ ? 11 : 6) {
    const bool fixed = options.weight.fixed != Weight::Fixed::kNone;
    // The column by which the tree is sorted comes first, whatever it is.
    columns_.push_back(options.weight);
    for (const SiteMeasure measure :
         {SiteMeasure::kLive, SiteMeasure::kPeak, SiteMeasure::kAllocated, SiteMeasure::kWasted}) {
      if (fixed || options.weight.measure != measure) columns_.push_back({measure});
    }
    for (const Weight::Fixed one :
         {Weight::Fixed::kText, Weight::Fixed::kData, Weight::Fixed::kBss}) {
      if (options.footprints && options.weight.fixed != one)
        columns_.push_back({SiteMeasure::kLive, one});
    }
    const size_t most = wide_ ? columns_.size() : options.style.width < 80 ? 4 : 7;
    columns_.resize(std::min(columns_.size(), most));
  }

  std::string Render(const Node& start, const std::string& path) {
    std::string header;
    for (const Weight& column : columns_) {
      absl::StrAppendFormat(&header, "%*s ", cell_, ColumnName(column));
    }
    absl::StrAppend(&out_, "  ", options_.style.Paint(render::Ink::kDim, header + " source"), "\n");
    Row(start, path, "");
    Children(start, "", options_.depth);
    return std::move(out_);
  }

 private:
  std::string ColumnName(const Weight& column) const {
    std::string name = WeightName(column);
    if (!wide_ && name == "allocated") name = "total";
    if (!wide_ && name == "allocations") name = "allocs";
    if (!wide_ && name == "peak-blocks") name = "pkblks";
    if (!wide_ && name == "temporary") name = "temp.";
    if (name == "resident") return wide_ ? name : "resid.";
    if (name == "peak-resident") return wide_ ? "peak resid." : "pk.res";
    return name;
  }

  std::string Cell(const Weight& column, const Amounts& amounts) const {
    const uint64_t value = column.of(amounts);
    const bool bytes = column.fixed != Weight::Fixed::kNone || IsBytes(column.measure);
    if (bytes) return wide_ ? words::HumanBytes(value) : words::ShortBytes(value);
    return wide_ ? words::Count(value) : words::ShortCount(value);
  }

  void Row(const Node& node, const std::string& name, const std::string& lead) {
    std::string line = "  ";
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = absl::StrFormat("%*s ", cell_, Cell(columns_[i], node.sum));
      absl::StrAppend(&line, i == 0 ? options_.style.Paint(render::Ink::kStrong, cell) : cell);
    }
    Name(line, lead, [&](size_t room) {
      // The end of a path tells more than its begin; of a function the name without arguments does.
      return node.kind == Node::Kind::kFunction && name == node.name
                 ? render::ShortName(name, room, options_.style)
                 : words::KeepEnd(options_.style.Name(name), room, options_.style.ellipsis());
    });
  }

  void Name(const std::string& line, std::string lead,
            const std::function<std::string(size_t room)>& name) {
    const size_t used = 2 + columns_.size() * static_cast<size_t>(cell_ + 1) + 1;
    const size_t room = options_.style.width - used;
    // If the tree is so deep that the lines leave no room, the number of the level
    // stands in place of them.
    constexpr size_t kShortestName = 8;
    const size_t level = words::DisplayWidth(lead) / 2;
    if (2 * level + kShortestName > room) lead = absl::StrCat(level, ": ");
    absl::StrAppend(&out_, line, " ", lead, name(room - words::DisplayWidth(lead)), "\n");
  }

  void Children(const Node& node, const std::string& lead, size_t depth) {
    if (depth == 0) return;
    const std::vector<const Node*> children = SortedChildren(node, options_.weight);
    const size_t shown = std::min(children.size(), options_.top);
    const bool utf8 = options_.style.utf8;
    for (size_t i = 0; i < shown; ++i) {
      const bool last = i + 1 == children.size();
      const std::string turn = last ? (utf8 ? "└ " : "` ") : (utf8 ? "├ " : "+ ");
      Row(*children[i], children[i]->name, lead + turn);
      // A branch that has nothing of the measure asked for is one row.
      if (!options_.full && options_.weight.of(children[i]->sum) == 0) continue;
      Children(*children[i], lead + (last ? "  " : (utf8 ? "│ " : "| ")), depth - 1);
    }
    if (shown == children.size()) return;
    Amounts rest;
    for (size_t i = shown; i < children.size(); ++i) rest.Add(children[i]->sum);
    std::string line = "  ";
    for (const Weight& column : columns_) {
      absl::StrAppendFormat(&line, "%*s ", cell_, Cell(column, rest));
    }
    const std::string more = absl::StrCat("and ", children.size() - shown, " more");
    Name(line, lead + (utf8 ? "└ " : "` "), [&](size_t room) {
      return words::KeepEnd(more, room, options_.style.ellipsis());
    });
  }

  const RingsOptions& options_;
  const bool wide_;
  const int cell_;
  std::vector<Weight> columns_;
  std::string out_;
};

}  // namespace

std::string RenderRingsText(const SourceTree& tree, const Node& start, const std::string& title,
                            const RingsOptions& options) {
  std::string out = absl::StrCat(
      options.style.Paint(render::Ink::kHeading, "memtrace rings"), "  ",
      words::KeepEnd(options.style.Name(title), options.style.width - 16, options.style.ellipsis()),
      "\n\n");
  for (const std::string& only : options.only) {
    absl::StrAppend(&out, "  Only ",
                    options.style.Paint(render::Ink::kWarning, options.style.Name(only)), "\n");
  }
  if (!options.only.empty()) out += "\n";
  absl::StrAppend(&out, Tree(options).Render(start, tree.PathOf(start)));
  for (const std::string& note : options.notes) {
    absl::StrAppend(&out, "  ! ", options.style.Name(note), "\n");
  }
  return out;
}

}  // namespace memtrace::report::rings
