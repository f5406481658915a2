#include "report/render/text_report.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/base/path.h"
#include "report/names/function_name.h"
#include "report/render/lines.h"
#include "report/render/selection_lines.h"
#include "report/render/short_name.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

absl::string_view LastComponents(absl::string_view path, int count) {
  size_t cut = path.size();
  while (count-- > 0) {
    const size_t slash = cut == 0 ? absl::string_view::npos : path.rfind('/', cut - 1);
    if (slash == absl::string_view::npos) return path;
    cut = slash;
  }
  return path.substr(cut + 1);
}

// Of a place below `directory` what stands behind it; false: it is elsewhere.
bool MakeRelative(absl::string_view directory, std::string* place) {
  const std::string home = absl::StrCat(directory, "/");
  if (home.size() == 1 || !absl::StartsWith(*place, home)) return false;
  place->erase(0, home.size());
  return true;
}

// As seen from `directory` if it is below, else its last two components: where a build was says
// little.
std::string ShownPlace(absl::string_view directory, const Frame& frame,
                       const TextOptions& options) {
  std::string place = PlaceText(frame);
  if (MakeRelative(directory, &place) || options.full) return place;
  return std::string(LastComponents(place, 2));
}

size_t SentenceRoom(const TextOptions& options) {
  return 3 * (options.style.width - Lines::kIndent);
}

std::string GrowthAndPhases(const ReportView& view, const TextOptions& options) {
  return absl::StrCat(GrowthText(view, options), TimelineByText(view, options),
                      PhasesText(view, options));
}

std::string ThreadsAndExchanges(const ReportView& view, const TextOptions& options) {
  return absl::StrCat(ThreadsText(view, options), ExchangesText(view, options));
}

std::string FaultsAndWhose(const ReportView& view, const TextOptions& options) {
  return absl::StrCat(FaultsText(view, options), FaultSitesText(view, options),
                      ResidentText(view, options));
}

}  // namespace

uint64_t BeginNs(const Analysis& analysis) {
  return std::min(analysis.range.from_ns, analysis.process.duration_ns);
}

uint64_t EndNs(const Analysis& analysis) {
  return std::min(analysis.range.to_ns, analysis.process.duration_ns);
}

std::string Heading(const TextOptions& options, absl::string_view title,
                    absl::string_view remark) {
  std::string out = absl::StrCat("\n", options.style.Paint(Ink::kHeading, title));
  if (!remark.empty()) absl::StrAppend(&out, "  ");
  // A remark that is too long goes on in the next line, from a comma if there is one.
  size_t room = options.style.width - std::min(options.style.width, title.size() + 2);
  while (!words::FitsWidth(remark, room)) {
    const absl::string_view head = remark.substr(0, room);
    size_t end = head.rfind(", ");
    end = end == head.npos ? head.rfind(' ') : end + 1;
    if (end == head.npos || end == 0) break;
    absl::StrAppend(&out, remark.substr(0, end), "\n    ");
    remark.remove_prefix(end + 1);
    room = options.style.width - 4;
  }
  return absl::StrCat(out, remark, "\n");
}

std::string Sentence(const TextOptions& options, absl::string_view words, Ink ink) {
  std::string out;
  for (const std::string& line : words::Wrapped(words, options.style.width - 2)) {
    absl::StrAppend(&out, "  ", options.style.Paint(ink, line), "\n");
  }
  return out;
}

std::string MoreLine(const TextOptions& options, size_t all, size_t shown,
                     absl::string_view noun, absl::string_view remark) {
  if (shown >= all) return "";
  const size_t room = options.style.width - 2;
  const std::string what = absl::StrCat(
      "and ", words::Plural(all - shown, absl::StrCat("more ", noun)), remark, ": ");
  const std::string both = absl::StrCat(what, "--top ", all, " or --full");
  std::string line = absl::StrCat(both, all - shown == 1 ? " shows it" : " shows them");
  if (line.size() > room) line = both;
  if (line.size() > room) line = what + "--full";
  return Sentence(options, line, Ink::kDim);
}

std::string FrameText(const ReportView& view, const Frame& frame, size_t width,
                      const TextOptions& options, Ink name_ink) {
  return FrameText(view.analysis().process.working_directory, frame, width, options, name_ink);
}

std::string FrameText(absl::string_view directory, const Frame& frame, size_t width,
                      const TextOptions& options, Ink name_ink) {
  const Style& style = options.style;
  const std::string whole = FrameName(frame);
  const std::string place = ShownPlace(directory, frame, options);
  const Ink place_ink = frame.role == FrameRole::kProject && !frame.file.empty() ? Ink::kPlace
                                                                                  : Ink::kDim;
  const auto join = [&](absl::string_view name, absl::string_view at) {
    return absl::StrCat(style.Paint(name_ink, name), at.empty() ? "" : "  ",
                        style.Paint(place_ink, at));
  };
  const auto fits = [&](absl::string_view name, absl::string_view at) {
    return words::DisplayWidth(name) + (at.empty() ? 0 : 2 + words::DisplayWidth(at)) <= width;
  };
  const std::string name = style.Name(whole);
  const std::string at = style.Name(place);
  if (options.full) return absl::StrCat(join(name, at), frame.inlined ? "  [inlined]" : "");
  if (fits(name, at)) return join(name, at);
  if (frame.role == FrameRole::kMarker) {
    return style.Paint(name_ink, words::KeepBeginning(name, width, style.ellipsis()));
  }
  const std::string near = style.Name(LastComponents(place, 2));
  if (fits(name, near)) return join(name, near);
  const std::string base = style.Name(FileNameOf(place));
  if (fits(name, base)) return join(name, base);
  const std::string plain = style.Name(names::QualifiedName(whole));
  if (fits(plain, base)) return join(plain, base);
  const std::string bare = style.Name(names::ShortenedName(whole));
  if (fits(bare, base)) return join(bare, base);
  // The place keeps its end with the line.
  const std::string end = words::KeepEnd(base, width / 2, style.ellipsis());
  const size_t room = end.empty() ? width : width - words::DisplayWidth(end) - 2;
  return join(WithoutScopes(bare, room, style), end);
}

