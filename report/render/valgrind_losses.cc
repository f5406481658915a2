#include "report/render/valgrind_losses.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/leak/leak_scans.h"
#include "report/words/escape.h"
#include "report/words/units.h"
#include "symbolizer/demangle.h"

namespace memtrace::report::render {
namespace {

// Where records of one size are: memcheck's order of its kinds.
int KindRank(LeakKind kind) {
  switch (kind) {
    case LeakKind::kReachable: return 0;
    case LeakKind::kPossible: return 1;
    case LeakKind::kIndirect: return 2;
    case LeakKind::kDefinite: return 3;
    case LeakKind::kUnfreed: return 4;
  }
  return 4;
}

LossFrame FrameOf(const ReportView& view, const Frame& from) {
  LossFrame frame;
  frame.object = from.module;
  frame.function = from.function;
  frame.line = from.line;
  frame.inlined = from.inlined;
  const size_t slash = from.file.rfind('/');
  if (slash == from.file.npos) {
    frame.file = from.file;
  } else {
    frame.directory = from.file.substr(0, slash);
    frame.file = from.file.substr(slash + 1);
  }
  frame.offset = from.offset;
  frame.ip = from.offset + (from.module.empty() ? 0 : view.BiasOf(from.module));
  if (frame.ip != 0) --frame.ip;  // inside the call instruction
  return frame;
}

bool IsOperatorNew(const Frame& frame) {
  return absl::StartsWith(frame.function, "operator new");
}

// What runs main and constructors, by the names that Valgrind takes for that: a stack ends there if
// main has no name. The start of constructors has another one in glibc 2.34, and is shown.
bool IsBelowMain(absl::string_view function) {
  return function == "__libc_start_call_main" || function == "__libc_start_main" ||
         function == "generic_start_main" || function == "_start";
}

// The key by which records differ: the code addresses, as in Valgrind, and whose code is there:
// modules that were loaded in turn may have been at one address, with functions of one name.
std::string KeyOf(const Loss& loss, size_t most_addresses) {
  std::string key = absl::StrCat(static_cast<int>(loss.kind));
  size_t addresses = 0;
  bool same_address = false;
  for (const LossFrame& frame : loss.stack) {
    if (!same_address && ++addresses > most_addresses) break;
    same_address = frame.inlined;
    absl::StrAppend(&key, "\n", frame.ip, " ", frame.object, "\n", frame.function, " ", frame.line);
  }
  return key;
}

}  // namespace

absl::string_view XmlKind(LeakKind kind) {
  switch (kind) {
    case LeakKind::kDefinite: return "Leak_DefinitelyLost";
    case LeakKind::kIndirect: return "Leak_IndirectlyLost";
    case LeakKind::kPossible: return "Leak_PossiblyLost";
    case LeakKind::kReachable:
    case LeakKind::kUnfreed: return "Leak_StillReachable";
  }
  return "Leak_StillReachable";
}

void LossList::Count() {
  totals = {};
  suppressed = {};
  for (const Loss& loss : losses) {
    LeakAmount& amount = loss.suppressed ? suppressed : totals[static_cast<size_t>(loss.kind)];
    amount.bytes += loss.bytes;
    amount.blocks += loss.blocks;
  }
}

const LeakScan* LastScan(const Analysis& analysis, std::string* why) {
  for (const UnseenAllocator& unseen : analysis.coverage.unseen_allocators) {
    if (unseen.way != UnseenAllocator::Way::kComesFirst) continue;
    if (why != nullptr) {
      *why =
          absl::StrCat("its memory is not recorded: ", unseen.module, " has a malloc of its own");
    }
    return nullptr;
  }
  // An earlier one would say what was so then: not what is lost in the end.
  if (!analysis.leak_scans.empty() &&
      analysis.leak_scans.back().state == LeakScan::State::kDone) {
    return leak::ChooseScan(analysis, 0);
  }
  if (why == nullptr) return nullptr;
  if (analysis.leak_scans.empty()) {
    *why = absl::StrCat("its memory was not scanned, so nothing is known of what is lost: ",
                        leak::WhyNoScan(analysis));
  } else if (!analysis.leak_scans.back().failure.empty()) {
    *why = absl::StrCat("the scan of its memory failed: ", analysis.leak_scans.back().failure);
  } else {
    *why = "the scan of its memory was cut short";
  }
  return nullptr;
}

std::vector<std::string> RemarksOn(const LeakScan& scan) {
  std::vector<std::string> remarks = scan.notes;
  if (scan.reason == format::ScanReason::kRequest || scan.reason == format::ScanReason::kOutside) {
    remarks.push_back(absl::StrCat("the memory was scanned on request, ",
                                   words::Duration(scan.time_ns),
                                   " after the start, and not when the program ended"));
  }
  return remarks;
}

// The function that was interposed is the innermost frame of all, where Valgrind
// has its replacement.
LossFrame TracerFrame(const Analysis& analysis, absl::string_view function) {
  LossFrame frame;
  frame.function = std::string(function);
  for (const ModuleInfo& module : analysis.modules) {
    if ((module.flags & format::kModuleTracer) == 0) continue;
    frame.object = module.path;
    frame.ip = module.start;
    break;
  }
  return frame;
}

bool AppendCallers(const ReportView& view, const std::vector<const Frame*>& frames, size_t from,
                   const LossOptions& options, std::vector<LossFrame>* stack) {
  size_t addresses = options.callers - 1;
  for (size_t i = from; i < frames.size(); ++i) {
    const Frame& frame = *frames[i];
    if (frame.role == FrameRole::kMarker || addresses == 0) return true;
    stack->push_back(FrameOf(view, frame));
    if (frame.inlined) continue;
    --addresses;
    if (options.below_main) continue;
    if (frame.function == "main") break;
    if (IsBelowMain(frame.function)) {
      stack->back().function = "(below main)";
      break;
    }
  }
  return frames.empty();
}

Loss LossStack(const ReportView& view, StackId stack, format::AllocFunction function,
               const LossOptions& options) {
  Loss loss;
  loss.site_stack = stack;
  loss.allocator = function;
  const std::vector<const Frame*> frames = view.Frames(stack);
  loss.stack.push_back(TracerFrame(view.analysis(), FunctionName(function)));
  size_t i = 0;
  while (i < frames.size() && frames[i]->role == FrameRole::kAllocator &&
         IsOperatorNew(*frames[i])) {
    // Valgrind replaces operator new; the malloc in it is then not called.
    loss.stack.front() = FrameOf(view, *frames[i++]);
  }
  // The nothrow form of new[] calls the usual one, and is on the stack.
  if (const std::string_view array = view.symbols().NewArrayCalled(stack);
      i == 1 && !array.empty()) {
    LossFrame& front = loss.stack.front();
    front = {.ip = front.ip,
             .object = front.object,
             .function = symbolizer::Demangle(std::string(array)),
             .offset = front.offset};
  }
  loss.cut = AppendCallers(view, frames, i, options, &loss.stack);
  return loss;
}

LossList CollectLosses(const ReportView& view, const LossOptions& options) {
  LossList list;
  list.scan = LastScan(view.analysis());
  const size_t most_addresses = options.resolution == LeakResolution::kLow   ? 2
                                : options.resolution == LeakResolution::kMed ? 4
                                                                             : options.callers;
  absl::flat_hash_map<std::string, size_t> by_key;
  const auto add = [&](StackId stack, format::AllocFunction function, LeakKind kind,
                       uint64_t bytes, uint64_t blocks, uint64_t indirect_bytes) {
    Loss loss = LossStack(view, stack, function, options);
    loss.kind = kind;
    const auto [at, is_new] = by_key.try_emplace(KeyOf(loss, most_addresses), list.losses.size());
    if (is_new) list.losses.push_back(std::move(loss));
    Loss& record = list.losses[at->second];
    record.bytes += bytes;
    record.blocks += blocks;
    record.indirect_bytes += indirect_bytes;
  };
  if (list.scan != nullptr) {
    for (const LossRecord& record : list.scan->records) {
      if (record.blocks == 0 || !view.Matches(record.stack)) continue;
      add(record.stack, record.function, record.kind, record.bytes, record.blocks,
          record.kind == LeakKind::kDefinite ? record.indirect_bytes : 0);
    }
  } else {
    for (const Site* site : view.sites()) {
      if (site->live_blocks == 0) continue;
      add(site->stack, site->function, LeakKind::kUnfreed, site->live_bytes, site->live_blocks, 0);
    }
  }
  std::stable_sort(list.losses.begin(), list.losses.end(), [](const Loss& a, const Loss& b) {
    return std::tuple(a.total_bytes(), KindRank(a.kind), a.blocks) <
           std::tuple(b.total_bytes(), KindRank(b.kind), b.blocks);
  });
  list.Count();
  return list;
}

std::string LossFrameText(const LossFrame& frame) {
  std::string out = absl::StrFormat("0x%X: ", frame.ip);
  absl::StrAppend(&out, frame.function.empty() ? "???" : words::EscapeControls(frame.function));
  if (!frame.file.empty()) {
    absl::StrAppend(&out, " (", words::EscapeControls(frame.file));
    if (frame.line != 0) absl::StrAppend(&out, ":", frame.line);
    absl::StrAppend(&out, ")");
  } else if (!frame.object.empty()) {
    absl::StrAppend(&out, " (in ", words::EscapeControls(frame.object), ")");
  }
  return out;
}

}  // namespace memtrace::report::render
