// --format heaptrack: what heaptrack_interpret writes, event by event, for heaptrack_print and
// heaptrack_gui. A second pass over the trace, in the order of its events, with the names that
// the first one found; memory grows with the live heap.
//
//   v VERSION FORMAT         everything in hexadecimal
//   X COMMAND                I PAGE_BYTES PAGES
//   s LENGTH TEXT            strings, from 1
//   i ADDRESS MODULE [FUNCTION FILE LINE]...    places, from 1; innermost inlined frame first
//   t PLACE PARENT           stacks, from 1; 0 no parent
//   a BYTES STACK            kinds of allocation, from 0
//   + KIND   - KIND          an allocation, a free
//   c MILLISECONDS           R PAGES: the time, the resident set; its peak at the end, for the
//                            samples of a short run are few

#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/analysis/coverage.h"
#include "report/model/heap_events.h"
#include "report/model/heap_model.h"
#include "report/model/reloads.h"
#include "report/model/stream_state.h"
#include "report/trace/event_decoder.h"
#include "report/trace/event_order.h"
#include "report/trace/trace_reader.h"
#include "report/viewers/viewers.h"
#include "report/words/escape.h"
#include "report/words/shell_words.h"

namespace memtrace::report::viewers {
namespace {

using format::EventKind;
using format::ExtendedType;

// Version 1.4.0 of heaptrack was the first with sized strings: format 3.
constexpr absl::string_view kVersion = "v 10400 3\n";

// Numbers for strings, places and stacks, written when they are needed first.
class Names {
 public:
  Names(const ReportView& view, Sink* out) : view_(view), out_(out) {}

  // The number of a stack; 0 there is none.
  size_t Stack(StackId stack) {
    const auto known = stacks_.find(stack.value);
    if (known != stacks_.end()) return known->second;
    const std::vector<FrameId> frames = view_.symbols().Stack(stack);
    std::vector<std::span<const FrameId>> places;  // innermost first
    for (size_t i = 0; i < frames.size();) {
      size_t end = i;
      while (end + 1 < frames.size() && FrameOf(frames[end]).inlined) ++end;
      places.emplace_back(frames.data() + i, end + 1 - i);
      i = end + 1;
    }
    size_t number = 0;
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      const std::pair<size_t, size_t> key{Place(*place), number};
      const auto [at, is_new] = nodes_.try_emplace(key, nodes_.size() + 1);
      if (is_new) Line(absl::StrCat("t ", absl::Hex(key.first), " ", absl::Hex(key.second)));
      number = at->second;
    }
    stacks_.emplace(stack.value, number);
    return number;
  }

  void Line(absl::string_view text) { out_->Write(absl::StrCat(text, "\n")); }

 private:
  const Frame& FrameOf(FrameId id) const { return view_.symbols().frame(id); }

  size_t String(absl::string_view text) {
    if (text.empty()) return 0;
    // The length is given in bytes; a line end in the text would end the line.
    const std::string escaped = words::EscapeControls(text);
    const auto [at, is_new] = strings_.try_emplace(escaped, strings_.size() + 1);
    if (is_new) Line(absl::StrCat("s ", absl::Hex(escaped.size()), " ", escaped));
    return at->second;
  }

  size_t Place(std::span<const FrameId> frames) {
    const auto known = places_.find(frames.front().value);
    if (known != places_.end()) return known->second;
    const Frame& outer = FrameOf(frames.back());
    const uint64_t address = outer.offset + (outer.module.empty() ? 0 : view_.BiasOf(outer.module));
    std::string line = absl::StrCat("i ", absl::Hex(address), " ", absl::Hex(String(outer.module)));
    for (const FrameId id : frames) {
      const Frame& frame = FrameOf(id);
      if (frame.function.empty()) continue;  // then it is shown by its address
      absl::StrAppend(&line, " ", absl::Hex(String(frame.function)));
      absl::StrAppend(&line, " ", absl::Hex(String(frame.file)), " ", absl::Hex(frame.line));
    }
    Line(line);
    const size_t number = places_.size() + 1;
    places_.emplace(frames.front().value, number);
    return number;
  }

