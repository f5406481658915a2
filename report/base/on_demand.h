// OnDemand<T>: a value that few of many objects have, apart from them: nothing but a pointer where
// it is as a new one. Copies are of the value.

#ifndef MEMTRACE_REPORT_BASE_ON_DEMAND_H_
#define MEMTRACE_REPORT_BASE_ON_DEMAND_H_

#include <memory>

namespace memtrace::report {

template <typename T>
class OnDemand {
 public:
  OnDemand() = default;
  OnDemand(const OnDemand& other) : value_(other.Copied()) {}
  OnDemand(OnDemand&&) = default;
  OnDemand& operator=(const OnDemand& other) {
    if (this != &other) value_ = other.Copied();
    return *this;
  }
  OnDemand& operator=(OnDemand&&) = default;

  bool made() const { return value_ != nullptr; }
  T& Make() {
    if (value_ == nullptr) value_ = std::make_unique<T>();
    return *value_;
  }

  operator const T&() const { return **this; }  // NOLINT: it is one
  const T& operator*() const {
    static const T kNew{};
    return value_ == nullptr ? kNew : *value_;
  }
  const T* operator->() const { return &**this; }

 private:
  std::unique_ptr<T> Copied() const {
    return value_ == nullptr ? nullptr : std::make_unique<T>(*value_);
  }

  std::unique_ptr<T> value_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_ON_DEMAND_H_
