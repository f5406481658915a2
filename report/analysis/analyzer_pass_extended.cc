// The part of AnalyzerPass that applies extended events, of which there are few: mappings,
// usage samples, names of threads, pools and custom blocks, blocks that are no leaks,
// phases, memtrace_stop().

#include <algorithm>
#include <utility>

#include "report/analysis/analyzer_pass.h"
#include "report/base/page.h"
#include "report/model/memory_map.h"

namespace memtrace::report {

using format::ExtendedType;

namespace {

constexpr uint32_t kMremapDontUnmap = 4;  // MREMAP_DONTUNMAP on Linux
constexpr uint32_t kMapAnonymous = 0x20, kMapPrivate = 0x02, kMapTypes = 0x0f;  // MAP_* on Linux

}  // namespace

void AnalyzerPass::ApplyExtended(size_t stream, const EventCursor& cursor) {
  const ExtendedEvent event(cursor.words(), cursor.word_count());
  const uint64_t time = cursor.time();
  MappingModel::Call call{MappingSite::Kind::kMmap,
                          streams_[stream].StackOf(event.slot(), stacks_),
                          {},
                          Selected(stream, time)};
  switch (event.type()) {
    case ExtendedType::kMmap:
      ApplyMmap(event, &call);
      break;
    case ExtendedType::kMunmap:
      mappings_.Unmap(stream, event.word(1), event.word(2));
      break;
    case ExtendedType::kMunmapFailed:
      mappings_.UnmapFailed(stream, event.word(1));
      break;
    case ExtendedType::kMremap:
      mappings_.Remap(stream,
                      {event.word(1), event.word(2), event.word(3), event.word(4),
                       (event.low(5) & kMremapDontUnmap) != 0, event.word(6) != 0},
                      call);
      break;
    case ExtendedType::kBrk:
    case ExtendedType::kHeapGrowth:
      call.kind = event.type() == ExtendedType::kBrk ? MappingSite::Kind::kBrk
                                                     : MappingSite::Kind::kHeapGrowth;
      mappings_.Break(event.word(1), event.word(2), call);
      break;
    case ExtendedType::kArenaGrowth:
      call.kind = MappingSite::Kind::kArenaGrowth;
      mappings_.Arena(event.word(1), event.word(2), call);
      break;
    case ExtendedType::kShmat:
      call.kind = MappingSite::Kind::kShm;
      mappings_.Map(event.word(1), event.word(2), call);
      break;
    case ExtendedType::kShmdt:
      mappings_.Detach(stream, event.word(1));
      break;
    case ExtendedType::kUsage:
      AddUsage(event, time);
      break;
    case ExtendedType::kThreadName:
      names_[cursor.thread()] = std::string(event.text(1));
      break;
    case ExtendedType::kPoolCreate:
      model_.CreatePool(stream, event.word(1), event.text(3), call.stack, time);
      break;
    case ExtendedType::kPoolDestroy:
      model_.DestroyPool(stream, event.word(1), time);
      break;
    case ExtendedType::kCustomAlloc:
      model_.CustomAlloc(stream,
                         {event.word(3) != 0 ? format::AllocFunction::kPoolAlloc
                                             : format::AllocFunction::kBlockAlloc,
                          event.word(1) & format::kAddressMask, event.word(2), 0, call.stack,
                          false, event.slot() == format::kStoppedSlot},
                         event.word(3), time);
      if (time >= range_.from_ns) ++events_;
      break;
    case ExtendedType::kCustomFree:
      model_.CustomFree(stream, event.word(1) & format::kAddressMask, event.word(2), time);
      if (time >= range_.from_ns) ++events_;
      break;
    case ExtendedType::kIgnoreBlock:
      model_.IgnoreBlock(event.word(1) & format::kAddressMask);
      break;
    case ExtendedType::kLeaksDisabled:
      model_.DisableLeaks(cursor.thread(), event.word(1) != 0);
      break;
    case ExtendedType::kPhase:
      phases_.Add(event, time, model_.counters(), usage_);
      break;
    case ExtendedType::kRecordingStopped:
      ApplyStop(event.word(1) != 0, time);
      break;
  }
}

void AnalyzerPass::ApplyMmap(const ExtendedEvent& event, MappingModel::Call* call) {
  call->file = event.text(6);
  call->anonymous = (event.high(3) & kMapAnonymous) != 0;
  if (call->anonymous && (event.high(3) & kMapTypes) == kMapPrivate) {
    const uint64_t bytes = event.word(2);
    if (bytes >= kLargeMmapBytes) NoteMapper(call->stack, &large_mmaps_);
    if (bytes == kPymallocArenaBytes || bytes == kOldPymallocArenaBytes) {
      NoteMapper(call->stack, &arena_mmaps_);
    }
  }
  // A call that began the recording was made before the memory map was read.
  if (std::exchange(before_first_mapping_, false) && call->anonymous &&
      reader_->metadata().map_at_start.has_value()) {
    mapped_at_start_ = AnonymousBytesIn(reader_->metadata().map_at_start->text, event.word(1),
                                        event.word(1) + WholePages(event.word(2)));
  }
  mappings_.Map(event.word(1), event.word(2), *call);
}

void AnalyzerPass::NoteMapper(StackId stack, std::vector<CodePlace>* places) {
  const StackNode& node = stacks_->node(stack);
  const CodePlace place(node.pc, node.instance);
  if (std::ranges::find(*places, place) == places->end()) places->push_back(place);
}

void AnalyzerPass::ApplyStop(bool stops, uint64_t time) {
  if (stops) {
    ++stops_;
    stopped_at_ns_ = time;
  } else if (stops_ == 0) {  // a fork child of a process that was stopped begins so
    stops_ = 1;
    stopped_ns_ = time - std::min(time, window_begin_ns_);
  } else if (stopped_at_ns_ != UINT64_MAX) {
    stopped_ns_ += time - std::min(time, std::exchange(stopped_at_ns_, UINT64_MAX));
  }
}

void AnalyzerPass::AddUsage(const ExtendedEvent& event, uint64_t time) {
  UsageSample sample;
  sample.time_ns = time;
  sample.minor_faults = event.word(1);
  sample.major_faults = event.word(2);
  if (event.word(3) != 0) rss_bytes_ = event.word(3);  // 0: not asked at this sample
  sample.rss_bytes = rss_bytes_;
  sample.peak_rss_bytes = event.word(4);
  sample.tool_minor_faults = event.word(5);
  sample.live_bytes = model_.counters().live_bytes;
  sample.bytes_allocated = model_.counters().bytes_allocated;
  faults_.Add(sample);
  usage_ = sample;
  if (time < range_.from_ns) phases_.SetUsageBefore(sample);
}

}  // namespace memtrace::report
