#include "report/pressure/pressure_records.h"

#include <algorithm>
#include <array>

#include "format/record_encoder.h"
#include "format/varint.h"

namespace memtrace::report::pressure {
namespace {

constexpr size_t kSamplesARecord = 64;
constexpr size_t kLongestNote = 1000;

void Append(const format::RecordEncoder& encoder, std::vector<uint8_t>* records) {
  records->insert(records->end(), encoder.data(), encoder.data() + encoder.size());
}

}  // namespace

void AppendSamples(std::span<const PressureSample> samples, std::vector<uint8_t>* records) {
  // Names and numbers at their longest.
  std::vector<uint8_t> buffer(kColumns * 64 +
                              kSamplesARecord * (kColumns + 1) * format::kMaxVarintBytes);
  for (; !samples.empty(); samples = samples.subspan(std::min(samples.size(), kSamplesARecord))) {
    format::RecordEncoder encoder(buffer.data(), buffer.size());
    encoder.Begin(format::RecordTag::kPressure);
    encoder.Number(kColumns);
    for (const absl::string_view name : kColumnNames) encoder.Bytes({name.data(), name.size()});
    uint64_t time = 0;
    std::array<uint64_t, kColumns> last{};
    for (const PressureSample& sample : samples.first(std::min(samples.size(), kSamplesARecord))) {
      encoder.Number(sample.monotonic_ns - time);
      time = sample.monotonic_ns;
      for (size_t i = 0; i < kColumns; ++i) {
        const uint64_t value = sample.values[i];
        if (value == kNotKnown) {
          encoder.Number(0);
          continue;
        }
        encoder.Number(1 + format::ZigZag(value - last[i]));
        last[i] = value;
      }
    }
    encoder.End();
    Append(encoder, records);
  }
}

void AppendNote(absl::string_view sentence, std::vector<uint8_t>* records) {
  uint8_t buffer[kLongestNote + 64];
  format::RecordEncoder encoder(buffer, sizeof(buffer));
  encoder.Begin(format::RecordTag::kPressureNote);
  encoder.Bytes({sentence.data(), std::min(sentence.size(), kLongestNote)});
  encoder.End();
  Append(encoder, records);
}

void AppendKill(const Kill& kill, std::vector<uint8_t>* records) {
  std::vector<uint8_t> buffer(kill.why.size() + kill.cgroup.size() + 128);
  format::RecordEncoder encoder(buffer.data(), buffer.size());
  encoder.Begin(format::RecordTag::kKillVerdict);
  encoder.Number(static_cast<uint64_t>(kill.verdict));
  encoder.Bytes(kill.why);
  encoder.Bytes(kill.cgroup);
  encoder.Number(kill.limit_bytes);
  encoder.End();
  Append(encoder, records);
}

}  // namespace memtrace::report::pressure
