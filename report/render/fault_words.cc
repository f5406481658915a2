#include "report/render/fault_words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/base/path.h"
#include "report/render/text_report.h"
#include "report/words/units.h"

namespace memtrace::report::render {

absl::string_view MemoryKindText(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kBlock: return "a block of malloc";
    case MemoryKind::kProgramMap: return "a mapping of the program";
    case MemoryKind::kAllocator: return "the allocator's own";
    case MemoryKind::kStack: return "stack";
    case MemoryKind::kData: return "data of a module";
    case MemoryKind::kBss: return ".bss of a module";
    case MemoryKind::kText: return "code of a module";
    case MemoryKind::kReadOnly: return "constants of a module";
    case MemoryKind::kFile: return "a file";
    case MemoryKind::kShared: return "shared memory";
    case MemoryKind::kTool: return "memtrace itself";
    case MemoryKind::kKernel: return "the kernel's page";
    case MemoryKind::kUnknown: break;
  }
  return "in no map of the trace";
}

absl::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kBlock: return "block";
    case MemoryKind::kProgramMap: return "mapping";
    case MemoryKind::kAllocator: return "allocator";
    case MemoryKind::kStack: return "stack";
    case MemoryKind::kData: return "data";
    case MemoryKind::kBss: return "bss";
    case MemoryKind::kText: return "text";
    case MemoryKind::kReadOnly: return "rodata";
    case MemoryKind::kFile: return "file";
    case MemoryKind::kShared: return "shared";
    case MemoryKind::kTool: return "tool";
    case MemoryKind::kKernel: return "kernel";
    case MemoryKind::kUnknown: break;
  }
  return "unknown";
}

absl::string_view FaultSourceName(const Analysis& analysis) {
  const FaultDetails& details = analysis.fault_details;
  if (details.known && details.source != format::FaultSource::kNone) return "perf";
  const auto& bridges = analysis.resident.bridges;
  return !bridges.empty() && bridges.back().source == format::PageSource::kPagemap ? "pagemap"
                                                                                   : "getrusage";
}

absl::string_view RssPartText(RssPart part) {
  switch (part) {
    case RssPart::kLive: return "requested bytes of live blocks";
    case RssPart::kWaste: return "waste and headers of live blocks";
    case RssPart::kRetained: return "free, kept by the allocator";
    case RssPart::kProgramMap: return "mappings of the program";
    case RssPart::kMappedFiles: return "mapped files";
    case RssPart::kShared: return "shared memory";
    case RssPart::kStacks: return "stacks";
    case RssPart::kCode: return "code";
    case RssPart::kData: return "data of modules";
    case RssPart::kTool: return "memtrace itself";
    case RssPart::kOther: break;
  }
  return "other mappings";
}

absl::string_view RssPartName(RssPart part) {
  switch (part) {
    case RssPart::kLive: return "live";
    case RssPart::kWaste: return "waste";
    case RssPart::kRetained: return "retained";
    case RssPart::kProgramMap: return "program_mappings";
    case RssPart::kMappedFiles: return "mapped_files";
    case RssPart::kShared: return "shared";
    case RssPart::kStacks: return "stacks";
    case RssPart::kCode: return "code";
    case RssPart::kData: return "data";
    case RssPart::kTool: return "tool";
    case RssPart::kOther: break;
  }
  return "other";
}

namespace {

bool EndIsInTrace(const ProcessInfo& process) {
  using End = ProcessInfo::End;
  return (process.end == End::kExit && !process.exit_unseen) || process.end == End::kExec;
}

absl::string_view Follow(double r) {
  if (r >= 0.8) return "closely follow";
  if (r >= 0.5) return "partly follow";
  if (r >= 0.2) return "weakly follow";
  return r > -0.5 ? "do not follow" : "run against";
}

}  // namespace

std::vector<std::string> FaultSentences(
    const ReportView& view,
    const std::function<std::string(absl::string_view function, absl::string_view place)>& name) {
  constexpr size_t kMostSites = 3;
  constexpr uint64_t kFewestFaults = 16;
  const FaultDetails& details = view.analysis().fault_details;
  std::vector<std::string> sentences;
  for (const FaultSite& site : details.sites) {
    if (sentences.size() == kMostSites || site.faults.all() < kFewestFaults) break;
    if (!view.Matches(site.stack) || site.touchers.empty()) continue;
    const FaultToucher& most = site.touchers.front();
    const uint64_t end = EndNs(view.analysis());
    const uint64_t left = end - std::min(end, site.last_time_ns);
    const bool over = left > 2 * (site.last_time_ns - site.first_time_ns);
    // Faults that were lost may have been this site's; and those since the last look of a process
    // that was killed, or is at work.
    const bool all_seen = details.last_lost_ns <= site.last_time_ns;
    const bool looked_to_the_end = EndIsInTrace(view.analysis().process);
    const Frame* caller = view.Caller(site.stack);
    sentences.push_back(absl::StrCat(
        words::Count(most.faults.all()), " of ", words::Plural(site.faults.all(), "fault"),
        " came when ", name(TouchedBy(view, most), ""), " touched ",
        site.blocks == 1 ? "the block" : "blocks", " allocated by ",
        caller == nullptr ? std::string("an unknown caller")
                          : name(FrameName(*caller), FileNameOf(PlaceText(*caller))),
        ", from ", words::Duration(site.first_time_ns), " to ", words::Duration(site.last_time_ns),
        !over ? ""
        : !all_seen
            ? absl::StrCat("; of what came in the ", words::Duration(left),
                           " after that some was lost")
        : looked_to_the_end
            ? absl::StrCat("; none in the ", words::Duration(left), " after that")
            : absl::StrCat("; of the ", words::Duration(left), " after that not all was seen")));
  }
  for (const auto& [pair, what] :
       {std::pair(&details.correlation.live_minor, "the growth of the live heap"),
        std::pair(&details.correlation.allocated_minor, "the bytes allocated")}) {
    if (!pair->known || pair->lag_ns == 0) continue;
    sentences.push_back(absl::StrCat("Minor faults follow ", what, " ",
                                     words::Duration(pair->lag_ns),
                                     " later (r = ", absl::StrFormat("%.2f", pair->best),
                                     absl::StrFormat("; %.2f at the same time)", pair->now)));
  }
  return sentences;
}

std::vector<std::string> CorrelationSentences(const Analysis& analysis) {
  if (analysis.of_some_blocks()) return {};
  const Faults& faults = analysis.faults;
  if (!faults.correlation_known) {
    return {"Too few samples, or too little change, to say what the faults go with."};
  }
  const double live = faults.correlation_live, allocated = faults.correlation_allocated;
  std::vector<std::string> sentences = {
      absl::StrFormat("Minor faults %s the growth of the live heap (r = %.2f) and %s the bytes "
                      "allocated (r = %.2f).",
                      Follow(live), live, Follow(allocated), allocated)};
  if (allocated >= 0.5 && allocated - live >= 0.3) {
    sentences.emplace_back("Memory is given back and faulted in again: look at the sites that "
                           "allocate most, not at those that hold most.");
  }
  return sentences;
}

std::string TouchedBy(const ReportView& view, const FaultToucher& toucher) {
  if (!toucher.code) return "the kernel";
  const std::vector<const Frame*> frames = view.Frames(toucher.code);
  return frames.empty() ? "?" : FrameName(*frames.front());
}

}  // namespace memtrace::report::render
