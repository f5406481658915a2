#include "preload/trace_reserve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "format/checksum.h"
#include "preload/process.h"
#include "preload/trace_file.h"
#include "tests/temp_dir.h"

namespace memtrace {
namespace {

namespace fs = std::filesystem;
using format::BlockHeader;
using format::BlockKind;

class TraceReserveTest : public testing::Test {
 protected:
  void SetUp() override {
    format::FileHeader header = {};
    header.trace_id = 0x1234567890abcdef;
    ASSERT_EQ(file_.Create("x.mtr", {directory_.path().c_str(), "prog", 42, 99}, header), 0);
  }

  bool Append(const std::string& payload, BlockKind kind = BlockKind::kEvents) {
    BlockHeader header = {};
    header.kind = kind;
    header.thread = 1;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(payload.size());
    return file_.Append(header, payload.data());
  }
  // Whole blocks, by payload; the first `bytes` of the file, which were read through `fd`.
  static std::vector<std::string> Blocks(int fd, uint64_t bytes) {
    std::string content(bytes, 0);
    EXPECT_GT(pread(fd, content.data(), bytes, 0), 0);
    std::vector<std::string> found;
    for (size_t at = 64; at + sizeof(BlockHeader) <= content.size(); at += 64) {
      BlockHeader header;
      memcpy(&header, &content[at], sizeof(header));
      if (header.magic != format::kBlockMagic ||
          header.header_checksum != format::HeaderChecksum(header) ||
          at + sizeof(header) + header.payload_bytes > content.size()) {
        continue;
      }
      const std::string payload = content.substr(at + sizeof(header), header.payload_bytes);
      if (header.payload_checksum == format::Checksum(payload.data(), payload.size())) {
        found.push_back(payload);
      }
    }
    return found;
  }
  void UseUpASmallOne() {
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small = before;
    small.rlim_cur = 2 << 20;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_EQ(file_.MakeReserve(), 0);
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_LE(file_.reserve().end(), 2u << 20);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(Append(std::string(60000, 'x')));
  }
  // Of the file in this process: bytes that can be written to, and all.
  std::pair<uint64_t, uint64_t> Mapped() const {
    std::ifstream maps("/proc/self/maps");
    std::pair<uint64_t, uint64_t> sums;
    for (std::string line; std::getline(maps, line);) {
      if (line.find(directory_.path()) == std::string::npos) continue;
      const uint64_t begin = std::stoull(line, nullptr, 16);
      const uint64_t bytes = std::stoull(line.substr(line.find('-') + 1), nullptr, 16) - begin;
      sums.second += bytes;
      if (line.find(" rw-s ") != std::string::npos) sums.first += bytes;
    }
    return sums;
  }

