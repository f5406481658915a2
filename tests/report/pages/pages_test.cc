// The pages of processes that stand still, against what the kernel and pmap tell of them.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "report/pages/collect.h"
#include "report/pages/page_copies.h"
#include "report/pages/page_line.h"
#include "report/pages/page_sums.h"
#include "report/pages/pages_report.h"
#include "report/pages/proc_maps.h"
#include "report/pages/regions.h"
#include "tests/report/run/run_raw_trace.h"

namespace memtrace::report::pages {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Data of this program's, in pages of their own.
[[gnu::used]] alignas(kPage) char g_data[4 * kPage] = {1};
// A page of .bss behind the last that the file fills.
[[gnu::used]] alignas(kPage) char g_zeros[2 * kPage];
// And text: written to by a child.
__attribute__((noinline, aligned(4096))) int TextPage(int x) { return x * 3 + 1; }

// A child that prepares itself, says so and stops: nothing moves while it is looked at.
class StoppedChild {
 public:
  explicit StoppedChild(const std::function<void()>& prepare) : pid_(fork()) {
    if (pid_ == 0) {
      prepare();
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status)) << status;
  }
  ~StoppedChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

 private:
  pid_t pid_;
};

char* Map(uint64_t bytes, int flags, int fd = -1, int prot = PROT_READ | PROT_WRITE) {
  void* const at = mmap(nullptr, bytes, prot, flags, fd, 0);
  if (at == MAP_FAILED) _exit(90);
  return static_cast<char*>(at);
}
void Touch(char* at, uint64_t pages) {
  for (uint64_t i = 0; i < pages; ++i) static_cast<volatile char*>(at)[i * kPage] = 1;
}

// Bytes of one line of smaps, summed by an own reading.
std::map<std::string, uint64_t> SmapsSums(uint32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps");
  std::map<std::string, uint64_t> sums;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, unit;
    uint64_t kib = 0;
    if (words >> name >> kib >> unit && unit == "kB") sums[name] += kib * 1024;
  }
  return sums;
}

const MappedRegion* Find(const ProcessPages& process, const std::string& part) {
  for (const MappedRegion& region : process.mappings) {
    if (region.mapping.name.find(part) != std::string::npos) return &region;
  }
  return nullptr;
}

PagesSnapshot CollectOf(std::vector<uint32_t> pids, bool ask_counts = true,
                        PageTable::Scan scan = PageTable::Scan::kIfThere) {
  auto snapshot = Collect({std::move(pids), ask_counts, scan});
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  return snapshot.ok() ? *std::move(snapshot) : PagesSnapshot();
}

TEST(ProcMapsTest, ReadsWhateverNamesAreThere) {
  const std::string text =
      "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/a b\\012c (deleted)\n"
      "Rss:                 100 kB\nPss:                  25 kB\nVmFlags: rd ex mr \n"
      "00600000-00601000 rw-s 00002000 00:05 0            /x (deleted)\n"
      "Rss:                   4 kB\n"
      "7ffd0000-7ffe0000 rw-p 00000000 00:00 0            [anon:Rss: 5 kB]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
      "Rss:                   0 kB";
  for (size_t piece : {size_t{1}, size_t{7}, text.size()}) {
    std::vector<Mapping> mappings;
    MapsParser parser([&](Mapping&& mapping) { mappings.push_back(std::move(mapping)); });
    for (size_t at = 0; at < text.size(); at += piece) parser.Feed(text.substr(at, piece));
    parser.Finish();
    ASSERT_THAT(mappings, SizeIs(4));
    EXPECT_EQ(mappings[0].name, "/usr/bin/a b\nc");
    EXPECT_TRUE(mappings[0].deleted);
    EXPECT_EQ(mappings[0].rss, 100u * 1024);
    EXPECT_EQ(mappings[0].pss, 25u * 1024);
    EXPECT_TRUE(mappings[0].executable);
    EXPECT_EQ(mappings[1].name, "/x (deleted)") << "of no file: a part of the name";
    EXPECT_TRUE(mappings[1].shared);
    EXPECT_EQ(mappings[2].rss, 0u) << "the name is no figure";
    EXPECT_EQ(mappings[3].start, 0xffffffffff600000u);
    EXPECT_TRUE(mappings[3].measured);
  }
}

