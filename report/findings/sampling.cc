#include "report/findings/sampling.h"

namespace memtrace::report {
namespace {

// The quantile of the chi-square distribution where the standard normal one has `z`:
// Wilson and Hilferty, The distribution of chi-square, PNAS 17, 1931. Off by less
// than 0.2 % upwards of 4 degrees of freedom; below that the lower one is too low,
// which makes an interval of one sample a little wide.
double ChiSquareQuantile(double z, double degrees) {
  const double a = 2 / (9 * degrees);
  return degrees * std::pow(std::max(0.0, 1 - a + z * std::sqrt(a)), 3);
}

uint64_t Bytes(double value) {
  return static_cast<uint64_t>(std::llround(std::clamp(value, 0.0, 0x1p62)));
}

}  // namespace

Interval SampledSum::IntervalOf(double z) const {
  if (!(variance > 0)) return {Bytes(exact + estimate), Bytes(exact + estimate)};
  const double low =
      variance / (2 * estimate) * ChiSquareQuantile(-z, 2 * estimate * estimate / variance);
  const double mean = estimate + largest, spread = variance + largest * largest;
  const double high = spread / (2 * mean) * ChiSquareQuantile(z, 2 * mean * mean / spread);
  return {Bytes(exact + std::clamp(low, seen, estimate)), Bytes(exact + std::max(high, estimate))};
}

}  // namespace memtrace::report
