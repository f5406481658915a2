// The members of an aggregate, one after the other, whatever they are: so that what is written
// of an Analysis and read back cannot lack a member that somebody added.
//
// For aggregates without base classes, bit-fields and C arrays, of at most 48 members; another
// type does not compile. (Boost.PFR does the same for more kinds of types; Debian 12 has it in
// a package of all of Boost.)

#ifndef MEMTRACE_REPORT_STATE_FIELDS_H_
#define MEMTRACE_REPORT_STATE_FIELDS_H_

#include <cstddef>
#include <type_traits>
#include <utility>

namespace memtrace::report::index {

// Converts to any member in the braces of an aggregate; never called.
struct AnyField {
  template <typename T>
  operator T() const;
};

template <typename T, size_t... I>
constexpr bool TakesFields(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyField{})...}; };
}

template <typename T, size_t kFields = 0>
constexpr size_t FieldCount() {
  static_assert(std::is_aggregate_v<T>);
  if constexpr (TakesFields<T>(std::make_index_sequence<kFields + 1>())) {
    return FieldCount<T, kFields + 1>();
  } else {
    return kFields;
  }
}

#define MEMTRACE_FIELDS_1 f1
#define MEMTRACE_FIELDS_2 MEMTRACE_FIELDS_1, f2
#define MEMTRACE_FIELDS_3 MEMTRACE_FIELDS_2, f3
#define MEMTRACE_FIELDS_4 MEMTRACE_FIELDS_3, f4
#define MEMTRACE_FIELDS_5 MEMTRACE_FIELDS_4, f5
#define MEMTRACE_FIELDS_6 MEMTRACE_FIELDS_5, f6
#define MEMTRACE_FIELDS_7 MEMTRACE_FIELDS_6, f7
#define MEMTRACE_FIELDS_8 MEMTRACE_FIELDS_7, f8
#define MEMTRACE_FIELDS_9 MEMTRACE_FIELDS_8, f9
#define MEMTRACE_FIELDS_10 MEMTRACE_FIELDS_9, f10
#define MEMTRACE_FIELDS_11 MEMTRACE_FIELDS_10, f11
#define MEMTRACE_FIELDS_12 MEMTRACE_FIELDS_11, f12
#define MEMTRACE_FIELDS_13 MEMTRACE_FIELDS_12, f13
#define MEMTRACE_FIELDS_14 MEMTRACE_FIELDS_13, f14
#define MEMTRACE_FIELDS_15 MEMTRACE_FIELDS_14, f15
#define MEMTRACE_FIELDS_16 MEMTRACE_FIELDS_15, f16
#define MEMTRACE_FIELDS_17 MEMTRACE_FIELDS_16, f17
#define MEMTRACE_FIELDS_18 MEMTRACE_FIELDS_17, f18
#define MEMTRACE_FIELDS_19 MEMTRACE_FIELDS_18, f19
#define MEMTRACE_FIELDS_20 MEMTRACE_FIELDS_19, f20
#define MEMTRACE_FIELDS_21 MEMTRACE_FIELDS_20, f21
#define MEMTRACE_FIELDS_22 MEMTRACE_FIELDS_21, f22
#define MEMTRACE_FIELDS_23 MEMTRACE_FIELDS_22, f23
#define MEMTRACE_FIELDS_24 MEMTRACE_FIELDS_23, f24
#define MEMTRACE_FIELDS_25 MEMTRACE_FIELDS_24, f25
#define MEMTRACE_FIELDS_26 MEMTRACE_FIELDS_25, f26
#define MEMTRACE_FIELDS_27 MEMTRACE_FIELDS_26, f27
#define MEMTRACE_FIELDS_28 MEMTRACE_FIELDS_27, f28
#define MEMTRACE_FIELDS_29 MEMTRACE_FIELDS_28, f29
#define MEMTRACE_FIELDS_30 MEMTRACE_FIELDS_29, f30
#define MEMTRACE_FIELDS_31 MEMTRACE_FIELDS_30, f31
#define MEMTRACE_FIELDS_32 MEMTRACE_FIELDS_31, f32
#define MEMTRACE_FIELDS_33 MEMTRACE_FIELDS_32, f33
#define MEMTRACE_FIELDS_34 MEMTRACE_FIELDS_33, f34
#define MEMTRACE_FIELDS_35 MEMTRACE_FIELDS_34, f35
#define MEMTRACE_FIELDS_36 MEMTRACE_FIELDS_35, f36
#define MEMTRACE_FIELDS_37 MEMTRACE_FIELDS_36, f37
#define MEMTRACE_FIELDS_38 MEMTRACE_FIELDS_37, f38
#define MEMTRACE_FIELDS_39 MEMTRACE_FIELDS_38, f39
#define MEMTRACE_FIELDS_40 MEMTRACE_FIELDS_39, f40
#define MEMTRACE_FIELDS_41 MEMTRACE_FIELDS_40, f41
#define MEMTRACE_FIELDS_42 MEMTRACE_FIELDS_41, f42
#define MEMTRACE_FIELDS_43 MEMTRACE_FIELDS_42, f43
#define MEMTRACE_FIELDS_44 MEMTRACE_FIELDS_43, f44
#define MEMTRACE_FIELDS_45 MEMTRACE_FIELDS_44, f45
#define MEMTRACE_FIELDS_46 MEMTRACE_FIELDS_45, f46
#define MEMTRACE_FIELDS_47 MEMTRACE_FIELDS_46, f47
#define MEMTRACE_FIELDS_48 MEMTRACE_FIELDS_47, f48