TEST(RegionsTest, TellWhatEachMappingIsFor) {
  const auto mapping = [](uint64_t start, uint64_t end, const char* rights, uint64_t inode,
                          const char* name) {
    Mapping m;
    m.start = start * kPage;
    m.end = end * kPage;
    m.readable = rights[0] == 'r';
    m.writable = rights[1] == 'w';
    m.executable = rights[2] == 'x';
    m.shared = rights[3] == 's';
    m.inode = inode;
    m.name = name;
    return m;
  };
  const std::vector<MappedRegion> regions = Classify(
      {mapping(1, 2, "r--p", 7, "/app"), mapping(2, 3, "r-xp", 7, "/app"),
       mapping(3, 4, "r--p", 7, "/app"), mapping(4, 5, "rw-p", 7, "/app"),
       mapping(5, 6, "rw-p", 0, ""), mapping(7, 8, "rw-p", 0, "[heap]"),
       mapping(10, 11, "rw-p", 0, ""), mapping(20, 21, "r-xp", 8, "/lib.so"),
       mapping(21, 22, "rw-p", 8, "/lib.so"), mapping(30, 31, "---p", 0, ""),
       mapping(31, 40, "rw-p", 0, ""), mapping(50, 51, "r--p", 9, "/locale"),
       mapping(60, 61, "rw-s", 10, "/memfd:x"), mapping(62, 63, "rw-s", 11, "/file"),
       mapping(70, 71, "rw-p", 0, "[stack]"), mapping(80, 81, "r-xp", 0, "[vdso]")},
      "/app");
  std::vector<std::string> names;
  for (const MappedRegion& region : regions) names.push_back(RowName(region.owner, region.region));
  EXPECT_THAT(names, ElementsAre("program read-only", "program text", "program read-only",
                                 "program data", "program bss", "heap", "anonymous",
                                 "libraries text", "libraries data", "anonymous", "thread-stack",
                                 "file", "shared", "file", "stack", "special"));
}

Page MakePage(uint64_t number, uint8_t bits, uint32_t mapped = 0) {
  Page page;
  page.address = number * kPage;
  page.bits = bits;
  page.mapped = mapped;
  return page;
}

TEST(PageLineTest, HasACharacterForEachState) {
  MappedRegion region;
  region.mapping.end = 12 * kPage;
  const uint8_t counted = Page::kPresent | Page::kCounted;
  region.pages = {MakePage(0, counted, 1),
                  MakePage(1, counted | Page::kOfFile, 1),
                  MakePage(2, counted | Page::kOfFile, 2),
                  MakePage(3, counted | Page::kOfFile, 9),
                  MakePage(4, counted | Page::kOfFile, 10),
                  MakePage(6, Page::kSwapped),
                  MakePage(7, counted | Page::kHuge, 1),
                  MakePage(8, counted | Page::kZero, 0),
                  MakePage(9, Page::kPresent | Page::kExclusive),
                  MakePage(10, Page::kPresent | Page::kExclusive | Page::kOfFile),
                  MakePage(11, Page::kPresent | Page::kOfFile)};
  EXPECT_EQ(DrawPages(region, kPage, 12).characters, "af29+.wHzafs");
  const PageLine line = DrawPages(region, kPage, 4);
  EXPECT_EQ(line.pages_each, 3u);
  EXPECT_EQ(line.characters.size(), 4u);
  const PageStates states = CountStates(region);
  EXPECT_EQ(states.own, 3u);
  EXPECT_EQ(states.file_own, 2u);
  EXPECT_EQ(states.shared, 4u);
  EXPECT_EQ(states.swapped, 1u);
  EXPECT_EQ(states.zero, 1u);
  EXPECT_EQ(states.huge, 1u);
}

