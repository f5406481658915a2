// Phases and marks: what the program said of where it is (memtrace.h), with what the heap was
// then; and instants of a run by their names.

#ifndef MEMTRACE_REPORT_MODEL_PHASES_H_
#define MEMTRACE_REPORT_MODEL_PHASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/findings/over_time.h"
#include "report/model/heap_model.h"
#include "report/trace/event_decoder.h"

namespace memtrace::report {

struct Analysis;
class TraceReader;

// Collects the events of kPhase, in order.
class PhaseCollector {
 public:
  // Of phases those times are told that end at `begin_ns` or later; marks are told, and what is
  // left out is counted, from there on.
  explicit PhaseCollector(uint64_t begin_ns) : begin_ns_(begin_ns) {}

  // The latest sample of usage before `begin_ns`; may be told again.
  void SetUsageBefore(const UsageSample& usage) { before_ = usage; }
  // `usage`: the latest sample, of right before the event.
  void Add(const ExtendedEvent& event, uint64_t time_ns, const HeapCounters& heap,
           const UsageSample& usage);
  // Ends the phases that are still open with the run, and puts all into `analysis` that is of the
  // time from the begin on.
  void Finish(uint64_t end_ns, const HeapCounters& heap, const UsageSample& usage,
              Analysis* analysis);

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);
  // At a time before the begin: forgets the marks and what has ended, and zeroes the figures that
  // open phases have of the heap. See HeapModel::ForgetFigures().
  void ForgetFigures();

 private:
  static constexpr size_t kMostNames = 10'000;
  static constexpr size_t kMostOpen = 100'000;
  static constexpr size_t kMostMarks = 10'000;

  struct Named {
    Phase phase;
    std::vector<Phase::Instant> open;  // the latest begin is the first to end
    // What had ended is not told.
    void BeginWithOpen();
  };
  void End(Named* named, const Phase::Instant& end);
  void AddMark(Mark mark);
  void AddByName(const Mark& mark);

  const uint64_t begin_ns_;
  std::vector<Named> phases_;
  absl::flat_hash_map<std::string, size_t> by_name_;
  std::vector<Mark> marks_;
  std::vector<NamedMarks> named_marks_;
  absl::flat_hash_map<std::string, size_t> marks_by_name_;
  uint64_t marks_left_out_ = 0;        // behind the list
  uint64_t named_marks_left_out_ = 0;  // of more names than there may be
  uint64_t phases_left_out_ = 0;       // begins of more names, or open phases, than there may be
  size_t open_ = 0;
  UsageSample before_;  // in no archive: a state is of a whole run
};

// An instant by name: "phase:NAME", its begin or its end; "mark:NAME". With "#3" behind it the
// third of that name, else the first.
bool IsInstantName(absl::string_view text);
// Nanoseconds since the start. `end`: of the phase. Reads the event blocks once. NotFound:
// it lists what there is.
absl::StatusOr<uint64_t> FindInstant(TraceReader& reader, absl::string_view name, bool end);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_PHASES_H_
