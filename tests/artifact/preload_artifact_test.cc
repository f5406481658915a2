// libmemtrace.so as a file: what it exports, what it needs, what it runs at load.
// A library loaded into every process must bring nothing its host may also have.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace memtrace {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kLibrary = MEMTRACE_BUILD_DIR "/lib/libmemtrace.so";

std::string Output(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  size_t bytes;
  while ((bytes = fread(buffer, 1, sizeof(buffer), pipe)) > 0) output.append(buffer, bytes);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::set<std::string> Symbols(const std::string& nm_options) {
  std::set<std::string> names;
  std::istringstream lines(Output("nm " + nm_options + " --format=posix " + kLibrary));
  for (std::string line; std::getline(lines, line);) {
    names.insert(line.substr(0, line.find_first_of(" @")));
  }
  return names;
}

TEST(PreloadArtifactTest, ExportsTheListOfTruthAndNothingElse) {
  const std::set<std::string> truth = {
#define MEMTRACE_INTERPOSED(name, kind) #name,
#include "preload/interposed_functions.inc"
#undef MEMTRACE_INTERPOSED
  };
  EXPECT_EQ(Symbols("-D --defined-only"), truth);
}

// A port is a file beside preload/arch/x86_64.h, and not a hunt.
TEST(PreloadArtifactTest, TheProcessorIsKnownInOnePlace) {
  EXPECT_EQ(Output("cd " MEMTRACE_SOURCE_DIR "/preload && grep -rnE "
                   "'__x86_64__|__aarch64__|rdtsc\\(|intrin\\.h|asm[a-z ]*\\(\"[^\"]' . "
                   "--include=*.h --include=*.cc | grep -v '^./arch/' || true"),
            "");
}

TEST(PreloadArtifactTest, NeedsLibcOnly) {
  std::vector<std::string> needed;
  std::istringstream lines(Output("readelf -dW " + kLibrary));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") != std::string::npos) {
      needed.push_back(line.substr(line.find('[')));
    }
  }
  EXPECT_THAT(needed, ElementsAre("[libc.so.6]"));
}

// Every name the library takes from libc, and why. A new one is a decision: write its
// reason here. Which of them the event path may reach: event_path_test.cc.
TEST(PreloadArtifactTest, ImportsAShortListEachWithAReason) {
  const std::map<std::string, std::string> reasons = {
      {"__curbrk", "data: libc's idea of the program break, so that heap growth is seen"},
      {"__cxa_at_quick_exit", "the end of a process that calls quick_exit, behind its handlers"},
      {"__errno_location", "functions that must set errno"},
      {"__libc_stack_end", "data: where the main thread's stack ends"},
      {"_dl_find_object", "unwind tables of an address, without a lock"},
      {"_r_debug", "data: ld.so's list of modules, before anything may be called"},
      {"dl_iterate_phdr", "the modules at start"},
      {"dladdr1", "whose malloc the program's calls reach, at the first call"},
      {"dlsym", "the next definitions, at the first call"},
      {"__environ", "the same as environ: the linker names both"},
      {"environ", "settings, where /proc/self/environ may not be read"},
      {"getauxval", "page size, entry point, vDSO"},
      {"gnu_get_libc_version", "which module is glibc, and whether this is one"},
      {"makecontext", "its address only: where contexts begin"},
      {"memchr", "bytes"},
      {"memcmp", "bytes"},
      {"memcpy", "bytes"},
      {"memset", "bytes"},
      {"on_exit", "the end of the process, with its status"},
      {"strlen", "bytes"},
      {"strnlen", "bytes"},
  };
  // Which of these the compiler calls is its choice.
  const std::set<std::string> maybe = {"bcmp", "memmove", "memchr", "memcmp", "memcpy", "memset",
                                       "strlen", "strnlen"};
  std::set<std::string> used = Symbols("-D --undefined-only");
  EXPECT_THAT(used, Not(Contains("__tls_get_addr"))) << "thread-local access must be initial-exec";
  for (const std::string& name : used) {
    EXPECT_TRUE(reasons.count(name) + maybe.count(name) > 0) << name;
  }
  for (const auto& [name, reason] : reasons) {
    EXPECT_TRUE(used.count(name) + maybe.count(name) > 0) << name << " is not imported any more";
  }
}

// Nor has it the compiler's start files, whose code has no unwind information.
TEST(PreloadArtifactTest, HasOneInitializerAndItIsOursAndDestroysNothing) {
  EXPECT_THAT(Output("nm " + kLibrary), Not(HasSubstr("_GLOBAL__sub_I")))
      << "a dynamic initialiser of a global";
  const std::string sections = Output("readelf -SW " + kLibrary);
  for (const char* none : {" .init ", " .fini ", " .fini_array "}) {
    EXPECT_THAT(sections, Not(HasSubstr(none)));
  }
  const std::vector<std::string> words = Words(sections);
  for (size_t i = 0; i + 5 < words.size(); ++i) {
    if (words[i] == ".init_array") {
      EXPECT_EQ(std::stoul(words[i + 4], nullptr, 16), sizeof(void*));  // OnLoad
      return;
    }
  }
  FAIL() << "no .init_array";
}

// A variable of a function that is set when it is first called would be seen as set before it is, for the library is
// compiled with -fno-threadsafe-statics.
TEST(PreloadArtifactTest, SetsNothingWhenAFunctionIsFirstCalled) {
  EXPECT_THAT(Output("nm " + kLibrary), Not(HasSubstr("_ZGV")));
}

TEST(PreloadArtifactTest, TakesLittleStaticTls) {
  std::istringstream lines(Output("readelf -lW " + kLibrary));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = Words(line);
    if (words.empty() || words[0] != "TLS") continue;
    EXPECT_LE(std::stoul(words[5], nullptr, 16), 64u);
    return;
  }
  FAIL() << "no TLS segment";
}

TEST(PreloadArtifactTest, IsBoundAtLoadAndNeverUnloaded) {
  const std::string dynamic = Output("readelf -dW " + kLibrary);
  EXPECT_THAT(dynamic, HasSubstr("NODELETE"));
  EXPECT_THAT(dynamic, HasSubstr("NOW"));
  EXPECT_THAT(dynamic, Not(HasSubstr("TEXTREL")));
}

// syscall() may return twice, and on another stack: it has no frame and touches no memory of
// the caller's.
TEST(PreloadArtifactTest, SyscallIsAJump) {
  const std::string code = Output("objdump -d --no-show-raw-insn --disassemble=syscall " + kLibrary);
  EXPECT_THAT(code, HasSubstr("<syscall>:"));
  EXPECT_THAT(code, HasSubstr("jmp"));
  const std::string body = code.substr(code.find("<syscall>:"));
  for (const char* other : {"call ", "push", "pop", "ret", "%rsp", "%rbp"}) {
    EXPECT_THAT(body.substr(0, body.find("Disassembly")), Not(HasSubstr(other))) << other;
  }
}

// Its own frames are on the stacks it unwinds, and the program's debugger walks
// over them.
TEST(PreloadArtifactTest, CarriesUnwindTables) {
  EXPECT_THAT(Output("readelf -SW " + kLibrary), HasSubstr(".eh_frame_hdr"));
}

}  // namespace
}  // namespace memtrace
