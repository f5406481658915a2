#include "report/gate/policy.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace memtrace::report::gate {
namespace {

// A number with an optional unit; `step` is what k, M, ... go up by.
absl::StatusOr<uint64_t> ParseScaled(absl::string_view text, double step, absl::string_view what) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not ", what));
  };
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  size_t digits = 0;
  while (digits < rest.size() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(rest[digits])) || rest[digits] == '.')) {
    ++digits;
  }
  const absl::string_view digits_text = rest.substr(0, digits);
  const std::string unit =
      absl::AsciiStrToUpper(absl::StripLeadingAsciiWhitespace(rest.substr(digits)));
  double power = 0;
  absl::string_view letters = unit;
  if (!letters.empty() && letters != "B") {
    const size_t at = absl::string_view("KMGT").find(letters.front());
    if (at == absl::string_view::npos) return wrong();
    power = static_cast<double>(at) + 1;
    letters.remove_prefix(1);
    if (!letters.empty() && (step != 1024 || (letters != "B" && letters != "IB"))) return wrong();
  } else if (letters == "B" && step != 1024) {
    return wrong();
  }
  uint64_t whole = 0;
  if (power == 0) {
    if (!absl::SimpleAtoi(digits_text, &whole)) return wrong();
    return whole;
  }
  double number = 0;
  if (digits_text.empty() || !absl::SimpleAtod(digits_text, &number)) return wrong();
  const double value = number * std::pow(step, power);
  if (value >= 0x1p63) return wrong();
  return static_cast<uint64_t>(std::llround(value));
}

}  // namespace

bool Tolerance::Allows(uint64_t was, uint64_t is) const {
  if (is <= was || is - was <= bytes) return true;
  return static_cast<double>(is - was) <=
         static_cast<double>(was) * static_cast<double>(percent) / 100;
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  return ParseScaled(text, 1024, "a size such as 4096, 512K, 1.5M or 2G");
}

absl::StatusOr<Limit> ParseLimit(absl::string_view option, absl::string_view text, bool counts) {
  Limit limit;
  absl::string_view value = text;
  const size_t equals = text.rfind('=');
  if (equals != text.npos) {
    limit.program = std::string(text.substr(0, equals));
    value = text.substr(equals + 1);
    if (limit.program.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": no program before the ="));
    }
  }
  const auto most =
      counts ? ParseScaled(value, 1000, "a number such as 1000 or 5M") : ParseBytes(value);
  if (!most.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", most.status().message()));
  }
  limit.most = *most;
  return limit;
}

absl::StatusOr<GrowthLimit> ParseGrowth(absl::string_view text) {
  const size_t equals = text.rfind('=');
  const size_t dots = text.find("..");
  const size_t program = std::min(text.find('='), dots);  // the end of its name, if there is one
  const size_t begin = program == dots ? 0 : program + 1;
  if (equals == text.npos || dots == text.npos || dots == begin || program == 0 ||
      dots + 2 >= equals) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-growth: \"", text,
        "\" is not PHASE..PHASE=BYTES, such as warm..done=64K, nor PROGRAM=PHASE..PHASE=BYTES"));
  }
  GrowthLimit limit;
  if (begin != 0) limit.program = std::string(text.substr(0, program));
  limit.from = std::string(text.substr(begin, dots - begin));
  limit.to = std::string(text.substr(dots + 2, equals - dots - 2));
  const auto most = ParseBytes(text.substr(equals + 1));
  if (!most.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--max-growth: ", most.status().message()));
  }
  limit.most = *most;
  return limit;
}

absl::StatusOr<Tolerance> ParseTolerance(absl::string_view text) {
  Tolerance tolerance;
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "%")) {
    if (!absl::SimpleAtoi(number, &tolerance.percent)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tolerance: \"", text, "\" is not a share such as 10%"));
    }
    return tolerance;
  }
  const auto bytes = ParseBytes(text);
  if (!bytes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--tolerance: ", bytes.status().message()));
  }
  tolerance.bytes = *bytes;
  return tolerance;
}

}  // namespace memtrace::report::gate
