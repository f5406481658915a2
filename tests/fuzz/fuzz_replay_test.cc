// The fuzzer's entry over its corpus without a fuzzer: every seed as it is, cut at
// every place, and with bits flipped. A seed that once broke the reader stays here
// and keeps it from breaking again.

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "format/event_words.h"
#include "format/record_encoder.h"
#include "report/trace/block_scanner.h"
#include "tests/fuzz/trace_entry.h"
#include "tests/report/trace_builder.h"

// In the builds with UBSan its findings fail the test.
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1"; }

namespace memtrace::report {
namespace {

using Clock = std::chrono::steady_clock;

// Of processor time for one input. Most take a millisecond; with sanitizers and what guides the fuzzer in
// the code all take some ten times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr auto kLongest = std::chrono::seconds(60);
#else
constexpr auto kLongest = std::chrono::seconds(10);
#endif
// For all variants of a seed; what is left out then is said.
constexpr auto kPerSeed = std::chrono::seconds(3);
constexpr int kFlips = 400;

struct Seed {
  std::string name;
  std::string bytes;
};

std::vector<Seed> Corpus() {
  std::vector<Seed> seeds;
  for (const auto& entry :
       std::filesystem::directory_iterator(MEMTRACE_SOURCE_DIR "/tests/fuzz/corpus")) {
    std::ifstream in(entry.path(), std::ios::binary);
    seeds.push_back({entry.path().filename(),
                     {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}});
  }
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.name < b.name; });
  return seeds;
}

// Of this process: what the machine does besides does not count.
std::chrono::nanoseconds ProcessorTime() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void Replay(const std::string& bytes, const std::string& what) {
  SCOPED_TRACE(what);
  const auto begin = ProcessorTime();
  FuzzTrace(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  EXPECT_LT(ProcessorTime() - begin, kLongest) << what;
}

TEST(FuzzReplayTest, TheCorpusHasSeedsThatTheReaderReads) {
  size_t read = 0;
  const std::vector<Seed> seeds = Corpus();
  for (const Seed& seed : seeds) read += ReadEverything(seed.bytes) > 0;
  EXPECT_GE(read, 5u) << "of " << seeds.size();
}

TEST(FuzzReplayTest, RepairedChecksumsLetAChangedTraceIn) {
  for (Seed seed : Corpus()) {
    if (ReadEverything(seed.bytes) == 0) continue;  // not one of those that are whole
    seed.bytes[32] ^= 1;  // the pid, in the file header
    EXPECT_EQ(ReadEverything(seed.bytes), 0u) << seed.name;
    RepairChecksums({reinterpret_cast<uint8_t*>(seed.bytes.data()), seed.bytes.size()});
    EXPECT_GT(ReadEverything(seed.bytes), 0u) << seed.name;
  }
}

TEST(FuzzReplayTest, EverySeedIsReadAsItIs) {
  for (const Seed& seed : Corpus()) Replay(seed.bytes, seed.name);
}

TEST(FuzzReplayTest, EverySeedIsReadWhereverItIsCut) {
  for (const Seed& seed : Corpus()) {
    const auto begin = Clock::now();
    // In an order that reaches all of a seed evenly, should the time run out.
    std::vector<size_t> lengths(seed.bytes.size());
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = i;
    std::shuffle(lengths.begin(), lengths.end(), std::minstd_rand(1));
    size_t done = 0;
    for (const size_t length : lengths) {
      if (done >= 20 && Clock::now() - begin > kPerSeed) break;
      Replay(seed.bytes.substr(0, length), seed.name + " cut to " + std::to_string(length));
      ++done;
    }
    if (done < lengths.size()) {
      printf("%s: %zu of %zu cuts in the time\n", seed.name.c_str(), done, lengths.size());
    }
    EXPECT_GE(done, std::min<size_t>(lengths.size(), 20)) << seed.name;
  }
}

TEST(FuzzReplayTest, EverySeedIsReadWithFlippedBits) {
  for (const Seed& seed : Corpus()) {
    if (seed.bytes.empty()) continue;
    const auto begin = Clock::now();
    std::minstd_rand random(20240229);
    for (int i = 0; i < kFlips && Clock::now() - begin < kPerSeed; ++i) {
      std::string bytes = seed.bytes;
      std::string what = seed.name + " with bits flipped:";
      for (int flips = 1 + i % 4; flips > 0; --flips) {
        const size_t bit = random() % (bytes.size() * 8);
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
        what += " " + std::to_string(bit);
      }
      Replay(bytes, what);
    }
  }
}

// A megabyte of one thing: where the reader's time or memory would grow with its
// square, this takes half a minute or gigabytes.
std::string Megabyte(format::BlockKind kind, const std::string& part, bool block_each) {
  std::string trace = TraceBuilder().bytes(), payload;
  constexpr size_t kBytes = kMaxFuzzBytes - 4096;
  const auto add = [&](uint32_t thread) {
    format::BlockHeader header{};
    header.magic = format::kBlockMagic;
    header.kind = kind;
    header.thread = thread;
    header.sequence = 1;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(payload.size());
    trace.append(reinterpret_cast<const char*>(&header), sizeof(header));
    trace += payload;
    trace.resize(AlignToBlock(trace.size()));
    payload.clear();
  };
  for (uint32_t i = 1; trace.size() + payload.size() < kBytes; ++i) {
    if (block_each) {
      payload = part;
      add(i);
      continue;
    }
    uint8_t buffer[64];
    format::RecordEncoder record(buffer, sizeof(buffer));
    record.Begin(part == "counter" ? format::RecordTag::kCounter : format::RecordTag::kModule);
    if (part == "counter") {
      record.Bytes(std::to_string(i));
    } else {
      record.Number(i);
    }
    record.End();
    if (part == "module") {
      record.Begin(format::RecordTag::kModuleUnload);
      record.Number(i);
      record.End();
    }
    payload.append(reinterpret_cast<const char*>(buffer), record.size());
  }
  if (!payload.empty()) add(0);
  return trace;
}

TEST(FuzzReplayTest, AMegabyteOfCountersTakesNoTime) {
  Replay(Megabyte(format::BlockKind::kMetadata, "counter", false), "counters");
}
TEST(FuzzReplayTest, AMegabyteOfModulesTakesNoTime) {
  Replay(Megabyte(format::BlockKind::kMetadata, "module", false), "modules");
}
TEST(FuzzReplayTest, AMegabyteOfThreadsTakesLittle) {
  Replay(Megabyte(format::BlockKind::kEvents, "", true), "threads without events");
  const uint64_t free = format::Head(format::EventKind::kFree, 0x10010);
  Replay(Megabyte(format::BlockKind::kEvents,
                  std::string(reinterpret_cast<const char*>(&free), sizeof(free)), true),
         "threads that free one address");
  const uint64_t node[] = {format::PathHead(0, 0xffffff, 1), format::NodeWord(0x401000, 0)};
  Replay(Megabyte(format::BlockKind::kEvents,
                  std::string(reinterpret_cast<const char*>(node), sizeof(node)), true),
         "threads with the highest slot");
}

}  // namespace
}  // namespace memtrace::report
