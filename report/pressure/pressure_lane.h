// PressureLane: what `memtrace run` sampled while the program ran, on the clock of the
// trace; and whether the OOM killer ended it.
//
// Columns have the names of the trace, which may be others than columns.inc: a reader asks
// by name. A long lane is thinned as it is read, so that it never has more than kMostPoints.

#ifndef MEMTRACE_REPORT_PRESSURE_PRESSURE_LANE_H_
#define MEMTRACE_REPORT_PRESSURE_PRESSURE_LANE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/record_decoder.h"
#include "format/records.h"

namespace memtrace::report {

// How a SIGKILL is to be understood (OomWatch says how that is known).
struct KillInfo {
  format::KillVerdict verdict{};  // 0: nothing is told
  std::string why;
  std::string cgroup;
  uint64_t limit_bytes = 0;  // of the control group; 0: none known

  bool told() const { return verdict != format::KillVerdict{}; }
};

struct PressureLane {
  static constexpr uint64_t kNotKnown = UINT64_MAX;
  static constexpr size_t kMostPoints = 8192;
  static constexpr size_t kMostColumns = 128;
  static constexpr size_t kMostNotes = 100;

  struct Point {
    uint64_t time_ns = 0;          // since the start of the process
    std::vector<uint64_t> values;  // by column; those beyond the end are not known
  };

  std::vector<std::string> columns;
  std::vector<Point> points;  // by time
  std::vector<std::string> notes;
  // That were taken since the process began, or in the range; points are some of them.
  uint64_t samples = 0;

  bool empty() const { return points.empty(); }
  std::optional<size_t> Find(std::string_view column) const;
  // Leaves those of [from_ns, to_ns].
  void Narrow(uint64_t from_ns, uint64_t to_ns);
  // (time, value) where it is known.
  std::vector<std::pair<uint64_t, uint64_t>> Series(std::string_view column) const;
  // Anonymous, file and shared memory together.
  std::vector<std::pair<uint64_t, uint64_t>> ResidentBytes() const;
};

// What reports call a column: "resident, anonymous"; one that this version does not know, by the
// words of its name.
std::string ColumnTitle(const std::string& column);

// How one column went over the run.
struct ColumnSummary {
  bool known = false;
  uint64_t first = 0, last = 0, most = 0, most_at_ns = 0;
  uint64_t growth() const { return last > first ? last - first : 0; }
};
ColumnSummary Summarize(const std::vector<std::pair<uint64_t, uint64_t>>& series);

// Collects the records while metadata is read; times are CLOCK_MONOTONIC until Finish().
class PressureCollector {
 public:
  void ReadSamples(format::RecordBody& body);
  void AddNote(std::string note);
  // `start_ns`: the process's, CLOCK_MONOTONIC. Earlier samples are of another program.
  PressureLane Finish(uint64_t start_ns) const;

 private:
  void Add(PressureLane::Point point);

  PressureLane lane_;
  uint64_t stride_ = 1;  // every so many-th sample is kept
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_PRESSURE_PRESSURE_LANE_H_