class PagesTest : public ::testing::Test {
 protected:
  // A process with mappings of every sort.
  void Everything() {
    Touch(Map(64 * kPage, MAP_PRIVATE | MAP_ANONYMOUS), 10);
    char* const sparse = Map(1024 * kGiB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    Touch(sparse, 1);
    Touch(sparse + kGiB, 1);
    Touch(sparse + 3 * kGiB, 1);
    const int memory = memfd_create("name\nof it", 0);
    if (ftruncate(memory, 8 * kPage) != 0) _exit(91);
    Touch(Map(8 * kPage, MAP_SHARED, memory), 5);
    const std::string odd = directory_ / "odd\nname <&>";
    const int file = open(odd.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    const std::string content(8 * kPage, 'x');
    if (write(file, content.data(), content.size()) != ssize_t{8 * kPage}) _exit(92);
    char* const mapped = Map(8 * kPage, MAP_PRIVATE, file);
    for (int i = 0; i < 8; ++i) static_cast<void>(static_cast<volatile char*>(mapped)[i * kPage]);
    Touch(mapped, 2);
    const std::string gone = directory_ / "gone";
    const int deleted = open(gone.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(deleted, kPage) != 0) _exit(93);
    Touch(Map(kPage, MAP_SHARED, deleted), 1);
    unlink(gone.c_str());
    char* const huge = Map(8 << 20, MAP_PRIVATE | MAP_ANONYMOUS);
    char* const aligned = huge + (2 << 20) - reinterpret_cast<uintptr_t>(huge) % (2 << 20);
    madvise(aligned, 4 << 20, MADV_HUGEPAGE);
    Touch(aligned, 1);
  }

  TempDir directory_;
};

TEST_F(PagesTest, AgreesWithSmapsAndPmap) {
  const StoppedChild child([this] { Everything(); });
  // The child stands still; but we, its parent, share pages with it until we write to them.
  PagesSnapshot snapshot;
  std::map<std::string, uint64_t> smaps, before;
  for (int i = 0; i < 50 && (smaps.empty() || smaps != before); ++i) {
    before = SmapsSums(child.pid());
    snapshot = CollectOf({child.pid()});
    smaps = SmapsSums(child.pid());
  }
  ASSERT_EQ(smaps, before);
  ASSERT_THAT(snapshot.processes, SizeIs(1));
  const ProcessPages& process = snapshot.processes[0];
  EXPECT_EQ(process.problem, "");
  const Figures total = process.Total();
  EXPECT_EQ(total.virtual_bytes, smaps["Size:"]);
  EXPECT_EQ(total.rss, smaps["Rss:"]);
  // Whoever else maps libc, and comes and goes, changes our share of it.
  EXPECT_NEAR(static_cast<double>(total.pss), static_cast<double>(smaps["Pss:"]), 64 << 10);
  EXPECT_EQ(total.private_dirty, smaps["Private_Dirty:"]);
  EXPECT_EQ(total.private_clean, smaps["Private_Clean:"]);
  EXPECT_EQ(total.shared_bytes(), smaps["Shared_Clean:"] + smaps["Shared_Dirty:"]);
  EXPECT_EQ(total.anonymous, smaps["Anonymous:"]);
  EXPECT_EQ(total.swap, smaps["Swap:"]);
  Figures of_rows;
  for (const RegionRow& row : RegionRows(process)) of_rows.Add(row.figures);
  EXPECT_EQ(of_rows.rss, total.rss) << "each mapping is in one row";
  EXPECT_EQ(of_rows.mappings, process.mappings.size());

  // Page by page: what pagemap has is what smaps counts, but for the page of zeros.
  for (const MappedRegion& region : process.mappings) {
    const Mapping& m = region.mapping;
    if (region.region == Region::kSpecial) continue;
    const PageStates states = CountStates(region);
    EXPECT_TRUE(region.pages_known) << m.name;
    EXPECT_EQ((states.own + states.file_own + states.shared) * kPage, m.rss) << m.name;
    EXPECT_EQ(states.huge * kPage, m.huge) << m.name;
    if (snapshot.counted) {
      EXPECT_EQ((states.own + states.file_own) * kPage, m.private_clean + m.private_dirty) << m.name;
      EXPECT_EQ(states.shared * kPage, m.shared_clean + m.shared_dirty) << m.name;
    }
  }

  FILE* const pmap = popen(("pmap -x " + std::to_string(child.pid())).c_str(), "r");
  ASSERT_NE(pmap, nullptr);
  uint64_t size = 0, rss = 0, dirty = 0;
  char line[8192];
  while (fgets(line, sizeof(line), pmap) != nullptr) {
    sscanf(line, "total kB %lu %lu %lu", &size, &rss, &dirty);
  }
  EXPECT_EQ(pclose(pmap), 0);
  EXPECT_EQ(rss * 1024, total.rss);
  EXPECT_EQ(dirty * 1024, smaps["Private_Dirty:"] + smaps["Shared_Dirty:"]);
  EXPECT_EQ(size * 1024, total.virtual_bytes);
}

TEST_F(PagesTest, SeesEachKindOfMapping) {
  const StoppedChild child([this] { Everything(); });
  const PagesSnapshot snapshot = CollectOf({child.pid()});
  ASSERT_THAT(snapshot.processes, SizeIs(1));
  const ProcessPages& process = snapshot.processes[0];
  const MappedRegion* const odd = Find(process, "odd\nname <&>");
  ASSERT_NE(odd, nullptr);
  EXPECT_EQ(odd->region, Region::kFile);
  const PageStates states = CountStates(*odd);
  EXPECT_EQ(states.own, 2u) << "written to: own copies";
  EXPECT_EQ(states.own + states.file_own + states.shared, 8u);
  EXPECT_EQ(DrawPages(*odd, kPage, 8).characters.substr(0, 3), "aaf");
  const MappedRegion* const memory = Find(process, "memfd:name\nof it");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->region, Region::kShared);
  EXPECT_TRUE(memory->mapping.deleted);
  EXPECT_EQ(DrawPages(*memory, kPage, 8).characters, "fffff...");
  const MappedRegion* const gone = Find(process, "gone");
  ASSERT_NE(gone, nullptr);
  EXPECT_TRUE(gone->mapping.deleted);
  bool sparse = false, heap = false, stack = false, bss = false, text = false;
  for (const MappedRegion& region : process.mappings) {
    sparse |= region.mapping.bytes() >= 1024 * kGiB && region.pages.size() == 3;
    heap |= region.region == Region::kHeap;
    stack |= region.region == Region::kStack;
    bss |= region.region == Region::kBss && region.owner == Owner::kProgram;
    text |= region.region == Region::kText && region.owner == Owner::kProgram;
  }
  EXPECT_TRUE(sparse) << "three pages of a terabyte";
  EXPECT_TRUE(heap && stack && bss && text);
}

TEST_F(PagesTest, FindsTheSamePagesWithoutTheKernelsHelp) {
  const StoppedChild child([this] { Everything(); });
  const PagesSnapshot with = CollectOf({child.pid()});
  const PagesSnapshot without = CollectOf({child.pid()}, true, PageTable::Scan::kNever);
  ASSERT_THAT(with.processes, SizeIs(1));
  ASSERT_THAT(without.processes, SizeIs(1));
  ASSERT_EQ(with.processes[0].mappings.size(), without.processes[0].mappings.size());
  for (size_t i = 0; i < with.processes[0].mappings.size(); ++i) {
    const MappedRegion& a = with.processes[0].mappings[i];
    const MappedRegion& b = without.processes[0].mappings[i];
    const auto numbers = [](const MappedRegion& region) {
      std::vector<uint64_t> numbers;
      for (const Page& page : region.pages) {
        if (!page.is(Page::kZero)) numbers.push_back(page.address);
      }
      return numbers;
    };
    EXPECT_EQ(numbers(a), numbers(b)) << a.mapping.name;
    EXPECT_TRUE(b.pages_known) << b.mapping.name;
  }
}

TEST_F(PagesTest, ReadsOnlyABoundedPartOfATerabyte) {
  const StoppedChild child([] {
    char* const sparse = Map(1024 * kGiB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    Touch(sparse + 700 * kGiB, 1);
  });
  const auto table = PageTable::Open("/proc/" + std::to_string(child.pid()) + "/pagemap", kPage,
                                     PageTable::Scan::kNever);
  ASSERT_TRUE(table.ok()) << table.status();
  const PagesSnapshot maps = CollectOf({child.pid()});
  for (const MappedRegion& region : maps.processes[0].mappings) {
    if (region.mapping.bytes() < 1024 * kGiB) continue;
    const auto whole = table->Read(region.mapping.start, region.mapping.end, 1,
                                   [](uint64_t, PageEntry) { ADD_FAILURE() << "too far away"; });
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_FALSE(*whole) << "and it says that it has not seen all";
    EXPECT_EQ(table->entries_read(), PageTable::kMostEntries);
    const uint64_t before = table->entries_read();
    EXPECT_TRUE(*table->Read(region.mapping.start, region.mapping.end, 0, [](uint64_t, PageEntry) {}));
    EXPECT_EQ(table->entries_read(), before) << "nothing resident: nothing is read";
  }
}

TEST_F(PagesTest, CountsWhoSharesAPageAndEachPageOnce) {
  const int memory = memfd_create("together", 0);
  ASSERT_EQ(ftruncate(memory, 4 * kPage), 0);
  const auto prepare = [memory] { Touch(Map(4 * kPage, MAP_SHARED, memory), 4); };
  const StoppedChild first(prepare), second(prepare), third(prepare);
  close(memory);
  const PagesSnapshot snapshot = CollectOf({first.pid(), second.pid(), third.pid()});
  ASSERT_THAT(snapshot.processes, SizeIs(3));
  std::set<uint64_t> frames;
  uint64_t resident = 0;
  for (const ProcessPages& process : snapshot.processes) {
    const MappedRegion* const region = Find(process, "memfd:together");
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(DrawPages(*region, kPage, 4).characters, snapshot.counted ? "3333" : "ssss");
    // Once more, by an own reading of pagemap.
    const int pagemap = open(("/proc/" + std::to_string(process.pid) + "/pagemap").c_str(), O_RDONLY);
    for (const MappedRegion& each : process.mappings) {
      if (each.region == Region::kSpecial) continue;
      resident += each.mapping.rss / kPage;
      for (uint64_t at = each.mapping.start; each.mapping.rss != 0 && at < each.mapping.end; at += kPage) {
        uint64_t entry = 0;
        ASSERT_EQ(pread(pagemap, &entry, 8, static_cast<off_t>(at / kPage * 8)), 8);
        const uint64_t frame = entry & ((uint64_t{1} << 55) - 1);
        if (entry >> 63 != 0 && frame != 0) frames.insert(frame);
      }
    }
    close(pagemap);
  }
  const UserPages total = CountUserPages(snapshot);
  EXPECT_LT(total.pages, resident) << "shared ones count once";
  EXPECT_EQ(total.by_frames, snapshot.counted);
  // The page of zeros is in one of the counts only.
  if (snapshot.counted) {
    EXPECT_NEAR(static_cast<double>(total.pages), static_cast<double>(frames.size()), 1);
  }
  bool unit = false;
  for (const Unit& one : Units(snapshot)) unit |= one.pids.size() == 3 && one.by_region[0].rss > 0;
  EXPECT_TRUE(unit) << "this program, in three processes";
}

// Sums of an alert about this program's own file.
struct AlertSums {
  uint64_t pages = 0, could_be = 0;
  std::vector<uint32_t> pids;
};
AlertSums Sum(const std::vector<Alert>& alerts, Alert::Kind kind, Region region) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const Alert& alert : alerts) {
    if (alert.kind == kind && alert.region == region && alert.unit == self) {
      return {alert.pages, alert.could_be, alert.pids};
    }
  }
  return {};
}

