#include "report/analysis/block_ranges.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/analysis/instant.h"
#include "report/base/byte_size.h"

namespace memtrace::report {
namespace {

// `parse` gives the value of one end; nothing: it is none.
template <typename Parse>
absl::StatusOr<ValueRange> ParseRange(absl::string_view option, absl::string_view text,
                                      absl::string_view example, bool one_value, Parse parse) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat(option, ": \"", text, "\" is no range; write ", example));
  const size_t dots = text.find("..");
  ValueRange range;
  if (dots == absl::string_view::npos) {
    const std::optional<uint64_t> value = one_value ? parse(text) : std::nullopt;
    if (!value.has_value()) return bad;
    range.low = range.high = *value;
    return range;
  }
  const absl::string_view low = text.substr(0, dots), high = text.substr(dots + 2);
  if (low.empty() && high.empty()) return bad;
  const std::optional<uint64_t> from = low.empty() ? uint64_t{0} : parse(low);
  const std::optional<uint64_t> to = high.empty() ? UINT64_MAX : parse(high);
  if (!from.has_value() || !to.has_value()) return bad;
  if (*from > *to) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", low, " is above ", high));
  }
  range.low = *from;
  range.high = *to;
  return range;
}

std::optional<uint64_t> BytesOf(absl::string_view text) {
  const auto bytes = ParseByteSize(text);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

std::optional<uint64_t> NanosecondsOf(absl::string_view text) {
  const auto instant = ParseInstant("", text);
  if (!instant.ok() || instant->share.has_value() || !instant->name.empty()) return std::nullopt;
  return instant->ns;
}

}  // namespace

absl::StatusOr<ValueRange> ParseSizeRange(absl::string_view option, absl::string_view text) {
  return ParseRange(option, text, "64, 1K..64K, ..100 or 1M..", true, BytesOf);
}

absl::StatusOr<ValueRange> ParseTimeRange(absl::string_view option, absl::string_view text) {
  return ParseRange(option, text, "1ms..2s, ..10us or 1h..", false, NanosecondsOf);
}

}  // namespace memtrace::report
