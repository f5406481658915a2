#include "report/render/fault_words.h"

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

std::string TouchedBy(const ReportView& view, const FaultToucher& toucher) {
  if (!toucher.code) return "the kernel";
  const std::vector<const Frame*> frames = view.Frames(toucher.code);
  return frames.empty() ? "?" : FrameName(*frames.front());
}

}  // namespace memtrace::report::render
