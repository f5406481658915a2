#include "report/command/dump.h"

#include <algorithm>
#include <deque>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report/analysis/coverage.h"
#include "report/faults/fault_stream.h"
#include "report/leak/leak_scans.h"
#include "report/leak/scan_reader.h"
#include "report/model/heap_events.h"
#include "report/model/heap_model.h"
#include "report/model/module_finder.h"
#include "report/model/phases.h"
#include "report/model/stream_state.h"
#include "report/trace/event_decoder.h"
#include "report/trace/event_order.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

using format::EventKind;
using format::ExtendedType;

// One word, so that a name cannot pretend to be the fields behind it.
std::string Escaped(std::string_view text) {
  return absl::StrReplaceAll(absl::CEscape(absl::string_view(text.data(), text.size())),
                             {{" ", "\\040"}});
}

class Dumper {
 public:
  Dumper(TraceReader* reader, const DumpOptions& options, std::ostream* out)
      : reader_(reader),
        range_{std::max(options.from.Ns(*reader), reader->window_begin_ns()),
               options.to.EndNs(*reader)},
        out_(out),
        model_(HeapModel::Options::OrderOf(*reader), &stacks_),
        faults_(reader),
        modules_(faults_.log().known ? ModulesAndMappedFiles(*reader) : ModulesOf(*reader)),
        module_index_(modules_),
        finder_(modules_) {
    for (const auto& [serial, thread] : reader->metadata().threads) {
      if (thread.handlers_of == 0) serials_[thread.tid] = serial;
    }
  }

  // The functions that EventOrder calls.
  void Started(size_t stream, uint32_t thread) {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    model_.AddThread(stream, thread);
  }
  void Hole(size_t stream, const EventCursor& cursor) {
    WaitList nobody;
    streams_[stream].ForgetLost(cursor.lost_words(), cursor.NextPathSlot());
    model_.ForgetPending(stream, nobody);
  }
  void Prefetch(uint64_t address) { model_.Prefetch(address); }
  bool Tick() {
    out_->write(line_.data(), static_cast<std::streamsize>(line_.size()));
    line_.clear();
    return !past_end_ && out_->good();
  }
  bool Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits);
  // The fault events before `time_ns`.
  void PrintFaults(uint64_t time_ns);

 private:
  bool Wanted(const EventCursor& cursor) {
    past_end_ |= cursor.low() > range_.to_ns;
    return cursor.time() >= range_.from_ns && cursor.time() <= range_.to_ns;
  }
  void Begin(const EventCursor& cursor, std::string_view event) {
    absl::StrAppendFormat(&line_, "%d.%09d %d %s", cursor.time() / 1'000'000'000,
                          cursor.time() % 1'000'000'000, cursor.thread(),
                          absl::string_view(event.data(), event.size()));
  }
  void Address(uint64_t address) { absl::StrAppend(&line_, " 0x", absl::Hex(address)); }
  void Stack(StackId stack) {
    if (stack) absl::StrAppend(&line_, " stack=", stack.value);
  }
  void PrintFrames(const EventCursor& cursor, StackId stack);
  void PrintAlloc(size_t stream, const EventCursor& cursor, const AllocEvent& event, uint64_t old);
  void PrintExtended(size_t stream, const EventCursor& cursor);

  TraceReader* const reader_;
  const Range range_;
  std::ostream* const out_;
  StackTable stacks_;
  HeapModel model_;
  std::deque<StreamState> streams_;
  FaultStream faults_;
  const std::vector<ModuleInfo> modules_;
  const ModuleIndex module_index_;
  const ModuleFinder finder_;
  absl::flat_hash_map<uint32_t, uint32_t> serials_;  // tid -> of the thread
  std::vector<bool> printed_;  // by StackId
  std::string line_;           // lines not yet written
  bool past_end_ = false;
};

