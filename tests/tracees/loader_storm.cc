// loader_storm: everything at once that could meet the tracer under a lock.
//
//   loader_storm DIRECTORY SECONDS
//
// Threads load and unload plugins that allocate in their constructors and destructors; walk
// the loaded modules and allocate in the callback, under the loader's lock; throw and catch;
// are struck by a signal every 100 us whose handler maps, unmaps and allocates; allocate.
// Each counts what it does. The handler allocates only where it did not interrupt an
// allocation, which is all that a program may do; it always maps, so that it does
// interrupt the tracer.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

extern "C" {
#include "expect.h"
}

extern "C" {
int g_round = 0;  // for the plugins: all blocks of their constructors have one size
}

namespace {

std::atomic<bool> g_done{false};
volatile int g_sink;

// Blocks by size: 810 and 811 from plugins, 812 in callbacks, and so on; see main().
std::atomic<long> g_counts[8];
std::atomic<long> g_handler_mappings{0};

void Count(int size, long blocks) { g_counts[size - 810] += blocks; }

// A pause, so that the trace of a long run is not all of the disk.
void Breathe() { usleep(200); }

std::string g_directory;

void* LoadsPlugins(void*) {
  const std::string paths[2] = {g_directory + "/libplugin_red.so",
                                g_directory + "/libplugin_blue.so"};
  for (int i = 0; !g_done; i ^= 1) {
    void* plugin = dlopen(paths[i].c_str(), RTLD_NOW);
    if (plugin == nullptr) abort();
    auto* allocate = reinterpret_cast<void* (*)(size_t)>(dlsym(plugin, "Allocate"));
    free(allocate(i == 0 ? 810 : 811));
    Count(i == 0 ? 810 : 811, 1);
    // The loader's lock again and again, with nothing to load.
    for (int again = 0; again < 100 && !g_done; ++again) {
      void* same = dlopen(paths[i].c_str(), RTLD_NOW);
      if (same != plugin) abort();
      dlclose(same);
      Breathe();
    }
    dlclose(plugin);
    g_sink = g_sink + 1;
  }
  return nullptr;
}

extern "C" [[gnu::noinline]] int AllocatesUnderTheLock(dl_phdr_info*, size_t, void* blocks) {
  free(malloc(812));
  ++*static_cast<long*>(blocks);
  return 0;
}

void* WalksModules(void*) {
  while (!g_done) {
    long blocks = 0;
    dl_iterate_phdr(AllocatesUnderTheLock, &blocks);
    Count(812, blocks);
    Breathe();
  }
  return nullptr;
}

extern "C" [[gnu::noinline]] void Throws(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  Throws(depth - 1);
  g_sink = g_sink + 1;
}

extern "C" [[gnu::noinline]] void Catches() {
  try {
    Throws(6);
  } catch (const std::exception&) {
    free(malloc(813));
    g_sink = g_sink + 1;
  }
}

void* ThrowsAndCatches(void*) {
  while (!g_done) {
    for (int i = 0; i < 10; ++i) Catches();
    Count(813, 10);
    Breathe();
  }
  return nullptr;
}

thread_local volatile sig_atomic_t t_allocating;

extern "C" [[gnu::noinline]] void HandlesSignal(int) {
  void* mapping = mmap(nullptr, 12288, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(mapping, 12288);
  g_handler_mappings.fetch_add(1, std::memory_order_relaxed);
  if (t_allocating == 0) {
    t_allocating = 1;
    free(malloc(814));
    g_counts[4].fetch_add(1, std::memory_order_relaxed);
    t_allocating = 0;
  }
}

extern "C" [[gnu::noinline]] void IsStruck() {
  t_allocating = 1;
  for (int i = 0; i < 20; ++i) free(malloc(815));
  t_allocating = 0;
  for (int i = 0; i < 2000; ++i) g_sink = g_sink + i;
}

void* TakesSignals(void*) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR1;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();
  const itimerspec often = {{0, 100'000}, {0, 100'000}};
  timer_settime(timer, 0, &often, nullptr);
  while (!g_done) {
    IsStruck();
    Count(815, 20);
    usleep(20);
  }
  timer_delete(timer);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return nullptr;
}

extern "C" [[gnu::noinline]] void Churns() {
  void* blocks[32];
  for (void*& block : blocks) block = malloc(816);
  for (void*& block : blocks) block = realloc(block, 817);
  for (void* block : blocks) free(block);
  g_sink = g_sink + 1;
}

void* Allocates(void*) {
  while (!g_done) {
    Churns();
    Count(816, 32);
    Count(817, 32);
    Breathe();
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_directory = argv[1];
  const int seconds = atoi(argv[2]);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  struct sigaction action = {};
  action.sa_handler = HandlesSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  void* (*const bodies[])(void*) = {LoadsPlugins, WalksModules, ThrowsAndCatches, ThrowsAndCatches,
                                    TakesSignals, TakesSignals, Allocates,        Allocates};
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], nullptr, bodies[i], nullptr);
  sleep(static_cast<unsigned>(seconds));
  g_done = true;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  Expect(810, g_counts[0], "RedInner Allocate LoadsPlugins");
  Expect(811, g_counts[1], "BlueInner Allocate LoadsPlugins");
  Expect(812, g_counts[2], "AllocatesUnderTheLock dl_iterate_phdr WalksModules");
  Expect(813, g_counts[3], "Catches ThrowsAndCatches");
  Expect(814, g_counts[4], "HandlesSignal");
  Expect(815, g_counts[5], "IsStruck TakesSignals");
  Expect(816, g_counts[6], "Churns Allocates");
  Expect(817, g_counts[7], "Churns Allocates");
  Tell("handler_mappings %ld\n", g_handler_mappings.load());
  return 0;
}
