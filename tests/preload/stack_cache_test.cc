// Which threads glibc has done with: in this process; and in made-up lists, of a glibc that says so
// in no other way.

#include "preload/leak_scan/stack_cache.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "preload/arch/arch.h"
#include "preload/unwind/thread_descriptor.h"

namespace memtrace {
namespace {

constexpr uintptr_t kTidAt = 720;

uintptr_t AddressOf(const volatile void* at) { return reinterpret_cast<uintptr_t>(at); }

#ifdef __x86_64__
std::atomic<int> g_may_end;
void* Wait(void*) {
  while (g_may_end.load() == 0) usleep(1000);
  return nullptr;
}
void* End(void*) { return nullptr; }

TEST(StackCacheTest, AThreadIsDoneWithWhenItIsJoined) {
  pthread_t joined, ended, running;
  ASSERT_EQ(pthread_create(&joined, nullptr, End, nullptr), 0);
  ASSERT_EQ(pthread_create(&ended, nullptr, End, nullptr), 0);
  ASSERT_EQ(pthread_create(&running, nullptr, Wait, nullptr), 0);
  pthread_join(joined, nullptr);
  usleep(50000);
  {
    ScanArena arena;
    ScanMappings mappings(arena);
    PagePlan pages(arena, /*in_copy=*/true);
    ASSERT_TRUE(mappings.Read());
    ASSERT_TRUE(pages.Prepare());
    const uintptr_t tid_offset = unwind::FindTidOffset(pthread_self(), gettid());
    StackCache cache(mappings, arena);
    for (size_t i = 0; i < mappings.size(); ++i) {
      const ScanMapping& mapping = mappings[i];
      if (mapping.kind == format::ScanRegionKind::kModuleData &&
          mapping.part == ScanMapping::Part::kRead &&
          mapping.path.find("/ld-") != mapping.path.npos)
        cache.Find(mapping, tid_offset, pages);
    }
    EXPECT_TRUE(cache.found());
    EXPECT_TRUE(cache.HasDoneWith(joined, pages));
    EXPECT_FALSE(cache.HasDoneWith(ended, pages));
    EXPECT_FALSE(cache.HasDoneWith(running, pages));
    EXPECT_FALSE(cache.HasDoneWith(pthread_self(), pages));
  }
  g_may_end = 1;
  pthread_join(ended, nullptr);
  pthread_join(running, nullptr);
}
#endif

// A page of "ld.so's data", and one for each descriptor.
class MadeUpLists : public testing::Test {
 protected:
  static constexpr size_t kThreads = 8, kFirst = 40;  // words in front of the lists