void Dumper::PrintFaults(uint64_t time_ns) {
  for (; !faults_.done() && faults_.front().time_ns < time_ns; faults_.Pop()) {
    const Fault& fault = faults_.front();
    if (fault.time_ns < range_.from_ns || fault.time_ns > range_.to_ns) continue;
    const auto serial = serials_.find(fault.tid);
    absl::StrAppendFormat(&line_, "%d.%09d %d fault", fault.time_ns / 1'000'000'000,
                          fault.time_ns % 1'000'000'000,
                          serial == serials_.end() ? 0 : serial->second);
    Address(fault.address);
    absl::StrAppend(&line_, fault.major ? " major" : " minor", " tid=", fault.tid);
    if (fault.in_kernel) {
      line_ += " kernel";
    } else {
      absl::StrAppend(&line_, " pc=0x", absl::Hex(fault.pc));
      const ModuleInfo* module = finder_.Find(fault.pc + 1, fault.time_ns);
      if (module != nullptr) {
        absl::StrAppend(&line_, " module=", Escaped(module->path), "+0x",
                        absl::Hex(fault.pc - module->bias));
      }
    }
    line_ += '\n';
    if (line_.size() > (64 << 10)) Tick();
  }
}

// The definitions of the frames of `stack` that were not printed yet, callers first.
void Dumper::PrintFrames(const EventCursor& cursor, StackId stack) {
  if (printed_.size() <= stacks_.size()) printed_.resize(stacks_.size() * 2 + 1);
  std::vector<StackId> ids;
  for (StackId id = stack; id && !printed_[id.value]; id = stacks_.node(id).parent) {
    ids.push_back(id);
    printed_[id.value] = true;
  }
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    const StackNode& node = stacks_.node(*id);
    Begin(cursor, "frame");
    if (node.is_marker()) {
      absl::StrAppend(&line_, " - stack=", id->value, " marker=", node.pc);
    } else {
      Address(node.pc);
      absl::StrAppend(&line_, " stack=", id->value);
      const ModuleInfo* module = module_index_.Find(node);
      if (module != nullptr) {
        absl::StrAppend(&line_, " module=", Escaped(module->path), "+0x",
                        absl::Hex(node.pc - module->bias));
      }
    }
    if (node.parent) absl::StrAppend(&line_, " caller=", node.parent.value);
    line_ += '\n';
  }
}

void Dumper::PrintAlloc(size_t stream, const EventCursor& cursor, const AllocEvent& event,
                        uint64_t old) {
  const bool stopped = event.slot == format::kStoppedSlot;
  const StackId stack =
      stopped ? StackId{} : streams_[stream].StackOf(event.slot, &stacks_);
  PrintFrames(cursor, stack);
  const char* name = NameOf(event.function);
  Begin(cursor, name != nullptr ? name : "alloc?");
  Address(event.address);
  absl::StrAppend(&line_, " size=", event.size);
  if (event.waste_known) absl::StrAppend(&line_, " usable=", event.size + event.waste);
  if (event.alignment_log2 != 0 && event.alignment_log2 < 64) {
    absl::StrAppend(&line_, " align=", uint64_t{1} << event.alignment_log2);
  }
  if (old != 0) absl::StrAppend(&line_, " old=0x", absl::Hex(old));
  if (event.mapped) line_ += " mapped";
  if (event.other_arena) line_ += " arena";
  if (stopped) line_ += " stopped";
  Stack(stack);
  line_ += '\n';
}

