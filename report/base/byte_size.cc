#include "report/base/byte_size.h"

#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace memtrace::report {
namespace {

constexpr unsigned kBinary = 1024, kDecimal = 1000;

// To which power `step` is taken by a unit in upper case. Nothing: there is no such unit.
std::optional<unsigned> PowerOf(absl::string_view unit, unsigned step) {
  if (unit.empty()) return 0;
  if (unit == "B" && step == kBinary) return 0;
  const size_t power = absl::string_view("KMGT").find(unit.front());
  if (power == absl::string_view::npos) return std::nullopt;
  unit.remove_prefix(1);
  const bool known = unit.empty() || (step == kBinary && (unit == "B" || unit == "IB"));
  return known ? std::optional<unsigned>(static_cast<unsigned>(power) + 1) : std::nullopt;
}

absl::StatusOr<uint64_t> ParseScaled(absl::string_view text, unsigned step,
                                     absl::string_view what) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not ", what));
  };
  const auto too_large = [&] {
    return absl::OutOfRangeError(absl::StrCat("\"", text, "\" is too large"));
  };
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  size_t digits = 0;
  bool whole = true;
  while (digits < trimmed.size() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(trimmed[digits])) ||
          trimmed[digits] == '.')) {
    whole &= trimmed[digits++] != '.';
  }
  const absl::string_view number = trimmed.substr(0, digits);
  const std::string unit =
      absl::AsciiStrToUpper(absl::StripLeadingAsciiWhitespace(trimmed.substr(digits)));
  const std::optional<unsigned> power = PowerOf(unit, step);
  if (number.empty() || !power.has_value() || (!whole && *power == 0)) return wrong();
  if (!whole) {
    double value = 0;
    if (!absl::SimpleAtod(number, &value)) return wrong();
    value *= std::pow(step, *power);
    if (value >= 0x1p63) return too_large();
    return static_cast<uint64_t>(std::llround(value));
  }
  uint64_t value = 0;
  if (!absl::SimpleAtoi(number, &value)) return too_large();
  for (unsigned i = 0; i < *power; ++i) {
    if (value > UINT64_MAX / step) return too_large();
    value *= step;
  }
  return value;
}

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(absl::string_view text) {
  return ParseScaled(text, kBinary, "a size such as 4096, 512K, 1.5M or 2G");
}

absl::StatusOr<uint64_t> ParseCount(absl::string_view text) {
  return ParseScaled(text, kDecimal, "a number such as 1000 or 5M");
}

}  // namespace memtrace::report
