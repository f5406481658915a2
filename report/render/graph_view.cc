#include "report/render/graph_view.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "report/base/numbers.h"
#include "report/base/path.h"
#include "report/leak/heuristics.h"
#include "report/names/fingerprint.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

using leak::GraphReport;
using Kind = leak::RootGroup::Kind;

absl::StatusOr<uint64_t> ParseAddress(absl::string_view option, absl::string_view text) {
  uint64_t address = 0;
  absl::string_view digits = text;
  if (!absl::ConsumePrefix(&digits, "0x") && !absl::ConsumePrefix(&digits, "0X")) digits = "";
  if (!ParseDigits({digits.data(), digits.size()}, 16, &address)) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": \"", text, "\" is no address such as 0x55d0c3a012a0"));
  }
  return address;
}

absl::Status NoBlockAt(absl::string_view option, const GraphReport& report, uint64_t address) {
  const leak::BlockIndex& blocks = report.graph().blocks();
  std::string near;
  for (uint32_t i = 0; i < blocks.size() && blocks.start(i) <= address; ++i) {
    near = absl::StrFormat("; the nearest before it is 0x%x, %s", blocks.start(i),
                           words::ExactBytes(blocks.bytes(i)));
  }
  return absl::NotFoundError(
      absl::StrFormat("%s: no block was live at 0x%x at the instant of scan %d%s", option, address,
                      report.held().scan.number, near));
}

// The blocks that `site` means.
absl::StatusOr<std::vector<uint32_t>> BlocksOf(const std::string& site, const ReportView& view,
                                               const StackTable& stacks,
                                               const leak::Resolution& resolution,
                                               const GraphReport& report) {
  const uint32_t count = report.graph().size();
  std::vector<uint32_t> blocks;
  if (absl::StartsWithIgnoreCase(site, "0x")) {
    const auto address = ParseAddress("--why", site);
    if (!address.ok()) return address.status();
    const uint32_t block = report.graph().blocks().Find(*address);
    if (block == leak::kNoBlock) return NoBlockAt("--why", report, *address);
    blocks.push_back(block);
    return blocks;
  }
  if (const std::string wanted = absl::AsciiStrToLower(site); IsFingerprint(wanted)) {
    std::vector<int8_t> matches(report.held().sites.size(), -1);  // -1: not looked at
    for (uint32_t block = 0; block < count; ++block) {
      const leak::BlockSite& of = report.SiteOf(block);
      int8_t& match = matches[report.graph().blocks().block(block).site];
      if (match < 0) {
        match = view.Fingerprint(of.stack, of.function) == wanted ||
                view.StrictFingerprint(of.stack, of.function) == wanted;
      }
      if (match != 0) blocks.push_back(block);
    }
    if (!blocks.empty()) return blocks;
    return absl::NotFoundError(absl::StrCat(
        "--why: no block that was live at scan ", report.held().scan.number,
        " is of a site with fingerprint ", site));
  }
  size_t rank = 0;
  const std::vector<ReportView::Loss> losses = view.Losses(/*everything=*/false);
  if (!absl::SimpleAtoi(site, &rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--why: \"", site, "\" is neither the number in front of a loss record, nor a fingerprint "
        "of sixteen digits, nor the address of a block such as 0x55d0c3a012a0"));
  }
  if (rank == 0 || rank > losses.size()) {
    const std::string hidden = WhyLossesAreHidden(view, losses.size());
    return absl::NotFoundError(absl::StrCat(
        "--why: ", rank, ": ",
        losses.empty() ? "no loss record is shown"
                       : absl::StrCat("the loss records shown are 1 to ", losses.size()),
        hidden.empty() ? "" : "; ", hidden));
  }
  const LossRecord& record = *losses[rank - 1].record;
  const auto wanted = leak::StackKey(stacks, {record.stack, record.function}, resolution);
  std::vector<int8_t> matches(report.held().sites.size(), -1);
  for (uint32_t block = 0; block < count; ++block) {
    if (report.KindOf(block) != record.kind) continue;
    const HeldBlock& held = report.graph().blocks().block(block);
    // As in records.
    if (held.has(HeldBlock::kUncounted) || held.has(HeldBlock::kIgnored)) continue;
    int8_t& match = matches[held.site];
    if (match < 0) {
      match = leak::StackKey(stacks, report.SiteOf(block), resolution) == wanted;
    }
    if (match != 0) blocks.push_back(block);
  }
  if (!blocks.empty()) return blocks;
  return absl::NotFoundError(
      absl::StrCat("--why: ", rank, ": the loss record has no blocks any more"));
}

