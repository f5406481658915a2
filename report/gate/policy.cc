#include "report/gate/policy.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/base/byte_size.h"
#include "report/suppress/suppressions.h"

namespace memtrace::report::gate {

bool Tolerance::Allows(uint64_t was, uint64_t is) const {
  if (is <= was || is - was <= bytes) return true;
  return static_cast<double>(is - was) <=
         static_cast<double>(was) * static_cast<double>(percent) / 100;
}

bool GatePolicy::Judges(absl::string_view program) const {
  return programs.empty() || std::ranges::any_of(programs, [&](const std::string& pattern) {
           return suppress::WildcardMatches(pattern, program);
         });
}

absl::StatusOr<std::vector<std::string>> ParsePrograms(absl::string_view text) {
  std::vector<std::string> patterns = absl::StrSplit(text, ',');
  for (const std::string& pattern : patterns) {
    if (pattern.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--programs: \"", text, "\" has an empty name"));
    }
    if (absl::StrContains(pattern, "/")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--programs: \"", pattern, "\" has a directory: programs are known by their file names"));
    }
  }
  return patterns;
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
  const auto most = counts ? ParseCount(value) : ParseByteSize(value);
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
  const auto most = ParseByteSize(text.substr(equals + 1));
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
  const auto bytes = ParseByteSize(text);
  if (!bytes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tolerance: ", bytes.status().message(),
                     absl::IsOutOfRange(bytes.status()) ? "" : ", nor a share such as 10%"));
  }
  tolerance.bytes = *bytes;
  return tolerance;
}

}  // namespace memtrace::report::gate
