#include "report/words/units.h"

#include <cmath>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memtrace::report::words {
namespace {

// `value`, which is not negative, with so many digits behind the point, at most two. Of two that
// are equally near it is the larger, as on the page (JavaScript's toFixed; "%.2f" takes the even
// one): 3.125 MiB is no rare number. A long double has all bits of the product.
std::string Fixed(double value, int digits) {
  const long double scale = digits == 2 ? 100 : digits == 1 ? 10 : 1;
  const long double units = std::floor(value * scale + 0.5L);
  return absl::StrFormat("%.*f", digits, static_cast<double>(units / scale));
}

// Three significant digits, without rounding up into a fourth: 9.996 -> "10.0".
std::string ThreeDigits(double value) {
  return Fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

// Scales `n` by `base` until it is below it as printed; `units` begins with the
// unit of n itself.
std::string Scaled(uint64_t n, double base, absl::string_view separator,
                   const absl::string_view* units, int unit_count) {
  double value = static_cast<double>(n);
  int unit = 0;
  while (unit + 1 < unit_count && (unit == 0 ? value >= base : value >= base - 0.5)) {
    value /= base;
    ++unit;
  }
  const std::string number = unit == 0 ? absl::StrCat(n) : ThreeDigits(value);
  return units[unit].empty() ? number : absl::StrCat(number, separator, units[unit]);
}

std::tm Utc(int64_t realtime_ns) {
  const std::time_t seconds = static_cast<std::time_t>(realtime_ns / 1000000000);
  std::tm tm = {};
  gmtime_r(&seconds, &tm);
  return tm;
}

}  // namespace

std::string Count(uint64_t n) {
  const std::string digits = absl::StrCat(n);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out.push_back(',');
    out.push_back(digits[i]);
  }
  return out;
}

std::string ShortCount(uint64_t n) {
  static constexpr absl::string_view kUnits[] = {"", "k", "M", "G", "T", "P"};
  return Scaled(n, 1000, "", kUnits, 6);
}

std::string Plural(uint64_t n, absl::string_view noun) {
  return absl::StrCat(Count(n), " ", noun, n == 1 ? "" : "s");
}

std::string ExactBytes(uint64_t bytes) { return Plural(bytes, "byte"); }

std::string HumanBytes(uint64_t bytes) {
  static constexpr absl::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return Scaled(bytes, 1024, " ", kUnits, 6);
}

std::string ShortBytes(uint64_t bytes) {
  static constexpr absl::string_view kUnits[] = {"", "K", "M", "G", "T", "P"};
  return Scaled(bytes, 1024, "", kUnits, 6);
}

std::string ExactOrHumanBytes(uint64_t bytes) {
  return bytes < 1024 ? ExactBytes(bytes) : HumanBytes(bytes);
}

std::string Duration(uint64_t ns) {
  const double value = static_cast<double>(ns);
  if (ns == 0) return "0 s";
  if (ns < 1000) return absl::StrCat(ns, " ns");
  if (value < 999.5e3) return absl::StrCat(ThreeDigits(value / 1e3), " us");
  if (value < 999.5e6) return absl::StrCat(ThreeDigits(value / 1e6), " ms");
  if (value < 119.5e9) return absl::StrCat(ThreeDigits(value / 1e9), " s");
  const uint64_t seconds = (ns + 500000000) / 1000000000;
  if (seconds < 7200) return absl::StrFormat("%d min %d s", seconds / 60, seconds % 60);
  const uint64_t minutes = (seconds + 30) / 60;
  return absl::StrFormat("%d h %d min", minutes / 60, minutes % 60);
}

std::string Percent(double part, double whole) {
  if (!(whole > 0)) return "-";
  const double percent = 100 * part / whole;
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  if (part < whole && percent >= 99.95) return ">99.9 %";
  return absl::StrCat(Fixed(percent, percent >= 99.95 ? 0 : 1), " %");
}

std::string DateTime(int64_t realtime_ns) {
  const std::tm tm = Utc(realtime_ns);
  return absl::StrFormat("%04d-%02d-%02d %02d:%02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1,
                         tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

std::string DateTimeIso(int64_t realtime_ns) {
  const std::tm tm = Utc(realtime_ns);
  return absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d.%09dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                         tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, realtime_ns % 1000000000);
}

}  // namespace memtrace::report::words
