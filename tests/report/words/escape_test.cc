#include "report/words/escape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "report/words/shell_words.h"

namespace memtrace::report::words {
namespace {

TEST(EscapeTest, NoControlCharacterReachesTheTerminal) {
  std::string hostile;
  for (int c = 0; c < 256; ++c) hostile.push_back(static_cast<char>(c));
  for (const std::string& safe : {EscapeControls(hostile), EscapeToAscii(hostile)}) {
    for (const char c : safe) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << static_cast<int>(c);
  }
  EXPECT_EQ(EscapeControls("a\x1b[2Jb\r\n\x7f"), "a\\x1b[2Jb\\x0d\\x0a\\x7f");
}

TEST(EscapeTest, KeepsUtf8AndEscapesWhatIsNot) {
  EXPECT_EQ(EscapeControls("m\u00f6ve \u65e5\u672c"), "m\u00f6ve \u65e5\u672c");
  EXPECT_EQ(EscapeToAscii("m\u00f6ve"), "m?ve");
  EXPECT_EQ(EscapeControls("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(EscapeControls("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(EscapeControls("x\xe2\x82"), "x\\xe2\\x82") << "cut";
  EXPECT_EQ(EscapeControls("\xc2\x9b"), "\\xc2\\x9b") << "C1: CSI";
}

// XML has no U+FFFE and no U+FFFF, and no reader of it takes a report that does.
TEST(EscapeTest, NoncharactersAreEscaped) {
  EXPECT_EQ(EscapeControls("a\xef\xbf\xbe"), "a\\xef\\xbf\\xbe");
  EXPECT_EQ(EscapeControls("\xef\xbf\xbf"), "\\xef\\xbf\\xbf");
  EXPECT_EQ(EscapeControls("\xef\xb7\x90"), "\\xef\\xb7\\x90");
  EXPECT_EQ(EscapeControls("\xef\xbf\xbd"), "\xef\xbf\xbd");
}

TEST(EscapeTest, TextCannotBeReordered) {
  EXPECT_EQ(EscapeControls("a\u202e"), "a\\xe2\\x80\\xae");
  EXPECT_EQ(EscapeControls("\u2066x"), "\\xe2\\x81\\xa6x");
}

TEST(EscapeTest, NoCharacterIsCut) {
  const std::string text = "a\u00e9\u65e5\U0001f600z";  // of 1, 2, 3, 4 and 1 bytes
  const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (size_t bytes = 0; bytes < std::size(whole); ++bytes) {
    EXPECT_EQ(CutUtf8(text, bytes), text.substr(0, whole[bytes])) << bytes;
  }
  // What is no UTF-8 has no characters to be kept whole.
  EXPECT_EQ(CutUtf8("\x80\x80\x80\x80\x80\x80", 5).size(), 5u);
  EXPECT_EQ(CutUtf8("ab\xf0\x9f", 3), "ab\xf0");
}

TEST(EscapeTest, MarkupHasNeitherTagsNorQuotesOfAName) {
  EXPECT_EQ(EscapeMarkup("a<b>&\"c\" 'd'\n"), "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39;\\x0a");
  EXPECT_EQ(EscapeMarkup("&amp;"), "&amp;amp;") << "as it is, not as it was meant";
}

TEST(CsvFieldTest, QuotesAsRfc4180) {
  EXPECT_EQ(CsvField("plain"), "plain");
  EXPECT_EQ(CsvField("std::map<int, int>"), "\"std::map<int, int>\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "two\\x0alines");
  EXPECT_EQ(CsvField(""), "");
}

TEST(CsvFieldTest, NoFieldIsAFormula) {
  EXPECT_EQ(CsvField("=1+1"), "'=1+1");
  EXPECT_EQ(CsvField("+cmd"), "'+cmd");
  EXPECT_EQ(CsvField("-2+3"), "'-2+3");
  EXPECT_EQ(CsvField("@SUM(A1,B1)"), "\"'@SUM(A1,B1)\"");
  EXPECT_EQ(CsvField("\t=1"), "\\x09=1");
}

TEST(WidthTest, CountsColumnsAndNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("m\u00f6ve"), 4u);
  EXPECT_EQ(DisplayWidth("\u65e5\u672c"), 4u);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1u);
}

TEST(WidthTest, CutsNeverExceedTheWidthNorSplitACharacter) {
  const std::string text = "\u65e5\u672cm\u00f6ve e\u0301 plain text";
  for (size_t width = 0; width < 24; ++width) {
    for (const absl::string_view ellipsis : {"\u2026", "..."}) {
      for (const std::string& cut :
           {KeepBeginning(text, width, ellipsis), KeepEnd(text, width, ellipsis),
            KeepEnds(text, width, ellipsis)}) {
        EXPECT_LE(DisplayWidth(cut), width) << cut;
        EXPECT_EQ(EscapeControls(cut), cut) << "a character was split";
      }
    }
  }
  EXPECT_EQ(KeepBeginning("abcdefgh", 6, "..."), "abc...");
  EXPECT_EQ(KeepEnd("abcdefgh", 6, "..."), "...fgh");
  EXPECT_EQ(KeepEnd("abc", 6, "..."), "abc");
  EXPECT_EQ(KeepEnds("abcdefgh", 6, "..."), "ab...h");
  EXPECT_EQ(KeepEnds("abcdefgh", 8, "..."), "abcdefgh");
}

TEST(WidthTest, WrapsBetweenWords) {
  EXPECT_THAT(Wrapped("one two three", 7), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(Wrapped("one two three", 8), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(Wrapped("extraordinary one", 5), testing::ElementsAre("extra", "ordin", "ary", "one"));
  EXPECT_THAT(Wrapped("m\u00f6ve m\u00f6ve", 4), testing::ElementsAre("m\u00f6ve", "m\u00f6ve"));
  EXPECT_THAT(Wrapped("/usr/src/Objects/unicodeobject.c", 20),
              testing::ElementsAre("/usr/src/Objects/", "unicodeobject.c"));
  EXPECT_THAT(Wrapped("/a/extraordinary", 10), testing::ElementsAre("/a/extraor", "dinary"));
  EXPECT_THAT(Wrapped("", 5), testing::IsEmpty());
  EXPECT_THAT(Wrapped("\u65e5\u672c", 1), testing::ElementsAre("\u65e5\u672c"));
}

TEST(ShellWordTest, QuotesOnlyWhatAShellWouldChange) {
  EXPECT_EQ(ShellWord("/a/b-c_1.%e.mtr"), "/a/b-c_1.%e.mtr");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a\x1b[1m'b\\\n.mtr"), "$'a\\x1b[1m\\'b\\\\\\x0a.mtr'");
}

TEST(ShellWordTest, AFileIsNoOption) {
  EXPECT_EQ(ShellFile("-dash.mtr"), "./-dash.mtr");
  EXPECT_EQ(ShellFile("- dash.mtr"), "'./- dash.mtr'");
  EXPECT_EQ(ShellFile("a-b.mtr"), "a-b.mtr");
}

TEST(ShellWordTest, ACommandHasItsEmptyWordsToo) {
  EXPECT_EQ(ShellCommand(std::vector<std::string>{"redis-server", "--save", "", "--dir", "/t m p"}),
            "redis-server --save '' --dir '/t m p'");
  EXPECT_EQ(ShellCommand({}), "");
}

TEST(ShellWordTest, ACommandSaysWhereItIsCut) {
  const std::vector<std::string> command = {"./app", "two words", "--last"};
  EXPECT_EQ(ShellCommand(command, 24), "./app 'two words' --last") << "it has room";
  EXPECT_EQ(ShellCommand(command, 23), "./app 'two words' --\u2026");
  EXPECT_EQ(ShellCommand(command, 21), "./app 'two words' \u2026");
  EXPECT_EQ(ShellCommand(command, 20), "./app 'two words'\u2026") << "nothing of the word has room";
  EXPECT_EQ(ShellCommand(command, 16), "./app 'two w'\u2026");
  // Neither a character nor an escape is cut.
  const std::vector<std::string> strange = {"a\u00fc\u00fc", "\x1b\x1b\x1b"};
  for (size_t bytes = 4; bytes < 40; ++bytes) {
    const std::string cut = ShellCommand(strange, bytes);
    EXPECT_LE(cut.size(), bytes);
    EXPECT_EQ(EscapeControls(cut), cut);
    EXPECT_EQ(std::count(cut.begin(), cut.end(), '\'') % 2, 0) << cut;
    EXPECT_EQ(cut == ShellCommand(strange), !absl::EndsWith(cut, "\u2026")) << cut;
  }
}

}  // namespace
}  // namespace memtrace::report::words