std::string ThreadText(const leak::RootGroups& roots, const leak::RootGroup& group) {
  const leak::ScanThread* thread = roots.ThreadOf(group);
  if (thread == nullptr) return "a thread";
  if (thread->state == format::ScanThreadState::kEnding) return "a thread that has ended";
  const std::string name = roots.ThreadName(*thread);
  return name.empty() ? absl::StrCat("thread ", thread->tid)
                      : absl::StrCat("thread ", thread->tid, " \"", name, "\"");
}

std::string ModuleText(const leak::RootGroups& roots, const leak::RootGroup& group) {
  const ModuleInfo* module = roots.ModuleOf(group);
  return module == nullptr ? "a module" : std::string(FileNameOf(module->path));
}

std::string MappingText(const leak::RootGroups& roots, const leak::RootGroup& group) {
  const leak::ScanRegion* region = roots.RegionOf(group);
  if (region == nullptr) return "memory that the scan does not tell of";
  absl::string_view what = "memory";
  switch (region->kind) {
    case format::ScanRegionKind::kStack: what = "stack"; break;
    case format::ScanRegionKind::kHeap: what = "heap outside of known blocks"; break;
    case format::ScanRegionKind::kAnonymous: what = "anonymous mapping"; break;
    case format::ScanRegionKind::kFile: what = "mapping"; break;
    case format::ScanRegionKind::kShared: what = "shared mapping"; break;
    case format::ScanRegionKind::kModuleData:
    case format::ScanRegionKind::kRelro: what = "data"; break;
    case format::ScanRegionKind::kOther: break;
  }
  return absl::StrCat(what, region->path.empty() ? "" : absl::StrCat(" of ", region->path),
                      absl::StrFormat(" at 0x%x-0x%x", region->start, region->end));
}

// Says what a root is; `offset` goes behind the name that it counts from.
std::string Describe(const leak::RootGroups& roots, const leak::RootGroup& group,
                     const std::string& offset) {
  switch (group.kind) {
    case Kind::kVariable:
      return absl::StrCat("variable ", group.variable, offset, " of ", ModuleText(roots, group));
    case Kind::kThreadLocal:
      return absl::StrCat(group.variable.empty()
                              ? absl::StrCat("thread-local variables", offset)
                              : absl::StrCat("thread-local variable ", group.variable, offset),
                          " of ", ModuleText(roots, group), ", ", ThreadText(roots, group));
    case Kind::kStack:
      return absl::StrCat("stack of ", ThreadText(roots, group), offset);
    case Kind::kRegisters:
      return absl::StrCat(offset.empty() ? "registers" : offset, " of ", ThreadText(roots, group));
    case Kind::kDescriptor:
      return absl::StrCat("libc's descriptor", offset, " of ", ThreadText(roots, group));
    case Kind::kModuleData:
      return absl::StrCat("data", offset, " of ", ModuleText(roots, group), " without a symbol");
    case Kind::kMapping:
      return absl::StrCat(MappingText(roots, group), offset);
    case Kind::kRealloc:
      return "a realloc that was under way";
    case Kind::kIgnored:
      return "the program: it declared the block no leak, or had stopped the recording";
    case Kind::kSignalStack:
      return absl::StrCat("the kernel: it is the signal stack of ", ThreadText(roots, group));
    case Kind::kFreedUnseen:
      return "nothing that is known; a library that it was allocated by frees unseen, and may have "
             "freed it";
  }
  return "";
}

}  // namespace

