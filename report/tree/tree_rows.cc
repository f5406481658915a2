#include "report/tree/tree_rows.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "format/checksum.h"

namespace memtrace::report {
namespace {

// The figures of all that is below an image, itself and the images that replaced it included.
struct Subtree {
  uint64_t shape = 0;  // equal for those that look alike
  uint64_t images = 0, allocations = 0, bytes = 0, live = 0, peak = 0;
};

// Parents come before their children in tree.order, so from its end each has all of
// its own; deep trees need no deep stack.
std::vector<Subtree> SumUp(const std::vector<ProcessImage>& images, const ProcessTree& tree) {
  std::vector<Subtree> subtrees(images.size());
  std::vector<uint64_t> shapes;
  for (auto at = tree.order.rbegin(); at != tree.order.rend(); ++at) {
    const ImageNode& node = tree.nodes[*at];
    const Totals& totals = images[*at].totals;
    Subtree& sum = subtrees[*at];
    sum = {0, 1, totals.allocations, totals.bytes_allocated, totals.live_bytes,
           totals.peak_live_bytes};
    const auto add = [&](size_t below) {
      const Subtree& other = subtrees[below];
      sum.images += other.images;
      sum.allocations += other.allocations;
      sum.bytes += other.bytes;
      sum.live += other.live;
      sum.peak = std::max(sum.peak, other.peak);
    };
    shapes.clear();
    for (const size_t child : node.children) {
      add(child);
      shapes.push_back(subtrees[child].shape);
    }
    std::sort(shapes.begin(), shapes.end());
    shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
    shapes.push_back(images[*at].executable);
    if (node.replaced_by != kNoImage) {
      add(node.replaced_by);
      shapes.push_back(subtrees[node.replaced_by].shape);
    }
    shapes.push_back(shapes.size());
    sum.shape = format::Checksum(shapes.data(), shapes.size() * sizeof(uint64_t));
  }
  return subtrees;
}

class Layout {
 public:
  Layout(const std::vector<ProcessImage>& images, const ProcessTree& tree, size_t alike,
         size_t most_rows)
      : images_(images), tree_(tree), alike_(alike), most_rows_(most_rows),
        subtrees_(SumUp(images, tree)) {}

  TreeRows Run() {
    PushSiblings(tree_.roots, 0, {});
    while (!pending_.empty()) {
      TreeRow row = std::move(pending_.back());
      pending_.pop_back();
      if (out_.rows.size() >= most_rows_) {
        out_.images_left_out += row.more > 0 ? row.more_images : 1;
        if (row.more > 0) continue;
      }
      if (row.more == 0) {
        const ImageNode& node = tree_.nodes[row.image];
        std::vector<bool> below = row.goes_on;
        // The next image of the process stands at this one's depth, below its children.
        const bool goes_on = !row.last || node.replaced_by != kNoImage;
        if (node.replaced_by != kNoImage) {
          TreeRow next = One(node.replaced_by, row.depth, row.goes_on, row.last);
          next.replaces = true;
          pending_.push_back(std::move(next));
          row.last = false;
        }
        if (row.depth < kDrawnDepth) below.push_back(goes_on);
        PushSiblings(node.children, row.depth + 1, below);
      }
      if (out_.rows.size() < most_rows_) out_.rows.push_back(std::move(row));
    }
    return std::move(out_);
  }

 private:
  TreeRow One(size_t image, size_t depth, const std::vector<bool>& goes_on, bool last) const {
    const Totals& totals = images_[image].totals;
    TreeRow row;
    row.image = image;
    row.allocations = totals.allocations;
    row.bytes = totals.bytes_allocated;
    row.live = totals.live_bytes;
    row.peak = totals.peak_live_bytes;
    row.depth = depth;
    row.goes_on = goes_on;
    row.last = last;
    return row;
  }

  // Onto the stack, so that the first comes off first.
  void PushSiblings(const std::vector<size_t>& siblings, size_t depth,
                    const std::vector<bool>& goes_on) {
    absl::flat_hash_map<uint64_t, std::vector<size_t>> by_shape;
    for (const size_t one : siblings) by_shape[subtrees_[one].shape].push_back(one);
    std::vector<TreeRow> rows;
    absl::flat_hash_map<size_t, TreeRow> behind;  // the last that is shown -> those left out
    absl::flat_hash_set<size_t> is_hidden;
    for (auto& [shape, group] : by_shape) {
      // One line for one or two more would save nothing.
      if (alike_ == SIZE_MAX || group.size() <= alike_ + 2) continue;
      std::vector<size_t> by_size = group;
      std::stable_sort(by_size.begin(), by_size.end(), [this](size_t a, size_t b) {
        return subtrees_[a].bytes > subtrees_[b].bytes;
      });
      TreeRow rest;
      rest.depth = depth;
      rest.goes_on = goes_on;
      for (size_t i = alike_; i < by_size.size(); ++i) {
        const Subtree& sum = subtrees_[by_size[i]];
        is_hidden.insert(by_size[i]);
        rest.image = by_size[i];
        ++rest.more;
        rest.more_images += sum.images;
        rest.allocations += sum.allocations;
        rest.bytes += sum.bytes;
        rest.live += sum.live;
        rest.peak = std::max(rest.peak, sum.peak);
      }
      size_t last_shown = kNoImage;
      for (const size_t one : group) {
        if (!is_hidden.contains(one)) last_shown = one;
      }
      behind[last_shown] = std::move(rest);
    }
    for (const size_t one : siblings) {
      if (is_hidden.contains(one)) continue;
      rows.push_back(One(one, depth, goes_on, false));
      const auto rest = behind.find(one);
      if (rest != behind.end()) rows.push_back(std::move(rest->second));
    }
    if (!rows.empty()) rows.back().last = true;
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) pending_.push_back(std::move(*row));
  }

  const std::vector<ProcessImage>& images_;
  const ProcessTree& tree_;
  const size_t alike_, most_rows_;
  const std::vector<Subtree> subtrees_;
  std::vector<TreeRow> pending_;  // the next one last
  TreeRows out_;
};

}  // namespace

TreeRows LayOutTree(const std::vector<ProcessImage>& images, const ProcessTree& tree,
                    size_t alike, size_t most_rows) {
  return Layout(images, tree, alike, most_rows).Run();
}

}  // namespace memtrace::report
