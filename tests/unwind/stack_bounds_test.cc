#include "preload/unwind/stack_bounds.h"

#include <alloca.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "preload/arch/arch.h"

extern "C" void* __libc_stack_end;  // of glibc's loader: the end of the main thread's stack

namespace memtrace::unwind {
namespace {

// `pages` pages, of which the one at `hole` has no access.
class Pages {
 public:
  explicit Pages(size_t pages) : bytes_(pages * 4096) {
    base_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Pages() { munmap(base_, bytes_); }
  void TakeAccess(size_t page) { mprotect(base_ + page * 4096, 4096, PROT_NONE); }
  void Unmap(size_t page) { munmap(base_ + page * 4096, 4096); }
  uintptr_t at(size_t page, size_t offset = 0) const {
    return reinterpret_cast<uintptr_t>(base_) + page * 4096 + offset;
  }

 private:
  size_t bytes_;
  char* base_;
};

TEST(StackBoundsTest, ProbesTellWhatCanBeRead) {
  Pages pages(3);
  pages.TakeAccess(1);
  pages.Unmap(2);
  errno = 77;
  EXPECT_TRUE(ProbeWord(pages.at(0)));
  EXPECT_TRUE(ProbeWord(pages.at(0, 4088)));
  EXPECT_FALSE(ProbeWord(pages.at(0, 4089))) << "reaches into the next page";
  EXPECT_FALSE(ProbeWord(pages.at(1)));
  EXPECT_FALSE(ProbeWord(pages.at(2)));
  EXPECT_FALSE(ProbeWord(0));
  EXPECT_FALSE(ProbeWord(~uintptr_t{0}));
  EXPECT_FALSE(ProbeWord(uintptr_t{1} << kAddressBits)) << "not an address at all";
  EXPECT_EQ(errno, 77);
}

[[gnu::noinline]] uintptr_t StackPointer() {
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
}

TEST(StackBoundsTest, KnowsThePrimaryStackToItsTop) {
  const auto check = [](uintptr_t top) {
    StackBounds bounds;
    const uintptr_t sp = StackPointer();
    const StackWindow window = bounds.Enter(sp);
    EXPECT_LE(window.lo, sp);
    EXPECT_GT(window.hi, top);
    EXPECT_LE(window.hi, top + 4096);
    for (uintptr_t page = window.lo; page < window.hi; page += 4096) EXPECT_TRUE(ProbeWord(page));
  };
  check(reinterpret_cast<uintptr_t>(__libc_stack_end));
  std::thread([&] { check(ThreadPointer()); }).join();
}

// The first thread of a fork child runs on the stack of the thread that forked.
TEST(StackBoundsTest, KnowsTheStackOfAChildThatAThreadForked) {
  StackBounds().Enter(StackPointer());  // the first thread has been here, as it has when there are others
  int status = -1;
  std::thread([&] {
    const pid_t child = fork();
    if (child == 0) {
      StackBounds bounds;
      const StackWindow window = bounds.Enter(StackPointer());
      _exit(window.lo <= StackPointer() && window.hi > ThreadPointer() ? 0 : 1);
    }
    waitpid(child, &status, 0);
  }).join();
  EXPECT_EQ(status, 0);
}

// What lies there may be memory of a userfaultfd or a file of the program's own file system: who
// looks at that waits for the program, which may be this very thread.
TEST(StackBoundsTest, LooksAtNothingAboveAThreadsStack) {
  constexpr size_t kPages = 64;
  auto* const memory = static_cast<char*>(mmap(nullptr, 2 * kPages * 4096, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(memory, 2 * kPages * 4096, MADV_NOHUGEPAGE);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory, kPages * 4096), 0);
  const auto body = [](void* data) -> void* {
    const auto begin = reinterpret_cast<uintptr_t>(data);  // of its stack
    EXPECT_EQ(ThreadPointer() & ~uintptr_t{4095}, begin + (kPages - 1) * 4096) << "its last page";
    StackBounds bounds;
    bounds.Enter(StackPointer());
    EXPECT_EQ(bounds.Enter(begin + 4096).lo, begin + 4096);  // the descriptor was read
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, memory), 0);
  pthread_join(thread, nullptr);
  unsigned char resident[kPages];
  ASSERT_EQ(mincore(memory + kPages * 4096, kPages * 4096, resident), 0);
  for (const unsigned char page : resident) EXPECT_EQ(page & 1, 0);
  munmap(memory, 2 * kPages * 4096);
}

// Fibers are made of mappings that often lie right below a thread's stack: however often they are met, the
// stack stays the thread's own to its begin.
TEST(StackBoundsTest, KnowsWhereAThreadsStackBegins) {
  constexpr size_t kPages = 256;
  auto* const memory = static_cast<char*>(mmap(nullptr, 2 * kPages * 4096, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory + kPages * 4096, kPages * 4096), 0);
  const auto body = [](void* data) -> void* {
    const auto begin = reinterpret_cast<uintptr_t>(data);  // of its stack
    StackBounds bounds;
    bounds.Enter(StackPointer());
    for (int i = 0; i < 100; ++i) {
      const uintptr_t fiber = begin - 4096 * 100;
      EXPECT_EQ(bounds.Enter(fiber).hi, (fiber & ~uintptr_t{4095}) + 4096) << "not of it";
    }
    EXPECT_EQ(bounds.Enter(begin + 4096).lo, begin + 4096);
    EXPECT_EQ(bounds.primary_lo(), begin + 4096);
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, memory + kPages * 4096), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(memory, 2 * kPages * 4096);
}

// A stack pointer that has run into the guard is on no stack of the thread's.
TEST(StackBoundsTest, AThreadsGuardIsNotOfItsStack) {
  std::thread([] {
    uintptr_t low = StackPointer() & ~uintptr_t{4095};
    while (ProbeWord(low - 4096)) low -= 4096;  // what lies below has no access
    StackBounds bounds;
    bounds.Enter(StackPointer());
    bounds.Enter(low - 8);
    EXPECT_GE(bounds.primary_lo(), low);
    bounds.Enter(low + 4096);
    EXPECT_EQ(bounds.primary_lo(), low + 4096);
  }).join();
}

[[gnu::noinline]] void EnterDeeper(StackBounds* bounds, size_t bytes) {
  volatile char* block = static_cast<char*>(alloca(bytes));
  block[0] = 1;
  const uintptr_t sp = StackPointer();
  const StackWindow window = bounds->Enter(sp);
  EXPECT_LE(window.lo, sp);
  EXPECT_GT(window.hi, reinterpret_cast<uintptr_t>(bounds));
  EXPECT_EQ(bounds->primary_lo(), window.lo);
  block[bytes - 1] = 1;
}

TEST(StackBoundsTest, FollowsThePrimaryStackDownwards) {
  StackBounds bounds;
  const uintptr_t lo = bounds.Enter(StackPointer()).lo;
  EnterDeeper(&bounds, 10'000);
  EXPECT_LT(bounds.primary_lo(), lo);
  EnterDeeper(&bounds, 3'000'000);
  EXPECT_LT(bounds.primary_lo(), lo - 3'000'000 + 4096);
  std::thread([] {
    StackBounds own;
    EnterDeeper(&own, 1'000'000);
  }).join();
}

// Automatic arrays of Fortran and OpenMP.
TEST(StackBoundsTest, FollowsFramesOfHundredsOfMegabytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 300u << 20), 0);
  const auto body = [](void*) -> void* {
    StackBounds bounds;
    bounds.Enter(StackPointer());
    EnterDeeper(&bounds, 200u << 20);
    EXPECT_TRUE(bounds.MayBePrimary(StackPointer() - (250u << 20)));
    EXPECT_FALSE(bounds.MayBePrimary(StackPointer() - (400u << 20))) << "below its begin";
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// The same of the main thread, in a process whose limit allows it; below its stack the kernel keeps 128 MiB free.
TEST(StackBoundsTest, FollowsFramesOfTensOfMegabytesOnTheMainThread) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur < (120u << 20)) {
      limit.rlim_cur = 120u << 20;
      EXPECT_EQ(setrlimit(RLIMIT_STACK, &limit), 0);
    }
    StackBounds bounds;
    bounds.Enter(StackPointer());
    Pages fiber(4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(bounds.Enter(fiber.at(1, 128)).lo, fiber.at(1));
    EnterDeeper(&bounds, 90u << 20);
    EXPECT_EQ(bounds.Enter(fiber.at(1, 128)).lo, fiber.at(1));
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

size_t StackKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmStk:")) return std::stoul(line.substr(6));
  }
  return 0;
}

// What is read below the main thread's stack makes it grow, up to its limit.
TEST(StackBoundsTest, OtherStacksDoNotMakeTheMainThreadsGrow) {
  StackBounds bounds;
  bounds.Enter(StackPointer());
  const size_t before = StackKiB();
  Pages fiber(4);
  for (int i = 0; i < 4; ++i) bounds.Enter(fiber.at(1, 128));
  EXPECT_LT(StackKiB(), before + 256);
}

TEST(StackBoundsTest, RemembersNothingOfOtherStacks) {
  StackBounds bounds;
  bounds.Enter(StackPointer());
  const uintptr_t lo = bounds.primary_lo();
  Pages fiber(4);
  StackWindow window = bounds.Enter(fiber.at(1, 128));
  EXPECT_EQ(window.lo, fiber.at(1));
  EXPECT_EQ(window.hi, fiber.at(2));
  EXPECT_TRUE(bounds.Move(fiber.at(2, 8), &window));
  EXPECT_EQ(window.lo, fiber.at(1));
  EXPECT_EQ(window.hi, fiber.at(3)) << "grown by the page that was asked for";
  EXPECT_EQ(bounds.primary_lo(), lo);

  fiber.Unmap(2);
  window = bounds.Enter(fiber.at(1, 128));
  EXPECT_EQ(window.hi, fiber.at(2));
  EXPECT_FALSE(bounds.Move(fiber.at(2, 8), &window)) << "gone meanwhile";
  window = bounds.Enter(fiber.at(2, 128));
  EXPECT_EQ(window.lo, window.hi) << "nothing may be read there";
}

// Who asks for each event on a coroutine's stack must not look at memory.
TEST(StackBoundsTest, WhatCannotBeThePrimaryStackIsKnownByTheAddress) {
  std::thread([] {
    StackBounds bounds;
    Pages pages(1);
    EXPECT_TRUE(bounds.MayBePrimary(pages.at(0))) << "not known yet";
    bounds.Enter(StackPointer());
    EXPECT_TRUE(bounds.MayBePrimary(StackPointer()));
    EXPECT_TRUE(bounds.MayBePrimary(StackPointer() - 20 * 4096)) << "where it may grow to";
    EXPECT_FALSE(bounds.MayBePrimary(bounds.primary_hi()));
    EXPECT_FALSE(bounds.MayBePrimary(StackPointer() - (100 << 20)));
  }).join();
}

TEST(StackBoundsTest, MovesOnlyToWhatCanBeRead) {
  StackBounds bounds;
  Pages pages(5);
  pages.TakeAccess(2);
  StackWindow window = bounds.Enter(pages.at(0));
  EXPECT_TRUE(window.Contains(pages.at(0, 4088)));
  EXPECT_FALSE(window.Contains(pages.at(0, 4089)));
  EXPECT_FALSE(bounds.Move(pages.at(1, 4092), &window)) << "half of it cannot be read";
  EXPECT_TRUE(bounds.Move(pages.at(0, 4092), &window)) << "over the border of two pages";
  EXPECT_TRUE(bounds.Move(pages.at(4), &window));
  EXPECT_EQ(window.lo, pages.at(4)) << "the hole between is not in the window";
  EXPECT_FALSE(window.Contains(pages.at(2)));
  EXPECT_FALSE(bounds.Move(pages.at(2), &window));
  EXPECT_FALSE(bounds.Move(~uintptr_t{0} - 3, &window));
  EXPECT_FALSE(bounds.Move((uintptr_t{1} << kAddressBits) - 4, &window));
  // From any other stack back to the primary one.
  const uintptr_t sp = StackPointer();
  bounds.Enter(sp);
  EXPECT_TRUE(bounds.Move(sp, &window));
  EXPECT_EQ(window.hi, bounds.primary_hi());
}

TEST(StackBoundsTest, GivesUpExtendingOverHoles) {
  // A stack below the primary one, with a hole in between, in a thread whose stack is
  // ours to arrange.
  Pages pages(64);
  pages.TakeAccess(8);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, reinterpret_cast<void*>(pages.at(16)), 48 * 4096);
  pthread_t thread;
  pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        const Pages& all = *static_cast<Pages*>(argument);
        StackBounds bounds;
        bounds.Enter(StackPointer());
        const uintptr_t lo = bounds.primary_lo();
        EXPECT_GE(lo, all.at(16));
        for (int i = 0; i < 3; ++i) {
          const StackWindow window = bounds.Enter(all.at(4, 16));
          EXPECT_EQ(window.lo, all.at(4));
          EXPECT_EQ(window.hi, all.at(5));
        }
        EXPECT_EQ(bounds.primary_lo(), lo);
        return nullptr;
      },
      &pages);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// The processor stops behind each instruction, and the handler of that jumps out behind one of
