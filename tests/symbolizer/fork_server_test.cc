// The process that children come from: what it hands on, and what remains when it is gone.

#include "symbolizer/fork_server.h"

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

class ForkServerTest : public ::testing::Test {
 protected:
  ForkServer fork_server_{{Twice, WhoAnswers, Crash, Wait}};
};

TEST_F(ForkServerTest, HandsOnWhatItsChildrenAnswer) {
  fork_server_.Start();
  ASSERT_TRUE(fork_server_.running());
  for (const size_t bytes : {0u, 1u, 100u, 5'000'000u}) {
    const std::string question(bytes, 'x');
    const ChildAnswer answer = fork_server_.Ask(0, question, seconds(20), kMost);
    ASSERT_TRUE(answer.given) << answer.why_not;
    EXPECT_EQ(answer.bytes, question + question);
  }
  EXPECT_EQ(fork_server_.Ask(1, "", seconds(20), kMost).bytes, std::to_string(fork_server_.PidForTesting()));
}

TEST_F(ForkServerTest, AnswersWithoutAServerAsWell) {
  EXPECT_EQ(fork_server_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_EQ(fork_server_.Ask(1, "", seconds(20), kMost).bytes, std::to_string(getpid()));
}

TEST_F(ForkServerTest, OutlivesItsChildren) {
  fork_server_.Start();
  const ChildAnswer crashed = fork_server_.Ask(2, "", seconds(20), kMost);
  EXPECT_FALSE(crashed.given);
  EXPECT_NE(crashed.why_not.find("SIGABRT"), std::string::npos) << crashed.why_not;
  const ChildAnswer late = fork_server_.Ask(3, "", milliseconds(50), kMost);
  EXPECT_FALSE(late.given);
  EXPECT_EQ(late.why_not, "it took too long");
  EXPECT_FALSE(fork_server_.Ask(0, std::string(1000, 'x'), seconds(20), 1999).given) << "more than was allowed";
  EXPECT_EQ(fork_server_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_TRUE(fork_server_.running());
}

TEST_F(ForkServerTest, WhenItHasDiedTheQuestionIsAnsweredHere) {
  fork_server_.Start();
  ASSERT_EQ(kill(fork_server_.PidForTesting(), SIGKILL), 0);
  EXPECT_EQ(fork_server_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_FALSE(fork_server_.running());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(ForkServerTest, ControlCIsNotMeantForIt) {
  fork_server_.Start();
  ASSERT_EQ(fork_server_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");  // it has begun
  kill(fork_server_.PidForTesting(), SIGINT);
  EXPECT_EQ(fork_server_.Ask(0, "ab", seconds(20), kMost).bytes, "abab");
  EXPECT_TRUE(fork_server_.running());
}

// What somebody closed must not become ours: a report would be written to the server.
TEST(ForkServerEndTest, TakesNoStandardDescriptor) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
    ForkServer server({Twice});
    server.Start();
    const bool answers = server.Ask(0, "ab", seconds(20), kMost).bytes == "abab";
    const bool closed = write(STDOUT_FILENO, "", 1) < 0 && write(STDERR_FILENO, "", 1) < 0;
    _exit(server.running() && answers && closed ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ForkServerEndTest, LeavesNoProcess) {
  {
    ForkServer server({Twice});
    server.Start();
    ASSERT_TRUE(server.running());
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace memtrace::symbolizer
