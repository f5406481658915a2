// Invalid frees, each with what became of its block: where it was allocated, where freed, and where
// freed again.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "report/analysis/invalid_frees.h"
#include "report/render/free_errors.h"
#include "report/render/text_report.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

std::string Told(const InvalidFree& story) {
  const std::string block =
      absl::StrCat("a block of ", words::ExactOrHumanBytes(story.block_bytes));
  const std::string within = absl::StrCat(words::Plural(story.offset, "byte"), " into ", block);
  switch (story.kind) {
    case InvalidFree::Kind::kFreedBefore: return absl::StrCat(block, " that was freed before");
    case InvalidFree::Kind::kInsideLive: return within;
    case InvalidFree::Kind::kInsideFreed: return absl::StrCat(within, " that was freed before");
  }
  return "";
}

// "allocated by malloc at 2.05 ms, thread 4711", and the stack below it.
std::string MomentText(const ReportView& view, absl::string_view what,
                       const InvalidFree::Moment& moment, bool with_thread,
                       const TextOptions& options) {
  const ThreadSummary* thread = view.ThreadOf(moment.thread);
  std::string out = absl::StrCat(
      "     ", options.style.Paint(Ink::kStrong, what), " at ", words::Duration(moment.time_ns),
      with_thread && thread != nullptr
          ? absl::StrCat(
                ", thread ", thread->tid,
                thread->name.empty() ? "" : absl::StrCat(" ", options.style.Name(thread->name)))
          : "",
      "\n");
  if (moment.stack) absl::StrAppend(&out, StackText(view, moment.stack, 7, options));
  return out;
}

// What is said where there are none, if the section was asked for.
std::string NoneOrWhy(const ReportView& view) {
  const Analysis& analysis = view.analysis();
  const Coverage& coverage = analysis.coverage;
  const InvalidFrees& frees = analysis.invalid_frees;
  if (analysis.process.imported()) return "not in the log";
  if (view.sampled()) return "not known: a sample has only the frees of its blocks";
  if (analysis.of_some_blocks()) return "not known of some of the blocks";
  if (coverage.events_missing) return "not known: events are missing, see Coverage";
  if (!CanTellInvalidFrees(analysis)) return "not known of a part of a run";
  if (analysis.totals.allocations == 0) return "none: no allocation was recorded";
  if (frees.of_unseen_blocks != 0) return "none that is certain, see Coverage";
  if (frees.not_looked_for != 0) {
    return absl::StrCat("none known: ", words::Plural(frees.not_looked_for, "free"),
                        " of no live block were not looked up");
  }
  return "none";
}

}  // namespace

absl::string_view KindName(InvalidFree::Kind kind) {
  switch (kind) {
    case InvalidFree::Kind::kFreedBefore: return "double_free";
    case InvalidFree::Kind::kInsideLive: return "inside_live_block";
    case InvalidFree::Kind::kInsideFreed: return "inside_freed_block";
  }
  return "";
}

std::string InvalidFreesPhrase(const InvalidFrees& frees) {
  uint64_t twice = 0, inside = 0;
  for (const InvalidFree& story : frees.stories) {
    (story.kind == InvalidFree::Kind::kFreedBefore ? twice : inside) += story.times;
  }
  std::vector<std::string> parts;
  if (twice != 0) parts.push_back(words::Plural(twice, "double free"));
  if (inside != 0) {
    parts.push_back(
        absl::StrCat(words::Plural(inside, "free"), " of an address inside of a block"));
  }
  return absl::StrJoin(parts, " and ");
}

std::string InvalidFreesText(const ReportView& view, const TextOptions& options) {
  const InvalidFrees& frees = view.analysis().invalid_frees;
  if (frees.stories.empty()) {
    return options.sections.empty() ? "" : Heading(options, "INVALID FREES", NoneOrWhy(view));
  }
  std::string out = Heading(options, "INVALID FREES", InvalidFreesPhrase(frees));
  const size_t shown = options.Shown(frees.stories.size());
  for (size_t i = 0; i < shown; ++i) {
    const InvalidFree& story = frees.stories[i];
    const bool threads = view.analysis().threads.size() > 1;
    absl::StrAppend(
        &out, i > 0 ? "\n" : "", absl::StrFormat("  %d  ", i + 1),
        options.style.Paint(Ink::kBad, Told(story)),
        story.times > 1 ? absl::StrCat(", ", words::Count(story.times), " times; the first:") : "",
        "\n");
    absl::StrAppend(
        &out, MomentText(view,
                         absl::StrCat("allocated by ",
                                      AllocationName(view, story.allocated.stack, story.function)),
                         story.allocated, threads, options));
    const auto verb = [](const InvalidFree::Moment& moment, absl::string_view freed) {
      return moment.by_realloc ? absl::StrCat("given to realloc", absl::StripPrefix(freed, "freed"))
                               : std::string(freed);
    };
    if (story.kind != InvalidFree::Kind::kInsideLive) {
      absl::StrAppend(&out,
                      MomentText(view, verb(story.freed, "freed"), story.freed, threads, options));
    }
    absl::StrAppend(&out, MomentText(view,
                                     verb(story.again, story.kind == InvalidFree::Kind::kFreedBefore
                                                           ? "freed again"
                                                           : "freed"),
                                     story.again, threads, options));
  }
  absl::StrAppend(&out, MoreLine(options, frees.stories.size(), shown, "kind of them"));
  if (view.analysis().frees_with_stack == 0) {
    absl::StrAppend(&out, Sentence(options, kFreeStacksHint, Ink::kDim));
  }
  if (!InvalidFreesAreCertain(view.analysis())) {
    absl::StrAppend(&out, Sentence(options,
                                   "Not all allocations are in the trace, see Coverage: a block "
                                   "that one of the others gave out in between looks the same.",
                                   Ink::kWarning));
  }
  if (frees.not_looked_for != 0) {
    absl::StrAppend(&out,
                    Sentence(options,
                             absl::StrCat("Of ", words::Plural(frees.not_looked_for, "more free"),
                                          " of no live block nothing was looked up: these were "
                                          "the first."),
                             Ink::kDim));
  }
  return out;
}

}  // namespace memtrace::report::render
