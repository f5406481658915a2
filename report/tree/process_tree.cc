#include "report/tree/process_tree.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace memtrace::report {
namespace {

class Linker {
 public:
  explicit Linker(const std::vector<ProcessImage>& images) : images_(images) {}
  ProcessTree Run();

 private:
  // Host, namespace, pid, start of the process; without the start: 0.
  using ProcessKey = std::tuple<std::string, uint64_t, uint32_t, uint64_t>;

  void Sort();
  void Link(size_t image);
  // The last image of the list that is before `image`; kNoImage: none.
  size_t LastBefore(const std::vector<size_t>& list, size_t image) const;
  size_t Predecessor(size_t image, ImageLink* link) const;
  size_t PredecessorByPidAlone(size_t image) const;
  size_t ParentByPid(size_t image, ImageLink* link) const;
  bool Descends(size_t image, size_t from) const;
  bool RanAt(size_t image, uint64_t monotonic_ns) const {
    const ProcessImage& one = images_[image];
    return one.process.end == ProcessInfo::End::kCut ||
           one.start_monotonic_ns + one.process.duration_ns >= monotonic_ns;
  }
  ProcessKey KeyOf(const ProcessInfo& process, uint32_t pid, uint64_t boot_ticks) const {
    return {process.host, process.pid_namespace, pid, boot_ticks};
  }

  const std::vector<ProcessImage>& images_;
  ProcessTree tree_;
  std::vector<size_t> rank_;  // place in tree_.order
  absl::flat_hash_map<uint64_t, size_t> by_trace_;
  absl::flat_hash_map<ProcessKey, std::vector<size_t>> by_process_;  // in order
  absl::flat_hash_map<ProcessKey, std::vector<size_t>> by_pid_;      // in order; start 0
};

void Linker::Sort() {
  tree_.order.resize(images_.size());
  std::iota(tree_.order.begin(), tree_.order.end(), size_t{0});
  std::sort(tree_.order.begin(), tree_.order.end(), [this](size_t a, size_t b) {
    const ProcessImage& x = images_[a];
    const ProcessImage& y = images_[b];
    // One whose record is damaged has events, and may have made others.
    const bool x_last = !x.process.has_record && x.events == 0;
    const bool y_last = !y.process.has_record && y.events == 0;
    return std::tie(x_last, x.process.host, x.start_monotonic_ns, a) <
           std::tie(y_last, y.process.host, y.start_monotonic_ns, b);
  });
  rank_.resize(images_.size());
  for (size_t i = 0; i < tree_.order.size(); ++i) rank_[tree_.order[i]] = i;
}

size_t Linker::LastBefore(const std::vector<size_t>& list, size_t image) const {
  const auto next = std::lower_bound(
      list.begin(), list.end(), rank_[image],
      [this](size_t other, size_t rank) { return rank_[other] < rank; });
  return next == list.begin() ? kNoImage : *std::prev(next);
}

size_t Linker::Predecessor(size_t image, ImageLink* link) const {
  const ProcessInfo& process = images_[image].process;
  if (process.boot_ticks != 0) {
    *link = ImageLink::kExec;
    return LastBefore(by_process_.at(KeyOf(process, process.pid, process.boot_ticks)), image);
  }
  if (images_[image].parent_trace_id != 0) return kNoImage;
  *link = ImageLink::kExec;
  if (!process.has_record) return PredecessorByPidAlone(image);
  const size_t before = LastBefore(by_pid_.at(KeyOf(process, process.pid, 0)), image);
  const bool executed = before != kNoImage &&
                        images_[before].process.boot_ticks == 0 &&
                        images_[before].process.end == ProcessInfo::End::kExec;
  return executed ? before : kNoImage;
}

// All others are linked: what is left over has no next image.
size_t Linker::PredecessorByPidAlone(size_t image) const {
  for (size_t i = rank_[image]; i-- > 0;) {
    const size_t before = tree_.order[i];
    const ProcessInfo& process = images_[before].process;
    if (process.has_record && process.pid == images_[image].process.pid &&
        process.end == ProcessInfo::End::kExec && tree_.nodes[before].replaced_by == kNoImage) {
      return before;
    }
  }
  return kNoImage;
}

size_t Linker::ParentByPid(size_t image, ImageLink* link) const {
  const ProcessInfo& process = images_[image].process;
  if (process.ppid == 0) return kNoImage;
  if (process.parent_boot_ticks != 0) {
    const auto found =
        by_process_.find(KeyOf(process, process.ppid, process.parent_boot_ticks));
    if (found != by_process_.end()) {
      *link = ImageLink::kParent;
      return LastBefore(found->second, image);
    }
  }
  const auto found = by_pid_.find(KeyOf(process, process.ppid, 0));
  if (found == by_pid_.end()) return kNoImage;
  const size_t before = LastBefore(found->second, image);
  if (before == kNoImage || !RanAt(before, images_[image].start_monotonic_ns)) return kNoImage;
  // Both starts are known, and it is another process.
  if (process.parent_boot_ticks != 0 && images_[before].process.boot_ticks != 0) return kNoImage;
  *link = ImageLink::kTime;
  return before;
}

bool Linker::Descends(size_t image, size_t from) const {
  while (image != kNoImage && rank_[image] >= rank_[from]) {
    if (image == from) return true;
    image = tree_.nodes[image].parent;
  }
  return false;
}

void Linker::Link(size_t image) {
  ImageNode& node = tree_.nodes[image];
  node.parent = Predecessor(image, &node.link);
  // If two images of one process say that they followed the same one, the first of them did.
  if (node.parent != kNoImage && tree_.nodes[node.parent].replaced_by == kNoImage) {
    tree_.nodes[node.parent].replaced_by = image;
    return;
  }
  node.link = ImageLink::kNone;
  ImageLink by_pid_link = ImageLink::kNone;
  const size_t by_pid = ParentByPid(image, &by_pid_link);
  node.parent = by_pid;
  node.link = by_pid == kNoImage ? ImageLink::kNone : by_pid_link;
  const auto forked_by = by_trace_.find(images_[image].parent_trace_id);
  if (images_[image].parent_trace_id != 0 && forked_by != by_trace_.end() &&
      rank_[forked_by->second] < rank_[image] &&
      (by_pid == kNoImage || !Descends(by_pid, forked_by->second))) {
    node.parent = forked_by->second;
    node.link = ImageLink::kFork;
  } else if (images_[image].parent_trace_id != 0 && by_pid != kNoImage) {
    node.link = ImageLink::kFork;
  }
  if (node.parent != kNoImage) tree_.nodes[node.parent].children.push_back(image);
}

ProcessTree Linker::Run() {
  Sort();
  tree_.nodes.resize(images_.size());
  for (const size_t image : tree_.order) {
    const ProcessInfo& process = images_[image].process;
    by_trace_.try_emplace(images_[image].trace_id, image);
    if (process.boot_ticks != 0) {
      by_process_[KeyOf(process, process.pid, process.boot_ticks)].push_back(image);
    }
    by_pid_[KeyOf(process, process.pid, 0)].push_back(image);
  }
  for (const size_t image : tree_.order) {
    Link(image);
    if (tree_.nodes[image].parent == kNoImage) tree_.roots.push_back(image);
    tree_.processes += tree_.nodes[image].link != ImageLink::kExec;
  }
  return std::move(tree_);
}

}  // namespace

ProcessTree LinkProcesses(const std::vector<ProcessImage>& images) {
  return Linker(images).Run();
}

}  // namespace memtrace::report
