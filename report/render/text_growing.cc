// Call sites that grow, and what the others do.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/names/frames_filter.h"
#include "report/render/growing.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

// Without --full: so many rows have lines below them, and so many frames are in these.
constexpr size_t kRowsWithFrames = 5;
constexpr size_t kFramesBelowRow = 3;

uint64_t Whole(double value) { return static_cast<uint64_t>(std::max(value, 0.0) + 0.5); }

// "99.4 %"; never 100.
std::string Confidence(double share) {
  return share >= 0.9995 ? ">99.9 %" : absl::StrFormat("%.1f %%", share * 100);
}

// Slow growth is told by the hour or by the day.
std::string PerTime(double per_second) {
  if (per_second >= 1) return absl::StrCat(words::HumanBytes(Whole(per_second)), "/s");
  if (per_second * 3600 >= 1) {
    return absl::StrCat(words::HumanBytes(Whole(per_second * 3600)), "/h");
  }
  return absl::StrCat(words::HumanBytes(Whole(per_second * 86400)), "/d");
}

// Who called the caller, which may be one of an interpreter's that all have; the whole stack with
// --full.
std::vector<std::string> FramesBelowRow(const ReportView& view, StackId stack, size_t width,
                                        const TextOptions& options) {
  std::vector<std::string> lines;
  const std::vector<const Frame*> frames = view.Frames(stack);
  if (frames.empty()) return lines;
  const names::Cut cut = names::CutStack(frames);
  const size_t begin = options.full ? 0 : std::min(cut.caller + 1, cut.end);
  size_t end = options.full ? frames.size() : cut.end;
  const Frame* const marker =
      end > begin && frames[end - 1]->role == FrameRole::kMarker ? frames[--end] : nullptr;
  const size_t hidden =
      options.full || end - begin <= kFramesBelowRow + 1 ? 0 : end - begin - kFramesBelowRow;
  for (size_t i = begin; i < end - hidden; ++i) {
    lines.push_back(FrameText(view, *frames[i], width, options, Ink::kDim));
  }
  if (hidden > 0) {
    lines.push_back(options.style.Paint(
        Ink::kDim, absl::StrCat("(", words::Plural(hidden, "more frame"), ": --full)")));
  } else if (marker != nullptr) {
    lines.push_back(FrameText(view, *marker, width, options, Ink::kWarning));
  }
  return lines;
}

}  // namespace

std::vector<GrowingGroup> GrowingGroups(const ReportView& view) {
  std::vector<GrowingGroup> groups;
  for (const SiteGroup& caller : view.callers()) {
    GrowingGroup group;
    double window_bytes = 0;
    for (const Site* site : caller.sites) {
      const Growth& growth = site->growth;
      if (growth.verdict != Growth::Verdict::kGrowing) continue;
      if (group.sites == 0 || growth.bytes_per_s > group.largest_bytes_per_s) {
        group.stack = site->stack;
        group.largest_bytes_per_s = growth.bytes_per_s;
      }
      ++group.sites;
      group.bytes_per_s += growth.bytes_per_s;
      group.allocations += site->allocations;
      window_bytes += growth.bytes_per_allocation * static_cast<double>(site->allocations);
      group.confidence = std::max(group.confidence, growth.confidence);
      group.held |= growth.held_until_exit;
      group.sure |= growth.bytes_per_s_low > 0;
      group.live_bytes += site->live_bytes;
    }
    if (group.sites == 0) continue;
    group.bytes_per_allocation =
        window_bytes / static_cast<double>(std::max<uint64_t>(group.allocations, 1));
    groups.push_back(group);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const GrowingGroup& a, const GrowingGroup& b) {
    return a.bytes_per_s > b.bytes_per_s;
  });
  return groups;
}

