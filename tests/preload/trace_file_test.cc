#include "preload/trace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "format/checksum.h"
#include "tests/temp_dir.h"

namespace memtrace {
namespace {

namespace fs = std::filesystem;
using format::BlockHeader;
using format::BlockKind;

class TraceFileTest : public testing::Test {
 protected:

  long Create(TraceFile& file, const char* pattern) {
    format::FileHeader header = {};
    header.trace_id = 0x1234567890abcdef;
    return file.Create(pattern, {directory_.path().c_str(), "prog", 42, 99}, header);
  }
  static bool Append(TraceFile& file, const std::string& payload, uint32_t thread = 1) {
    BlockHeader header = {};
    header.kind = BlockKind::kEvents;
    header.thread = thread;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(payload.size());
    return file.Append(header, payload.data());
  }
  static std::string Content(const TraceFile& file) {
    std::ifstream in(file.path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Every block that is whole, by payload.
  static std::vector<std::string> Blocks(const TraceFile& file) {
    const std::string bytes = Content(file);
    std::vector<std::string> found;
    for (size_t at = 64; at + sizeof(BlockHeader) <= bytes.size(); at += 64) {
      BlockHeader header;
      memcpy(&header, &bytes[at], sizeof(header));
      if (header.magic != format::kBlockMagic ||
          header.header_checksum != format::HeaderChecksum(header) ||
          at + sizeof(header) + header.payload_bytes > bytes.size()) {
        continue;
      }
      const std::string payload = bytes.substr(at + sizeof(header), header.payload_bytes);
      if (header.payload_checksum == format::Checksum(payload.data(), payload.size())) {
        found.push_back(payload);
      }
    }
    return found;
  }

  TempDir directory_;
};

TEST_F(TraceFileTest, ExpandsTheNameAndIsPrivate) {
  TraceFile file;
  ASSERT_EQ(Create(file, "a.%e.%p.%t.100%%.mtr"), 0);
  EXPECT_EQ(file.path(), directory_ / "a.prog.42.99.100%.mtr");
  struct stat info;
  ASSERT_EQ(stat(file.path(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(TraceFileTest, NeverTakesANameThatExists) {
  TraceFile first, second, third;
  ASSERT_EQ(Create(first, "x.mtr"), 0);
  fs::create_symlink("/etc/passwd", directory_ / "x.1.mtr");
  ASSERT_EQ(Create(second, "x.mtr"), 0);
  EXPECT_EQ(second.path(), directory_ / "x.2.mtr");
  ASSERT_EQ(Create(third, "x.mtr"), 0);
  EXPECT_EQ(third.path(), directory_ / "x.3.mtr");
}

// A build of thousands of processes and one name: the numbers stay without holes, whatever of them is
// there already.
TEST_F(TraceFileTest, NumbersComeOneAfterAnother) {
  for (const int there : {0, 7, 8, 9, 15, 16, 17, 63, 100, 1000}) {
    SCOPED_TRACE(there);
    const fs::path under = directory_ / std::to_string(there);
    fs::create_directory(under);
    std::ofstream(under / "x.mtr");
    for (int i = 1; i <= there; ++i) std::ofstream(under / ("x." + std::to_string(i) + ".mtr"));
    for (int i = 1; i <= 3; ++i) {
      TraceFile file;
      ASSERT_EQ(Create(file, (under / "x.mtr").c_str()), 0);
      EXPECT_EQ(file.path(), under / ("x." + std::to_string(there + i) + ".mtr"));
    }
  }
}

TEST_F(TraceFileTest, ADirectoryHasTheUsualNameInIt) {
  fs::create_directory(directory_ / "traces.d");
  fs::create_symlink("traces.d", directory_ / "link");
  for (const auto& [pattern, name] : {std::pair("traces.d", "traces.d/memtrace.prog.42.mtr"),
                                      std::pair("traces.d/", "traces.d/memtrace.prog.42.1.mtr"),
                                      std::pair("link", "link/memtrace.prog.42.2.mtr")}) {
    TraceFile file;
    ASSERT_EQ(Create(file, pattern), 0) << pattern;
    EXPECT_EQ(file.path(), directory_ / name);
    EXPECT_TRUE(fs::exists(file.path()));
  }
  TraceFile file;
  EXPECT_EQ(Create(file, "nothing/"), -EISDIR);
}

TEST_F(TraceFileTest, TellsWhyItCannotBeCreated) {
  TraceFile file;
  EXPECT_EQ(Create(file, "no/such/directory/x.mtr"), -ENOENT);
  const std::string long_name(5000, 'a');
  EXPECT_EQ(Create(file, long_name.c_str()), -ENAMETOOLONG);
}

TEST_F(TraceFileTest, NoFileIsMadeBesideADeviceOrAPipe) {
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/null", directory_ / "null");
  for (const char* const name : {"pipe", "null", "/dev/null"}) {
    TraceFile file;
    EXPECT_EQ(Create(file, name), -EMEDIUMTYPE) << name;
  }
  EXPECT_FALSE(fs::exists("/dev/null.1"));
  EXPECT_FALSE(fs::exists(directory_ / "pipe.1"));
  EXPECT_FALSE(fs::exists(directory_ / "null.1"));
  fs::create_symlink("nothing", directory_ / "link");
  TraceFile file;
  EXPECT_EQ(Create(file, "link"), 0) << "a link to nothing is no device";
  EXPECT_EQ(file.path(), directory_ / "link.1");
}

TEST_F(TraceFileTest, KeepsTheBlocksOfManyThreadsApart) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&file, t] {
      for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(Append(file, std::string(1 + (i * 37 + t) % 500, static_cast<char>('a' + t))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> blocks = Blocks(file);
  EXPECT_EQ(blocks.size(), 800u);
  for (const std::string& block : blocks) {
    EXPECT_EQ(block.find_first_not_of(block[0]), std::string::npos);
  }
}

TEST_F(TraceFileTest, WritesNothingIntoAFileThatWasReplaced) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  ASSERT_TRUE(Append(file, "mine"));
  fs::remove(file.path());
  EXPECT_FALSE(Append(file, "gone"));
  EXPECT_EQ(file.last_stop(), format::RecordingStop::kOpenFailed);
  std::ofstream(file.path()) << "somebody else's";
  EXPECT_FALSE(Append(file, "again"));
  EXPECT_EQ(file.last_stop(), format::RecordingStop::kFileReplaced);
  EXPECT_EQ(Content(file), "somebody else's");
}

TEST_F(TraceFileTest, StopsAtItsLimit) {
  TraceFile file;
  file.SetLimit(10'300, /*keep_newest=*/false);
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  
  int written = 0;
  while (Append(file, std::string(1000, 'x'))) ++written;
  EXPECT_EQ(written, 9);
  EXPECT_EQ(file.last_stop(), format::RecordingStop::kMaxBytes);
  EXPECT_LE(fs::file_size(file.path()), 10'300u);
}

// The kernel answers a write past RLIMIT_FSIZE with a signal that would kill the
// program; it must never be asked.
TEST_F(TraceFileTest, StaysBelowTheFileSizeLimitWithoutASignal) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 5000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  static volatile sig_atomic_t signals = 0;
  signals = 0;
  auto* old = signal(SIGXFSZ, [](int) { signals = signals + 1; });
  int written = 0;
  while (written < 100 && Append(file, std::string(1000, 'x'))) ++written;
  EXPECT_EQ(file.AppendRing(64 << 10, 1), nullptr);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old);
  EXPECT_EQ(signals, 0);
  EXPECT_LT(written, 6);
  EXPECT_EQ(file.last_stop(), format::RecordingStop::kWriteFailed);
  EXPECT_EQ(file.last_error(), EFBIG);
  EXPECT_EQ(Blocks(file).size(), static_cast<size_t>(written)) << "what was written is whole";
  EXPECT_TRUE(Append(file, "later")) << "room again: recording goes on behind the gap";
}

TEST_F(TraceFileTest, ARingIsPageAlignedSharedAndInTheFile) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  ASSERT_TRUE(Append(file, "before"));
  auto* ring = static_cast<char*>(file.AppendRing(64 << 10, 9));
  ASSERT_NE(ring, nullptr);
  ASSERT_TRUE(Append(file, "after"));
  memcpy(ring + 5000, "in the ring", 11);
  const std::string bytes = Content(file);
  const size_t at = bytes.find("in the ring");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ((at - 5000) % format::kRingAlignment, 0u);
  EXPECT_EQ(Blocks(file), (std::vector<std::string>{"before", "after"}));
  munmap(ring, 64 << 10);
}

// A thread without a ring asks for one with each event, one with a small ring with each block.
TEST_F(TraceFileTest, ARingThatCannotBeMappedTakesNoSpace) {
  for (const bool keep_newest : {false, true}) {
    SCOPED_TRACE(keep_newest);
    TraceFile file;
    file.SetLimit(keep_newest ? 4 << 20 : 0, keep_newest);
    ASSERT_EQ(Create(file, "x.mtr"), 0);
    void* const first = file.AppendRing(64 << 10, 1);
    ASSERT_NE(first, nullptr);
    const uint64_t before = file.written_bytes();
    const uintmax_t size = fs::file_size(file.path());
    rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    const rlimit none = {1 << 20, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    int mapped = 0;
    for (int i = 0; i < 100; ++i) mapped += file.AppendRing(64 << 10, 2) != nullptr;
    setrlimit(RLIMIT_AS, &limit);
    EXPECT_EQ(mapped, 0);
    EXPECT_EQ(file.written_bytes(), before);
    EXPECT_EQ(fs::file_size(file.path()), size);
    // Small ones were not refused.
    void* const small = file.AppendRing(12 << 10, 2);
    EXPECT_NE(small, nullptr);
    EXPECT_EQ(file.AppendRing(64 << 10, 2), nullptr) << "not asked for again so soon";
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    void* const large = file.AppendRing(64 << 10, 2);
    EXPECT_NE(large, nullptr);
    munmap(first, 64 << 10);
    if (small != nullptr) munmap(small, 12 << 10);
    if (large != nullptr) munmap(large, 64 << 10);
  }
}

// Who has a small ring asks for a large one with each block that it fills.
TEST_F(TraceFileTest, ARingThatIsRefusedForTheLimitTakesNoneOfIt) {
  constexpr size_t kLarge = 64 << 10, kSmall = 12 << 10;
  for (const bool keep_newest : {false, true}) {
    SCOPED_TRACE(keep_newest);
    TraceFile file;
    file.SetLimit(keep_newest ? 4 << 20 : 1 << 20, keep_newest);
    ASSERT_EQ(Create(file, "x.mtr"), 0);
    std::vector<std::pair<void*, size_t>> rings;
    const auto append = [&](size_t bytes) {
      void* const ring = file.AppendRing(bytes, 2);
      if (ring != nullptr) rings.emplace_back(ring, bytes);
      return ring != nullptr;
    };
    ASSERT_TRUE(append(kSmall));
    while (append(kLarge)) ASSERT_LT(rings.size(), 1000u);
    ASSERT_GT(rings.size(), 1u);
    for (int i = 0; i < 100; ++i) ASSERT_FALSE(append(kLarge));
    EXPECT_TRUE(append(kSmall));
    for (const auto& [ring, bytes] : rings) munmap(ring, bytes);
  }
}

// Where a title that is written over the program's environment does not reach.
TEST_F(TraceFileTest, TheStatusHasTheLeakSignal) {
  for (const bool keep_newest : {false, true}) {
    TraceFile file;
    file.SetLimit(keep_newest ? 6 << 20 : 0, keep_newest);
    file.SetLeakSignal(62);
    ASSERT_EQ(Create(file, keep_newest ? "newest.mtr" : "x.mtr"), 0);
    const int fd = open(file.path(), O_RDONLY);
    ASSERT_GE(fd, 0);
    format::StatusArea area;
    ASSERT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
    EXPECT_EQ(area.bytes, sizeof(area));
    EXPECT_EQ(area.leak_signal, 62u);
    close(fd);
  }
}

// For who asks for a scan where none can be made any more.
TEST_F(TraceFileTest, TheStatusSaysThatNoScanIsMade) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  const int fd = open(file.path(), O_RDONLY);
  ASSERT_GE(fd, 0);
  for (const format::NoScans why : {format::NoScans::kSeccompFilter, format::NoScans::kNone}) {
    file.NoteNoScans(why);
    format::StatusArea area;
    ASSERT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
    EXPECT_EQ(area.no_scans, static_cast<uint32_t>(why));
  }
  close(fd);
}

// Nothing else can tell it where there is no room left. The first failure of a kind is kept as
// well: what came between two may be in the file.
TEST_F(TraceFileTest, TheStatusTellsWhyAScanAndAnEndAreNotThere) {
  for (const bool stores_take_space : {false, true}) {
    SCOPED_TRACE(stores_take_space);
    TraceFile file;
    file.SetLimit(1000, /*keep_newest=*/false);
    ASSERT_EQ(Create(file, stores_take_space ? "elsewhere.mtr" : "x.mtr"), 0);
    const int fd = open(file.path(), O_RDWR);
    ASSERT_GE(fd, 0);
    if (stores_take_space) file.status().Attach(fd, TraceStatus::NewArea(), stores_take_space);
    const auto in_file = [fd] {
      format::StatusArea area;
      EXPECT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
      return area;
    };
    EXPECT_EQ(in_file().lost_scans.last, 0u);
    ASSERT_FALSE(Append(file, std::string(2000, 'x')));
    file.NoteLostScan(2);
    file.NoteLostScan(4);
    file.NoteLostEnd();
    const format::StatusArea area = in_file();
    EXPECT_EQ(area.lost_scans.first, 2u);
    EXPECT_EQ(area.lost_scans.last, 4u);
    EXPECT_EQ(area.lost_scans.why, static_cast<uint32_t>(format::RecordingStop::kMaxBytes));
    EXPECT_EQ(area.lost_scans.error, 0);
    EXPECT_EQ(area.lost_end.why, static_cast<uint32_t>(format::RecordingStop::kMaxBytes));
    EXPECT_EQ(area.lost_events, 0u);
    close(fd);
  }
}

// A fork child that has no file of its own: by the page that it shares with its parent, or, where
// that cannot be stored to, by a system call. Nothing else reaches that file.
TEST_F(TraceFileTest, AChildWithoutAFileIsCountedInItsParents) {
  enum class Page { kShared, kTakesSpace, kPrivate };
  for (const Page page : {Page::kShared, Page::kTakesSpace, Page::kPrivate}) {
    SCOPED_TRACE(static_cast<int>(page));
    TraceFile file;
    ASSERT_EQ(Create(file, ("x" + std::to_string(static_cast<int>(page)) + ".mtr").c_str()), 0);
    const std::string path = file.path();
    // One that is open for reading alone cannot be mapped for writing.
    const int fd = open(file.path(), page == Page::kPrivate ? O_RDONLY : O_RDWR);
    ASSERT_GE(fd, 0);
    if (page != Page::kShared) {
      file.status().Attach(fd, TraceStatus::NewArea(), page == Page::kTakesSpace);
    }
    file.Forsake();
    const std::string too_long(300, 'n');
    const long created = Create(file, too_long.c_str());
    ASSERT_EQ(created, -ENAMETOOLONG);
    file.NoteUntracedChild(-ENOSPC);
    file.NoteUntracedChild(created);
    format::StatusArea area;
    ASSERT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
    EXPECT_EQ(area.untraced_children.count, 2u);
    EXPECT_EQ(area.untraced_children.error, ENAMETOOLONG);
    const auto bytes = fs::file_size(path);
    EXPECT_FALSE(Append(file, "of the child"));
    EXPECT_EQ(fs::file_size(path), bytes);
    // A later child finds room.
    ASSERT_EQ(Create(file, "child.mtr"), 0);
    EXPECT_TRUE(Append(file, "of the child"));
    fs::remove(file.path());
    close(fd);
  }
}

// As on a file system without shared mappings: a copy of the process notes it, of whose memory the
// process knows nothing.
TEST_F(TraceFileTest, WhatIsPrivateIsNotWrittenOverWhatACopyHasNoted) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  const int fd = open(file.path(), O_RDWR);
  ASSERT_GE(fd, 0);
  const int read_only = open(file.path(), O_RDONLY);  // cannot be mapped for writing
  ASSERT_GE(read_only, 0);
  file.status().Attach(read_only, TraceStatus::NewArea(), /*stores_take_space=*/false);
  EXPECT_FALSE(file.status().NoteLostScan(1, format::RecordingStop::kWriteFailed, ENOSPC));
  file.NoteLostScan(1);
  file.status().NoteLoss(7, 100, format::RecordingStop::kWriteFailed, ENOSPC);
  file.status().Write(fd);
  format::StatusArea area;
  ASSERT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
  EXPECT_EQ(area.lost_events, 7u);
  EXPECT_EQ(area.lost_scans.last, 1u);
  close(read_only);
  close(fd);
}

// As on btrfs: nothing is stored to the mapping but answers, for which the kernel is asked before.
TEST_F(TraceFileTest, WhereStoresTakeSpaceTheStatusIsWritten) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  const int fd = open(file.path(), O_RDWR);
  ASSERT_GE(fd, 0);
  const auto in_file = [fd] {
    format::StatusArea area;
    EXPECT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
    return area;
  };
  TraceStatus status;
  status.Attach(fd, TraceStatus::NewArea(), /*stores_take_space=*/true);
  status.NoteLoss(7, 100, format::RecordingStop::kWriteFailed, ENOSPC);
  EXPECT_EQ(in_file().lost_events, 0u);
  const uint64_t request = 3;  // another program's
  ASSERT_EQ(pwrite(fd, &request, sizeof(request), TraceStatus::kOffset + offsetof(format::StatusArea, scan_request)),
            ssize_t{sizeof(request)});
  EXPECT_EQ(status.scan_request(), request);
  status.AnswerScan(5);
  status.NoteScanFinished(2);
  status.Write(fd);
  const format::StatusArea written = in_file();
  EXPECT_EQ(written.lost_events, 7u);
  EXPECT_EQ(written.scan_request, request);
  EXPECT_EQ(written.scan_answer, 5u);
  EXPECT_EQ(written.scan_finished, 2u);
  close(fd);
}

// A fork child's first loss may be as many events as its parent lost.
TEST_F(TraceFileTest, TheStatusOfASecondFileIsWrittenAlsoWhereItSaysTheSame) {
  TraceStatus status;
  for (const char* const name : {"parent.mtr", "child.mtr"}) {
    TraceFile file;
    ASSERT_EQ(Create(file, name), 0);
    const int fd = open(file.path(), O_RDWR);
    ASSERT_GE(fd, 0);
    status.Attach(fd, TraceStatus::NewArea(), /*stores_take_space=*/true);
    status.NoteLoss(7, 100, format::RecordingStop::kWriteFailed, ENOSPC);
    status.Write(fd);
    format::StatusArea area;
    ASSERT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
    EXPECT_EQ(area.lost_events, 7u) << name;
    close(fd);
  }
}

// Before Linux 5.14 the kernel cannot be asked for the space: then answers are written.
TEST_F(TraceFileTest, WhereTheKernelCannotBeAskedForSpaceAnswersAreWritten) {
  TraceFile file;
  ASSERT_EQ(Create(file, "x.mtr"), 0);
  const int fd = open(file.path(), O_RDWR);
  ASSERT_GE(fd, 0);
  file.status().Attach(fd, TraceStatus::NewArea(), /*stores_take_space=*/true);
  bool filtered = false;
  std::thread([&] {  // the filter is the thread's own
    constexpr uint32_t kPopulateWrite = 23;
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPopulateWrite, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
    filtered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
    if (!filtered) return;
    file.AnswerScan(uint64_t{2} << 32 | 5);
    file.NoteScanFinished(2);
  }).join();
  if (!filtered) GTEST_SKIP() << "no seccomp filter here";
  format::StatusArea area;
  ASSERT_EQ(pread(fd, &area, sizeof(area), TraceStatus::kOffset), ssize_t{sizeof(area)});
  EXPECT_EQ(area.scan_answer, uint64_t{2} << 32 | 5);
  EXPECT_EQ(area.scan_finished, 2u);
  close(fd);
}

}  // namespace
}  // namespace memtrace