// them.
sigjmp_buf g_out;
int g_instructions_left = 0;
void JumpOutOfStep(int) {
  if (--g_instructions_left == 0) siglongjmp(g_out, 1);
}
[[gnu::always_inline]] inline void BeginSteps() {
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}
[[gnu::always_inline]] inline void EndSteps() {
  asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

// False: it ended before.
[[gnu::noinline]] bool JumpsOutOfEntering(StackBounds* bounds, int instruction) {
  if (sigsetjmp(g_out, 1) != 0) return true;
  g_instructions_left = instruction;
  BeginSteps();
  bounds->Enter(StackPointer());
  EndSteps();
  return false;
}

TEST(StackBoundsTest, AHandlerMayJumpOutOfItAnywhere) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer calls a handler later, and from elsewhere";
#endif
  struct sigaction action = {}, before;
  action.sa_handler = JumpOutOfStep;
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  const auto check = [](uintptr_t top, int stride) {
    const uintptr_t sp = StackPointer();
    int instruction = 1;
    for (bool jumps = true; jumps; instruction += stride) {
      StackBounds bounds;
      jumps = JumpsOutOfEntering(&bounds, instruction);
      const std::string where = "after " + std::to_string(instruction) + " instructions";
      ASSERT_TRUE(bounds.MayBePrimary(sp)) << where;
      const StackWindow window = bounds.Enter(sp);
      ASSERT_TRUE(window.Contains(sp)) << where;
      ASSERT_TRUE(bounds.IsPrimary(window)) << where;
      ASSERT_GT(window.hi, top) << where;
      ASSERT_LE(window.hi, top + 4096) << where;
    }
    EXPECT_GT(instruction, 50);
  };
  check(reinterpret_cast<uintptr_t>(__libc_stack_end), 1);
  // Its descriptor is searched, which takes long in steps.
  std::thread([&] { check(ThreadPointer(), 41); }).join();
  sigaction(SIGTRAP, &before, nullptr);
}

TEST(StackBoundsTest, ResetForgetsTheThread) {
  StackBounds bounds;
  std::thread([&] { bounds.Enter(StackPointer()); }).join();
  bounds.Reset();
  const uintptr_t sp = StackPointer();
  const StackWindow window = bounds.Enter(sp);
  EXPECT_LE(window.lo, sp);
  EXPECT_GT(window.hi, sp);
  EXPECT_EQ(bounds.primary_hi(), window.hi);
}

}  // namespace
}  // namespace memtrace::unwind
