// BySiteNumber: something of each site that asks for it, by the site's number in the model.
//
// Millions of blocks ask, and mostly of few sites, one after another: a place is found by two loads.
// Memory: four bytes for each number up to the largest, and what was asked for.

#ifndef MEMTRACE_REPORT_FAULTS_BY_SITE_NUMBER_H_
#define MEMTRACE_REPORT_FAULTS_BY_SITE_NUMBER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memtrace::report {

template <typename T>
class BySiteNumber {
 public:
  // Good until the next call.
  T& operator[](uint32_t number) {
    if (number >= place_.size()) [[unlikely]] {
      place_.resize(std::max<size_t>(size_t{number} + 1, 2 * place_.size()));
    }
    uint32_t& place = place_[number];
    if (place == 0) [[unlikely]] {
      entries_.push_back({number, {}});
      place = static_cast<uint32_t>(entries_.size());
    }
    return entries_[place - 1].second;
  }

  // In the order in which they were asked for first.
  const std::vector<std::pair<uint32_t, T>>& entries() const { return entries_; }
  std::vector<std::pair<uint32_t, T>> Take() { return std::move(entries_); }

 private:
  std::vector<uint32_t> place_;  // in entries_, from 1; by number
  std::vector<std::pair<uint32_t, T>> entries_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_BY_SITE_NUMBER_H_