absl::StatusOr<GraphView> GraphView::Create(const GraphQuestions& questions, const ReportView& view,
                                            const StackTable& stacks,
                                            const leak::Resolution& resolution,
                                            GraphReport* report) {
  GraphView graph;
  graph.questions_ = questions;
  graph.view_ = &view;
  graph.report_ = report;
  if (!questions.why.empty()) {
    auto blocks = BlocksOf(questions.why, view, stacks, resolution, *report);
    if (!blocks.ok()) return blocks.status();
    graph.why_ = report->Why(*std::move(blocks));
  }
  if (!questions.who_points_at.empty()) {
    const auto address = ParseAddress("--who-points-at", questions.who_points_at);
    if (!address.ok()) return address.status();
    graph.pointers_ = report->WhoPointsAt(*address);
    if (graph.pointers_->block == leak::kNoBlock) {
      return NoBlockAt("--who-points-at", *report, *address);
    }
  }
  if (questions.summary) graph.summary_ = report->Summarize();
  return graph;
}

absl::string_view RootKindName(Kind kind) {
  switch (kind) {
    case Kind::kVariable: return "variable";
    case Kind::kThreadLocal: return "thread-local";
    case Kind::kStack: return "stack";
    case Kind::kRegisters: return "register";
    case Kind::kDescriptor: return "thread-descriptor";
    case Kind::kModuleData: return "module-data";
    case Kind::kMapping: return "mapping";
    case Kind::kRealloc: return "realloc";
    case Kind::kIgnored: return "ignored";
    case Kind::kSignalStack: return "signal-stack";
    case Kind::kFreedUnseen: return "freed-unseen";
  }
  return "";
}

absl::string_view PointerName(leak::Pointer pointer) {
  switch (pointer) {
    case leak::Pointer::kStart: return "start";
    case leak::Pointer::kInterior: return "interior";
    default: return leak::HeuristicName(pointer);
  }
}

std::string RootGroupText(const leak::RootGroups& roots, uint32_t group) {
  return Describe(roots, roots.group(group), "");
}

std::string RootText(const leak::RootGroups& roots, size_t root) {
  const leak::RootPlace place = roots.PlaceOf(root);
  const leak::RootGroup& group = roots.group(place.group);
  const auto n = static_cast<uint64_t>(place.offset);
  std::string offset;
  switch (group.kind) {
    case Kind::kVariable:
    case Kind::kThreadLocal:
      if (n != 0 || group.variable.empty()) offset = absl::StrCat("+", n);
      break;
    case Kind::kStack: {
      const leak::ScanThread* thread = roots.ThreadOf(group);
      if (thread == nullptr || thread->stack_pointer == 0) break;  // where in it is not known
      offset = place.offset >= 0
                   ? absl::StrCat(", ", words::ExactBytes(n), " above its stack pointer")
                   : absl::StrCat(", ", words::ExactBytes(-n), " below its stack pointer");
      break;
    }
    case Kind::kRegisters:
      offset = leak::RegisterName(*roots.ThreadOf(group), n);
      if (!absl::StartsWith(offset, "register")) offset = absl::StrCat("register ", offset);
      break;
    case Kind::kDescriptor:
    case Kind::kModuleData:
    case Kind::kMapping:
      offset = absl::StrFormat("+0x%x", n);
      break;
    case Kind::kRealloc:
    case Kind::kIgnored:
    case Kind::kSignalStack:
    case Kind::kFreedUnseen:
      break;
  }
  std::string text = Describe(roots, group, offset);
  if (place.address != 0) absl::StrAppend(&text, absl::StrFormat(", at 0x%x", place.address));
  return text;
}

}  // namespace memtrace::report::render