std::string GrowingVerdict(const ReportView& view, const TextOptions& options) {
  std::vector<GrowingGroup> groups = GrowingGroups(view);
  std::erase_if(groups, [](const GrowingGroup& group) { return !group.in_verdict(); });
  if (groups.empty()) return "";
  double sum = 0;
  for (const GrowingGroup& group : groups) sum += group.bytes_per_s;
  const std::string about = view.sampled() ? "~" : "";
  const bool is_short = view.analysis().process.is_short_run();
  return absl::StrCat(words::Plural(groups.size(), "call site"),
                      is_short             ? " rose until the end of a short run"
                      : groups.size() == 1 ? " grows without end"
                                           : " grow without end",
                      ", by ", about, PerTime(sum), groups.size() == 1 ? ": " : "; most: ",
                      CallerInSentence(view, groups.front().stack, options));
}

Json GrowingJson(const ReportView& view) {
  Json rows = Json::array();
  for (const GrowingGroup& group : GrowingGroups(view)) {
    rows.push_back({{"caller", view.CallerText(group.stack)},
                    {"bytes_per_s", group.bytes_per_s},
                    {"bytes_per_allocation", group.bytes_per_allocation},
                    {"confidence", group.confidence},
                    {"live_bytes", group.live_bytes},
                    {"held_until_exit", group.held},
                    {"in_verdict", group.in_verdict()},
                    {"sites", group.sites},
                    {"stack", StackJson(view, group.stack)}});
  }
  return rows;
}

std::string GrowingText(const ReportView& view, const TextOptions& options) {
  const std::vector<GrowingGroup> groups = GrowingGroups(view);
  size_t counts[6] = {};
  for (const Site* site : view.sites()) ++counts[static_cast<size_t>(site->growth.verdict)];
  std::vector<std::string> others;
  for (const Growth::Verdict verdict : {Growth::Verdict::kSawtooth, Growth::Verdict::kBurst,
                                        Growth::Verdict::kHeld, Growth::Verdict::kBounded}) {
    const size_t n = counts[static_cast<size_t>(verdict)];
    if (n == 0) continue;
    others.push_back(absl::StrCat(words::Count(n), " ", VerdictName(verdict),
                                  verdict == Growth::Verdict::kHeld ? " until exit" : ""));
  }
  std::string rest;
  if (!others.empty()) {
    rest = Sentence(options,
                    absl::StrCat("Of the ", groups.empty() ? "" : "other ", "sites: ",
                                 absl::StrJoin(others, ", "), "."),
                    Ink::kDim);
  }
  if (view.analysis().selection.needs_lifetimes()) {
    return Heading(options, "GROWING SITES",
                   "not judged: --age and --lifetime choose blocks by how they ended");
  }
  if (groups.empty()) {
    return absl::StrCat(Heading(options, "GROWING SITES",
                                view.analysis().too_short_for_growth()
                                    ? "none: less than 0.1 s shows no growth" : "none"),
                        rest);
  }
  const Numbers numbers(view, options.style);
  const auto about = [&](std::string text) {
    return numbers.estimated() ? absl::StrCat("~", text) : text;
  };
  TextTable table({{"grows by"}, {"an alloc."}, {"confidence"}, {"live"}, {"freed", true}},
                  "caller");
  const size_t shown = options.Shown(groups.size());
  for (size_t i = 0; i < shown; ++i) {
    const GrowingGroup& group = groups[i];
    TextTable::LinesBelow frames;
    if (options.full || i < kRowsWithFrames) {
      frames = [&view, &options, stack = group.stack](size_t width) {
        return FramesBelowRow(view, stack, width, options);
      };
    }
    table.AddRow({about(PerTime(group.bytes_per_s)),
                  about(group.bytes_per_allocation < 1000
                            ? absl::StrFormat("%.3g B", group.bytes_per_allocation)
                            : words::HumanBytes(
                                  static_cast<uint64_t>(std::llround(group.bytes_per_allocation)))),
                  Confidence(group.confidence), numbers.Bytes(group.live_bytes),
                  group.held ? "at exit" : ""},
                 [&view, &options, stack = group.stack](size_t width) {
                   return CallerCell(view, stack, width, options);
                 },
                 std::move(frames));
  }
  return absl::StrCat(Heading(options, "GROWING SITES", "they went on rising until the end"),
                      table.Render(options.style, 2),
                      MoreLine(options, groups.size(), shown, "caller"), rest);
}

}  // namespace memtrace::report::render
