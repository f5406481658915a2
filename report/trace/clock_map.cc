#include "report/trace/clock_map.h"

#include <algorithm>

namespace memtrace::report {
namespace {

constexpr uint64_t kMinimumGapNs = 10'000'000;
// Later than any real clock; keeps sums below overflow.
constexpr uint64_t kLatest = uint64_t{1} << 62;

bool IsReading(uint64_t ticks, uint64_t monotonic_ns) {
  return ticks != 0 && monotonic_ns != 0 && ticks < kLatest && monotonic_ns < kLatest;
}

}  // namespace

void ClockBounds::Add(uint64_t ticks, uint64_t monotonic_ns) {
  if (!IsReading(ticks, monotonic_ns)) return;
  if (ticks < first_ticks_) {
    first_ticks_ = ticks;
    first_ns_ = monotonic_ns;
  }
  if (ticks > last_ticks_) {
    last_ticks_ = ticks;
    last_ns_ = monotonic_ns;
  }
}

bool ClockBounds::Allows(uint64_t ticks, uint64_t monotonic_ns, uint64_t ticks_per_second) const {
  constexpr double kSlackNs = 1e9;
  if (last_ticks_ == 0) return true;  // there is none to go by
  double pace = ticks_per_second != 0 ? 1e9 / static_cast<double>(ticks_per_second) : 0;
  if (last_ns_ >= first_ns_ + kMinimumGapNs && last_ticks_ > first_ticks_) {
    pace =
        static_cast<double>(last_ns_ - first_ns_) / static_cast<double>(last_ticks_ - first_ticks_);
  }
  if (pace == 0) return true;
  const bool before = ticks < first_ticks_;
  const auto since = [](uint64_t from, uint64_t to) {
    return static_cast<double>(to) - static_cast<double>(from);
  };
  // Away from the nearer end of what is known, or from its begin.
  const double expected =
      pace * (before ? since(ticks, first_ticks_)
                     : since(ticks > last_ticks_ ? last_ticks_ : first_ticks_, ticks));
  const double is = before ? since(monotonic_ns, first_ns_)
                           : since(ticks > last_ticks_ ? last_ns_ : first_ns_, monotonic_ns);
  return is >= expected / 2 - kSlackNs && is <= expected * 2 + kSlackNs;
}

void ClockMap::Add(uint64_t ticks, uint64_t monotonic_ns) {
  if (IsReading(ticks, monotonic_ns)) points_.push_back({ticks, monotonic_ns, 0});
}

void ClockMap::AddUnguarded(uint64_t ticks, uint64_t monotonic_ns) {
  if (IsReading(ticks, monotonic_ns)) unguarded_.push_back({ticks, monotonic_ns, 0});
}

void ClockMap::Build(uint64_t start_ns, uint64_t ticks_per_second) {
  if (!unguarded_.empty()) {
    ClockBounds bounds;
    for (const Point& point : points_) bounds.Add(point.ticks, point.ns);
    for (const Point& point : unguarded_) {
      if (bounds.Allows(point.ticks, point.ns, ticks_per_second)) points_.push_back(point);
    }
    unguarded_ = {};
  }
  std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) {
    return a.ticks != b.ticks ? a.ticks < b.ticks : a.ns < b.ns;
  });
  std::vector<Point> kept;
  for (size_t i = 0; i < points_.size(); ++i) {
    const Point& point = points_[i];
    if (!kept.empty()) {
      if (point.ticks == kept.back().ticks || point.ns < kept.back().ns) continue;
      if (point.ns - kept.back().ns < kMinimumGapNs) {
        // Too close to the one before. The very last pair still replaces it, so that
        // the ends of the trace are tied down.
        if (i + 1 < points_.size() || kept.size() < 2) continue;
        kept.pop_back();
      }
    }
    kept.push_back(point);
  }
  if (kept.empty()) kept.push_back({1, std::min(start_ns, kLatest), 0});
  start_ns_ = start_ns != 0 ? std::min(start_ns, kLatest) : kept.front().ns;
  const Point& first = kept.front();
  const Point& last = kept.back();
  if (kept.size() > 1 && last.ns > first.ns) {
    mean_ = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
  } else if (ticks_per_second != 0) {
    mean_ = 1e9 / static_cast<double>(ticks_per_second);
  }
  for (size_t i = 0; i + 1 < kept.size(); ++i) {
    kept[i].ns_per_tick = static_cast<double>(kept[i + 1].ns - kept[i].ns) /
                          static_cast<double>(kept[i + 1].ticks - kept[i].ticks);
  }
  kept.back().ns_per_tick = mean_;
  points_ = std::move(kept);
}

uint64_t ClockMap::At(size_t i, uint64_t ticks) const {
  const Point& point = points_[i];
  double ns;
  if (ticks >= point.ticks) {
    ns = static_cast<double>(ticks - point.ticks) * point.ns_per_tick;
    const double bound = static_cast<double>(
        i + 1 < points_.size() ? points_[i + 1].ns - point.ns : kLatest - point.ns);
    const uint64_t at = point.ns + static_cast<uint64_t>(std::min(ns, bound));
    return at > start_ns_ ? at - start_ns_ : 0;
  }
  ns = static_cast<double>(point.ticks - ticks) * mean_;  // only before the first point
  if (ns >= static_cast<double>(point.ns)) return 0;
  const uint64_t at = point.ns - static_cast<uint64_t>(ns);
  return at > start_ns_ ? at - start_ns_ : 0;
}

uint64_t ClockMap::ToNs(uint64_t ticks) const {
  size_t hint = 0;
  return ToNs(ticks, &hint);
}

uint64_t ClockMap::ToNs(uint64_t ticks, size_t* hint) const {
  ticks = std::min(ticks, kLatest);
  size_t i = *hint;
  const bool here = i < points_.size() && points_[i].ticks <= ticks &&
                    (i + 1 == points_.size() || ticks < points_[i + 1].ticks);
  if (!here) {
    const auto next = std::upper_bound(points_.begin(), points_.end(), ticks,
                                       [](uint64_t t, const Point& p) { return t < p.ticks; });
    i = next == points_.begin() ? 0 : static_cast<size_t>(next - points_.begin()) - 1;
    *hint = i;
  }
  return At(i, ticks);
}

}  // namespace memtrace::report
