// Unfreed blocks by call site, biggest first, each with its stack.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/analysis/coverage.h"
#include "report/leak/leak_scans.h"
#include "report/names/frames_filter.h"
#include "report/render/lines.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kFramesShown = 8;  // without --full
constexpr size_t kInnerShown = 3;   // of those, when the project's first is further out

std::string When(const SiteGroup& group) {
  const std::string first = words::Duration(group.live_first_time_ns);
  const std::string last = words::Duration(group.live_last_time_ns);
  return first == last ? absl::StrCat("at ", first) : absl::StrCat("from ", first, " to ", last);
}

// "Not freed" is all that is known then.
std::string NoScanText(const ReportView& view, const TextOptions& options) {
  Lines lines(options);
  if (const LeakScan* scan = view.leak_scan(); scan != nullptr) {
    lines.Add("Later",
              absl::StrCat("scan ", scan->number, " above was at ", words::Duration(scan->time_ns),
                           ": which of these can be reached is known as of then"));
    return lines.Take();
  }
  lines.Add("No scan", absl::StrCat(words::EscapeControls(leak::WhyNoScan(view.analysis())),
                                    "; nothing is known about reachability"));
  return lines.Take();
}

}  // namespace

std::string StackText(const ReportView& view, StackId stack, size_t indent,
                      const TextOptions& options) {
  const std::vector<const Frame*> frames = view.Frames(stack);
  const std::string margin(indent, ' ');
  if (frames.empty()) {
    return absl::StrCat(margin, options.style.Paint(Ink::kDim, "[no stack]"), "\n");
  }
  const names::Cut cut = names::CutStack(frames);
  size_t begin = options.full ? 0 : cut.via;
  size_t end = options.full ? frames.size() : cut.end;
  // A long stack of system frames must not push the project's first one out.
  // The last of them stays: it is what the project called.
  const bool skip_to_caller = !options.full && cut.caller - begin >= kFramesShown;
  std::string out;
  const size_t room = options.style.width > indent ? options.style.width - indent : 40;
  const auto add = [&](const Frame& frame, bool is_caller) {
    const Ink ink = frame.role == FrameRole::kMarker    ? Ink::kWarning
                    : frame.role != FrameRole::kProject ? Ink::kDim
                    : is_caller                         ? Ink::kStrong
                                                        : Ink::kPlain;
    absl::StrAppend(&out, margin, FrameText(view, frame, room, options, ink), "\n");
  };
  size_t most = kFramesShown;
  if (skip_to_caller) {
    for (size_t i = 0; i < kInnerShown; ++i) add(*frames[begin + i], false);
    begin += kInnerShown;
    absl::StrAppend(&out, margin, options.style.Paint(
        Ink::kDim, absl::StrCat("(", words::Plural(cut.caller - 1 - begin, "more frame"),
                                " of the system: --full)")), "\n");
    begin = cut.caller - 1;
    most -= kInnerShown;
  }
  // A marker is worth more than the frames before it: it says what is missing.
  const Frame* marker = end > begin && frames[end - 1]->role == FrameRole::kMarker
                            ? frames[end - 1] : nullptr;
  if (marker != nullptr) --end;
  const size_t hidden = options.full || end - begin <= most + 1 ? 0 : end - begin - most;
  for (size_t i = begin; i < end - hidden; ++i) add(*frames[i], i == cut.caller);
  if (hidden > 0) {
    absl::StrAppend(&out, margin, options.style.Paint(
        Ink::kDim, absl::StrCat("(", words::Plural(hidden, "more frame"), ": --full)")), "\n");
  }
  if (marker != nullptr) add(*marker, false);
  return out;
}

absl::string_view UnfreedTitle(const ReportView& view) {
  return view.analysis().range.whole() ? "UNFREED BLOCKS" : "BLOCKS LIVE AT THE END OF THE RANGE";
}

