// How many events a second the reporter reads, on one core.
//
//   BM_Decode            blocks -> events with times, nothing else
//   BM_Analyze/T/L       the whole analysis: T threads in order, L live blocks
//   BM_AnalyzePacked/J   the same from a zstd-packed trace, with J threads, by the wall clock
//
// items_per_second is events a second (malloc and free; stamps and stack nodes are
// not counted). Bad numbers: BM_Analyze/1/1000 below 20 M means that work crept
// into the path of an event; a fall from 1000 to 1000000 live blocks by more than
// half means that prefetching in the live table no longer works.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "report/analysis/analyzer.h"
#include "report/trace/event_cursor.h"
#include "report/trace/packer.h"
#include "report/trace/trace_reader.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

constexpr int kEvents = 2'000'000;
constexpr int kSites = 500;

// Each thread allocates and frees among its share of the live blocks, from one of
// many stacks; a stamp every 16 events, a block every 4000, as the library writes.
std::string MakeTrace(int threads, int live) {
  TraceBuilder trace;
  std::mt19937_64 random(42);
  struct Heap {
    ThreadScript* script;
    std::vector<uint64_t> live, free;
  };
  std::vector<Heap> heaps(threads);
  for (int t = 0; t < threads; ++t) {
    Heap& heap = heaps[t];
    heap.script = &trace.Thread(t + 1, 100 + t, "thread");
    for (int i = 0; i < live / threads; ++i) {
      heap.free.push_back((uint64_t{0x7f00} + t) << 32 | (0x10 + uint64_t(i) * 0x70));
    }
    heap.script->At(1);
    for (uint32_t s = 1; s <= kSites; ++s) {
      heap.script->Node(s, 0x400000 + s * 64, s <= 4 ? 0 : s / 4);
    }
  }
  uint64_t now = 1000;
  for (int i = 0; i < kEvents; ++i) {
    Heap& heap = heaps[i / 16 % threads];
    now += 20;
    if (i % 16 == 0) heap.script->At(now);
    if (i / 16 / threads % 250 == 249 && i % 16 == 0) heap.script->Flush(now);
    // Fill up first, then as many frees as allocations, of random blocks.
    const bool fill = !heap.free.empty() && (heap.live.empty() || i < live);
    if (fill || (random() % 2 == 0 && !heap.free.empty())) {
      heap.live.push_back(heap.free.back());
      heap.free.pop_back();
      heap.script->Malloc(heap.live.back(), 16 + random() % 200, 1 + random() % kSites, 8);
    } else {
      std::swap(heap.live[random() % heap.live.size()], heap.live.back());
      heap.script->Free(heap.live.back());
      heap.free.push_back(heap.live.back());
      heap.live.pop_back();
    }
  }
  return trace.Build();
}

std::unique_ptr<TraceReader> Open(const std::string& bytes) {
  return *TraceReader::FromSource(std::make_unique<MemorySource>(bytes), "bench.mtr");
}

void BM_Decode(benchmark::State& state) {
  const std::string bytes = MakeTrace(1, 1000);
  auto reader = Open(bytes);
  uint64_t events = 0;
  for (auto _ : state) {
    ReadAhead blocks(reader.get(), 0);
    for (size_t stream = 0; stream < reader->streams().size(); ++stream) {
      EventCursor cursor(reader.get(), &blocks, stream);
      uint64_t sum = 0;
      for (cursor.Next(); !cursor.done(); cursor.Next()) sum += cursor.words()[0] + cursor.time();
      benchmark::DoNotOptimize(sum);
    }
    events += kEvents;
  }
  state.SetItemsProcessed(static_cast<int64_t>(events));
}
BENCHMARK(BM_Decode)->Unit(benchmark::kMillisecond);

void Analyze(benchmark::State& state, const std::string& bytes, unsigned jobs = 1) {
  uint64_t events = 0;
  for (auto _ : state) {
    auto reader = Open(bytes);
    auto trace = AnalyzeTrace(*reader, {.jobs = jobs});
    events += trace->analysis.coverage.events;
    if (trace->analysis.coverage.unknown_frees != 0) {
      state.SkipWithError("lost its order");
      break;
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(events));
}

void BM_Analyze(benchmark::State& state) {
  Analyze(state, MakeTrace(static_cast<int>(state.range(0)), static_cast<int>(state.range(1))));
}
BENCHMARK(BM_Analyze)
    ->ArgNames({"threads", "live"})
    ->Args({1, 1000})
    ->Args({1, 100'000})
    ->Args({1, 1'000'000})
    ->Args({4, 1000})
    ->Args({64, 100'000})
    ->Unit(benchmark::kMillisecond);

void BM_AnalyzePacked(benchmark::State& state) {
  const int fd = memfd_create("packed", MFD_CLOEXEC);
  MemorySource raw(MakeTrace(1, 100'000));
  Packer packer(&raw, fd, "packed", {});
  if (!packer.Start().ok() || !packer.Finish().ok()) {
    state.SkipWithError("cannot pack");
    return;
  }
  std::string packed(packer.bytes_written(), '\0');
  if (pread(fd, packed.data(), packed.size(), 0) != static_cast<ssize_t>(packed.size())) {
    state.SkipWithError("cannot read back");
    return;
  }
  close(fd);
  Analyze(state, packed, static_cast<unsigned>(state.range(0)));
  state.counters["bytes/event"] = static_cast<double>(packed.size()) / kEvents;
}
BENCHMARK(BM_AnalyzePacked)
    ->ArgName("jobs")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace memtrace::report
