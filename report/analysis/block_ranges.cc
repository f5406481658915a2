#include "report/analysis/block_ranges.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/analysis/instant.h"
#include "report/base/byte_size.h"

namespace memtrace::report {
namespace {

// `parse` gives the value of one end. That it is too large is said as `parse` does; of what is none
// the whole text is told, with an example.
template <typename Parse>
absl::StatusOr<ValueRange> ParseRange(absl::string_view option, absl::string_view text,
                                      absl::string_view example, bool one_value, Parse parse) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat(option, ": \"", text, "\" is no range; write ", example));
  const auto refused = [&](const absl::Status& why) {
    return absl::IsOutOfRange(why)
               ? absl::InvalidArgumentError(absl::StrCat(option, ": ", why.message()))
               : bad;
  };
  const size_t dots = text.find("..");
  ValueRange range;
  if (dots == absl::string_view::npos) {
    if (!one_value) return bad;
    const absl::StatusOr<uint64_t> value = parse(text);
    if (!value.ok()) return refused(value.status());
    range.low = range.high = *value;
    return range;
  }
  const absl::string_view low = text.substr(0, dots), high = text.substr(dots + 2);
  if (low.empty() && high.empty()) return bad;
  const absl::StatusOr<uint64_t> from = low.empty() ? uint64_t{0} : parse(low);
  const absl::StatusOr<uint64_t> to = high.empty() ? UINT64_MAX : parse(high);
  if (!from.ok()) return refused(from.status());
  if (!to.ok()) return refused(to.status());
  if (*from > *to) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", low, " is above ", high));
  }
  range.low = *from;
  range.high = *to;
  return range;
}

absl::StatusOr<uint64_t> NanosecondsOf(absl::string_view text) {
  const auto instant = ParseInstant("", text);
  if (!instant.ok()) return instant.status();
  if (instant->share.has_value() || !instant->name.empty())
    return absl::InvalidArgumentError("is no time span");
  return instant->ns;
}

}  // namespace

absl::StatusOr<ValueRange> ParseSizeRange(absl::string_view option, absl::string_view text) {
  return ParseRange(option, text, "64, 1K..64K, ..100 or 1M..", true, ParseByteSize);
}

absl::StatusOr<ValueRange> ParseTimeRange(absl::string_view option, absl::string_view text) {
  return ParseRange(option, text, "1ms..2s, ..10us or 1h..", false, NanosecondsOf);
}

}  // namespace memtrace::report