  const ReportView& view_;
  Sink* const out_;
  absl::flat_hash_map<std::string, size_t> strings_;
  absl::flat_hash_map<uint32_t, size_t> places_;  // by the first frame's FrameId
  absl::flat_hash_map<std::pair<size_t, size_t>, size_t> nodes_;  // by place and parent
  absl::flat_hash_map<uint32_t, size_t> stacks_;  // by StackId
};

class Pass {
 public:
  Pass(TraceReader* reader, const ReportView& view, StackTable* stacks, Sink* out)
      : reader_(reader), range_(view.analysis().range), view_(view), stacks_(stacks), out_(out),
        names_(view, out), model_(HeapModel::Options::OrderOf(*reader), stacks) {}

  // The functions that EventOrder calls.
  void Started(size_t stream, uint32_t thread) {
    if (stream >= streams_.size()) {
      streams_.resize(stream + 1);
      moving_.resize(stream + 1);
    }
    model_.AddThread(stream, thread);
  }
  void Hole(size_t stream, const EventCursor& cursor) {
    WaitList nobody;
    streams_[stream].ForgetLost(cursor.lost_words(), cursor.NextPathSlot());
    model_.ForgetPending(stream, nobody);
    while (!moving_[stream].empty()) Moved(stream, false);
  }
  void Prefetch(uint64_t address) { model_.Prefetch(address); }
  bool Tick() { return !past_end_ && !out_->done(); }
  bool Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits);

  void Head() {
    const ProcessInfo& process = view_.analysis().process;
    out_->Write(kVersion);
    names_.Line(absl::StrCat("X ", words::ShellCommand(process.command)));
    names_.Line(absl::StrCat("I ", absl::Hex(process.page_bytes), " 0"));
  }
  void End() {
    Time(view_.analysis().process.duration_ns);
    Resident(view_.analysis().faults.peak_rss_bytes);
  }

 private:
  void Alloc(uint64_t address, uint64_t bytes, StackId stack);
  void Free(uint64_t address);
  // A realloc begins: the address may be another thread's before its result is seen.
  void TakeOut(size_t stream, uint64_t address);
  void Moved(size_t stream, bool freed);
  void Time(uint64_t time_ns);
  void Resident(uint64_t bytes);  // 0: not known

  TraceReader* const reader_;
  const Range range_;
  const ReportView& view_;
  StackTable* const stacks_;
  Sink* const out_;
  Names names_;
  HeapModel model_;  // for the order: what may happen now
  const Reloads reloads_{reader_->metadata().modules};
  std::vector<uint64_t> path_;  // of a library that was loaded again
  std::deque<StreamState> streams_;
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, size_t> kinds_;  // by bytes and stack
  absl::flat_hash_map<uint64_t, size_t> live_;                        // kinds, by address
  absl::flat_hash_map<uint32_t, bool> wanted_;                        // stacks that match
  struct Moving {
    uint64_t address = 0;  // 0: of a block that is not known
    size_t kind = 0;
  };
  // By stream; the last one's result comes first: a signal handler may interrupt a realloc.
  std::deque<std::vector<Moving>> moving_;
  uint64_t written_ms_ = 0;
  bool past_end_ = false;
};

void Pass::Time(uint64_t time_ns) {
  const uint64_t ms = time_ns / 1'000'000;
  if (ms <= written_ms_) return;
  written_ms_ = ms;
  names_.Line(absl::StrCat("c ", absl::Hex(ms)));
}

void Pass::Resident(uint64_t bytes) {
  if (bytes == 0) return;
  names_.Line(absl::StrCat("R ", absl::Hex(bytes / view_.analysis().process.page_bytes)));
}