TEST_F(PagesTest, AlertsToTextThatIsACopy) {
  const StoppedChild untouched([] {});
  const StoppedChild patched([] {
    char* const text = reinterpret_cast<char*>(&TextPage);
    if (mprotect(text, kPage, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) _exit(94);
    *const_cast<volatile char*>(text) = *const_cast<volatile char*>(text);
    if (TextPage(1) != 4) _exit(95);
  });
  const PagesReport report = MakeReport(CollectOf({untouched.pid(), patched.pid()}), true);
  const AlertSums text = Sum(report.alerts, Alert::Kind::kTextCopies, Region::kText);
  EXPECT_EQ(text.pages, 1u);
  EXPECT_THAT(text.pids, ElementsAre(patched.pid()));
  const AlertSums unchanged = Sum(report.alerts, Alert::Kind::kUnchanged, Region::kText);
  EXPECT_EQ(unchanged.pages, 1u) << "what was written is what was there";
}

TEST_F(PagesTest, AlertsToCopiesThatAreEqual) {
  const auto collect = [](const std::function<void()>& write) {
    const StoppedChild first(write), second(write);
    const PagesReport report = MakeReport(CollectOf({first.pid(), second.pid()}), true);
    return Sum(report.alerts, Alert::Kind::kEqualCopies, Region::kData);
  };
  const AlertSums before = collect([] {});
  const AlertSums with = collect([] {
    static_cast<volatile char*>(g_data)[0] = 7;                // the same in both
    *reinterpret_cast<volatile pid_t*>(g_data + kPage) = getpid();  // not the same
  });
  EXPECT_EQ(with.pages - before.pages, 2u);
  EXPECT_EQ(with.could_be - before.could_be, 1u);
  EXPECT_THAT(with.pids, SizeIs(2));
}

TEST_F(PagesTest, SaysWhyThereIsNothingToRead) {
  pid_t ended = fork();
  if (ended == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT), 0);
  const auto zombie = Collect({{static_cast<uint32_t>(ended)}});
  EXPECT_THAT(std::string(zombie.status().message()), HasSubstr("or it has ended"));
  waitpid(ended, nullptr, 0);
  const auto nobody = Collect({{static_cast<uint32_t>(ended)}});
  EXPECT_THAT(std::string(nobody.status().message()), HasSubstr("there is no process"));
  // Among others it is left out, and said.
  const StoppedChild child([] {});
  const PagesSnapshot snapshot = CollectOf({static_cast<uint32_t>(ended), child.pid()});
  EXPECT_THAT(snapshot.processes, SizeIs(1));
  EXPECT_THAT(snapshot.skipped, SizeIs(1));
}

