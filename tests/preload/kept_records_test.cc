#include "preload/kept_records.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/temp_dir.h"

namespace memtrace {
namespace {

class KeptRecordsTest : public testing::Test {
 protected:
  void Create() {
    format::FileHeader header = {};
    header.trace_id = 0x1234567890abcdef;
    ASSERT_EQ(file_.Create("x.mtr", {directory_.path().c_str(), "prog", 42, 99}, header), 0);
  }
  bool Append(format::BlockKind kind, const std::string& payload, TraceFile::Keep* kept = nullptr) {
    format::BlockHeader header = {};
    header.kind = kind;
    header.thread = 1;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(payload.size());
    return file_.Append(header, payload.data(), TraceFile::Keep::kForEver, kept);
  }
  void Keep(const std::string& records, uint16_t module) {
    kept_.Append(file_, records.data(), records.size(), module);
  }
  void KeepOnce(const std::string& records) {
    kept_.AppendOnce(file_, records.data(), records.size());
  }
  // Events, with what each of `threads` does when older blocks were given up.
  void WriteEvents(int bytes, size_t threads = 1) {
    std::vector<uint32_t> begun(threads, file_.segments_begun());
    for (size_t thread = 0; bytes > 0; bytes -= 4000, thread = (thread + 1) % threads) {
      ASSERT_TRUE(Append(format::BlockKind::kEvents, std::string(4000, 'e')));
      if (begun[thread] == file_.segments_begun()) continue;
      begun[thread] = file_.segments_begun();
      kept_.TellAgain(file_);
    }
  }
  int Times(const std::string& records) const {
    std::ifstream in(file_.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    int times = 0;
    for (size_t at = 0; (at = bytes.find(records, at)) != std::string::npos; ++at) ++times;
    return times;
  }

  TempDir directory_;
  TraceFile file_;
  KeptRecords kept_;
};

TEST_F(KeptRecordsTest, StayInAFlightRecorderThatHasNoRoomForThem) {
  file_.SetLimit(1 << 20, /*keep_newest=*/true);
  Create();
  Keep("there for ever", 1);
  TraceFile::Keep kept = TraceFile::Keep::kForEver;
  while (kept == TraceFile::Keep::kForEver) {
    ASSERT_TRUE(Append(format::BlockKind::kMetadata, std::string(1000, 'm'), &kept));
  }
  // Longer than what may be left over.
  const std::string first = "the first module" + std::string(1000, '1');
  const std::string second = "the second module" + std::string(1000, '2');
  const std::string other = "of no module" + std::string(1000, '3');
  Keep(first, 7);
  Keep(second, 8);
  Keep(other, 0);
  ASSERT_TRUE(Append(format::BlockKind::kMetadata, "what is not kept" + std::string(1000, '4')));
  WriteEvents(4 << 20);
  EXPECT_EQ(Times("what is not kept"), 0);
  EXPECT_EQ(Times("there for ever"), 1);
  EXPECT_GE(Times(first), 1);
  EXPECT_GE(Times(second), 1);
  EXPECT_GE(Times(other), 1);
  kept_.Drop(7);
  WriteEvents(4 << 20);
  EXPECT_EQ(Times(first), 0);
  EXPECT_GE(Times(second), 1);
  KeepOnce("needed by nothing to come" + std::string(1000, '5'));
  WriteEvents(4 << 20);
  EXPECT_EQ(Times("needed by nothing to come"), 0);
  kept_.Forget();
  WriteEvents(4 << 20);
  EXPECT_EQ(Times(second), 0);
}

TEST_F(KeptRecordsTest, TooManyLeaveRoomForEvents) {
  file_.SetLimit(1 << 20, /*keep_newest=*/true);
  Create();
  for (uint16_t i = 1; i < 2000; ++i) Keep("a module" + std::string(1000, 'm'), i);
  WriteEvents(4 << 20);
  EXPECT_GE(Times(std::string(4000, 'e')) * 4000u, 3 * file_.segment_bytes() / 2);
}

TEST_F(KeptRecordsTest, ThatIsSoWithSeveralThreads) {
  file_.SetLimit(1 << 20, /*keep_newest=*/true);
  Create();
  for (uint16_t i = 1; i < 2000; ++i) Keep("a module" + std::string(1000, 'm'), i);
  const uint32_t begun = file_.segments_begun();
  WriteEvents(4 << 20, /*threads=*/4);
  EXPECT_GE(Times(std::string(4000, 'e')) * 4000u, 3 * file_.segment_bytes() / 2);
  EXPECT_LE(file_.segments_begun() - begun, 2 * (4 << 20) / file_.segment_bytes());
}

TEST_F(KeptRecordsTest, ComeWhenADiskThatWasFullHasRoom) {
  Create();
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full = {file_.written_bytes(), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  Keep("loaded meanwhile", 1);
  Keep("loaded and unloaded", 2);
  kept_.Drop(2);
  KeepOnce("the unload");
  kept_.TellAgain(file_);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(Times("loaded"), 0);
  for (int i = 0; i < 3; ++i) kept_.TellAgain(file_);
  EXPECT_EQ(Times("loaded meanwhile"), 1);
  EXPECT_EQ(Times("loaded and unloaded"), 1);
  EXPECT_EQ(Times("the unload"), 1);
}

TEST_F(KeptRecordsTest, ComeThoughTheirModulesAreUnloadedMeanwhile) {
  constexpr uint16_t kModules = 300;
  Create();
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full = {file_.written_bytes(), before.rlim_max};
  const auto record = [](uint16_t module) { return "module " + std::to_string(module) + "!"; };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  for (uint16_t i = 1; i <= kModules; ++i) Keep(record(i), i);
  std::thread unloads([&] {
    for (uint16_t i = 1; i <= kModules; ++i) kept_.Drop(i);
  });
  for (int i = 0; i < 100; ++i) kept_.TellAgain(file_);
  setrlimit(RLIMIT_FSIZE, &before);
  kept_.TellAgain(file_);
  unloads.join();
  kept_.TellAgain(file_);
  for (uint16_t i = 1; i <= kModules; ++i) EXPECT_GE(Times(record(i)), 1) << i;
}

}  // namespace
}  // namespace memtrace
