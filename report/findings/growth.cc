#include "report/findings/growth.h"

namespace memtrace::report {

absl::string_view VerdictName(Growth::Verdict verdict) {
  switch (verdict) {
    case Growth::Verdict::kUnknown:
      return "";
    case Growth::Verdict::kBounded:
      return "bounded";
    case Growth::Verdict::kGrowing:
      return "growing";
    case Growth::Verdict::kBurst:
      return "burst";
    case Growth::Verdict::kSawtooth:
      return "sawtooth";
    case Growth::Verdict::kHeld:
      return "held";
  }
  return "";
}

}  // namespace memtrace::report
