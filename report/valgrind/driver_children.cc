#include "report/valgrind/driver_children.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/string_view.h"
#include "report/suppress/suppressions.h"
#include "report/trace/trace_reader.h"
#include "report/tree/process_tree.h"

namespace memtrace::report::valgrind {
namespace {

bool MatchesAny(const std::vector<std::string>& patterns, absl::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return suppress::WildcardMatches(pattern, text);
  });
}

// Valgrind has the name that exec was given; here are the file, and what the program was called.
bool IsSkipped(const ProcessInfo& process, const DriverOptions& options) {
  if (!options.trace_children || MatchesAny(options.skip_children, process.executable)) return true;
  if (process.command.empty()) return false;
  if (MatchesAny(options.skip_children, process.command.front())) return true;
  return std::any_of(process.command.begin() + 1, process.command.end(),
                     [&](const std::string& argument) {
                       return MatchesAny(options.skip_children_by_argument, argument);
                     });
}

std::string CalledAs(const ProcessInfo& process) {
  return process.command.empty() ? process.executable : process.command.front();
}

}  // namespace

std::vector<TraceToReport> TracesToReport(const std::vector<std::string>& traces,
                                          const std::string& program,
                                          const DriverOptions& options) {
  std::vector<ProcessImage> images;
  size_t root = kNoImage;
  for (const std::string& file : traces) {
    const auto reader = TraceReader::Open(file);
    if (!reader.ok()) continue;
    if (file == program) root = images.size();
    ProcessImage& image = images.emplace_back();
    image.file = file;
    image.trace_id = (*reader)->header().trace_id;
    image.parent_trace_id = (*reader)->header().parent_trace_id;
    image.start_monotonic_ns = (*reader)->metadata().start_monotonic_ns;
    image.process = (*reader)->metadata().process;
    image.process.pid = (*reader)->header().pid;
    image.process.end = ProcessInfo::End::kCut;  // when it ended is not looked for
  }
  const ProcessTree tree = LinkProcesses(images);
  while (root != kNoImage && tree.nodes[root].link == ImageLink::kExec)
    root = tree.nodes[root].parent;
  std::vector<bool> stays(images.size());
  for (const size_t i : tree.order) {  // parents first
    const ImageNode& node = tree.nodes[i];
    const bool is_forked = images[i].parent_trace_id != 0;
    if (i == root) {
      stays[i] = true;
    } else if (node.parent == kNoImage) {
      stays[i] = options.trace_children && !IsSkipped(images[i].process, options);
    } else {
      stays[i] = stays[node.parent] && (is_forked || !IsSkipped(images[i].process, options));
    }
  }
  std::vector<TraceToReport> left;
  for (const std::string& file : traces) {
    TraceToReport one = {.file = file};
    const auto image = std::find_if(images.begin(), images.end(),
                                    [&](const ProcessImage& image) { return image.file == file; });
    if (image != images.end()) {
      const auto index = static_cast<size_t>(image - images.begin());
      if (!stays[index]) continue;
      size_t first = index;
      while (tree.nodes[first].link == ImageLink::kExec) first = tree.nodes[first].parent;
      one.is_commands = root == kNoImage || first == root;
      if (const size_t next = tree.nodes[index].replaced_by; next != kNoImage) {
        one.next = stays[next] ? TraceToReport::Next::kReported : TraceToReport::Next::kLeftOut;
        one.next_program = CalledAs(images[next].process);
      }
    }
    left.push_back(std::move(one));
  }
  return left;
}

}  // namespace memtrace::report::valgrind
