// What the end of a trace says of threads. This program records itself: the names go to its trace.

#include "preload/trace_end.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <fstream>
#include <semaphore>
#include <string>
#include <thread>

#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/thread_state.h"

namespace memtrace {
namespace {

int TimesInTrace(const std::string& text) {
  std::ifstream file(g_process.file.path(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  int times = 0;
  for (size_t at = 0; (at = bytes.find(text, at)) != bytes.npos; ++at) ++times;
  return times;
}

// A thread with a state of its own, until it is told to end.
class LivingThread {
 public:
  LivingThread() : thread_([this] { Run(); }) { begun_.acquire(); }
  ~LivingThread() { End(); }
  LivingThread(const LivingThread&) = delete;
  LivingThread& operator=(const LivingThread&) = delete;

  void End() {
    if (!thread_.joinable()) return;
    end_.release();
    thread_.join();
  }
  void Name(const char* name) { pthread_setname_np(thread_.native_handle(), name); }
  ThreadState& state() { return *state_; }

 private:
  void Run() {
    { const Section section; }
    state_ = t_slot.state;
    begun_.release();
    end_.acquire();
  }

  ThreadState* state_ = nullptr;
  std::binary_semaphore begun_{0}, end_{0};
  std::thread thread_;
};

TEST(ThreadNamesTest, AThreadThatHasEndedGetsNotTheNameOfWhoHasItsNumber) {
  { const Section section; }
  LivingThread ended, living;
  ASSERT_NE(&ended.state(), &living.state());
  ASSERT_LT(ended.state().serial, living.state().serial);
  ended.End();
  // As if the kernel had given out the number again.
  const int its_own = ended.state().owner_tid.exchange(living.state().owner_tid.load());
  const int before = TimesInTrace("name-of-later");
  living.Name("name-of-later");
  WriteThreadNames();
  EXPECT_EQ(TimesInTrace("name-of-later"), before + 1);
  ended.state().owner_tid.store(its_own);
}

TEST(ThreadNamesTest, AStateThatIsNoThreadsYetHasNone) {
  { const Section section; }
  LivingThread thread;
  const int before = TimesInTrace("name-of-none");  // of an earlier run of the test
  thread.Name("name-of-none");
  const uint32_t serial = thread.state().serial;
  thread.state().serial = 0;
  WriteThreadNames();
  EXPECT_EQ(TimesInTrace("name-of-none"), before);
  thread.state().serial = serial;
  WriteThreadNames();
  EXPECT_EQ(TimesInTrace("name-of-none"), before + 1);
}

}  // namespace
}  // namespace memtrace