void Dumper::PrintExtended(size_t stream, const EventCursor& cursor) {
  const ExtendedEvent event(cursor.words(), cursor.word_count());
  const StackId stack = streams_[stream].StackOf(event.slot(), &stacks_);
  PrintFrames(cursor, stack);
  const char* name = NameOf(event.type());
  Begin(cursor, name != nullptr ? std::string(name)
                                : absl::StrCat("extended-", static_cast<int>(event.type())));
  switch (event.type()) {
    case ExtendedType::kMmap:
      Address(event.word(1));
      absl::StrAppend(&line_, " length=", event.word(2), " prot=", event.low(3), " flags=0x",
                      absl::Hex(event.high(3)), " fd=", static_cast<int32_t>(event.low(4)),
                      " offset=", event.word(5));
      if (!event.text(6).empty()) absl::StrAppend(&line_, " file=", Escaped(event.text(6)));
      break;
    case ExtendedType::kMunmap:
    case ExtendedType::kMunmapFailed:
      Address(event.word(1));
      absl::StrAppend(&line_, " length=", event.word(2));
      break;
    case ExtendedType::kMremap:
      Address(event.word(3));
      absl::StrAppend(&line_, " length=", event.word(4), " old=0x", absl::Hex(event.word(1)),
                      " old-length=", event.word(2), " flags=0x", absl::Hex(event.low(5)));
      break;
    case ExtendedType::kBrk:
    case ExtendedType::kHeapGrowth:
      Address(event.word(2));
      absl::StrAppend(&line_, " old=0x", absl::Hex(event.word(1)));
      break;
    case ExtendedType::kArenaGrowth:
      Address(event.word(1));
      absl::StrAppend(&line_, " bytes=", event.word(2));
      break;
    case ExtendedType::kShmat:
      Address(event.word(1));
      absl::StrAppend(&line_, " length=", event.word(2), " shmid=",
                      static_cast<int32_t>(event.low(3)), " flags=0x", absl::Hex(event.high(3)));
      break;
    case ExtendedType::kShmdt:
      Address(event.word(1));
      break;
    case ExtendedType::kUsage:
      absl::StrAppend(&line_, " - minor=", event.word(1), " major=", event.word(2));
      absl::StrAppend(&line_, " rss=", event.word(3), " peak-rss=", event.word(4),
                      " tool-minor=", event.word(5));
      absl::StrAppend(&line_, " voluntary=", event.low(6), " involuntary=", event.high(6));
      break;
    case ExtendedType::kThreadName:
      absl::StrAppend(&line_, " - name=", Escaped(event.text(1)));
      break;
    case ExtendedType::kPoolCreate:
      Address(event.word(1));
      if (!event.text(3).empty()) absl::StrAppend(&line_, " name=", Escaped(event.text(3)));
      break;
    case ExtendedType::kPoolDestroy:
    case ExtendedType::kIgnoreBlock:
      Address(event.word(1));
      break;
    case ExtendedType::kCustomAlloc:
      Address(event.word(1));
      absl::StrAppend(&line_, " size=", event.word(2));
      if (event.word(3) != 0) absl::StrAppend(&line_, " pool=0x", absl::Hex(event.word(3)));
      break;
    case ExtendedType::kCustomFree:
      Address(event.word(1));
      if (event.word(2) != 0) absl::StrAppend(&line_, " pool=0x", absl::Hex(event.word(2)));
      break;
    case ExtendedType::kLeaksDisabled:
      absl::StrAppend(&line_, " - depth=", event.word(1));
      break;
    case ExtendedType::kPhase:
      line_ += " -";
      switch (static_cast<format::PhaseEdge>(event.word(1))) {
        case format::PhaseEdge::kBegin: line_ += " begin"; break;
        case format::PhaseEdge::kEnd: line_ += " end"; break;
        case format::PhaseEdge::kMark: line_ += " mark"; break;
      }
      absl::StrAppend(&line_, " name=", Escaped(event.text(3)));
      break;
    case ExtendedType::kRecordingStopped:
      absl::StrAppend(&line_, " - stopped=", event.word(1) != 0 ? 1 : 0);
      break;
    default:
      absl::StrAppend(&line_, " - words=", cursor.word_count());
  }
  Stack(stack);
  line_ += '\n';
}

bool Dumper::Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits) {
  const uint64_t* words = cursor.words();
  const EventKind kind = cursor.kind();
  if (kind == EventKind::kPath) {
    streams_[stream].Define(words, &stacks_);
    return true;
  }
  if (cursor.time() < reader_->window_begin_ns()) return true;  // there by chance
  if (!faults_.done()) PrintFaults(cursor.time());
  const uint64_t old = model_.PendingRealloc(stream);
  if (!ApplyHeapEvent(model_, streams_[stream], &stacks_, stream, cursor, force, waits)) {
    return false;
  }
  if (!Wanted(cursor)) return true;
  switch (kind) {
    case EventKind::kMalloc:
    case EventKind::kCalloc:
    case EventKind::kRealloc:
      PrintAlloc(stream, cursor, DecodeShortAlloc(words), kind == EventKind::kRealloc ? old : 0);
      break;
    case EventKind::kWideAlloc: {
      const AllocEvent event = DecodeWideAlloc(words);
      PrintAlloc(stream, cursor, event, IsRealloc(event.function) ? old : 0);
      break;
    }
    case EventKind::kFree: {
      StackId stack;
      if (cursor.word_count() > 1) {
        stack = streams_[stream].StackOf(static_cast<uint32_t>(words[1]), &stacks_);
        PrintFrames(cursor, stack);
      }
      Begin(cursor, "free");
      Address(format::AddressOf(words[0]));
      Stack(stack);
      line_ += '\n';
      break;
    }
    case EventKind::kReallocIntent:
      Begin(cursor, "realloc-begin");
      Address(format::AddressOf(words[0]));
      line_ += '\n';
      break;
    case EventKind::kExtended:
      PrintExtended(stream, cursor);
      break;
    case EventKind::kPath:
    case EventKind::kTime:
    case EventKind::kInvalid:
      break;
  }
  return true;
}