namespace {

std::string UnfreedText(const ReportView& view, const TextOptions& options) {
  const Style& style = options.style;
  const absl::string_view title = UnfreedTitle(view);
  if (view.unfreed().empty()) {
    if (view.sampled()) {
      return Heading(options, title, "none among the sampled blocks, which are few of all");
    }
    if (view.analysis().totals.allocations == 0) {
      return Heading(options, title, "none: no allocation was recorded");
    }
    const bool all_recorded = AllRecorded(view.analysis().coverage);
    const std::string text =
        absl::StrCat("no unfreed blocks", view.filtered() ? " from the sites that match" : "",
                     all_recorded ? "" : ", of what was recorded");
    return Heading(options, title, style.Paint(all_recorded ? Ink::kGood : Ink::kWarning, text));
  }
  const Numbers numbers(view, options.style);
  std::string out = Heading(options, title,
                            absl::StrCat(numbers.Amount(view.unfreed_bytes()), " in ",
                                         numbers.Plural(view.unfreed_blocks(), "block"), " from ",
                                         words::Plural(view.unfreed().size(), "call site"),
                                         numbers.estimated() ? " that were sampled" : ""));
  if (!options.processes_of) absl::StrAppend(&out, NoScanText(view, options), "\n");
  const size_t shown = options.Shown(view.unfreed().size());
  uint64_t left_bytes = view.unfreed_bytes(), left_blocks = view.unfreed_blocks();
  const size_t number_width = absl::StrCat(shown).size();
  for (size_t i = 0; i < shown; ++i) {
    const SiteGroup& group = view.unfreed()[i];
    left_bytes -= std::min(left_bytes, group.live_bytes);
    left_blocks -= std::min(left_blocks, group.live_blocks);
    const std::string number = absl::StrFormat("  %*d  ", static_cast<int>(number_width), i + 1);
    const std::string amount =
        absl::StrCat(numbers.estimated() ? numbers.Amount(group.live_bytes)
                                         : words::ExactBytes(group.live_bytes),
                     " in ", numbers.Plural(group.live_blocks, "block"));
    std::string human =
        numbers.estimated() ? numbers.Interval(group.live_sample)
        : group.live_bytes < 10240
            ? "" : absl::StrCat(" (", words::HumanBytes(group.live_bytes), ")");
    const std::string called = AllocationName(view, group.stack, group.function);
    std::string remark = words::Percent(group.live_bytes, view.unfreed_bytes());
    std::string when = absl::StrCat(", ", When(group));
    if (options.processes_of) {  // each of which has a time of its own
      when = remark;
      remark = absl::StrCat("in ", words::Count(options.processes_of(group)), " of ",
                            words::Plural(options.processes, "trace"));
      when.insert(0, ", ");
    }
    size_t used = number.size() + amount.size() + human.size() + 2 + called.size() + 2;
    if (!numbers.estimated() && used + remark.size() > style.width) {
      used -= std::exchange(human, "").size();
    }
    if (used + remark.size() + when.size() <= style.width) absl::StrAppend(&remark, when);
    absl::StrAppend(&out, i > 0 ? "\n" : "", number, style.Paint(Ink::kBad, amount), human, ", ",
                    called, "  ", style.Paint(Ink::kDim, remark), "\n",
                    StackText(view, group.stack, number.size() + 2, options));
  }
  if (shown < view.unfreed().size()) {
    absl::StrAppend(&out, "\n", MoreLine(options, view.unfreed().size(), shown, "call site",
                                         absl::StrCat(" with ", numbers.Amount(left_bytes), " in ",
                                                      numbers.Plural(left_blocks, "block"))));
  }
  return out;
}

}  // namespace

std::string LeaksText(const ReportView& view, const TextOptions& options) {
  if (const LeakScan* scan = view.leak_scan(); scan != nullptr) {
    const std::string found = LossRecordsText(view, options);
    // Blocks that came after an earlier scan are only known to be unfreed.
    return leak::IsAtExit(*scan) || options.scan_alone
               ? found : absl::StrCat(found, UnfreedText(view, options));
  }
  return UnfreedText(view, options);
}

}  // namespace memtrace::report::render
