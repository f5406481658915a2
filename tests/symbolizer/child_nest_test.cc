// The process that children come from: what it hands on, and what remains when it is gone.

#include "symbolizer/child_nest.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

namespace memtrace::symbolizer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMost = size_t{64} << 20;

std::string Twice(std::string_view question) { return std::string(question) + std::string(question); }
std::string WhoAnswers(std::string_view) { return std::to_string(getppid()); }
std::string Crash(std::string_view) { abort(); }
std::string Wait(std::string_view) {
  for (;;) pause();
}

class ChildNestTest : public ::testing::Test {
 protected:
  ChildNest nest_{{Twice, WhoAnswers, Crash, Wait}};
};

TEST_F(ChildNestTest, HandsOnWhatItsChildrenAnswer) {
  nest_.Settle();
  ASSERT_TRUE(nest_.settled());
  for (const size_t bytes : {0u, 1u, 100u, 5'000'000u}) {
    const std::string question(bytes, 'x');
    const ChildAnswer answer = nest_.Ask(0, question, seconds(20), kMost);
    ASSERT_TRUE(answer.given) << answer.why_not;
    EXPECT_EQ(answer.bytes, question + question);
  }
  EXPECT_EQ(nest_.Ask(1, "", seconds(20), kMost).bytes, std::to_string(nest_.pid_for_testing()));
}

TEST_F(ChildNestTest, AnswersWithoutANestAsWell) {
  EXPECT_EQ(nest_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_EQ(nest_.Ask(1, "", seconds(20), kMost).bytes, std::to_string(getpid()));
}

TEST_F(ChildNestTest, OutlivesItsChildren) {
  nest_.Settle();
  const ChildAnswer crashed = nest_.Ask(2, "", seconds(20), kMost);
  EXPECT_FALSE(crashed.given);
  EXPECT_NE(crashed.why_not.find("SIGABRT"), std::string::npos) << crashed.why_not;
  const ChildAnswer late = nest_.Ask(3, "", milliseconds(50), kMost);
  EXPECT_FALSE(late.given);
  EXPECT_EQ(late.why_not, "it took too long");
  EXPECT_FALSE(nest_.Ask(0, std::string(1000, 'x'), seconds(20), 1999).given) << "more than was allowed";
  EXPECT_EQ(nest_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_TRUE(nest_.settled());
}

TEST_F(ChildNestTest, WhenItHasDiedTheQuestionIsAnsweredHere) {
  nest_.Settle();
  ASSERT_EQ(kill(nest_.pid_for_testing(), SIGKILL), 0);
  EXPECT_EQ(nest_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_FALSE(nest_.settled());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(ChildNestTest, ControlCIsNotMeantForIt) {
  nest_.Settle();
  ASSERT_EQ(nest_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");  // it has begun
  kill(nest_.pid_for_testing(), SIGINT);
  EXPECT_EQ(nest_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_TRUE(nest_.settled());
}

// What somebody closed must not become ours: a report would be written to the nest.
TEST(ChildNestEndTest, TakesNoStandardDescriptor) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
    ChildNest nest({Twice});
    nest.Settle();
    const bool answers = nest.Ask(0, "ab", seconds(20), kMost).bytes == "abab";
    const bool closed = write(STDOUT_FILENO, "", 1) < 0 && write(STDERR_FILENO, "", 1) < 0;
    _exit(nest.settled() && answers && closed ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ChildNestEndTest, LeavesNoProcess) {
  {
    ChildNest nest({Twice});
    nest.Settle();
    ASSERT_TRUE(nest.settled());
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace memtrace::symbolizer
