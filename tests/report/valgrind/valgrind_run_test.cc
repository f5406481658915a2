// Valgrind's XML as values, and the names of functions by which stacks of two tools are compared.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/leak/leak_kinds.h"
#include "report/valgrind/stack_key.h"
#include "report/valgrind/valgrind_run.h"

namespace memtrace::report::valgrind {
namespace {

using render::Loss;
using render::LossFrame;
using testing::Contains;
using testing::HasSubstr;

// One of memcheck's, of a program with three frames.
std::string Error(const std::string& kind, const std::string& text, const std::string& amounts,
                  const std::string& frames) {
  return "<error>\n  <unique>0x1</unique>\n  <tid>1</tid>\n  <kind>" + kind +
         "</kind>\n  <xwhat>\n    <text>" + text + "</text>\n    " + amounts +
         "\n  </xwhat>\n  <stack>\n" + frames + "  </stack>\n</error>\n\n";
}
std::string Amounts(int bytes, int blocks) {
  return "<leakedbytes>" + std::to_string(bytes) + "</leakedbytes><leakedblocks>" +
         std::to_string(blocks) + "</leakedblocks>";
}
std::string FrameXml(const std::string& ip, const std::string& function, const std::string& file,
                     int line, const std::string& object = "/work/app") {
  std::string out = "<frame><ip>" + ip + "</ip><obj>" + object + "</obj>";
  if (!function.empty()) out += "<fn>" + function + "</fn>";
  if (!file.empty()) {
    out += "<dir>/src</dir><file>" + file + "</file><line>" + std::to_string(line) + "</line>";
  }
  return out + "</frame>\n";
}
const std::string kMallocFrame =
    FrameXml("0x48417B4", "malloc", "", 0, "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so");

std::string Document(const std::string& errors, const std::string& options = "",
                     const std::string& protocol = "4", const std::string& tail = "") {
  return "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<protocolversion>" + protocol +
         "</protocolversion>\n<protocoltool>memcheck</protocoltool>\n<preamble>\n"
         "<line>Using Valgrind-3.19.0 and LibVEX; rerun with -h for copyright info</line>\n"
         "</preamble>\n<pid>77</pid>\n<ppid>1</ppid>\n<tool>memcheck</tool>\n"
         "<args><vargv><exe>/usr/bin/valgrind.bin</exe>" + options +
         "</vargv><argv><exe>./app</exe><arg>--fast</arg></argv></args>\n"
         "<status><state>RUNNING</state><time>00:00:00:00.020 </time></status>\n"
         "<status><state>FINISHED</state><time>01:00:01:02.404 </time></status>\n" + errors +
         "<errorcounts>\n</errorcounts>\n<suppcounts>" + tail + "</suppcounts>\n</valgrindoutput>\n";
}
const std::string kAllKinds = "<arg>--show-leak-kinds=all</arg>";

std::string NodeError() {
  return Error("Leak_DefinitelyLost",
               "192 (96 direct, 96 indirect) bytes in 3 blocks are definitely lost in loss record "
               "4 of 6",
               Amounts(192, 3),
               kMallocFrame + FrameXml("0x109186", "MakeNode(int)", "tree.cc", 6) +
                   FrameXml("0x10919F", "Lose()", "tree.cc", 8) +
                   FrameXml("0x1091DF", "main", "main.cc", 9));
}

ValgrindRun Parsed(const std::string& xml) {
  const auto run = ParseValgrindXml(xml);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *run : ValgrindRun();
}

TEST(ValgrindRunTest, ReadsWhatMemcheckWrote) {
  const ValgrindRun run = Parsed(Document(NodeError(), kAllKinds + "<arg>--num-callers=40</arg>"));
  EXPECT_EQ(run.protocol, 4u);
  EXPECT_EQ(run.version, "Valgrind-3.19.0 and LibVEX");
  EXPECT_EQ(run.pid, 77u);
  EXPECT_EQ(run.command, (std::vector<std::string>{"./app", "--fast"}));
  EXPECT_EQ(run.duration_ns, 86'462'404'000'000u);
  EXPECT_EQ(run.callers, 40u);
  EXPECT_EQ(run.shown, LeakKindSet::OfScans());
  EXPECT_EQ(run.damage, "");
  ASSERT_EQ(run.losses.size(), 1u);
  const Loss& loss = run.losses[0];
  EXPECT_EQ(loss.kind, LeakKind::kDefinite);
  EXPECT_EQ(loss.bytes, 96u);
  EXPECT_EQ(loss.indirect_bytes, 96u);
  EXPECT_EQ(loss.blocks, 3u);
  EXPECT_FALSE(loss.cut);
  ASSERT_EQ(loss.stack.size(), 4u);
  EXPECT_EQ(loss.stack[1], (LossFrame{0x109186, "/work/app", "MakeNode(int)", "/src", "tree.cc", 6}));
}

TEST(ValgrindRunTest, OptionsSayWhatIsShown) {
  EXPECT_EQ(Parsed(Document("")).shown, LeakKindSet::Default());
  EXPECT_EQ(Parsed(Document("", "<arg>--show-reachable=yes</arg>")).shown, LeakKindSet::OfScans());
  EXPECT_EQ(Parsed(Document("", "<arg>--show-possibly-lost=no</arg>")).shown,
            LeakKindSet::Of(LeakKind::kDefinite));
  EXPECT_FALSE(Parsed(Document("", "<arg>--run-libc-freeres=no</arg>")).frees_libc);
  EXPECT_EQ(Parsed(Document("", "<arg>--leak-resolution=low</arg>")).resolution,
            render::LeakResolution::kLow);
}

// A function that calls itself has one address many times, and inlined functions have one together.
TEST(ValgrindRunTest, AStackOfSoManyCallersIsCut) {
  const std::string inlined = FrameXml("0x20", "i", "a.c", 1) + FrameXml("0x20", "f", "a.c", 2);
  const auto parsed = [](const std::string& frames, int callers) {
    const ValgrindRun run = Parsed(Document(
        Error("Leak_DefinitelyLost", "8 bytes in 1 blocks are definitely lost", Amounts(8, 1),
              kMallocFrame + frames),
        "<arg>--num-callers=" + std::to_string(callers) + "</arg>"));
    return run.losses.size() == 1 && run.losses[0].cut;
  };
  const std::string f = FrameXml("0x10", "f", "a.c", 1);
  EXPECT_TRUE(parsed(f + f + f, 4));
  EXPECT_TRUE(parsed(inlined + inlined, 3));
  EXPECT_TRUE(parsed(f, 50)) << "there was no way on";
  for (const char* outermost : {"main", "(below main)", "clone", "start_thread"}) {
    EXPECT_FALSE(parsed(f + f + FrameXml("0x30", outermost, "", 0), 4)) << outermost;
  }
}

// memcheck has functions of its own around setenv() and putenv().
TEST(ValgrindRunTest, AStackEndsWhereItsCodeDoes) {
  const std::string nowhere = "<frame><ip>0x7</ip></frame>\n<frame><ip>0x1FFF00095E</ip></frame>\n";
  const std::string loader = FrameXml("0x401F000", "", "", 0, "/usr/lib/ld-linux-x86-64.so.2");
  const ValgrindRun run = Parsed(Document(
      Error("Leak_StillReachable", "1 of 1", Amounts(10, 1), kMallocFrame + loader + nowhere) +
      Error("Leak_StillReachable", "2 of 2", Amounts(10, 1), "<frame><ip>0x7</ip></frame>\n"), kAllKinds));
  ASSERT_EQ(run.losses.size(), 2u);
  EXPECT_EQ(run.losses[0].stack.size(), 2u);
  EXPECT_EQ(run.losses[1].stack.size(), 1u) << "there is nothing else";
}

TEST(ValgrindRunTest, MemchecksOwnFramesAreNotCompared) {
  const char* const own = "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so";
  const ValgrindRun run = Parsed(Document(
      Error("Leak_DefinitelyLost", "8 bytes in 1 blocks are definitely lost", Amounts(8, 1),
            kMallocFrame + FrameXml("0x10", "__add_to_environ", "", 0, "/lib/libc.so.6") +
                FrameXml("0x20", "setenv", "", 0, own) + FrameXml("0x30", "main", "main.cc", 9))));
  ASSERT_EQ(run.losses.size(), 1u);
  EXPECT_EQ(WordsOf(run.losses[0], MatchStage::kFunctions).words,
            (std::vector<std::string>{"__add_to_environ", "main"}));
}

TEST(ValgrindRunTest, CountsErrorsThatAreNoLeaks) {
  const ValgrindRun run = Parsed(Document(
      "<error><unique>0x0</unique><tid>1</tid><kind>UninitCondition</kind><what>x</what>"
      "<stack><frame><ip>0x1</ip></frame></stack></error>" + NodeError()));
  EXPECT_EQ(run.other_errors, 1u);
  EXPECT_EQ(run.losses.size(), 1u);
}

TEST(ValgrindRunTest, ReadsProtocolsFiveAndSix) {
  EXPECT_EQ(Parsed(Document(NodeError(), "", "5")).losses.size(), 1u);
  const std::string six =
      "<heap_summary><memory_in_use_at_exit><bytes>720</bytes><blocks>5</blocks>"
      "</memory_in_use_at_exit><total_heap_usage><allocs>7</allocs><frees>2</frees>"
      "<bytes_allocated>1,024</bytes_allocated></total_heap_usage></heap_summary>"
      "<all_heap_blocks_freed>false</all_heap_blocks_freed>" + NodeError() +
      "<leak_summary><definitely_lost><bytes>96</bytes><in_blocks>3</in_blocks></definitely_lost>"
      "<suppressed><bytes>40</bytes><blocks>2</blocks></suppressed></leak_summary>"
      "<error_summary><errors>1</errors></error_summary>";
  const ValgrindRun run = Parsed(Document(six, "", "6"));
  EXPECT_EQ(run.losses.size(), 1u);
  ASSERT_TRUE(run.heap.has_value());
  EXPECT_EQ(run.heap->allocations, 7u);
  EXPECT_EQ(run.heap->bytes_allocated, 1024u);
  EXPECT_EQ(run.heap->live_blocks, 5u);
}

TEST(ValgrindRunTest, RefusesWhatIsNotMemchecks) {
  for (const std::string& xml :
       {std::string(), std::string("not xml"), std::string("<a/>"), std::string("\x7f""ELF\0", 5),
        Document("", "", "3"), Document("", "", "7"), Document("", "", "")}) {
    EXPECT_FALSE(ParseValgrindXml(xml).ok()) << xml;
  }
  std::string helgrind = Document("");
  helgrind.replace(helgrind.find("memcheck"), 8, "helgrind");
  EXPECT_THAT(std::string(ParseValgrindXml(helgrind).status().message()),
              HasSubstr("of Valgrind's helgrind"));
}

TEST(ValgrindRunTest, KeepsWhatIsBeforeACut) {
  const std::string whole = Document(NodeError() + NodeError());
  const size_t head = whole.find("</tool>") + 7;
  const size_t first = whole.find("</error>") + 8;
  const size_t second = whole.find("</error>", first) + 8;
  for (size_t length = 0; length < whole.find("</valgrindoutput>") + 16; ++length) {
    const auto run = ParseValgrindXml(whole.substr(0, length));
    if (length < head) {
      EXPECT_FALSE(run.ok()) << length;
      continue;
    }
    ASSERT_TRUE(run.ok()) << length << ": " << run.status();
    EXPECT_NE(run->damage, "") << length;
    EXPECT_EQ(run->losses.size(), length < first ? 0u : length < second ? 1u : 2u) << length;
  }
}

TEST(ValgrindRunTest, DamageInTheMiddleIsNamed) {
  std::string xml = Document(NodeError() + NodeError());
  const size_t second = xml.find("<kind>", xml.find("</error>"));
  xml.replace(second, 6, "<<<<<<");
  const ValgrindRun run = Parsed(xml);
  EXPECT_EQ(run.losses.size(), 1u);
  EXPECT_THAT(run.damage, HasSubstr("damaged at byte"));
}

TEST(ValgrindRunTest, LimitsHoldForHostileFiles) {
  EXPECT_FALSE(ParseValgrindXml(Document(""), {.bytes = 100}).ok());
  std::string deep, frames;
  for (int i = 0; i < 200'000; ++i) deep += "<a>";
  EXPECT_FALSE(ParseValgrindXml(deep).ok());
  // As deep inside of an error that was begun.
  (void)ParseValgrindXml(Document("<error>" + deep));
  for (int i = 0; i < 5000; ++i) frames += FrameXml("0x" + std::to_string(i), "f", "a.c", i);
  const std::string error = Error("Leak_DefinitelyLost", "", Amounts(1, 1), frames);
  const ValgrindRun run = *ParseValgrindXml(Document(error + error + error), {.losses = 2});
  ASSERT_EQ(run.losses.size(), 2u);
  EXPECT_EQ(run.losses[0].stack.size(), 2000u);
  EXPECT_THAT(run.notes, Contains(HasSubstr("only the first 2")));
  // No entity is anything but itself.
  const ValgrindRun bomb = Parsed(
      Document(Error("Leak_DefinitelyLost", "&lol;", Amounts(1, 1), FrameXml("0x1", "&lol;", "", 0))));
  EXPECT_EQ(bomb.losses[0].stack[0].function, "&lol;");
  const std::string name(100'000, 'x');
  EXPECT_EQ(Parsed(Document(Error("Leak_DefinitelyLost", "", Amounts(1, 1),
                                  FrameXml("0x1", name, "", 0)))).losses[0].stack[0].function.size(),
            8192u);
}

TEST(StackKeyTest, OneFunctionHasOneName) {
  for (const char* name :
       {"push_back", "std::vector<int, std::allocator<int> >::push_back(int&&)",
        "std::vector<int, std::allocator<int>>::push_back(int &&)",
        "void std::vector<int>::push_back<int>(int&&)", "_ZNSt6vectorIiSaIiEE9push_backEOi",
        "push_back [clone .isra.0]", "push_back.part.3"}) {
    EXPECT_EQ(BareFunction(name), "push_back") << name;
  }
  EXPECT_EQ(BareFunction("malloc@plt"), "malloc");
  EXPECT_EQ(BareFunction("pthread_create@@GLIBC_2.34"), "pthread_create");
  EXPECT_EQ(BareFunction("ns::A<int>::operator<<(int)"), "operator<<");
  EXPECT_EQ(BareFunction("ns::A<int>::operator()(int) const"), "operator()");
  EXPECT_EQ(BareFunction("std::__cxx11::to_string[abi:cxx11](int)"), "to_string");
  EXPECT_EQ(BareFunction("my_operator_new"), "my_operator_new");
}

TEST(StackKeyTest, WhatLinkersAddToNamesOfOtherLanguagesIsLeftOut) {
  EXPECT_EQ(BareFunction("__m_MOD_d_lost"), "d_lost");
  EXPECT_EQ(BareFunction("_ada_adam"), "adam");
  EXPECT_EQ(BareFunction("adam__nested.0"), "adam__nested");
  EXPECT_EQ(BareFunction("nested.12"), "nested");
  EXPECT_EQ(BareFunction("F_MOD_x"), "F_MOD_x");
  EXPECT_EQ(BareFunction("__f_MOD_"), "__f_MOD_");
  EXPECT_EQ(BareFunction("_ada_"), "_ada_");
  EXPECT_EQ(BareFunction("main.func1"), "main.func1");
}

TEST(StackKeyTest, ALambdaIsCalledAlikeByAll) {
  for (const char* name :
       {"operator()", "main::{lambda()#1}::operator()() const", "main::$_0::operator()() const",
        "app::Go(int)::{lambda(int)#2}::operator()(int) const", "app::Go(int)::$_1::operator()(int) const",
        "main::$_4::operator()() const::{lambda()#1}::operator()() const",
        "main::{lambda}::operator()::{lambda}::operator()()", "_FUN", "main::{lambda(int)#2}::_FUN(int)",
        "auto app::Go(int)::{lambda(auto:1)#1}::operator()<int>(int) const"}) {
    EXPECT_EQ(BareFunction(name), "operator()") << name;
  }
  EXPECT_EQ(BareFunction("void Call<main::{lambda()#1}>(main::{lambda()#1})"), "Call");
  EXPECT_EQ(BareFunction("__invoke_impl<void, main()::<lambda(int)>&, int>"), "__invoke_impl");
  EXPECT_EQ(BareFunction("a::(anonymous namespace)::B::operator bool() const"), "operator bool");
  EXPECT_EQ(BareFunction("(anonymous namespace)::F(int, a::B*)"), "F");
}

}  // namespace
}  // namespace memtrace::report::valgrind