  MadeUpLists() {
    memory_ =
        static_cast<uint64_t*>(mmap(nullptr, (kThreads + 2) * arch::kPageBytes,
                                    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < 3; ++i) Empty(i);
    for (size_t i = 0; i < kThreads; ++i) {
      uint64_t* const descriptor = Descriptor(i);
      descriptor[0] = descriptor[2] = AddressOf(descriptor);
    }
    Put(1, 0);  // the first thread
    Put(0, 1);
    Put(0, 2);
    Put(2, 3);
    Put(2, 4);
    char lines[300];
    snprintf(lines, sizeof(lines),
             "%" PRIxPTR "-%" PRIxPTR
             " rw-p 00000000 fe:00 77 /lib/ld-linux-x86-64.so.2\n"
             "%" PRIxPTR "-%" PRIxPTR " rw-p 00000000 00:00 0\n",
             AddressOf(memory_), AddressOf(Page(1)), AddressOf(Page(1)),
             AddressOf(Page(kThreads + 2)));
    text_ = lines;
  }
  ~MadeUpLists() override { munmap(memory_, (kThreads + 2) * arch::kPageBytes); }

  uint64_t* Page(size_t i) { return memory_ + i * arch::kPageBytes / 8; }
  uint64_t* Descriptor(size_t i) { return Page(i + 1); }
  uint64_t* Node(size_t i) { return Descriptor(i) + kTidAt / 8 - 2; }
  uint64_t* Head(size_t i) { return memory_ + kFirst + 2 * i; }
  void Empty(size_t i) { Head(i)[0] = Head(i)[1] = AddressOf(Head(i)); }
  // As glibc does.
  void Put(size_t list, size_t thread) {
    uint64_t *const head = Head(list), *const node = Node(thread);
    node[0] = head[0];
    node[1] = AddressOf(head);
    reinterpret_cast<uint64_t*>(head[0])[1] = AddressOf(node);
    head[0] = AddressOf(node);
  }
  void Take(size_t thread) {
    uint64_t* const node = Node(thread);
    reinterpret_cast<uint64_t*>(node[0])[1] = node[1];
    reinterpret_cast<uint64_t*>(node[1])[0] = node[0];
  }
  // The threads that are done with, a digit each; "none": there are no lists.
  std::string Done() {
    ScanArena arena;
    ScanMappings mappings(arena);
    PagePlan pages(arena, /*in_copy=*/true);
    EXPECT_TRUE(mappings.ReadForTesting(text_));
    EXPECT_TRUE(pages.Prepare());
    EXPECT_EQ(mappings.size(), 2u);
    ScanMapping data = mappings[0];
    data.part = ScanMapping::Part::kRead;
    StackCache cache(mappings, arena);
    if (!cache.Find(data, kTidAt, pages)) return "none";
    std::string done;
    for (size_t i = 0; i < kThreads; ++i) {
      if (cache.HasDoneWith(AddressOf(Descriptor(i)), pages)) done += std::to_string(i);
    }
    return done;
  }

  uint64_t* memory_;
  std::string text_;
};

TEST_F(MadeUpLists, WhatIsKeptIsDoneWith) { EXPECT_EQ(Done(), "34"); }

TEST_F(MadeUpLists, SoIsWhatIsInNoList) {
  Put(1, 5);
  Put(1, 6);
  EXPECT_EQ(Done(), "34");
  Take(5);
  EXPECT_EQ(Done(), "345");
}

TEST_F(MadeUpLists, AJoinMovesAThread) {
  Take(2);
  Put(2, 2);
  EXPECT_EQ(Done(), "234");
}

TEST_F(MadeUpLists, NoneIsKept) {
  Empty(2);
  Empty(0);
  Put(0, 1);
  Put(0, 3);
  Put(0, 4);
  EXPECT_EQ(Done().find_first_of("0134"), std::string::npos);
  EXPECT_NE(Done(), "none");
}

TEST_F(MadeUpLists, ALoopOrABreakEndsTheList) {
  Put(2, 5);
  Node(3)[0] = AddressOf(Node(5));  // from the last to the first
  EXPECT_EQ(Done(), "none");
  Node(3)[0] = AddressOf(Head(2));
  Node(4)[0] = 0x1234567812345678;
  EXPECT_EQ(Done(), "45");
}

TEST_F(MadeUpLists, MoreOrFewerThanThreeAreNone) {
  Head(3)[0] = Head(3)[1] = AddressOf(Head(3));
  EXPECT_EQ(Done(), "none");
  Head(3)[0] = 0;
  EXPECT_EQ(Done(), "34");
  Head(0)[0] = 0;
  EXPECT_EQ(Done(), "none");
}

TEST_F(MadeUpLists, OfOtherThingsThanDescriptorsAreNone) {
  Descriptor(1)[2] = Descriptor(2)[2] = 0;
  EXPECT_EQ(Done(), "none");
}

TEST_F(MadeUpLists, ThatAreAllEmptyTellNothing) {
  for (size_t i = 0; i < 3; ++i) Empty(i);
  EXPECT_EQ(Done(), "none");
}

TEST_F(MadeUpLists, WhatIsNotThereIsNotRead) {
  void* const last = Descriptor(4);
  const uint64_t next = Node(4)[0], before = Node(4)[1];
  ASSERT_EQ(madvise(last, arch::kPageBytes, MADV_DONTNEED), 0);
  EXPECT_EQ(Done(), "none");
  Node(4)[0] = next;
  Node(4)[1] = before;
  Descriptor(4)[0] = Descriptor(4)[2] = AddressOf(last);
  EXPECT_EQ(Done(), "34");
  ASSERT_EQ(munmap(last, arch::kPageBytes), 0);
  EXPECT_EQ(Done(), "none");
}

TEST_F(MadeUpLists, WordsThatAreNoAddresses) {
  for (size_t i = 0; i < kFirst; ++i) memory_[i] = i * 0x1111111111111111;
  for (size_t i = kFirst + 6; i < arch::kPageBytes / 8; ++i)
    memory_[i] = AddressOf(Page(1)) + 8 * i;
  EXPECT_EQ(Done(), "34");
}

}  // namespace
}  // namespace memtrace