TEST_F(PagesTest, TellsKernelThreadsFromProcesses) {
  std::ifstream in("/proc/2/comm");
  std::string name;
  if (!std::getline(in, name) || name != "kthreadd") GTEST_SKIP() << "none can be seen here";
  EXPECT_THAT(std::string(Collect({{2}}).status().message()), HasSubstr("is a kernel thread"));
}

// In a process of an ordinary user's; its exit status says what went wrong.
int AsNobody(const std::function<int()>& look) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(99);
    prctl(PR_SET_DUMPABLE, 1);  // else it may not even look at itself
    _exit(look());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

TEST_F(PagesTest, SaysWhatAnOrdinaryUserCannotKnow) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const uint32_t root = static_cast<uint32_t>(getpid());
  EXPECT_EQ(AsNobody([root] {
              const auto denied = Collect({{root}});
              if (denied.ok()) return 1;
              return denied.status().message().find("run memtrace pages as root") != absl::string_view::npos
                         ? 0 : 2;
            }), 0);
  EXPECT_EQ(AsNobody([] {
              const auto all = Collect({});
              if (!all.ok()) return 1;
              if (all->skipped.empty()) return 2;        // at least the test itself
              return all->processes.empty() ? 3 : 0;
            }), 0);
  EXPECT_EQ(AsNobody([] {
              const uint32_t self = static_cast<uint32_t>(getpid());
              const auto snapshot = Collect({{self}});
              if (!snapshot.ok()) return 1;
              if (snapshot->counted || snapshot->not_counted_because.empty()) return 2;
              bool single = false, shared = false;
              for (const MappedRegion& region : snapshot->processes[0].mappings) {
                for (const Page& page : region.pages) {
                  if (page.frame != 0) return 3;  // hidden
                  single |= PageCharacter(page) == 'a';
                  shared |= PageCharacter(page) == 's';
                }
              }
              if (!single || !shared) return 4;
              const PagesReport report = MakeReport(*snapshot, false);
              if (report.user_pages.by_frames || report.user_pages.pages == 0) return 5;
              return report.notes.empty() ? 6 : 0;
            }), 0);
}