  TempDir directory_;
  TraceFile file_;
};

TEST_F(TraceReserveTest, TakesTheBlocksOfManyThreadsWithoutTheFile) {
  ASSERT_TRUE(Append("before"));
  ASSERT_EQ(file_.MakeReserve(), 0);
  EXPECT_EQ(file_.reserve().end() / TraceReserve::kBytes, 1u) << "address space only";
  const int fd = open(file_.path(), O_RDONLY);
  fs::rename(file_.path(), directory_ / "y.mtr");
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 400; ++i) {
        ASSERT_TRUE(Append(std::string(1 + (i * 37 + t) % 65000, static_cast<char>('a' + t))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> blocks = Blocks(fd, file_.written_bytes());
  EXPECT_EQ(blocks.size(), 1601u);
  for (const std::string& block : blocks) {
    if (block == "before") continue;
    EXPECT_EQ(block.find_first_not_of(block[0]), std::string::npos);
  }
  struct stat info;
  ASSERT_EQ(fstat(fd, &info), 0);
  EXPECT_LT(static_cast<uint64_t>(info.st_blocks) * 512, file_.written_bytes() + (4u << 20));
  // What is written is unmapped.
  EXPECT_LE(Mapped().first, 2 * TraceReserve::kChunkBytes);
  close(fd);
}

TEST_F(TraceReserveTest, ARingInItStaysWhatItIs) {
  ASSERT_EQ(file_.MakeReserve(), 0);
  const int fd = open(file_.path(), O_RDONLY);
  fs::remove(file_.path());
  auto* const ring = static_cast<char*>(file_.AppendRing(64 << 10, 7));
  ASSERT_NE(ring, nullptr);
  strcpy(ring, "first");
  // Its chunk becomes full, and others do.
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Append(std::string(60000, 'x')));
  EXPECT_STREQ(ring, "first");
  strcpy(ring + 5000, "second");
  std::string content(1 << 20, 0);
  ASSERT_GT(pread(fd, content.data(), content.size(), 0), 0);
  const size_t first = content.find("first");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(first % 4096, 0u);
  EXPECT_STREQ(&content[first + 5000], "second");
  close(fd);
}

TEST_F(TraceReserveTest, KeepsToTheLimits) {
  file_.SetLimit(4 << 20, /*keep_newest=*/false);
  ASSERT_EQ(file_.MakeReserve(), 0);
  EXPECT_LE(file_.reserve().end(), (4u << 20) + TraceReserve::kLastWordsBytes);
  int written = 0;
  while (Append(std::string(60000, 'x'))) ++written;
  EXPECT_GT(written, 40);
  EXPECT_TRUE(Append("the end", BlockKind::kMetadata));
}

TEST_F(TraceReserveTest, WhenItIsUsedUpTheFileIsOpenedAgain) {
  UseUpASmallOne();
  fs::rename(file_.path(), directory_ / "y.mtr");
  EXPECT_FALSE(Append(std::string(60000, 'x')));
  EXPECT_EQ(file_.last_stop(), format::RecordingStop::kReserveUsedUp);
}

TEST_F(TraceReserveTest, WhereTheSizeLimitMadeItAsSmallAsItIsThatIsTheReason) {
  file_.SetLimit(3 << 20, /*keep_newest=*/false);
  EXPECT_EQ(file_.MakeReserve(), 0);
  EXPECT_LE(file_.reserve().end(), (3u << 20) + TraceReserve::kLastWordsBytes);
  fs::rename(file_.path(), directory_ / "y.mtr");
  for (int i = 0; i < 100 && Append(std::string(60000, 'x')); ++i) continue;
  EXPECT_EQ(file_.last_stop(), format::RecordingStop::kMaxBytes);
}

// kReserveUsedUp would end the recording (SpoolThread) for what passes in the next moment.
TEST_F(TraceReserveTest, WhenItIsUsedUpAndThereIsNoDescriptorTheReasonIsThat) {
  UseUpASmallOne();
  const uint64_t written = file_.written_bytes();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  g_process.must_not_clone.store(true);  // there is no table of our own either
  EXPECT_FALSE(Append(std::string(60000, 'x')));
  EXPECT_FALSE(Append("records", BlockKind::kMetadata));
  g_process.must_not_clone.store(false);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(file_.last_stop(), format::RecordingStop::kOpenFailed);
  EXPECT_EQ(file_.last_error(), EMFILE);
  EXPECT_EQ(file_.written_bytes(), written) << "a gap";
  EXPECT_TRUE(file_.TakeLostRecords());
  EXPECT_TRUE(Append(std::string(60000, 'x')));
}

TEST_F(TraceReserveTest, WhenItIsUsedUpAndThereIsNeverADescriptorAgainItIsOver) {
  UseUpASmallOne();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    _exit(!Append(std::string(60000, 'x')) &&
                  file_.last_stop() == format::RecordingStop::kReserveUsedUp
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Else the newest events of each thread that begins then would not survive SIGKILL.
TEST_F(TraceReserveTest, WhenItIsUsedUpARingIsInTheFileThatIsOpenedAgain) {
  UseUpASmallOne();
  auto* const ring = static_cast<char*>(file_.AppendRing(64 << 10, 7));
  ASSERT_NE(ring, nullptr);
  EXPECT_FALSE(file_.reserve().Contains(ring));
  strcpy(ring, "the ring");
  std::ifstream in(file_.path(), std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  EXPECT_NE(content.str().find("the ring"), std::string::npos);
  EXPECT_TRUE(Append(std::string(60000, 'x')));
  file_.ReleaseRing(ring, 64 << 10);
}

// A thread with a small ring asks for a larger one whenever that is full.
TEST_F(TraceReserveTest, WhenItIsUsedUpARingThatIsNotToBeHadLeavesNoGap) {
  UseUpASmallOne();
  const uint64_t written = file_.written_bytes();
  fs::rename(file_.path(), directory_ / "y.mtr");
  EXPECT_EQ(file_.AppendRing(64 << 10, 7), nullptr);
  EXPECT_EQ(file_.written_bytes(), written);
  EXPECT_EQ(file_.last_stop(), format::RecordingStop::kOpenFailed)
      << "another would end the recording, for want of a ring";
}

TEST_F(TraceReserveTest, GivesAddressSpaceBack) {
  ASSERT_EQ(file_.MakeReserve(), 0);
  ASSERT_TRUE(Append("before"));
  EXPECT_GT(Mapped().second, uint64_t{8} << 30);
  file_.LimitAddressSpace(64 << 20);
  EXPECT_LE(Mapped().second, 5u << 20);
  fs::rename(file_.path(), directory_ / "y.mtr");
  EXPECT_TRUE(Append(std::string(60000, 'x')));
}

}  // namespace
}  // namespace memtrace