// Calls `function` with each member of `object`.
template <typename T, typename Function>
void ForEachField(T& object, Function&& function) {
  constexpr size_t kCount = FieldCount<std::remove_const_t<T>>();
  static_assert(kCount >= 1 && kCount <= 48, "one more line below");
  const auto visit = [&](auto&... fields) { (function(fields), ...); };
#define MEMTRACE_FIELDS_CASE(n)           \
  if constexpr (kCount == n) {            \
    auto& [MEMTRACE_FIELDS_##n] = object; \
    visit(MEMTRACE_FIELDS_##n);           \
  }
  MEMTRACE_FIELDS_CASE(1)
  MEMTRACE_FIELDS_CASE(2) MEMTRACE_FIELDS_CASE(3) MEMTRACE_FIELDS_CASE(4) MEMTRACE_FIELDS_CASE(5)
      MEMTRACE_FIELDS_CASE(6) MEMTRACE_FIELDS_CASE(7) MEMTRACE_FIELDS_CASE(8) MEMTRACE_FIELDS_CASE(
          9) MEMTRACE_FIELDS_CASE(10) MEMTRACE_FIELDS_CASE(11) MEMTRACE_FIELDS_CASE(12)
          MEMTRACE_FIELDS_CASE(13) MEMTRACE_FIELDS_CASE(14) MEMTRACE_FIELDS_CASE(
              15) MEMTRACE_FIELDS_CASE(16) MEMTRACE_FIELDS_CASE(17) MEMTRACE_FIELDS_CASE(18)
              MEMTRACE_FIELDS_CASE(19) MEMTRACE_FIELDS_CASE(20) MEMTRACE_FIELDS_CASE(21)
                  MEMTRACE_FIELDS_CASE(22) MEMTRACE_FIELDS_CASE(23) MEMTRACE_FIELDS_CASE(24)
                      MEMTRACE_FIELDS_CASE(25) MEMTRACE_FIELDS_CASE(26) MEMTRACE_FIELDS_CASE(27)
                          MEMTRACE_FIELDS_CASE(28) MEMTRACE_FIELDS_CASE(29) MEMTRACE_FIELDS_CASE(30)
                              MEMTRACE_FIELDS_CASE(31) MEMTRACE_FIELDS_CASE(32)
                                  MEMTRACE_FIELDS_CASE(33) MEMTRACE_FIELDS_CASE(34)
                                      MEMTRACE_FIELDS_CASE(35) MEMTRACE_FIELDS_CASE(36)
                                          MEMTRACE_FIELDS_CASE(37) MEMTRACE_FIELDS_CASE(38)
                                              MEMTRACE_FIELDS_CASE(39) MEMTRACE_FIELDS_CASE(40)
                                                  MEMTRACE_FIELDS_CASE(41) MEMTRACE_FIELDS_CASE(42)
                                                      MEMTRACE_FIELDS_CASE(43)
                                                          MEMTRACE_FIELDS_CASE(44)
                                                              MEMTRACE_FIELDS_CASE(45)
                                                                  MEMTRACE_FIELDS_CASE(46)
                                                                      MEMTRACE_FIELDS_CASE(47)
                                                                          MEMTRACE_FIELDS_CASE(48)
#undef MEMTRACE_FIELDS_CASE
}

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_STATE_FIELDS_H_