std::string CallerCell(const ReportView& view, StackId stack, size_t width,
                       const TextOptions& options) {
  const Frame* frame = view.Caller(stack);
  if (frame == nullptr) {
    return options.style.Paint(Ink::kDim,
                               words::KeepBeginning("[no stack]", width, options.style.ellipsis()));
  }
  return FrameText(view, *frame, width, options, Ink::kPlain);
}

std::string NameWithin(absl::string_view function, absl::string_view place, size_t width,
                       const TextOptions& options) {
  const Style& style = options.style;
  const auto join = [](absl::string_view name, absl::string_view at) {
    return absl::StrCat(name, at.empty() ? "" : " ", at);
  };
  const std::string name = style.Name(function);
  for (const absl::string_view at : {place, LastComponents(place, 2), FileNameOf(place)}) {
    std::string whole = join(name, style.Name(at));
    if (options.full || words::FitsWidth(whole, width)) return whole;
  }
  // The place keeps its end with the line, and has what a short function leaves to it.
  const size_t left = width - std::min(width, words::DisplayWidth(name) + 1);
  const std::string end = words::KeepEnd(style.Name(FileNameOf(place)),
                                         std::max(width / 2, left), style.ellipsis());
  const size_t taken = end.empty() ? 0 : words::DisplayWidth(end) + 1;
  return join(ShortName(function, width - std::min(width, taken), style), end);
}

std::string CallerWithin(const ReportView& view, StackId stack, size_t width,
                         const TextOptions& options) {
  const Frame* const frame = view.Caller(stack);
  if (frame == nullptr) {
    return words::KeepBeginning(options.style.Name(view.CallerText(stack)), width,
                                options.style.ellipsis());
  }
  return NameWithin(FrameName(*frame),
                    ShownPlace(view.analysis().process.working_directory, *frame, options), width,
                    options);
}

std::string NameInSentence(absl::string_view function, absl::string_view place,
                           const TextOptions& options) {
  return NameWithin(function, place, SentenceRoom(options), options);
}

std::string CallerInSentence(const ReportView& view, StackId stack, const TextOptions& options) {
  return CallerWithin(view, stack, SentenceRoom(options), options);
}

std::string AllocationName(const ReportView& view, StackId stack,
                           format::AllocFunction function) {
  std::string name(FunctionName(function));
  for (const Frame* frame : view.Frames(stack)) {
    if (frame->role != FrameRole::kAllocator) break;
    const absl::string_view called = names::QualifiedName(frame->function);
    // operator new[] calls operator new: the outer one is what the program wrote.
    if (called == "operator new" || called == "operator new[]") name = std::string(called);
  }
  if (!view.symbols().NewArrayCalled(stack).empty()) name = "operator new[]";
  return name;
}

std::string RenderText(const ReportView& view, const TextOptions& options) {
  using Render = std::string (*)(const ReportView&, const TextOptions&);
  static constexpr std::pair<TextSection, Render> kSections[] = {
      {TextSection::kSummary, SummaryText},     {TextSection::kInvalidFrees, InvalidFreesText},
      {TextSection::kLeaks, LeaksText},
      {TextSection::kGrowing, GrowingText},
      {TextSection::kSites, SitesText},         {TextSection::kGrowth, GrowthAndPhases},
      {TextSection::kFaults, FaultsAndWhose},   {TextSection::kPressure, PressureText},
      {TextSection::kTemporary, TemporaryText},
      {TextSection::kLifetimes, LifetimesText}, {TextSection::kReallocs, ReallocsText},
      {TextSection::kSizes, SizesText},         {TextSection::kModules, ModulesText},
      {TextSection::kThreads, ThreadsAndExchanges},
      {TextSection::kMappings, MappingsText},
  };
  const auto shown = [&](TextSection section) {
    return options.sections.empty() || std::ranges::find(options.sections, section) !=
                                           options.sections.end();
  };
  std::string out;
  // The summary says it among its facts; faults and pressure are of the whole process.
  const bool of_blocks = std::ranges::any_of(options.sections, [](TextSection section) {
    return section != TextSection::kFaults && section != TextSection::kPressure;
  });
  if (!shown(TextSection::kSummary) && of_blocks) {
    Lines only(options);
    for (const std::string& line : SelectionLinesWithRange(view, /*of_sites_alone=*/false)) {
      only.Add("Only", options.style.Name(line), Ink::kWarning);
    }
    out = only.Take();
  }
  for (const auto& [section, render] : kSections) {
    if (shown(section)) absl::StrAppend(&out, render(view, options));
  }
  absl::string_view text = out;
  absl::ConsumePrefix(&text, "\n");
  return std::string(text);
}

}  // namespace memtrace::report::render
