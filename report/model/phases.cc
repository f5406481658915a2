#include "report/model/phases.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "report/findings/analysis.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

using format::PhaseEdge;

constexpr absl::string_view kPhasePrefix = "phase:", kMarkPrefix = "mark:";
constexpr size_t kPhasesInMessage = 20;

Phase::Instant At(uint64_t time_ns, const HeapCounters& heap, const UsageSample& usage) {
  return {time_ns,
          heap.live_bytes,
          heap.live_blocks,
          heap.allocations,
          heap.frees,
          heap.bytes_allocated,
          usage.program_minor_faults(),
          usage.major_faults};
}

PhaseEdge EdgeOf(const ExtendedEvent& event) { return static_cast<PhaseEdge>(event.word(1)); }

struct NamedInstant {
  uint64_t ns;
  PhaseEdge edge;
  std::string name;
};

// The named instants of all threads, in the order of time.
std::vector<NamedInstant> ReadInstants(TraceReader& reader) {
  std::vector<NamedInstant> found;
  std::vector<uint64_t> words;
  for (const ThreadStream& stream : reader.streams()) {
    for (const BlockRef& block : stream.blocks) {
      if (!reader.ReadEvents(stream, block, &words)) continue;
      uint64_t ticks = 0;
      for (size_t i = 0; i < words.size();) {
        const uint32_t n = format::EventWords(words[i]);
        if (n == 0 || n > words.size() - i) break;
        const ExtendedEvent event(words.data() + i, n);
        if (format::KindOf(words[i]) == format::EventKind::kTime) {
          ticks = format::TicksOf(words[i]);
        } else if (format::KindOf(words[i]) == format::EventKind::kExtended &&
                   event.type() == format::ExtendedType::kPhase) {
          found.push_back({reader.clock().ToNs(ticks), EdgeOf(event), std::string(event.text(3))});
        }
        i += n;
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const NamedInstant& a, const NamedInstant& b) { return a.ns < b.ns; });
  return found;
}

}  // namespace

void PhaseCollector::Add(const ExtendedEvent& event, uint64_t time_ns, const HeapCounters& heap,
                         const UsageSample& usage) {
  std::string name(event.text(3));
  if (EdgeOf(event) == PhaseEdge::kMark) {
    return AddMark({std::move(name), time_ns, heap.live_bytes, heap.live_blocks});
  }
  const bool begins = EdgeOf(event) == PhaseEdge::kBegin;
  auto at = by_name_.find(name);
  if (at == by_name_.end()) {
    if (!begins) return;
    if (phases_.size() >= kMostNames) {
      if (time_ns >= begin_ns_) ++phases_left_out_;
      return;
    }
    at = by_name_.emplace(name, phases_.size()).first;
    phases_.emplace_back();
    phases_.back().phase.name = std::move(name);
  }
  Named& named = phases_[at->second];
  const Phase::Instant now = At(time_ns, heap, usage);
  if (begins) {
    if (open_ >= kMostOpen) {
      if (time_ns >= begin_ns_) ++phases_left_out_;
      return;
    }
    if (named.phase.times++ == 0) named.phase.first_begin = now;
    named.phase.last_begin = now;
    ++open_;
    named.open.push_back(now);
  } else if (!named.open.empty()) {
    End(&named, now);
  }
}

void PhaseCollector::AddMark(Mark mark) {
  if (mark.time_ns < begin_ns_) return;
  AddByName(mark);
  if (marks_.size() >= kMostMarks) {
    ++marks_left_out_;
    return;
  }
  marks_.push_back(std::move(mark));
}

// The list has the first marks alone; a limit on growth is between the first and the last.
void PhaseCollector::AddByName(const Mark& mark) {
  auto at = marks_by_name_.find(mark.name);
  if (at == marks_by_name_.end()) {
    if (named_marks_.size() >= kMostNames) {
      ++named_marks_left_out_;
      return;
    }
    at = marks_by_name_.emplace(mark.name, named_marks_.size()).first;
    named_marks_.emplace_back().name = mark.name;
  }
  NamedMarks& named = named_marks_[at->second];
  const NamedMarks::Instant now = {mark.time_ns, mark.live_bytes};
  if (named.times++ == 0) named.first = now;
  named.last = now;
}

void PhaseCollector::Named::BeginWithOpen() {
  if (open.empty()) return;  // the next begin is the first
  phase.first_begin = open.front();
  phase.last_begin = open.back();
}

