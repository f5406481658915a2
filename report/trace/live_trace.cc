#include "report/trace/live_trace.h"

#include <utility>

namespace memtrace::report {
namespace {

const LiveTrace* g_live = nullptr;

class SharedSource : public ByteSource {
 public:
  explicit SharedSource(std::shared_ptr<const ByteSource> shared) : shared_(std::move(shared)) {}
  uint64_t Size() const override { return shared_->Size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    return shared_->ReadAt(offset, out);
  }
  uint64_t NextData(uint64_t offset) const override { return shared_->NextData(offset); }

 private:
  const std::shared_ptr<const ByteSource> shared_;
};

}  // namespace

LiveTrace::LiveTrace(std::string name, std::shared_ptr<const ByteSource> source, uint64_t opened_ns,
                     std::function<void()> reading_is_over)
    : name_(std::move(name)),
      source_(std::move(source)),
      opened_ns_(opened_ns),
      reading_is_over_(std::move(reading_is_over)) {
  g_live = this;
}

LiveTrace::~LiveTrace() { g_live = nullptr; }

const LiveTrace* LiveTrace::Find(const std::string& name) {
  return g_live != nullptr && g_live->name_ == name ? g_live : nullptr;
}

std::unique_ptr<ByteSource> LiveTrace::source() const {
  return std::make_unique<SharedSource>(source_);
}

}  // namespace memtrace::report
