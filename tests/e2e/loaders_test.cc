// Libraries that come into the program in unusual ways: bound to their own libc, in a
// namespace of their own, found by their caller's RUNPATH, watched by an audit library, beside
// other preloaded ones.

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const std::string kPlugins = MEMTRACE_BUILD_DIR "/tests/tracees/plugins";

class LoadersTest : public ::testing::Test {
 protected:
  void Run(const std::string& how, const Environment& environment = {},
           const std::string& directory = kPlugins) {
    const Command command = {.arguments = {TraceePath("opens_libraries"), how, directory},
                             .environment = environment};
    const Result plain = RunCommand(command);
    ASSERT_EQ(plain.Outcome(), "exit 0") << plain.out << plain.err;
    const Result run = RunCommand(Traced(command, traces_.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.out << run.err;
    EXPECT_EQ(run.out, plain.out);
    EXPECT_EQ(run.err, plain.err);
    const std::string trace = TraceOf(traces_.path(), "opens_libraries", run.pid);
    report_ = Report(trace, {"--top", "100000"});
    notes_ = report_.at("coverage").at("notes").dump();
    for (const std::string& file : FilesIn(traces_.path(), ".mtr")) {
      if (traces_ / file != trace) child_ = Report(traces_ / file);
    }
    ASSERT_FALSE(child_.is_null());
    EXPECT_EQ(report_.at("coverage").at("dropped_events"), 0);
    child_notes_ = child_.at("coverage").at("notes").dump();
  }

  TempDir traces_;
  Json report_, child_;
  std::string notes_, child_notes_;
};

TEST_F(LoadersTest, ALibraryOpenedPlainlyIsSeen) {
  Run("plainly");
  EXPECT_EQ(AllocationsOf(report_, 1733), 50u);
  EXPECT_EQ(notes_, "[]");
  EXPECT_EQ(report_.at("leak_scans").at(0).at("notes").dump(), "[]");
}

// dlopen sees its true caller: we look at the call, and jump.
TEST_F(LoadersTest, ALibraryIsFoundByTheRunpathOfItsCaller) {
  Run("runpath");
  EXPECT_EQ(AllocationsOf(report_, 1733), 50u);
  EXPECT_EQ(notes_, "[]");
}

TEST_F(LoadersTest, ALibraryOpenedWithDeepbindIsNoted) {
  Run("deepbind");
  EXPECT_EQ(AllocationsOf(report_, 1733), 0u) << "if these are seen, the note is wrong";
  EXPECT_THAT(notes_, HasSubstr("libplugin_allocating.so was opened with RTLD_DEEPBIND"));
  EXPECT_EQ(child_notes_, notes_) << "it is in the forked child as well";
  const Json& scan = report_.at("leak_scans").at(0);
  EXPECT_TRUE(scan.at("frees_unseen").get<bool>());
  EXPECT_THAT(scan.at("notes").dump(), HasSubstr("what libplugin_allocating.so freed past"));
  EXPECT_THAT(scan.at("notes").dump(), HasSubstr("what libplugin_allocating.so allocated past"));
}

// A server with dozens of modules (FreeRADIUS, PHP): what is not noted would be lost for certain.
TEST_F(LoadersTest, EachOfManyLibrariesOpenedWithDeepbindIsNoted) {
  TempDir plugins;
  for (int i = 0; i < 40; ++i) {
    std::filesystem::copy_file(kPlugins + "/found_by_runpath/libplugin_allocating.so",
                               plugins / (std::to_string(i) + ".so"));
  }
  Run("many", {}, plugins.path());
  EXPECT_THAT(notes_, HasSubstr("and 37 more were opened with RTLD_DEEPBIND"));
  EXPECT_EQ(child_notes_, notes_) << "it is in the forked child as well";
  EXPECT_EQ(report_.at("coverage").at("counters").at("coverage_notes_left_out"), 0);
}

// The flag has no effect on it. cwrap's wrappers open libc so.
TEST_F(LoadersTest, WhatIsLoadedAlreadyOrIsNotThereIsNotOpenedWithDeepbind) {
  Run("loaded");
  EXPECT_EQ(AllocationsOf(report_, 1733), 50u);
  EXPECT_EQ(notes_, "[]");
  EXPECT_FALSE(report_.at("leak_scans").at(0).at("frees_unseen").get<bool>());
}

TEST_F(LoadersTest, ALibraryInANamespaceOfItsOwnIsNoted) {
  Run("namespace");
  EXPECT_EQ(AllocationsOf(report_, 1733), 0u);
  EXPECT_THAT(notes_, HasSubstr("libplugin_allocating.so was opened in a namespace of its own"));
  EXPECT_EQ(child_notes_, notes_);
}

// The audit library has a libc of its own; what it allocates is not the program's.
TEST_F(LoadersTest, AnAuditLibraryThatAllocatesChangesNothing) {
  Run("plainly", {{"LD_AUDIT", kPlugins + "/libplugin_auditor.so"}});
  EXPECT_EQ(AllocationsOf(report_, 1733), 50u);
  EXPECT_EQ(AllocationsOf(report_, 100), 0u);
}

TEST_F(LoadersTest, BindingAtLoadChangesNothing) {
  Run("runpath", {{"LD_BIND_NOW", "1"}});
  EXPECT_EQ(AllocationsOf(report_, 1733), 50u);
}

TEST_F(LoadersTest, GlibcsTunablesChangeNothing) {
  Run("plainly", {{"GLIBC_TUNABLES", "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0:"
                                     "glibc.malloc.perturb=85:glibc.malloc.mmap_threshold=1000"}});
  EXPECT_EQ(AllocationsOf(report_, 1733), 50u);
}

// The heaps of arenas have other sizes then.
TEST_F(LoadersTest, HugePagesForTheHeapChangeNothing) {
  for (const std::string before : {"", "glibc.malloc.tcache_count=0:"}) {
    SCOPED_TRACE(before);
    const Command command = {
        .arguments = {TraceePath("many_threads"), "at_once", "20"},
        .environment = {{"GLIBC_TUNABLES", before + "glibc.malloc.hugetlb=2"}}};
    const Result plain = RunCommand(command);
    const Result run = RunCommand(Traced(command, traces_.path()));
    EXPECT_EQ(run.Outcome(), plain.Outcome()) << run.err;
    EXPECT_EQ(run.out, plain.out);
    const Json report = BriefReport(TraceOf(traces_.path(), "many_threads", run.pid));
    EXPECT_EQ(report.at("coverage").at("dropped_events"), 0);
  }
}

// As patchelf lays libraries out when there are more program headers than there was room for: at the end of the file, in
// a segment of their own.
void MoveProgramHeaders(const std::string& library) {
  std::string bytes = ReadFile(library);
  Elf64_Ehdr elf;
  memcpy(&elf, bytes.data(), sizeof(elf));
  std::vector<Elf64_Phdr> headers(elf.e_phnum);
  memcpy(headers.data(), bytes.data() + elf.e_phoff, headers.size() * sizeof(Elf64_Phdr));
  const auto is_load = [](const Elf64_Phdr& header) { return header.p_type == PT_LOAD; };
  const auto last = std::find_if(headers.rbegin(), headers.rend(), is_load).base();
  const auto page = [](uint64_t n) { return (n + 4095) & ~uint64_t{4095}; };
  const uint64_t offset = page(bytes.size());
  const uint64_t address = page(last[-1].p_vaddr + last[-1].p_memsz);
  const uint64_t size = (headers.size() + 1) * sizeof(Elf64_Phdr);
  headers.insert(last, {PT_LOAD, PF_R, offset, address, address, size, size, 4096});
  bytes.resize(offset);
  bytes.append(reinterpret_cast<const char*>(headers.data()), size);
  elf.e_phoff = offset;
  ++elf.e_phnum;
  memcpy(bytes.data(), &elf, sizeof(elf));
  WriteFile(library, bytes);
}

TEST(MovedHeadersTest, ALibraryWhoseHeadersLieElsewhereHasItsBuildId) {
  utsname kernel;
  ASSERT_EQ(uname(&kernel), 0);
  if (strverscmp(kernel.release, "6.12") < 0) GTEST_SKIP() << "the kernel does not tell it: " << kernel.release;
  TempDir directory, traces;
  const std::string plugin = Compile(directory, "plugin.so", R"(#include <stdlib.h>
char zeros[100000];
void* give(void) { return malloc(100); })", {"-shared", "-fPIC", "-Wl,--build-id=0x1234567890abcdef"});
  MoveProgramHeaders(plugin);
  const std::string program = Compile(directory, "app", R"(#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW);
  if (plugin == NULL) return puts(dlerror()), 1;
  void* (*give)(void) = (void* (*)(void))dlsym(plugin, "give");
  return give() == NULL;
})");
  const Result run = RunCommand(Traced({.arguments = {program, plugin}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.out;
  const Result dump = RunCommand({.arguments = {ToolPath(), "dump", TraceOf(traces.path(), "app", run.pid)}});
  EXPECT_THAT(dump.out, ContainsRegex("module [^\n]*build-id=1234567890abcdef[^\n]*plugin\\.so"));
}

// What is allocated while the library looks for the real allocator lives on in the program.
TEST(EarlyBlocksTest, AreBlocksAsAnyOther) {
  for (const char* sample : {"0", "1"}) {
    TempDir traces;
    const Result run = RunCommand(Traced(
        {.arguments = {TraceePath("own_dlsym")}, .environment = {{"MEMTRACE_SAMPLE_BYTES", sample}}},
        traces.path()));
    EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
    EXPECT_EQ(run.out, "early blocks\nall as it should be\n") << "else none was asked for in time";
  }
}

// Another thread holds the loader's lock. Its child has that for ever: what may be called there by
// the rules of POSIX must not ask the loader.
TEST(LoaderLockTest, AChildMayExecAndGiveUpRightsWhileALibraryIsLoaded) {
  TempDir directory;
  WriteFile(directory / "slow.c",
            "#include <stdlib.h>\n#include <unistd.h>\n"
            "__attribute__((constructor)) static void Load(void) {\n"
            "  if (write(atoi(getenv(\"BEGUN\")), \"x\", 1) == 1) sleep(2);\n}\n");
  WriteFile(directory / "program.c", R"(
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void* Load(void* path) { return dlopen(path, RTLD_NOW); }

static void BeChild(int way) {
  char* const arguments[] = {"true", NULL};
  if (way == 0) execl("/bin/true", "true", (char*)NULL);
  if (way == 1) execvp("true", arguments);
  if (way == 2) execve("/bin/true", arguments, environ);
  if (way == 3) _exit(setuid(getuid()) | setgid(getgid()));
  if (way == 4) _exit(pthread_setname_np(pthread_self(), "child"));
  if (way == 5) _exit(sbrk(4096) == (void*)-1);
  if (way == 6) quick_exit(0);
  if (way == 7) _exit(daemon(1, 1));
  _exit(1);
}

int main(int argc, char** argv) {
  int begun[2];
  pthread_t thread;
  char text[16];
  if (argc != 2 || pipe(begun) != 0) return 64;
  snprintf(text, sizeof(text), "%d", begun[1]);
  setenv("BEGUN", text, 1);
  if (pthread_create(&thread, NULL, Load, argv[1]) != 0 || read(begun[0], text, 1) != 1) return 65;
  for (int way = 0; way < 16; ++way) {
    const pid_t child = way < 8 ? _Fork() : (pid_t)syscall(SYS_fork);
    if (child == 0) BeChild(way % 8);
    int status = -1;
    for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; ++i) poll(NULL, 0, 10);
    if (status == -1) {
      kill(child, SIGKILL);
      waitpid(child, NULL, 0);
    }
    printf("%d: %d\n", way, status);
  }
  pthread_join(thread, NULL);
  return 0;
}
)");
  ASSERT_EQ(RunCommand({.arguments = {"gcc", "-shared", "-fPIC", directory / "slow.c", "-o", directory / "slow.so"}})
                .Outcome(), "exit 0");
  const Result built = RunCommand({.arguments = {"gcc", "-O1", directory / "program.c", "-o", directory / "program"}});
  ASSERT_EQ(built.Outcome(), "exit 0") << built.err;
  TempDir traces;
  const Command command = {.arguments = {directory / "program", directory / "slow.so"}};
  const Result run = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  std::string all_well;
  for (int way = 0; way < 16; ++way) all_well += std::to_string(way) + ": 0\n";
  EXPECT_EQ(run.out, all_well);
}

// What a constructor of a library waits for is done by a thread that does not hold the loader's lock.
TEST(LoaderLockTest, AConstructorMayWaitForAThreadsFirstCalls) {
  TempDir directory;
  WriteFile(directory / "plugin.c", R"(#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>
static void* Work(void* unused) {
  const char* const way = getenv("WAY");
  if (strcmp(way, "name") == 0) pthread_setname_np(pthread_self(), "worker");
  if (strcmp(way, "sbrk") == 0) sbrk(4096);
  if (strcmp(way, "brk") == 0) brk(sbrk(0));
  if (strcmp(way, "shmat") == 0) {
    const int id = shmget(IPC_PRIVATE, 4096, 0600);
    shmdt(shmat(id, NULL, 0));
    shmctl(id, IPC_RMID, NULL);
  }
  if (strcmp(way, "quick_exit") == 0) quick_exit(0);
  return unused;
}
__attribute__((constructor)) static void Begin(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Work, NULL) == 0) pthread_join(thread, NULL);
}
)");
  ASSERT_EQ(RunCommand({.arguments = {"gcc", "-shared", "-fPIC", directory / "plugin.c", "-o", directory / "plugin.so",
                                      "-pthread"}}).Outcome(), "exit 0");
  WriteFile(directory / "program.c",
            "#include <dlfcn.h>\nint main(int c, char** v) { return c != 2 || dlopen(v[1], RTLD_NOW) == 0; }\n");
  ASSERT_EQ(RunCommand({.arguments = {"gcc", directory / "program.c", "-o", directory / "program"}}).Outcome(), "exit 0");
  for (const char* way : {"name", "sbrk", "brk", "shmat", "quick_exit"}) {
    TempDir traces;
    const Result run = RunCommand(Traced({.arguments = {directory / "program", directory / "plugin.so"},
                                          .environment = {{"WAY", way}}, .timeout_seconds = 10}, traces.path()));
    EXPECT_EQ(run.Outcome(), "exit 0") << way;
  }
}

// dl_iterate_phdr() calls back with another lock of the loader's, which a call that loads or unloads nothing does not take.
TEST(LoaderLockTest, ACallbackOverModulesMayWaitForAThreadThatOpensWhatIsLoaded) {
  TempDir directory;
  WriteFile(directory / "program.c", R"(#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
static const char* way;
static void* libc;
static void* Work(void* unused) {
  if (way[0] == 'p') dlopen(NULL, RTLD_NOW);
  if (way[0] == 'l') dlopen("libc.so.6", RTLD_NOW);
  if (way[0] == 'c') dlclose(libc);
  return unused;
}
static int Wait(struct dl_phdr_info* info, size_t size, void* data) {
  (void)info, (void)size, (void)data;
  pthread_t thread;
  return pthread_create(&thread, NULL, Work, NULL) == 0 && pthread_join(thread, NULL) == 0 ? 5 : 6;
}
int main(int argc, char** argv) {
  if (argc != 2) return 64;
  way = argv[1];
  free(malloc(10));
  libc = dlopen("libc.so.6", RTLD_NOW);
  return dl_iterate_phdr(Wait, NULL);
}
)");
  ASSERT_EQ(RunCommand({.arguments = {"gcc", directory / "program.c", "-o", directory / "program", "-pthread"}}).Outcome(),
            "exit 0");
  for (const char* way : {"program", "libc", "close"}) {
    const Command command = {.arguments = {directory / "program", way}, .timeout_seconds = 10};
    ASSERT_EQ(RunCommand(command).Outcome(), "exit 5");
    TempDir traces;
    EXPECT_EQ(RunCommand(Traced(command, traces.path())).Outcome(), "exit 5") << way;
  }
}

// Others that stand in for functions of libc, on either side of us.
TEST(OtherPreloadsTest, OnEitherSideOfUs) {
  struct Other {
    const char* library;
    Environment environment;
  };
  const Other others[] = {
      {"/usr/libexec/coreutils/libstdbuf.so", {{"_STDBUF_O", "0"}}},
      {"/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", {{"FAKETIME", "-1d"}}},
      {"/usr/lib/x86_64-linux-gnu/libfakeroot/libfakeroot-sysv.so", {}},
      {"/usr/lib/x86_64-linux-gnu/libSegFault.so", {}},
  };
  int met = 0;
  for (const Other& other : others) {
    if (!Exists(other.library)) continue;
    for (const bool before : {false, true}) {
      TempDir traces;
      Command command = Traced({.arguments = {TraceePath("opens_libraries"), "plainly", kPlugins}},
                               traces.path());
      for (auto& [name, value] : command.environment) {
        if (name != "LD_PRELOAD") continue;
        value = before ? other.library + (":" + value) : value + ":" + other.library;
      }
      for (const auto& variable : other.environment) command.environment.push_back(variable);
      const Result run = RunCommand(command);
      EXPECT_EQ(run.Outcome(), "exit 0") << other.library << run.err;
      EXPECT_EQ(run.out, "opened plainly\n");
      const Json report = Report(TraceOf(traces.path(), "opens_libraries", run.pid),
                                 {"--top", "100000"});
      EXPECT_EQ(AllocationsOf(report, 1733), 50u) << other.library << " before us: " << before;
      EXPECT_EQ(report.at("coverage").at("dropped_events"), 0);
      ++met;
    }
  }
  if (met == 0) GTEST_SKIP() << "neither stdbuf's, faketime's nor fakeroot's library is installed";
}

// Two plugins that are loaded in turn at one address, alike but for the sizes of their frames.
std::string PluginCode(const std::string& name, int frame) {
  return "#include <stdlib.h>\nvoid* volatile sink;\n"
         "__attribute__((noinline)) void* " + name + "Leaf(int n) { sink = malloc(n); __asm__ volatile(\"\"); return sink; }\n"
         "__attribute__((noinline)) void* " + name + "Mid(int n) { volatile char frame[" + std::to_string(frame) +
         "]; frame[0] = 1; void* p = " + name + "Leaf(n); frame[1] = 1; return p; }\n"
         "void Run(int n) { free(" + name + "Mid(n)); __asm__ volatile(\"\"); }\n";
}

// Allocations by RedLeaf called by RedMid, and the same of Blue, of a program that closes them past us.
void ExpectEachHasItsNames(const std::string& code, int loads) {
  TempDir directory;
  const Words shared = {"-shared", "-fPIC", "-O1", "-g"};
  const std::string red = Compile(directory, "red.so", PluginCode("Red", 64), shared);
  const std::string blue = Compile(directory, "blue.so", PluginCode("Blue", 800), shared);
  const std::string host = Compile(directory, "host.so", "#define _GNU_SOURCE\n#include <dlfcn.h>\n"
      "static const char* const kFiles[] = {\"" + red + "\", \"" + blue + "\"};\n"
      "void Host(int (*close)(void*)) {\n"
      "  if (close == 0) close = dlclose;\n"
      "  for (int i = 0; i < 6; ++i) {\n"
      "    void* h = dlopen(kFiles[i % 2], RTLD_NOW);\n"
      "    for (int n = 0; n < 3; ++n) ((void (*)(int))dlsym(h, \"Run\"))(1000 + n);\n"
      "    close(h);\n  }\n}\n", shared);
  const std::string program = Compile(directory, "program", "#define _GNU_SOURCE\n#include <dlfcn.h>\n"
      "int main(void) {\n  const char* host = \"" + host + "\";\n" + code + "}\n", {"-ldl"});
  TempDir traces;
  ASSERT_EQ(RunCommand(Traced({.arguments = {program}}, traces.path())).Outcome(), "exit 0");
  const Json report = Report(TraceOf(traces.path(), "program"), {"--top", "100000"});
  std::map<std::string, uint64_t> callers;
  for (const Json& site : report.at("sites")) {
    const Json& stack = site.at("stack");
    if (stack.size() < 2) continue;
    const std::string inner = stack.at(0).value("function", ""), outer = stack.at(1).value("function", "");
    if (inner.ends_with("Leaf")) callers[outer + ">" + inner] += site.at("allocations").get<uint64_t>();
  }
  EXPECT_EQ(callers, (std::map<std::string, uint64_t>{{"BlueMid>BlueLeaf", loads / 2 * 3}, {"RedMid>RedLeaf", loads / 2 * 3}}));
}

// What they allocate is ours all the same: they are opened plainly by a library that was not.
TEST(UnseenCloseTest, ByALibraryThatWasOpenedWithDeepbind) {
  ExpectEachHasItsNames("  ((void (*)(void*))dlsym(dlopen(host, RTLD_NOW | RTLD_DEEPBIND), \"Host\"))(0);\n  return 0;\n", 6);
}

TEST(UnseenCloseTest, ByLibcsFunctionThatWasAskedFor) {
  ExpectEachHasItsNames("  void* const libc = dlopen(\"libc.so.6\", RTLD_NOW | RTLD_NOLOAD);\n"
                        "  ((void (*)(void*))dlsym(dlopen(host, RTLD_NOW), \"Host\"))(dlsym(libc, \"dlclose\"));\n"
                        "  return 0;\n", 6);
}

}  // namespace
}  // namespace memtrace::e2e
