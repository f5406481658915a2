#include "report/analysis/instant.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/analysis/run_end.h"
#include "report/model/phases.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

uint64_t Instant::Ns(const TraceReader& reader) const {
  if (!share.has_value()) return ns;
  return static_cast<uint64_t>(std::clamp(*share, 0.0, 1.0) *
                               static_cast<double>(RunEndNs(reader)));
}

uint64_t Instant::EndNs(const TraceReader& reader) const {
  return share.has_value() && *share >= 1 ? UINT64_MAX : Ns(reader);
}

absl::StatusOr<Instant> ParseInstant(absl::string_view option, absl::string_view text) {
  static constexpr std::pair<absl::string_view, double> kUnits[] = {
      {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 60e9}, {"m", 60e9}, {"h", 3600e9}, {"s", 1e9},
  };
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      option, ": \"", text,
      "\" is not a time; write seconds (1.5), 250ms, 10us, 2min, 1h, 90%, phase:NAME or "
      "mark:NAME"));
  if (IsInstantName(text)) return Instant{.name = std::string(text)};
  absl::string_view number = text;
  double unit = 1e9;
  const bool share = absl::ConsumeSuffix(&number, "%");
  if (!share) {
    for (const auto& [name, ns] : kUnits) {
      if (absl::ConsumeSuffix(&number, name)) {
        unit = ns;
        break;
      }
    }
  }
  number = absl::StripAsciiWhitespace(number);
  // SimpleAtod also takes "inf", "nan" and hexadecimal, which are no times.
  if (number.empty() || number.find_first_not_of("0123456789.") != absl::string_view::npos) {
    return bad;
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value)) return bad;
  Instant instant;
  if (share) {
    if (value > 100) return bad;
    instant.share = value / 100;
    return instant;
  }
  if (value * unit > 9e18) return bad;
  instant.ns = static_cast<uint64_t>(std::llround(value * unit));
  return instant;
}

absl::StatusOr<std::pair<Instant, Instant>> ParseInstants(absl::string_view from,
                                                          absl::string_view to) {
  std::pair<Instant, Instant> range = {Instant{}, Instant{.ns = UINT64_MAX}};
  if (!from.empty()) {
    const auto parsed = ParseInstant("--from", from);
    if (!parsed.ok()) return parsed.status();
    range.first = *parsed;
  }
  if (!to.empty()) {
    const auto parsed = ParseInstant("--to", to);
    if (!parsed.ok()) return parsed.status();
    range.second = *parsed;
  }
  const auto& [begin, end] = range;
  if (!begin.name.empty() || !end.name.empty()) return range;
  const bool comparable = begin.share.has_value() == end.share.has_value();
  if (comparable && (begin.share.has_value() ? *begin.share > *end.share : begin.ns > end.ns)) {
    return absl::InvalidArgumentError("--from must be before --to");
  }
  return range;
}

}  // namespace memtrace::report