void PrintHead(TraceReader& reader, std::ostream& out) {
  out << "# memtrace dump 1: TIME THREAD EVENT ADDRESS key=value...\n";
  const ProcessInfo& process = reader.metadata().process;
  out << "# process " << reader.header().pid;
  for (const std::string& argument : process.command) out << ' ' << Escaped(argument);
  out << '\n';
  if (reader.window_begin_ns() != 0) {
    out << absl::StreamFormat("# the newest events only (MEMTRACE_KEEP=newest), from %d.%09d on\n",
                              reader.window_begin_ns() / 1'000'000'000,
                              reader.window_begin_ns() % 1'000'000'000);
  }
  for (const auto& [serial, thread] : reader.metadata().threads) {
    out << "# thread " << serial << " tid=" << thread.tid << " name=" << Escaped(thread.name);
    if (thread.handlers_of != 0) out << " signal-handlers-of=" << thread.handlers_of;
    out << '\n';
  }
  for (const uint32_t number : leak::ScanNumbers(reader)) {
    const leak::Scan scan = leak::ReadScan(reader, number, nullptr);
    const uint64_t time = reader.clock().ToNs(scan.begin.ticks);
    out << absl::StreamFormat("# scan %d %s at %d.%09d threads=%d regions=%d words=%d", number,
                              leak::ReasonName(scan.begin.reason), time / 1'000'000'000,
                              time % 1'000'000'000, scan.threads.size(), scan.regions.size(),
                              scan.words);
    if (!scan.begin.label.empty()) out << " label=" << Escaped(scan.begin.label);
    if (!scan.failure.empty()) out << " failed=" << Escaped(scan.failure);
    if (!scan.done.has_value()) out << " unfinished";
    out << '\n';
  }
  for (const ModuleRecord& module : reader.metadata().modules) {
    out << absl::StreamFormat("# module %d 0x%x-0x%x bias=0x%x build-id=%s %s\n",
                              module.info.id.value, module.info.start, module.info.end,
                              module.info.bias, HexOf(module.info.build_id),
                              Escaped(module.info.path));
  }
}

}  // namespace

absl::Status RunDump(const DumpOptions& options, std::ostream& out) {
  auto reader = TraceReader::Open(options.file);
  if (!reader.ok()) return reader.status();
  DumpOptions resolved = options;
  for (const bool end : {false, true}) {
    Instant& instant = end ? resolved.to : resolved.from;
    if (instant.name.empty()) continue;
    const auto found = FindInstant(**reader, instant.name, end);
    if (!found.ok()) return found.status();
    instant = {.ns = *found};
  }
  if (!options.quiet) PrintHead(**reader, out);
  Dumper dumper(reader->get(), resolved, &out);
  EventOrder<Dumper> order(reader->get(), ClockSlackNs((*reader)->metadata().process.clock),
                           DefaultJobs(), &dumper);
  order.Run();
  dumper.PrintFaults(UINT64_MAX);
  dumper.Tick();
  const std::string damage = (*reader)->damage();
  if (!options.quiet && !damage.empty()) out << "# " << damage << '\n';
  if (!options.quiet && !(*reader)->cut_place().empty()) {
    out << "# " << (*reader)->cut_place() << '\n';
  }
  return absl::OkStatus();
}

}  // namespace memtrace::report
