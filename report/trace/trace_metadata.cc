#include "report/trace/trace_metadata.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "format/notes.h"
#include "format/record_decoder.h"
#include "format/varint.h"
#include "report/base/path.h"
#include "report/trace/record_text.h"

namespace memtrace::report {
namespace {

using format::RecordBody;
using format::RecordTag;

// The library tells 16; a hostile trace might tell millions.
constexpr size_t kMostConfinements = 64;

// In the year 2116. A start that is later is damage: nobody who adds a duration to one that is not
// has to think of overflow.
constexpr uint64_t kLatestStart = uint64_t{1} << 62;

void ReadProcess(RecordBody& body, TraceMetadata* out) {
  ProcessInfo& p = out->process;
  p.library_version = RecordText(body);
  p.executable = RecordText(body);
  p.build_id = HexOf(RecordText(body));
  p.command.clear();
  for (uint64_t n = body.Number(); n > 0 && !body.at_end(); --n) {
    p.command.push_back(RecordText(body, TraceMetadata::kLongestArgument));
  }
  // The kernel has no path of a program from a mount that is attached nowhere.
  if (p.executable == "/" && !p.command.empty()) p.executable = p.command.front();
  p.start_realtime_ns = static_cast<int64_t>(std::min(body.Number(), kLatestStart));
  out->start_monotonic_ns = body.Number();
  out->start_ticks = body.Number();
  p.clock = static_cast<format::ClockKind>(body.Number());
  out->ticks_per_second = body.Number();
  const uint64_t page = body.Number();
  if (page >= 1024 && page <= (1 << 20)) p.page_bytes = page;
  p.ppid = static_cast<uint32_t>(body.Number());
  body.Number();  // the thread that forked it
  p.kernel = RecordText(body);
  p.host = RecordText(body);
  p.working_directory = RecordText(body);
  p.allocator = static_cast<format::AllocatorKind>(body.Number());
  p.stack_mode = static_cast<format::StackMode>(body.Number());
  p.sample_bytes = body.Number();
  p.stamp_rule = static_cast<format::StampRule>(body.Number());
  p.boot_ticks = body.Number();
  p.parent_boot_ticks = body.Number();
  p.pid_namespace = body.Number();
  p.has_record = true;
}

void ReadModule(RecordBody& body, TraceMetadata* out) {
  ModuleRecord module;
  module.info.id = ModuleId{static_cast<uint32_t>(body.Number())};
  module.info.flags = static_cast<uint32_t>(body.Number());
  module.info.start = body.Number();
  module.info.end = body.Number();
  module.info.bias = body.Number();
  module.info.path = RecordText(body);
  module.info.build_id = RecordText(body);
  module.load_ticks = body.Number();
  RecordText(body);  // soname
  module.info.below_thread_pointer = body.Number();
  module.info.thread_local_bytes = body.Number();
  const auto known = out->module_index.find(module.info.id.value);
  if (known != out->module_index.end()) {
    // It was told again: after a disk was full, or by a flight recorder.
    const ModuleInfo& info = out->modules[known->second].info;
    if (info.start == module.info.start && info.path == module.info.path) return;
  } else if (const auto unload = out->early_unloads.find(module.info.id.value);
             unload != out->early_unloads.end()) {
    module.unload_ticks = unload->second;
  }
  out->module_index[module.info.id.value] = out->modules.size();
  out->modules.push_back(std::move(module));
}

void ReadModuleUnload(RecordBody& body, TraceMetadata* out) {
  const ModuleId id{static_cast<uint32_t>(body.Number())};
  const uint64_t ticks = body.Number();
  const auto at = out->module_index.find(id.value);
  if (at != out->module_index.end()) {
    out->modules[at->second].unload_ticks = ticks;
  } else {
    out->early_unloads[id.value] = ticks;
  }
}

void ReadMemoryMap(RecordBody& body, TraceMetadata* out) {
  const auto reason = static_cast<format::MapReason>(body.Number());
  MapRecord map;
  map.ticks = body.Number();
  map.text = body.Bytes();
  map.tool_bytes = body.Number();
  if (reason == format::MapReason::kStart) {
    out->map_at_start = std::move(map);
  } else if (reason == format::MapReason::kEnd || !out->has_end_map) {
    out->has_end_map |= reason == format::MapReason::kEnd;
    out->map_at_end = std::move(map);
  }
}

void TakeEnd(const EndRecord& end, TraceMetadata* out, ClockMap* clock) {
  clock->Add(end.ticks, end.monotonic_ns);
  if (end.failure_is_told) out->execs.Begin(end.ticks);
  // Blocks may lie in the file in another order than they were written.
  if (!out->end.has_value() || end.ticks >= out->end->ticks) out->end = end;
}

void ReadObservedEnd(RecordBody& body, TraceMetadata* out) {
  ObservedEndRecord end;
  end.kind = static_cast<format::ObservedEndKind>(body.Number());
  end.status_or_signal = static_cast<int>(body.Number());
  end.realtime_ns = body.Number();
  end.cpu_ns = body.Number();
  end.peak_rss_bytes = body.Number();
  end.core_dumped = body.Number() != 0;
  out->observed_end = end;
}

void ReadKill(RecordBody& body, TraceMetadata* out) {
  KillInfo kill;
  const uint64_t verdict = body.Number();
  kill.verdict = format::KillVerdict::kNotKnown;
  if (verdict == static_cast<uint64_t>(format::KillVerdict::kOomKiller) ||
      verdict == static_cast<uint64_t>(format::KillVerdict::kNotOomKiller)) {
    kill.verdict = static_cast<format::KillVerdict>(verdict);
  }
  kill.why = RecordText(body);
  kill.cgroup = RecordText(body);
  kill.limit_bytes = body.Number();
  out->kill = std::move(kill);
}

void ReadNote(RecordBody& body, TraceMetadata* out) {
  std::string note = RecordText(body);
  if (out->known_notes.contains(note)) return;  // it was told again
  if (out->notes.size() < TraceMetadata::kMostNotes) {
    out->known_notes.insert(note);
    out->notes.push_back(std::move(note));
  } else {
    ++out->notes_left_out;
  }
}

void ReadCounter(RecordBody& body, TraceMetadata* out) {
  std::string name = RecordText(body);
  const uint64_t value = body.Number();
  if (out->counters.size() >= TraceMetadata::kMostCounters &&
      !out->counter_index.contains(name)) {
    return;
  }
  const auto [at, added] = out->counter_index.try_emplace(name, out->counters.size());
  if (added) {
    out->counters.emplace_back(std::move(name), value);
  } else {
    out->counters[at->second].second = value;
  }
}

void ReadCrossCheck(RecordBody& body, TraceMetadata* out) {
  CheckedStackRecord record;
  CheckedStack& stack = record.stack;
  stack.result = static_cast<format::CrossCheckResult>(body.Number());
  stack.thread = ThreadId{static_cast<uint32_t>(body.Number())};
  record.ticks = body.Number();
  stack.layer = static_cast<format::CrossCheckLayer>(body.Number());
  stack.pc = body.Number();
  stack.sp = body.Number();
  stack.first_different = body.Number();
  stack.marker = static_cast<format::StackMarker>(body.Number());
  stack.end = static_cast<format::CrossCheckEnd>(body.Number());
  stack.error = body.Number();
  stack.our_frames = body.Number();
  stack.their_frames = body.Number();
  for (uint64_t n = body.Number(); n > 0 && !body.at_end(); --n) {
    CheckedStack::Frame frame;
    frame.pc = body.Number();
    frame.instance = static_cast<uint32_t>(body.Number());
    stack.ours.push_back(frame);
  }
  for (uint64_t n = body.Number(); n > 0 && !body.at_end(); --n) {
    CheckedStack::Frame frame;
    frame.pc = body.Number();
    frame.sp = body.Number();
    frame.guessed = body.Number() != 0;
    stack.theirs.push_back(frame);
  }
  out->checked_stacks.push_back(std::move(record));
}

void ReadClockPairs(RecordBody& body, ClockMap* clock) {
  uint64_t ticks = 0, ns = 0;
  while (!body.at_end()) {
    ticks += format::UnZigZag(body.Number());
    ns += format::UnZigZag(body.Number());
    clock->Add(ticks, ns);
  }
}

}  // namespace

EndRecord ReadEndRecord(RecordBody& body) {
  EndRecord end;
  end.reason = static_cast<format::EndReason>(body.Number());
  end.exit_status = static_cast<int>(body.Number());
  end.ticks = body.Number();
  end.monotonic_ns = body.Number();
  end.minor_faults = body.Number();
  end.major_faults = body.Number();
  end.peak_rss_bytes = body.Number();
  end.doubtful = body.Number() != 0;
  end.failure_is_told = end.reason == format::EndReason::kExec && body.Number() != 0;
  return end;
}

bool TraceMetadata::Read(std::span<const uint8_t> content, ClockMap* clock) {
  format::RecordDecoder decoder(content.data(), content.size());
  while (decoder.Next()) {
    ++records;
    RecordBody& body = decoder.body();
    if (decoder.tag() > UINT32_MAX) continue;
    switch (static_cast<RecordTag>(decoder.tag())) {
      case RecordTag::kProcess:
        ReadProcess(body, this);
        clock->Add(start_ticks, start_monotonic_ns);
        break;
      case RecordTag::kModule: ReadModule(body, this); break;
      case RecordTag::kModuleUnload: ReadModuleUnload(body, this); break;
      case RecordTag::kThread: {
        ThreadRecord& thread = threads[static_cast<uint32_t>(body.Number())];
        thread.tid = static_cast<uint32_t>(body.Number());
        // Written again when the thread got another name: then without this.
        const uint64_t first_ticks = body.Number();
        if (first_ticks != 0) thread.first_ticks = first_ticks;
        thread.name = RecordText(body);
        if (thread.names.empty() || thread.names.back() != thread.name) {
          thread.names.push_back(thread.name);
        }
        if (const uint64_t of = body.Number(); of != 0)
          thread.handlers_of = static_cast<uint32_t>(of);
        break;
      }
      case RecordTag::kThreadGone:
        threads.try_emplace(static_cast<uint32_t>(body.Number()));  // it was there
        break;
      case RecordTag::kMemoryMap: ReadMemoryMap(body, this); break;
      case RecordTag::kEnd: TakeEnd(ReadEndRecord(body), this, clock); break;
      case RecordTag::kExecFailed: execs.Fail(body.Number()); break;
      case RecordTag::kCounter: ReadCounter(body, this); break;
      case RecordTag::kNote: ReadNote(body, this); break;
      case RecordTag::kRecordingStopped: {
        StopRecord stop;
        stop.why = static_cast<uint32_t>(body.Number());
        stop.ticks = body.Number();
        stop.error = static_cast<int>(body.Number());
        stopped = stop;
        break;
      }
      case RecordTag::kConfined: {
        ConfinementRecord confinement;
        confinement.what = static_cast<uint32_t>(body.Number());
        confinement.ticks = body.Number();
        confinement.call = body.Bytes();
        confinement.reserve_begin = body.Number();
        confinement.reserve_end = body.Number();
        if (confinements.size() < kMostConfinements) confinements.push_back(std::move(confinement));
        break;
      }
      case RecordTag::kObservedEnd: ReadObservedEnd(body, this); break;
      case RecordTag::kClockPairs: ReadClockPairs(body, clock); break;
      case RecordTag::kCrossCheck: ReadCrossCheck(body, this); break;
      case RecordTag::kLosses:
        losses.lost_events = body.Number();
        losses.first_ticks = body.Number();
        losses.last_ticks = body.Number();
        losses.why = static_cast<uint32_t>(body.Number());
        losses.error = static_cast<int>(body.Number());
        losses.missed_events = body.Number();
        lost_scans.first = static_cast<uint32_t>(body.Number());
        lost_scans.last = static_cast<uint32_t>(body.Number());
        lost_scans.why = static_cast<uint32_t>(body.Number());
        lost_scans.error = static_cast<int>(body.Number());
        lost_end.why = static_cast<uint32_t>(body.Number());
        lost_end.error = static_cast<int>(body.Number());
        untraced_children.count = static_cast<uint32_t>(body.Number());
        untraced_children.error = static_cast<int>(body.Number());
        break;
      case RecordTag::kSeal: seal = body.Number(); break;
      case RecordTag::kWindow: window_ticks = body.Number(); break;
      case RecordTag::kPressure: pressure.ReadSamples(body); break;
      case RecordTag::kPressureNote: pressure.AddNote(RecordText(body)); break;
      case RecordTag::kKillVerdict: ReadKill(body, this); break;
    }
  }
  return decoder.ok();
}

absl::string_view DeepboundFile(absl::string_view note) {
  const size_t at = note.find(format::kOpenedWithDeepBind);
  return at == note.npos ? absl::string_view() : note.substr(0, at);
}

// A path is another file's than a module's of the same name in another directory, but for libc,
// of which there is one.
std::vector<std::string> TraceMetadata::NotesThatHold() const {
  static constexpr absl::string_view kLibc = "libc.so.6";
  std::vector<std::string> hold;
  for (const std::string& note : notes) {
    const absl::string_view file = DeepboundFile(note);
    const absl::string_view name = FileNameOf(file);
    const bool by_name = name == file || name == kLibc;
    const bool is_void =
        !file.empty() && std::ranges::any_of(modules, [&](const ModuleRecord& module) {
          return (module.info.flags & format::kModulePermanent) != 0 &&
                 (by_name ? FileNameOf(module.info.path) == name : module.info.path == file);
        });
    if (!is_void) hold.push_back(note);
  }
  return hold;
}

bool TraceMetadata::IsReserved(uint64_t offset) const {
  for (const ConfinementRecord& confinement : confinements) {
    if (confinement.reserve_begin <= offset && offset < confinement.reserve_end) return true;
  }
  return false;
}

void TraceMetadata::Take(const format::StatusArea& area) {
  losses = {area.lost_events, area.first_loss_ticks, area.last_loss_ticks,
            area.loss_why,    area.loss_errno,       area.missed_events};
  lost_scans = {area.lost_scans.first, area.lost_scans.last, area.lost_scans.why,
                area.lost_scans.error};
  lost_end = {area.lost_end.why, area.lost_end.error};
  untraced_children = {area.untraced_children.count, area.untraced_children.error};
  if (area.stop_why != 0 && !stopped.has_value()) {
    stopped = StopRecord{area.stop_why, area.stop_ticks, area.stop_errno};
  }
}

uint64_t TraceMetadata::counter(std::string_view name) const {
  for (const auto& [its_name, value] : counters) {
    if (its_name == name) return value;
  }
  return 0;
}

std::string HexOf(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<uint8_t>(c) >> 4];
    hex += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return hex;
}

}  // namespace memtrace::report
