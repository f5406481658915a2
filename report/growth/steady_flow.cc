#include "report/growth/steady_flow.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace memtrace::report {
namespace {

constexpr double kDeviations = 2.33;  // of the normal distribution 1 % is above
constexpr double kLongest = 0.9;      // of the time

// The variance of the steps from each value to the next.
double VarianceOfSteps(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size() - 1);
  const double mean = (values.back() - values.front()) / n;
  double squares = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    const double off = values[i] - values[i - 1] - mean;
    squares += off * off;
  }
  return squares / (n - 1);
}

}  // namespace

SteadyFlow::SteadyFlow(const LifetimeHistogram& lives, double seen_ns)
    : part_ns_(seen_ns / kParts), outlive_(kParts + 1), level_(kParts + 1) {
  std::vector<double> per_ns(kParts);  // blocks of a life that come
  for (size_t c = 0; c < LifetimeHistogram::kClasses; ++c) {
    if (lives.freed[c] == 0) continue;
    const auto begin = static_cast<double>(LifetimeHistogram::BeginOf(c)),
               end = static_cast<double>(LifetimeHistogram::BeginOf(c + 1));
    const double from = std::min(begin / part_ns_, kParts - 1.0),
                 to = std::clamp(end / part_ns_, from + 1e-9, double{kParts});
    for (auto i = static_cast<size_t>(from); i < kParts && static_cast<double>(i) < to; ++i) {
      const auto left = static_cast<double>(i);
      const double share = (std::min(to, left + 1) - std::max(from, left)) / (to - from);
      const double life_ns = (left + 0.5) * part_ns_;
      // Blocks that were there nearly all the time were set up at the begin: they have no pace.
      const double open_ns = life_ns < kLongest * seen_ns ? seen_ns - life_ns : seen_ns;
      per_ns[i] += share * lives.freed[c] / open_ns;
    }
  }
  for (size_t i = kParts; i-- > 0;) outlive_[i] = outlive_[i + 1] + per_ns[i];
  for (size_t i = 0; i < kParts; ++i) {
    level_[i + 1] = level_[i] + (outlive_[i] + outlive_[i + 1]) / 2 * part_ns_;
  }
}

double SteadyFlow::At(const std::vector<double>& values, double ns) const {
  const double at = std::clamp(ns / part_ns_, 0.0, double{kParts});
  const auto i = std::min(static_cast<size_t>(at), kParts - 1);
  return values[i] + (values[i + 1] - values[i]) * (at - static_cast<double>(i));
}

double SteadyFlow::Covariance(double a_ns, double b_ns) const {
  return std::max(Level(std::max(a_ns, b_ns)) - Level(std::fabs(a_ns - b_ns)), 0.0);
}

bool SteadyFlowExplains(const SiteHistory& history, const std::vector<double>& floor,
                        double step_ns) {
  const Site& site = *history.site;
  const LifetimeHistogram lives = LifetimeHistogram::Of(site.lifetimes);
  const size_t n = floor.size();
  if (history.held || lives.blocks() == 0 || n < 3) return false;

  const auto seen_ns = static_cast<double>(history.end_ns - history.first_ns);
  const SteadyFlow flow(lives, seen_ns);
  std::vector<double> weight(n), at_ns(n);
  double seen = 0, expected = 0;
  for (size_t i = n / 3; i < n; ++i) {
    weight[i] = i < 2 * n / 3 ? -1 / static_cast<double>(2 * n / 3 - n / 3)
                              : 1 / static_cast<double>(n - 2 * n / 3);
    at_ns[i] = seen_ns - (static_cast<double>(n - i) - 0.5) * step_ns;
    seen += floor[i];
    expected += flow.Level(at_ns[i]);
  }
  // The blocks that live long may be smaller than the mean: the level itself says what
  // they come to at most.
  const double bytes_of_block =
      std::min(history.mean_size() * history.blocks_of_one(), seen / std::max(expected, 1e-9));
  double rise = 0, variance = 0;
  for (size_t i = n / 3; i < n; ++i) {
    rise += weight[i] * (floor[i] - bytes_of_block * flow.Level(at_ns[i]));
    for (size_t k = n / 3; k < n; ++k) {
      variance += weight[i] * weight[k] * flow.Covariance(at_ns[i], at_ns[k]);
    }
  }
  // In bytes, and of what comes in batches, or takes the place of another at once: by how much the
  // steps of the floor vary, and those of the flow would.
  const double of_steps = 2 * flow.Level(step_ns);
  const double scale = of_steps == 0 ? 0 : VarianceOfSteps(floor) / of_steps;
  return rise <= kDeviations * std::sqrt(std::max(scale * variance, 0.0));
}

}  // namespace memtrace::report
