#include "report/index/analysis_codec.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "report/index/fields.h"
#include "report/index/packed_bytes.h"

namespace memtrace::report::index {
namespace {

// What a member is, for both directions.
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsArray : std::false_type {};
template <typename T, size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsPair : std::false_type {};
template <typename A, typename B>
struct IsPair<std::pair<A, B>> : std::true_type {};

template <typename T>
void Put(const T& value, PackedWriter& out) {
  if constexpr (std::is_same_v<T, double>) {
    out.Real(value);
  } else if constexpr (std::is_enum_v<T>) {
    out.Number(static_cast<uint64_t>(value));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    out.Signed(value);
  } else if constexpr (std::is_integral_v<T>) {
    out.Number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.Text(value);
  } else if constexpr (IsVector<T>::value) {
    out.Number(value.size());
    for (const auto& each : value) Put(each, out);
  } else if constexpr (IsArray<T>::value) {
    // Histograms, of which most classes are empty: up to the last that is not.
    size_t used = value.size();
    if constexpr (std::is_integral_v<typename T::value_type>) {
      while (used > 0 && value[used - 1] == 0) --used;
    }
    out.Number(used);
    for (size_t i = 0; i < used; ++i) Put(value[i], out);
  } else if constexpr (IsOptional<T>::value) {
    out.Number(value.has_value() ? 1 : 0);
    if (value.has_value()) Put(*value, out);
  } else if constexpr (IsPair<T>::value) {
    Put(value.first, out);
    Put(value.second, out);
  } else {
    ForEachField(value, [&](const auto& field) { Put(field, out); });
  }
}

struct Source {
  PackedReader in;
  size_t stacks = 0;  // there are ids up to that
};

template <typename T>
void Get(T& value, Source& source) {
  PackedReader& in = source.in;
  if constexpr (std::is_same_v<T, double>) {
    value = in.Real();
  } else if constexpr (std::is_same_v<T, bool>) {
    value = in.Number() != 0;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(in.Number());
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    value = static_cast<T>(in.Signed());
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(in.Number());
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = std::string(in.Text());
  } else if constexpr (std::is_same_v<T, StackId>) {
    value.value = static_cast<uint32_t>(in.Number());
    if (value.value > source.stacks) in.Fail();
  } else if constexpr (IsVector<T>::value) {
    value.resize(in.Count());
    for (size_t i = 0; i < value.size(); ++i) {
      if constexpr (std::is_same_v<T, std::vector<bool>>) {
        value[i] = in.Number() != 0;
      } else {
        Get(value[i], source);
      }
    }
  } else if constexpr (IsArray<T>::value) {
    const size_t used = in.Count();
    if (used > value.size()) {
      in.Fail();
      return;
    }
    for (size_t i = 0; i < used; ++i) Get(value[i], source);
  } else if constexpr (IsOptional<T>::value) {
    if (in.Number() != 0) Get(value.emplace(), source);
  } else if constexpr (IsPair<T>::value) {
    Get(value.first, source);
    Get(value.second, source);
  } else {
    ForEachField(value, [&](auto& field) { Get(field, source); });
  }
}

}  // namespace

std::string EncodeTrace(const AnalyzedTrace& trace) {
  PackedWriter out;
  const StackTable& stacks = *trace.stacks;
  out.Number(stacks.size());
  for (uint32_t id = 1; id <= stacks.size(); ++id) {
    const StackNode& node = stacks.node({id});
    out.Number(id - node.parent.value);  // callers come first
    out.Number(node.pc);
    out.Number(node.instance);
  }
  Put(trace.analysis, out);
  return out.Take();
}

bool DecodeTrace(std::string_view bytes, AnalyzedTrace* trace) {
  Source source{PackedReader(bytes)};
  const size_t count = source.in.Count();
  std::vector<StackNode> nodes(1);
  nodes.reserve(count + 1);
  for (uint32_t id = 1; id <= count; ++id) {
    const uint64_t up = source.in.Number();
    if (up == 0 || up > id) return false;
    StackNode node;
    node.parent = {id - static_cast<uint32_t>(up)};
    node.pc = source.in.Number();
    node.instance = static_cast<uint32_t>(source.in.Number());
    nodes.push_back(node);
  }
  trace->stacks = StackTable::FromNodes(std::move(nodes));
  source.stacks = count;
  Get(trace->analysis, source);
  return trace->stacks != nullptr && source.in.ok() && source.in.left() == 0;
}

}  // namespace memtrace::report::index
