// PressureSample: the figures of one instant; columns.inc names them.

#ifndef MEMTRACE_REPORT_PRESSURE_PRESSURE_SAMPLE_H_
#define MEMTRACE_REPORT_PRESSURE_PRESSURE_SAMPLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace memtrace::report::pressure {

enum class Column : size_t {
#define PRESSURE_COLUMN(id, name, title) id,
#include "report/pressure/columns.inc"
#undef PRESSURE_COLUMN
};

inline constexpr absl::string_view kColumnNames[] = {
#define PRESSURE_COLUMN(id, name, title) name,
#include "report/pressure/columns.inc"
#undef PRESSURE_COLUMN
};
// By Column, as the names: what reports call it.
inline constexpr absl::string_view kColumnTitles[] = {
#define PRESSURE_COLUMN(id, name, title) title,
#include "report/pressure/columns.inc"
#undef PRESSURE_COLUMN
};
inline constexpr size_t kColumns = sizeof(kColumnNames) / sizeof(kColumnNames[0]);

inline constexpr uint64_t kNotKnown = UINT64_MAX;

struct PressureSample {
  uint64_t monotonic_ns = 0;
  std::array<uint64_t, kColumns> values;

  PressureSample() { values.fill(kNotKnown); }
  uint64_t operator[](Column column) const { return values[static_cast<size_t>(column)]; }
  bool known(Column column) const { return (*this)[column] != kNotKnown; }
  void Set(Column column, std::optional<uint64_t> value) {
    if (value.has_value()) values[static_cast<size_t>(column)] = *value;
  }
};

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_PRESSURE_SAMPLE_H_
