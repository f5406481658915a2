// AddressMap: half-open address ranges -> values, the innermost range wins.
//
// Functions inside functions, units inside units, aliases of different size:
// debug information nests, and sometimes overlaps without nesting. Build()
// flattens all ranges once into disjoint segments, so that Find() is one binary
// search however deep they were nested:
//
//   added      [----------- a -----------)        later start wins until it ends;
//                   [--- b ---)                   then the outer one resumes
//   segments   [ a )[--- b ---)[--- a ---)
//
// Among ranges with the same start the shorter wins; among equal ranges the one
// that was added last.
//
// Add() everything, Build() once, then Find().

#ifndef MEMTRACE_SYMBOLIZER_ADDRESS_MAP_H_
#define MEMTRACE_SYMBOLIZER_ADDRESS_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memtrace::symbolizer {

template <typename Value>
class AddressMap {
 public:
  struct Segment {
    uint64_t begin;
    uint64_t end;
    Value value;
  };

  // Empty and inverted ranges are ignored: damaged files have them.
  void Add(uint64_t begin, uint64_t end, Value value) {
    if (begin < end) added_.push_back({begin, end, std::move(value)});
  }

  void Build() {
    std::stable_sort(added_.begin(), added_.end(), [](const Segment& a, const Segment& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    segments_.clear();
    std::vector<size_t> open;  // indices into added_; the innermost is at the back
    uint64_t done = 0;         // everything below is emitted
    auto emit_until = [&](uint64_t limit) {
      while (!open.empty() && done < limit) {
        const Segment& top = added_[open.back()];
        const uint64_t end = std::min(top.end, limit);
        if (done < end) {
          Emit(done, end, top.value);
          done = end;
        }
        if (top.end <= limit) open.pop_back();
      }
      done = std::max(done, limit);
    };
    for (size_t i = 0; i < added_.size(); ++i) {
      emit_until(added_[i].begin);
      open.push_back(i);
    }
    emit_until(UINT64_MAX);
    added_.clear();
    added_.shrink_to_fit();
  }

  // Null when no range contains `address`.
  const Value* Find(uint64_t address) const {
    const Segment* segment = FindSegment(address);
    return segment == nullptr ? nullptr : &segment->value;
  }

  const Segment* FindSegment(uint64_t address) const {
    auto it = std::upper_bound(segments_.begin(), segments_.end(), address,
                               [](uint64_t a, const Segment& s) { return a < s.begin; });
    if (it == segments_.begin()) return nullptr;
    --it;
    return address < it->end ? &*it : nullptr;
  }

  const std::vector<Segment>& segments() const { return segments_; }
  bool empty() const { return segments_.empty(); }

 private:
  void Emit(uint64_t begin, uint64_t end, const Value& value) {
    if (!segments_.empty() && segments_.back().end == begin && segments_.back().value == value) {
      segments_.back().end = end;
    } else {
      segments_.push_back({begin, end, value});
    }
  }

  std::vector<Segment> added_;
  std::vector<Segment> segments_;  // sorted, disjoint
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ADDRESS_MAP_H_
