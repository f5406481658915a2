// The state of what the analyzer has beside the heap model: see model_state.cc.

#include <set>
#include <utility>

#include "report/faults/fault_matcher.h"
#include "report/faults/faults.h"
#include "report/model/mapping_model.h"
#include "report/model/phases.h"
#include "report/model/stream_state.h"
#include "report/model/timeline.h"
#include "report/state/state_archive.h"
#include "report/trace/event_cursor.h"

namespace memtrace::report {

using index::StateReader;
using index::StateWriter;

template <typename Archive>
void EventCursor::Fold(Archive& archive) {
  archive(block_, span_, word_, span_end_, words_here_, done_, after_hole_, lost_words_,
          open_ended_, low_, low_ticks_, high_ticks_, high_, time_, pace_, last_pace_, base_,
          position_, events_left_);
  if constexpr (Archive::kReads) {
    const size_t blocks = stream().blocks.size();
    archive.Check(block_ <= blocks);
    if (block_ == 0) archive.Check(span_ == 0 && word_ == 0 && span_end_ == 0 && words_here_ == 0);
    archive.Check(low_ < uint64_t{1} << 63 && (high_ >= low_ || block_ == 0 || done_));
    archive.Check((base_ >= low_ || block_ == 0 || done_) && base_ < uint64_t{1} << 63);
    archive.Check(pace_ != 0 && pace_ <= kMostParts / std::max(events_left_, 1u) &&
                  position_ + pace_ <= kMostParts);
  }
}

template <typename Archive>
void Timeline::Fold(Archive& archive) {
  archive(interval_, last_, points_);
  if constexpr (Archive::kReads) {
    unsigned doubled = 0;
    while (doubled < 50 && kFirstIntervalNs << doubled < interval_) ++doubled;
    archive.Check(points_.size() < kMaxPoints && kFirstIntervalNs << doubled == interval_);
    if (!archive.ok()) interval_ = kFirstIntervalNs;
    end_ = from_ns_ + (points_.size() + 1) * interval_;
  }
}

template <typename Archive>
void PhaseCollector::Fold(Archive& archive) {
  archive(phases_, by_name_, marks_, named_marks_, marks_by_name_, open_, marks_left_out_,
          named_marks_left_out_, phases_left_out_);
  archive.Check(phases_.size() <= kMostNames && marks_.size() <= kMostMarks &&
                named_marks_.size() <= kMostNames);
  for (const auto& [name, at] : by_name_) archive.Check(at < phases_.size());
  for (const auto& [name, at] : marks_by_name_) archive.Check(at < named_marks_.size());
}

void PhaseCollector::ForgetFigures() {
  for (Named& named : phases_) {
    for (Phase::Instant& instant : named.open) {
      instant.live_bytes = instant.live_blocks = 0;
      instant.allocations = instant.frees = instant.bytes_allocated = 0;
    }
    Phase begun;
    begun.name = std::move(named.phase.name);
    begun.times = named.open.size();
    named.phase = std::move(begun);
    named.BeginWithOpen();
  }
  marks_.clear();
  named_marks_.clear();
  marks_by_name_.clear();
  marks_left_out_ = named_marks_left_out_ = phases_left_out_ = 0;
}

template <typename Archive>
void FaultCollector::Fold(Archive& archive) {
  archive(samples_, last_, any_, stride_, count_, peak_rss_bytes_);
  archive.Check(samples_.size() <= kMaxSamples + 1 && stride_ > 0 && (!any_ || !samples_.empty()));
}

void FaultCollector::ForgetFigures() {
  for (UsageSample& sample : samples_) sample.live_bytes = sample.bytes_allocated = 0;
  last_.live_bytes = last_.bytes_allocated = 0;
}

template <typename Archive>
void MappingModel::Fold(Archive& archive) {
  archive(ranges_, sites_, site_index_, last_unmapped_, break_growth_);
  const auto check = [&](const Range& range) {
    archive.Check(range.site == UINT32_MAX || range.site < sites_.size());
  };
  uint64_t end = 0;
  for (const auto& [begin, range] : ranges_) {
    check(range);
    archive.Check(begin >= end && range.end > begin);
    end = range.end;
  }
  for (const auto& [stream, pieces] : last_unmapped_) {
    for (const auto& [begin, range] : pieces) check(range);
  }
  for (const auto& [key, site] : site_index_) archive.Check(site < sites_.size());
}

void MappingModel::ForgetFigures() {
  for (auto& [begin, range] : ranges_) range.site = UINT32_MAX;
  for (auto& [stream, pieces] : last_unmapped_) {
    for (auto& [begin, range] : pieces) range.site = UINT32_MAX;
  }
  sites_.clear();
  site_index_.clear();
}

template <typename Archive>
void FaultStream::Fold(Archive& archive) {
  archive(next_block_, until_ns_, held_);
  if constexpr (Archive::kReads) {  // which follow from the time of the front
    next_change_ = 0;
    own_now_.clear();
  }
  archive.Check(std::is_heap(held_.begin(), held_.end(),
                             [](const Fault& a, const Fault& b) { return a.time_ns > b.time_ns; }));
}

template <typename Archive>
void ThrashDetector::Fold(Archive& archive) {
  if constexpr (Archive::kReads) {
    archive(pages_);
  } else {  // in order they pack better
    archive(std::set<uint64_t>(pages_.begin(), pages_.end()));
  }
  archive(steps_, refaults_, limited_);
}

template <typename Archive>
void FaultMarks::Fold(Archive& archive) {
  archive(now_, stride_, marks_);
  archive.Check(stride_ > 0 && marks_.size() < kMost);
}

template <typename Archive>
void FaultMatcher::Fold(Archive& archive) {
  if (!any()) return;
  if constexpr (!Archive::kReads) {
    large_.insert(aside_.begin(), aside_.end());
    aside_.clear();
  }
  stream_.Fold(archive);
  thrash_.Fold(archive);
  marks_.Fold(archive);
  archive(low_bits_, large_, clean_at_, waiting_, filter_, filtered_, told_, in_kernel_, by_kind_,
          sites_, mappings_, places_, touchers_);
  next_ns_ = stream_.done() ? UINT64_MAX : stream_.front().time_ns;
  const auto check = [&](const Touchers& touchers) {
    for (const auto& [code, faults] : touchers) archive.Check(code <= stacks_->size());
  };
  check(touchers_);
  for (const auto& [key, site] : sites_) {
    archive.Check(key.first <= stacks_->size());
    check(site.touchers);
  }
  for (const auto& [key, mapping] : mappings_) {
    archive.Check(key.first <= stacks_->size());
    check(mapping.touchers);
  }
  for (const auto& [address, fault] : waiting_) {
    archive.Check(fault.code <= stacks_->size() && fault.largest.stack <= stacks_->size());
  }
}

void FaultMatcher::ForgetFigures() {
  waiting_.clear();
  filter_.fill(0);
  filtered_ = 0;
  thrash_ = {};
  marks_ = {};
  told_ = in_kernel_ = {};
  by_kind_ = {};
  sites_.clear();
  mappings_.clear();
  places_.clear();
  touchers_.clear();
}

template <typename Archive>
void StreamState::Fold(Archive& archive) {
  archive(last_slot_, lost_words_);
  archive.Check(last_slot_ <= format::kMaxSlot);
  uint64_t count = 0;
  if constexpr (Archive::kReads) {
    archive(count);
    uint32_t slot = 0;
    for (; count > 0 && archive.ok(); --count) {
      uint32_t up = 0;
      StackId stack;
      archive(up, stack);
      archive.Check(up <= format::kMaxSlot - slot);
      if (!archive.ok()) return;
      slot += up;
      slots_.Set(slot, stack);
    }
  } else {
    slots_.ForEach([&](uint32_t, StackId) { ++count; });
    archive(count);
    uint32_t before = 0;
    slots_.ForEach([&](uint32_t slot, StackId stack) {
      archive(slot - before, stack);
      before = slot;
    });
  }
}

template void EventCursor::Fold(StateWriter&);
template void EventCursor::Fold(StateReader&);
template void Timeline::Fold(StateWriter&);
template void Timeline::Fold(StateReader&);
template void PhaseCollector::Fold(StateWriter&);
template void PhaseCollector::Fold(StateReader&);
template void FaultCollector::Fold(StateWriter&);
template void FaultCollector::Fold(StateReader&);
template void MappingModel::Fold(StateWriter&);
template void MappingModel::Fold(StateReader&);
template void FaultMatcher::Fold(StateWriter&);
template void FaultMatcher::Fold(StateReader&);
template void StreamState::Fold(StateWriter&);
template void StreamState::Fold(StateReader&);

}  // namespace memtrace::report