// A report whose every name is hostile.
PagesReport Hostile() {
  PagesSnapshot snapshot;
  snapshot.source = "of 1<script>\x1b[31m";
  ProcessPages process;
  process.pid = 1;
  process.name = "=cmd|' /C calc'!A0\n";
  process.command = "\x1b]0;title\x07<script>alert(1)</script>\xff";
  MappedRegion region;
  region.mapping.end = 4 * kPage;
  region.mapping.rss = kPage;
  region.mapping.name = region.unit = "/tmp/\"<img src=x onerror=alert(1)>&'\n\x1b[2J";
  region.mapping.inode = 5;
  region.mapping.anonymous = kPage;
  region.mapping.executable = true;
  region.owner = Owner::kLibrary;
  region.region = Region::kText;
  region.pages = {MakePage(0, Page::kPresent | Page::kExclusive)};
  process.mappings = {region};
  snapshot.processes = {process};
  snapshot.skipped = {{3, "bad\x1b", "why"}};
  return MakeReport(std::move(snapshot), false);
}

TEST(PagesReportTest, EscapesNamesInEveryFormat) {
  const PagesReport report = Hostile();
  const auto text_of = [&](const std::function<void(words::Sink&)>& render) {
    words::StringSink sink;
    render(sink);
    EXPECT_FALSE(sink.text().empty());
    EXPECT_THAT(sink.text(), Not(HasSubstr("\x1b")));
    EXPECT_THAT(sink.text(), Not(HasSubstr("\x07")));
    return sink.text();
  };
  PagesTextOptions options;
  options.maps = true;
  text_of([&](words::Sink& out) { RenderPagesText(report, options, out); });
  for (const PagesTable table : {PagesTable::kRegions, PagesTable::kMappings, PagesTable::kUnits,
                                 PagesTable::kAlerts}) {
    const std::string csv = text_of([&](words::Sink& out) { RenderPagesCsv(report, table, out); });
    EXPECT_THAT(csv, Not(HasSubstr(",=cmd")));
  }
  text_of([&](words::Sink& out) { RenderPagesJson(report, out); });
  text_of([&](words::Sink& out) { RenderPagesRaw(report, out); });
  for (const auto render : {RenderPagesSvg, RenderPagesHtml}) {
    const std::string page = text_of([&](words::Sink& out) { render(report, out); });
    EXPECT_THAT(page, Not(HasSubstr("<script")));
    EXPECT_THAT(page, Not(HasSubstr("<img")));
    EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
    for (const char* other : {"<link", "url(", "@import", "xlink"}) {
      EXPECT_THAT(page, Not(HasSubstr(other))) << "needs nothing else";
    }
  }
}

}  // namespace
}  // namespace memtrace::report::pages
