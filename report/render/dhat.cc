// --format dhat: sites as DHAT writes them, version 2, for Valgrind's dh_view.html.
//
// Times are microseconds. There are no accesses in it ("bkacc" is false): they are not
// traced, and dh_view leaves their figures out.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/render/formats.h"
#include "report/render/json_parts.h"
#include "report/render/selection_lines.h"
#include "report/render/valgrind_losses.h"
#include "report/words/shell_words.h"

namespace memtrace::report::render {
namespace {

constexpr uint64_t kShortLivedUs = 10;

// DHAT's program point: a stack, as far as it can be told from others.
struct Point {
  uint64_t total_bytes = 0, total_blocks = 0;
  double lifetime_us = 0;
  uint64_t max_bytes = 0, max_blocks = 0;
  uint64_t peak_bytes = 0, peak_blocks = 0;
  uint64_t end_bytes = 0, end_blocks = 0;
};

double Lifetime(const Site& site, uint64_t end_ns) {
  const double live = static_cast<double>(site.live_blocks) * static_cast<double>(end_ns) -
                      site.live_time_sum_ns;
  return (site.freed_lifetime_ns + std::max(0.0, live)) / 1000;
}

}  // namespace

void RenderDhat(const ReportView& view, words::Sink& out) {
  const Analysis& analysis = view.analysis();
  std::vector<std::string> frames = {"[root]"};
  absl::flat_hash_map<std::string, size_t> frame_ids;
  absl::flat_hash_map<std::vector<size_t>, size_t> by_stack;
  std::vector<std::pair<std::vector<size_t>, Point>> points;
  const uint64_t end_ns = std::min(analysis.range.to_ns, analysis.process.duration_ns);
  for (const Site* site : view.sites()) {
    std::vector<size_t> stack;
    for (const LossFrame& frame : LossStack(view, site->stack, site->function).stack) {
      const auto [at, is_new] = frame_ids.try_emplace(LossFrameText(frame), frames.size());
      if (is_new) frames.push_back(at->first);
      stack.push_back(at->second);
    }
    // dh_view takes each stack once.
    const auto [at, is_new] = by_stack.try_emplace(stack, points.size());
    if (is_new) points.emplace_back(std::move(stack), Point());
    Point& point = points[at->second].second;
    point.total_bytes += site->bytes_allocated;
    point.total_blocks += site->allocations;
    point.lifetime_us += Lifetime(*site, end_ns);
    point.max_bytes += site->peak_bytes;  // exact where one site is one point
    point.max_blocks += site->blocks_at_own_peak;
    point.peak_bytes += site->bytes_at_peak;
    point.peak_blocks += site->blocks_at_peak;
    point.end_bytes += site->live_bytes;
    point.end_blocks += site->live_blocks;
  }

  // The viewer shows no other text: behind the command as a comment of the shell's.
  const std::string only = SelectionText(view);
  Json head = {{"dhatFileVersion", 2},
               {"mode", "heap"},
               {"verb", "Allocated"},
               {"bklt", true},
               {"bkacc", false},
               {"tu", "us"},
               {"Mtu", "s"},
               {"tuth", kShortLivedUs},
               {"cmd", absl::StrCat(words::ShellCommand(analysis.process.command),
                                    only.empty() ? "" : "  # ", only)},
               {"pid", analysis.process.pid},
               {"te", end_ns / 1000},
               {"tg", analysis.totals.peak_time_ns / 1000}};
  std::string text = Dump(head);
  text.pop_back();  // the brace: the arrays follow
  out.Write(absl::StrCat(text, "\n,\"pps\":\n "));
  WriteArray(points, points.size(), [](const std::pair<std::vector<size_t>, Point>& entry) {
    const Point& point = entry.second;
    return Json{{"tb", point.total_bytes}, {"tbk", point.total_blocks},
                {"tl", std::llround(std::min(point.lifetime_us, 0x1p53))},
                {"mb", point.max_bytes}, {"mbk", point.max_blocks},
                {"gb", point.peak_bytes}, {"gbk", point.peak_blocks},
                {"eb", point.end_bytes}, {"ebk", point.end_blocks}, {"fs", entry.first}};
  }, out);
  out.Write("\n,\"ftbl\":\n ");
  WriteArray(frames, frames.size(), [](const std::string& frame) { return Json(frame); }, out);
  out.Write("\n}\n");
}

}  // namespace memtrace::report::render
