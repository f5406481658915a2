// Values of any type the reporter keeps, in packed bytes and back: numbers, texts, containers, and
// aggregates member by member (fields.h).
//
// Reading takes nothing on trust: containers grow as far as there are bytes for them, and
// a StackId is one of those that there are.

#ifndef MEMTRACE_REPORT_STATE_PACKED_VALUES_H_
#define MEMTRACE_REPORT_STATE_PACKED_VALUES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "report/base/on_demand.h"
#include "report/base/strong_id.h"
#include "report/state/fields.h"
#include "report/state/packed_bytes.h"

namespace memtrace::report::index {

// These tell which kind of type a member has, for packing and for unpacking.
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsInlinedVector : std::false_type {};
template <typename T, size_t N>
struct IsInlinedVector<absl::InlinedVector<T, N>> : std::true_type {};
template <typename T>
struct IsArray : std::false_type {};
template <typename T, size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsOnDemand : std::false_type {};
template <typename T>
struct IsOnDemand<OnDemand<T>> : std::true_type {};
template <typename T>
struct IsPair : std::false_type {};
template <typename A, typename B>
struct IsPair<std::pair<A, B>> : std::true_type {};
template <typename T>
struct IsMap : std::false_type {};
template <typename K, typename V>
struct IsMap<std::map<K, V>> : std::true_type {};
template <typename K, typename V>
struct IsMap<std::multimap<K, V>> : std::true_type {};
template <typename K, typename V>
struct IsMap<absl::flat_hash_map<K, V>> : std::true_type {};
template <typename T>
struct IsSet : std::false_type {};
template <typename K>
struct IsSet<std::set<K>> : std::true_type {};
template <typename K>
struct IsSet<absl::btree_set<K>> : std::true_type {};
template <typename K>
struct IsSet<absl::flat_hash_set<K>> : std::true_type {};

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
  } else if constexpr (IsVector<T>::value || IsInlinedVector<T>::value) {
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
  } else if constexpr (IsOnDemand<T>::value) {
    out.Number(value.made() ? 1 : 0);
    if (value.made()) Put(*value, out);
  } else if constexpr (IsOptional<T>::value) {
    out.Number(value.has_value() ? 1 : 0);
    if (value.has_value()) Put(*value, out);
  } else if constexpr (IsPair<T>::value) {
    Put(value.first, out);
    Put(value.second, out);
  } else if constexpr (IsMap<T>::value) {
    out.Number(value.size());
    for (const auto& [key, mapped] : value) {
      Put(key, out);
      Put(mapped, out);
    }
  } else if constexpr (IsSet<T>::value) {
    out.Number(value.size());
    for (const auto& each : value) Put(each, out);
  } else {
    ForEachField(value, [&](const auto& field) { Put(field, out); });
  }
}

struct PackedSource {
  PackedReader in;
  size_t stacks = 0;  // there are ids up to that
};

// No value of the type takes fewer: each member takes one.
template <typename T>
constexpr size_t kLeastBytes = 1;
template <typename T>
  requires std::is_class_v<T> && std::is_aggregate_v<T> && (!IsArray<T>::value)
constexpr size_t kLeastBytes<T> = FieldCount<T>();

template <typename T>
void Get(T& value, PackedSource& source) {
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
    if (value.value > source.stacks) {
      value = {};
      in.Fail();
    }
  } else if constexpr (IsVector<T>::value) {
    const size_t count = in.Count();
    value.clear();
    value.reserve(std::min(count, in.left() / kLeastBytes<typename T::value_type>));
    if constexpr (std::is_same_v<T, std::vector<bool>>) {
      for (size_t i = 0; i < count && in.ok(); ++i) value.push_back(in.Number() != 0);
    } else {
      for (size_t i = 0; i < count && in.ok(); ++i) Get(value.emplace_back(), source);
    }
  } else if constexpr (IsInlinedVector<T>::value) {
    value.clear();
    const size_t count = in.Count();
    if (count > in.left() / kLeastBytes<typename T::value_type>) {
      in.Fail();
      return;
    }
    value.resize(count);
    for (auto& each : value) Get(each, source);
  } else if constexpr (IsArray<T>::value) {
    const size_t used = in.Count();
    if (used > value.size()) {
      in.Fail();
      return;
    }
    for (size_t i = 0; i < used; ++i) Get(value[i], source);
  } else if constexpr (IsOptional<T>::value) {
    if (in.Number() != 0) Get(value.emplace(), source);
  } else if constexpr (IsOnDemand<T>::value) {
    value = {};
    if (in.Number() != 0) Get(value.Make(), source);
  } else if constexpr (IsPair<T>::value) {
    Get(value.first, source);
    Get(value.second, source);
  } else if constexpr (IsMap<T>::value) {
    value.clear();
    for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
      typename T::key_type key{};
      typename T::mapped_type mapped{};
      Get(key, source);
      Get(mapped, source);
      value.emplace(std::move(key), std::move(mapped));
    }
  } else if constexpr (IsSet<T>::value) {
    value.clear();
    for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
      typename T::key_type key{};
      Get(key, source);
      value.insert(std::move(key));
    }
  } else {
    ForEachField(value, [&](auto& field) { Get(field, source); });
  }
}

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_STATE_PACKED_VALUES_H_