void PhaseCollector::End(Named* named, const Phase::Instant& end) {
  Phase::Instant begin = named->open.back();
  named->open.pop_back();
  --open_;
  Phase& phase = named->phase;
  if (end.time_ns < begin_ns_) {
    --phase.times;
    return named->BeginWithOpen();
  }
  // What of it is in the range. Of the heap nothing else is counted.
  if (begin.time_ns < begin_ns_) {
    begin.time_ns = begin_ns_;
    begin.minor_faults = std::max(begin.minor_faults, before_.minor_faults);
    begin.major_faults = std::max(begin.major_faults, before_.major_faults);
  }
  const bool is_first = phase.first_end.time_ns == 0;
  if (is_first) phase.first_end = end;
  phase.last_end = end;
  phase.total_ns += end.time_ns - std::min(begin.time_ns, end.time_ns);
  phase.allocations += end.allocations - begin.allocations;
  phase.frees += end.frees - begin.frees;
  phase.bytes_allocated += end.bytes_allocated - begin.bytes_allocated;
  phase.minor_faults += end.minor_faults - std::min(begin.minor_faults, end.minor_faults);
  phase.major_faults += end.major_faults - std::min(begin.major_faults, end.major_faults);
  const auto growth = static_cast<int64_t>(end.live_bytes - begin.live_bytes);
  phase.largest_growth_bytes = is_first ? growth : std::max(phase.largest_growth_bytes, growth);
  phase.growth_bytes += growth;
  phase.growth_blocks += static_cast<int64_t>(end.live_blocks - begin.live_blocks);
}

void PhaseCollector::Finish(uint64_t end_ns, const HeapCounters& heap, const UsageSample& usage,
                            Analysis* analysis) {
  for (Named& named : phases_) {
    named.phase.open = named.open.size();
    while (!named.open.empty()) End(&named, At(end_ns, heap, usage));
    if (named.phase.times == 0) continue;
    analysis->phases.push_back(std::move(named.phase));
  }
  analysis->marks = std::move(marks_);
  analysis->marks_left_out = marks_left_out_;
  analysis->named_marks = std::move(named_marks_);
  analysis->named_marks_left_out = named_marks_left_out_;
  analysis->phases_left_out = phases_left_out_;
}

bool IsInstantName(absl::string_view text) {
  return absl::StartsWith(text, kPhasePrefix) || absl::StartsWith(text, kMarkPrefix);
}

absl::StatusOr<uint64_t> FindInstant(TraceReader& reader, absl::string_view wanted, bool end) {
  absl::string_view name = wanted;
  const bool mark = absl::ConsumePrefix(&name, kMarkPrefix);
  if (!mark) absl::ConsumePrefix(&name, kPhasePrefix);
  const std::vector<NamedInstant> all = ReadInstants(reader);
  const auto is = [&](const NamedInstant& one, absl::string_view its_name) {
    return one.name == its_name && (one.edge == PhaseEdge::kMark) == mark;
  };
  uint64_t number = 1;
  const size_t hash = name.rfind('#');
  const bool whole = std::any_of(all.begin(), all.end(),
                                 [&](const NamedInstant& one) { return is(one, name); });
  if (!whole && hash != absl::string_view::npos &&
      absl::SimpleAtoi(name.substr(hash + 1), &number) && number > 0) {
    name = name.substr(0, hash);
  } else {
    number = 1;
  }
  // A phase's time is that of its begin; the end that belongs to it is the one that closes it.
  uint64_t depth = 0;
  for (const NamedInstant& one : all) {
    if (!is(one, name)) continue;
    if (number > 0) {
      if (one.edge == PhaseEdge::kEnd || --number != 0) continue;
      if (mark || !end) return one.ns;
      depth = 1;
      continue;
    }
    depth = one.edge == PhaseEdge::kEnd ? depth - 1 : depth + 1;
    if (depth == 0) return one.ns;
  }
  if (depth != 0) return UINT64_MAX;  // it did not end
  std::vector<std::string> names;
  for (const NamedInstant& one : all) {
    if (one.edge == PhaseEdge::kEnd) continue;
    std::string text =
        absl::StrCat(one.edge == PhaseEdge::kMark ? kMarkPrefix : kPhasePrefix, one.name);
    if (std::find(names.begin(), names.end(), text) == names.end())
      names.push_back(std::move(text));
    if (names.size() == kPhasesInMessage) break;
  }
  return absl::NotFoundError(absl::StrCat(
      reader.name(), " has no '", wanted, "'; ",
      names.empty() ? "its program named no phase and no mark (memtrace.h)"
                    : absl::StrCat("there are: ", absl::StrJoin(names, ", "))));
}

}  // namespace memtrace::report
