#include "report/index/analysis_codec.h"

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report/state/packed_bytes.h"
#include "report/state/packed_values.h"

namespace memtrace::report::index {
namespace {

// The place of code that a node was at lately is written as its number here.
class LatestPlaces {
 public:
  struct Place {
    uint64_t pc = 0;
    uint32_t instance = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  static size_t NumberOf(const Place& place) {
    return (place.pc + place.instance) * 0x9e3779b97f4a7c15 >> (64 - kBits);
  }
  Place& operator[](size_t number) { return places_[number]; }
  static constexpr size_t kCount = size_t{1} << 14;

 private:
  static constexpr unsigned kBits = 14;
  static_assert(kCount == size_t{1} << kBits);
  std::vector<Place> places_{kCount};
};

void PutStacks(const StackTable& stacks, PackedWriter* out) {
  LatestPlaces places;
  for (uint32_t id = 1; id <= stacks.size(); ++id) {
    const StackNode& node = stacks.node({id});
    out->Number(id - node.parent.value);  // callers come first
    const LatestPlaces::Place place = {node.pc, node.instance};
    const size_t number = LatestPlaces::NumberOf(place);
    if (places[number] == place) {
      out->Number(number);
    } else {
      out->Number(LatestPlaces::kCount);
      out->Number(place.pc);
      out->Number(place.instance);
      places[number] = place;
    }
  }
}

// nullptr: these are not `count` stacks.
std::unique_ptr<StackTable> GetStacks(PackedReader in, size_t count) {
  std::vector<StackNode> nodes(1);
  nodes.reserve(count + 1);
  LatestPlaces places;
  for (uint32_t id = 1; id <= count; ++id) {
    const uint64_t up = in.Number();
    if (up == 0 || up > id) return nullptr;
    LatestPlaces::Place place;
    if (const uint64_t number = in.Number(); number < LatestPlaces::kCount) {
      place = places[number];
    } else {
      place.pc = in.Number();
      place.instance = static_cast<uint32_t>(in.Number());
      places[LatestPlaces::NumberOf(place)] = place;
    }
    nodes.push_back({place.pc, {id - static_cast<uint32_t>(up)}, place.instance});
  }
  return in.ok() && in.left() == 0 ? StackTable::FromNodes(std::move(nodes)) : nullptr;
}

}  // namespace

std::string EncodeTrace(const AnalyzedTrace& trace) {
  PackedWriter stacks, out;
  PutStacks(*trace.stacks, &stacks);
  out.Number(trace.stacks->size());
  out.Text(stacks.bytes());
  Put(trace.analysis, out);
  return out.Take();
}

bool DecodeTrace(std::string_view bytes, AnalyzedTrace* trace) {
  PackedSource source{PackedReader(bytes)};
  source.stacks = source.in.Count();
  const PackedReader stacks(source.in.Text());
  if (source.stacks > stacks.left()) return false;
  // By another thread if there can be one: each half takes about as long.
  std::future<std::unique_ptr<StackTable>> table =
      std::async(std::launch::async | std::launch::deferred, GetStacks, stacks, source.stacks);
  Get(trace->analysis, source);
  trace->stacks = table.get();
  return trace->stacks != nullptr && source.in.ok() && source.in.left() == 0;
}

}  // namespace memtrace::report::index
