// What growth_e2e_test.cc judges: one function for each way in which memory grows or does not,
// all in one run. The name of a function says what it is: the word before the underscore is the
// verdict.
//
//   growth_phenomena MILLISECONDS
//
// The steps of the run have their times, not only their order: a step that is late does not
// delay those behind it.

#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr int kSteps = 2000;
#define SITE __attribute__((noinline, noclone))

std::mt19937 g_random(7);
int Random(int n) { return static_cast<int>(g_random() % static_cast<unsigned>(n)); }
volatile char g_sink;
void* Use(void* block) {
  g_sink = *static_cast<char*>(block) = 1;
  return block;
}

// Leaks: nobody frees these, and they are kept where a leak checker finds them reachable, or not.
std::vector<void*>* g_kept;  // reserved at the start
SITE void growing_LeaksEveryStep(int) { g_kept->push_back(Use(malloc(100))); }
SITE void growing_LeaksOneAmongMany(int step) {
  // A block "an hour" of 20 steps, among 400 that are freed.
  for (int i = 0; i < 20; ++i) {
    void* block = Use(malloc(64));
    if (step % 80 == 79 && i == 0) {
      g_kept->push_back(block);
    } else {
      free(block);
    }
  }
}
SITE void growing_MapWithoutEviction(int step) {
  static auto* sessions = new std::map<int, std::string>;
  (*sessions)[step] = "a session that nobody closes, longer than a short string";
}
SITE void growing_VectorThatIsFilled(int step) {
  static auto* log = new std::vector<int>;
  for (int i = 0; i < 30; ++i) log->push_back(step);
}
SITE void growing_BufferByRealloc(int step) {
  static char* buffer = nullptr;
  static size_t capacity = 0;
  const size_t needed = static_cast<size_t>(step + 1) * 500;
  if (needed <= capacity) return;
  capacity = capacity == 0 ? 1000 : capacity * 2;
  buffer = static_cast<char*>(realloc(buffer, capacity));
  Use(buffer);
}
SITE void growing_ArenaOfChunks(int step) {
  static std::size_t left = 0;
  if (left < 1000) {
    g_kept->push_back(Use(malloc(64 * 1024)));
    left = 64 * 1024;
  }
  left -= 900 + step % 2;
}
std::list<std::string>* g_freed_at_exit;
SITE void growing_ListFreedAtExit(int) {
  g_freed_at_exit->push_back("an entry of a list that is freed when the program ends");
}

SITE void bounded_CacheThatFills(int step) {
  static auto* cache = new std::map<int, std::string>;
  if (step < kSteps) (*cache)[Random(150)] = "a value in the cache, longer than a short string";
}
SITE void bounded_CacheWithEviction(int) {
  static auto* order = new std::deque<char*>;
  order->push_back(static_cast<char*>(Use(malloc(300))));
  if (order->size() <= 100) return;
  free(order->front());
  order->pop_front();
}
SITE void bounded_Temporaries(int step) {
  const std::string text(static_cast<size_t>(100 + step % 50), 'x');
  g_sink = text[50];
}
SITE void bounded_SetUpOnce(int step) {
  if (step < 50) g_kept->push_back(Use(malloc(200)));
}
SITE void bounded_VectorFilledEarly(int step) {
  static auto* table = new std::vector<int>;
  if (step < 300) table->insert(table->end(), 40, step);
}
SITE void bounded_RequestsInFlight(int) {
  static auto* flying = new std::vector<void*>;
  flying->push_back(Use(malloc(500)));
  while (flying->size() > 20 || (!flying->empty() && Random(20) == 0)) {
    std::swap((*flying)[static_cast<size_t>(Random(static_cast<int>(flying->size())))],
              flying->back());
    free(flying->back());
    flying->pop_back();
  }
}
SITE void bounded_Pool(int step) {
  static char* pool;
  if (step == 10) Use(pool = static_cast<char*>(malloc(200'000)));
  if (step > 10) pool[step % 1000] = 1;
}

SITE void burst_LoadsOnce(int step) {
  static auto* loaded = new std::vector<void*>;
  if (step >= 600 && step < 700) {
    for (int i = 0; i < 10; ++i) loaded->push_back(Use(malloc(1000)));
  }
  if (step == 760) {
    for (void* block : *loaded) free(block);
    loaded->clear();
  }
}
SITE void burst_LargeBuffer(int step) {
  static void* buffer;
  if (step == 1200) buffer = Use(malloc(8 << 20));
  if (step == 1300) free(buffer);
}

SITE void sawtooth_Batches(int step) {
  static auto* batch = new std::vector<void*>;
  batch->push_back(Use(malloc(400)));
  if (step % 200 != 199) return;
  for (void* block : *batch) free(block);
  batch->clear();
}
SITE void sawtooth_ArenaThatIsReset(int step) {
  static auto* chunks = new std::vector<void*>;
  chunks->push_back(Use(malloc(4096)));
  if (step % 64 != 63) return;
  for (void* block : *chunks) free(block);
  chunks->clear();
}

struct HeldUntilExit {
  std::vector<void*> blocks;
  ~HeldUntilExit() {
    for (void* block : blocks) free(block);
  }
};
HeldUntilExit g_configuration, g_cache;
SITE void held_Configuration(int step) {
  if (step < 40) g_configuration.blocks.push_back(Use(malloc(150)));
}
SITE void held_CacheFreedAtExit(int step) {
  if (step < 500) g_cache.blocks.push_back(Use(malloc(80)));
}

void (*const kPhenomena[])(int) = {
    growing_LeaksEveryStep,   growing_LeaksOneAmongMany, growing_MapWithoutEviction,
    growing_VectorThatIsFilled, growing_BufferByRealloc, growing_ArenaOfChunks,
    growing_ListFreedAtExit,  bounded_CacheThatFills,    bounded_CacheWithEviction,
    bounded_Temporaries,      bounded_SetUpOnce,         bounded_VectorFilledEarly,
    bounded_RequestsInFlight, bounded_Pool,              burst_LoadsOnce,
    burst_LargeBuffer,        sawtooth_Batches,          sawtooth_ArenaThatIsReset,
    held_Configuration,       held_CacheFreedAtExit,
};

}  // namespace

int main(int argc, char** argv) {
  const long total_ns = (argc > 1 ? atol(argv[1]) : 2000) * 1'000'000;
  g_kept = new std::vector<void*>;
  g_kept->reserve(3 * kSteps);
  g_configuration.blocks.reserve(kSteps);
  g_cache.blocks.reserve(kSteps);
  g_freed_at_exit = new std::list<std::string>;
  timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int step = 0; step < kSteps; ++step) {
    const long due = start.tv_nsec + total_ns / kSteps * step;
    const timespec until = {start.tv_sec + due / 1'000'000'000, due % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    for (void (*phenomenon)(int) : kPhenomena) phenomenon(step);
  }
  delete g_freed_at_exit;
  return 0;
}