void Pass::Alloc(uint64_t address, uint64_t bytes, StackId stack) {
  Free(address);  // of a block whose free the trace does not have
  const auto [wanted, is_new_stack] = wanted_.try_emplace(stack.value, false);
  if (is_new_stack) wanted->second = view_.Matches(stack);
  if (!wanted->second) return;
  const auto [kind, is_new] = kinds_.try_emplace({bytes, stack.value}, kinds_.size());
  if (is_new) {
    const size_t number = names_.Stack(stack);
    names_.Line(absl::StrCat("a ", absl::Hex(bytes), " ", absl::Hex(number)));
  }
  live_[address] = kind->second;
  names_.Line(absl::StrCat("+ ", absl::Hex(kind->second)));
}

void Pass::Free(uint64_t address) {
  const auto block = live_.find(address);
  if (block == live_.end()) return;
  names_.Line(absl::StrCat("- ", absl::Hex(block->second)));
  live_.erase(block);
}

void Pass::TakeOut(size_t stream, uint64_t address) {
  const auto block = live_.find(address);
  if (block == live_.end()) {
    if (address != 0) moving_[stream].emplace_back();
    return;
  }
  moving_[stream].push_back({address, block->second});
  live_.erase(block);
}

void Pass::Moved(size_t stream, bool freed) {
  if (moving_[stream].empty()) return;
  const Moving old = moving_[stream].back();
  moving_[stream].pop_back();
  if (old.address == 0) return;
  if (freed) {
    names_.Line(absl::StrCat("- ", absl::Hex(old.kind)));
  } else {
    live_[old.address] = old.kind;
  }
}

bool Pass::Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits) {
  const uint64_t* words = cursor.words();
  const EventKind kind = format::KindOf(words[0]);
  StreamState& state = streams_[stream];
  if (kind == EventKind::kPath) {
    if (reloads_.any()) words = reloads_.PathOfFirst(words, &path_);
    state.Define(words, stacks_);
    return true;
  }
  const uint64_t time = cursor.time();
  if (time < reader_->window_begin_ns()) return true;
  if (time > range_.to_ns) {
    past_end_ |= cursor.low() > range_.to_ns;
    return true;
  }
  if (!ApplyHeapEvent(model_, state, stacks_, stream, cursor, force, waits)) return false;
  Time(time);
  if (kind == EventKind::kExtended) {
    const ExtendedEvent event(words, cursor.word_count());
    if (event.type() == ExtendedType::kUsage) Resident(event.word(3));
    return true;
  }
  if (kind == EventKind::kFree) {
    Free(format::AddressOf(words[0]));
    return true;
  }
  if (kind == EventKind::kReallocIntent) {
    TakeOut(stream, format::AddressOf(words[0]));
    return true;
  }
  if (!IsHeapEvent(kind)) return true;
  const AllocEvent event =
      kind == EventKind::kWideAlloc ? DecodeWideAlloc(words) : DecodeShortAlloc(words);
  if (IsRealloc(event.function)) Moved(stream, event.address != 0 || event.size == 0);
  const bool counted = event.slot != format::kStoppedSlot && time >= range_.from_ns;
  if (event.address != 0 && counted) {
    Alloc(event.address, event.size, state.StackOf(event.slot, stacks_));
  }
  return true;
}

}  // namespace

absl::Status RenderHeaptrack(const ReportView& view, const std::string& file, StackTable* stacks,
                             Sink& out) {
  if (view.sampled()) {
    return absl::InvalidArgumentError(
        "--format heaptrack: it has every event, and this trace is of a sample");
  }
  auto reader = TraceReader::Open(file);
  if (!reader.ok()) return reader.status();
  Pass pass(reader->get(), view, stacks, &out);
  pass.Head();
  EventOrder<Pass>(reader->get(), ClockSlackNs((*reader)->metadata().process.clock), /*jobs=*/1,
                   &pass)
      .Run();
  pass.End();
  return absl::OkStatus();
}

}  // namespace memtrace::report::viewers
