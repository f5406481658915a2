#include "report/command/info_stacks.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/words/escape.h"

namespace memtrace::report {
namespace {

using format::CrossCheckEnd;
using format::CrossCheckLayer;
using format::CrossCheckResult;
using format::StackMarker;

// Places shown of each marker, and frames of a stack around its first difference.
constexpr size_t kPlaces = 5;
constexpr size_t kFramesBefore = 3, kFramesAfter = 8;

const char* MarkerName(StackMarker marker) {
  switch (marker) {
    case StackMarker::kNone: return "complete";
    case StackMarker::kNoUnwindInfo: return "no unwind info";
    case StackMarker::kTruncated: return "truncated";
    case StackMarker::kUnreadable: return "not readable";
    case StackMarker::kInconsistent: return "inconsistent";
    case StackMarker::kUnsupported: return "not supported";
    case StackMarker::kNotCaptured: return "not captured";
    case StackMarker::kContextEnd: return "start of a context";
    case StackMarker::kLost: return "lost";
    case StackMarker::kOtherStack: return "over to another stack";
  }
  return "unknown";
}

const char* ResultText(CrossCheckResult result) {
  switch (result) {
    case CrossCheckResult::kSame: return "same";
    case CrossCheckResult::kDifferent: return "different";
    case CrossCheckResult::kGuessedOn: return "marked, and libunwind guesses on";
    case CrossCheckResult::kWentOn: return "marked, and libunwind goes on";
    case CrossCheckResult::kGaveUp: return "libunwind gave up";
    case CrossCheckResult::kNotUnwound: return "libunwind did not leave the tracer";
  }
  return "of an unknown result";
}

const char* LayerText(CrossCheckLayer layer) {
  switch (layer) {
    case CrossCheckLayer::kMemo: return "the memo";
    case CrossCheckLayer::kJoin: return "the join";
    case CrossCheckLayer::kWalk: return "the walk";
    case CrossCheckLayer::kGeneric: return "the generic interpreter";
  }
  return "an unknown layer";
}

std::string EndText(const CheckedStack& stack) {
  switch (stack.end) {
    case CrossCheckEnd::kFirstFrame: return "[libunwind: no outer frame]";
    case CrossCheckEnd::kGaveUp: return absl::StrCat("[libunwind: error ", stack.error, "]");
    case CrossCheckEnd::kLimit: return "[libunwind: as many frames as were asked for]";
    case CrossCheckEnd::kSiteMissed: return "[libunwind: another way]";
  }
  return "[libunwind: unknown end]";
}

StackNode NodeOf(const CheckedStack::Frame& frame) {
  StackNode node;
  node.pc = frame.pc;
  node.instance = frame.instance;
  return node;
}

size_t FirstShown(const CheckedStack& stack) {
  const size_t first = std::min({static_cast<size_t>(stack.first_different), stack.ours.size(),
                                 stack.theirs.size()});
  return first - std::min(first, kFramesBefore);
}

// A stack's frames from the last that are the same, and from there each side's own.
void PrintCheckedStack(const CheckedStack& stack, std::span<const std::string> ours,
                       std::span<const std::string> theirs, std::ostream& out) {
  out << absl::StreamFormat("  %s: from frame %d on, found by %s, thread %d, %.6f s\n",
                            ResultText(stack.result), stack.first_different,
                            LayerText(stack.layer), stack.thread.value,
                            static_cast<double>(stack.time_ns) / 1e9);
  out << absl::StreamFormat("    called from pc 0x%x, sp 0x%x; frames: %d, libunwind %d\n",
                            stack.pc, stack.sp, stack.our_frames, stack.their_frames);
  const size_t begin = FirstShown(stack);
  const size_t end = std::min(static_cast<size_t>(stack.first_different),
                              std::max(stack.ours.size(), stack.theirs.size())) +
                     kFramesAfter;
  const auto line = [&](size_t frame, const char* whose, absl::string_view text) {
    out << absl::StreamFormat("    #%-3d %-9s %s\n", frame, whose, text);
  };
  for (size_t i = begin; i < end; ++i) {
    const bool mine = i < stack.ours.size(), its = i < stack.theirs.size();
    if (mine && its && stack.ours[i].pc == stack.theirs[i].pc) {
      line(i, "both", ours[i]);
      continue;
    }
    if (mine) line(i, "memtrace", ours[i]);
    if (i == stack.our_frames) {
      line(i, "memtrace", absl::StrCat("[", MarkerName(stack.marker), "]"));
    }
    if (its) {
      line(i, "libunwind",
           absl::StrCat(theirs[i], stack.theirs[i].guessed ? " (guessed)" : "",
                        absl::StrFormat(", sp 0x%x", stack.theirs[i].sp)));
    }
    if (i == stack.their_frames) line(i, "libunwind", EndText(stack));
  }
}

}  // namespace

std::vector<std::string> ModuleAndOffset(const AnalyzedTrace& trace,
                                         std::span<const StackNode> nodes) {
  std::vector<std::string> names;
  const ModuleIndex modules(trace.analysis.modules);
  for (const StackNode& node : nodes) {
    const ModuleInfo* module = modules.Find(node);
    names.push_back(module == nullptr
                        ? absl::StrFormat("0x%x", node.pc)
                        : absl::StrFormat("%s+0x%x", words::EscapeControls(module->path),
                                          node.pc - module->bias));
  }
  return names;
}

void PrintMarkedStacks(const AnalyzedTrace& trace, const NameNodes& names, std::ostream& out) {
  const StackTable& stacks = *trace.stacks;
  struct Places {
    uint64_t allocations = 0;
    std::map<uint32_t, uint64_t> by_frame;  // by the id of the frame the marker stands at
  };
  std::map<StackMarker, Places> markers;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> ids;
  std::vector<StackNode> nodes;
  for (const Site& site : trace.analysis.sites) {
    const StackMarker marker = stacks.MarkerOf(site.stack);
    if (marker == StackMarker::kNone || !site.stack) continue;
    Places& places = markers[marker];
    places.allocations += site.allocations;
    StackNode last;
    for (StackId id = site.stack; id && !stacks.node(id).is_marker(); id = stacks.node(id).parent) {
      last = stacks.node(id);
    }
    const auto [at, added] = ids.try_emplace({last.pc, last.instance}, nodes.size());
    if (added) nodes.push_back(last);
    places.by_frame[at->second] += site.allocations;
  }
  if (markers.empty()) return;

  std::vector<StackNode> shown;
  std::map<StackMarker, std::vector<std::pair<uint64_t, size_t>>> rows;  // allocations, in `shown`
  for (const auto& [marker, places] : markers) {
    auto& list = rows[marker];
    for (const auto& [id, allocations] : places.by_frame) list.emplace_back(allocations, id);
    std::sort(list.begin(), list.end(), std::greater<>());
    if (list.size() > kPlaces) list.resize(kPlaces);
    for (auto& [allocations, id] : list) {
      shown.push_back(nodes[id]);
      id = shown.size() - 1;
    }
  }
  const std::vector<std::string> texts = names(trace, shown);
  out << "\nwhere marked stacks end (allocations)\n";
  for (const auto& [marker, places] : markers) {
    out << absl::StreamFormat("  %-22s %d, at %d places\n", MarkerName(marker),
                              places.allocations, places.by_frame.size());
    for (const auto& [allocations, id] : rows[marker]) {
      out << absl::StreamFormat("    %-20d %s\n", allocations, texts[id]);
    }
  }
}

void PrintCheckedStacks(const AnalyzedTrace& trace, const NameNodes& names, std::ostream& out) {
  const auto& stacks = trace.analysis.checked_stacks;
  if (stacks.empty()) return;
  std::vector<StackNode> nodes;
  for (const CheckedStack& stack : stacks) {
    for (const auto& frame : stack.ours) nodes.push_back(NodeOf(frame));
    for (const auto& frame : stack.theirs) nodes.push_back(NodeOf(frame));
  }
  const std::vector<std::string> texts = names(trace, nodes);
  out << "\nstacks that libunwind did not confirm\n";
  std::span<const std::string> rest(texts);
  for (const CheckedStack& stack : stacks) {
    const auto ours = rest.first(stack.ours.size());
    const auto theirs = rest.subspan(ours.size(), stack.theirs.size());
    rest = rest.subspan(ours.size() + theirs.size());
    PrintCheckedStack(stack, ours, theirs, out);
  }
}

}  // namespace memtrace::report
