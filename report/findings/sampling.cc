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

// That quantile of the gamma distribution with this mean and variance.
double Gamma(double mean, double variance, double z) {
  if (!(variance > 0)) return mean;
  return variance / (2 * mean) * ChiSquareQuantile(z, 2 * mean * mean / variance);
}

uint64_t Bytes(double value) {
  return static_cast<uint64_t>(std::llround(std::clamp(value, 0.0, 0x1p62)));
}

}  // namespace

Interval SampledSum::IntervalOf(double z) const {
  if (sample_bytes == 0) return {Bytes(exact + estimate), Bytes(exact + estimate)};
  const double low = Gamma(estimate, variance, -z);
  // What was seen is certain. The rest is estimated as well as the whole, and much less: above a
  // few large blocks, which are surely seen, the few small ones that are not have the shape of
  // their own distribution. One more sample of those would have added N, and to the variance N^2.
  const double rest = estimate - seen;
  const double high = seen + Gamma(rest + sample_bytes, variance + sample_bytes * sample_bytes, z);
  return {Bytes(exact + std::clamp(low, seen, estimate)), Bytes(exact + std::max(high, estimate))};
}

}  // namespace memtrace::report
