// What does an event cost in the thread that records it, part by part?
//
//   BM_RingWrite     two words into the ring, a restart when it is full: the floor
//                    of an event. More than 2 ns: the commit is not one store.
//   BM_Spool         one full ring appended to a file on tmpfs and on the disk
//                    of the temporary directory; items are words. More than 2 ns a
//                    word: look at the checksum or at the page cache.
//   BM_Clock         a time word's rdtsc, of which an event pays a sixteenth.
//
// unwind_bench measures the stack capture, reader_bench the other end.

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "format/event_words.h"
#include "preload/clock.h"
#include "preload/event_ring.h"
#include "preload/trace_file.h"

namespace memtrace {
namespace {

void BM_RingWrite(benchmark::State& state) {
  void* mapping = mmap(nullptr, EventRing::kBytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  EventRing ring;
  ring.Attach(mapping, EventRing::kBytes, 1, 1);
  uint32_t sequence = 1;
  uint64_t address = 0x5555'0000'0000;
  for (auto _ : state) {
    if (!ring.HasRoom(32)) ring.Restart(1, ++sequence, 0);
    ring.next()[0] = format::Head(format::EventKind::kMalloc, address += 16);
    ring.next()[1] = 100 | uint64_t{7} << 32;
    ring.Commit(2);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
  munmap(mapping, EventRing::kBytes);
}
BENCHMARK(BM_RingWrite);

void BM_Spool(benchmark::State& state, const char* directory) {
  std::string name = std::string(directory) + "/memtrace-bench.XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    state.SkipWithError("cannot make a directory there");
    return;
  }
  g_clock.Init();
  TraceFile file;
  format::FileHeader file_header = {};
  file_header.trace_id = 1;
  const auto create = [&] {
    const bool created =
        file.Create("bench.mtr", {name.c_str(), "bench", 1, 1}, file_header) == 0;
    if (!created) state.SkipWithError("cannot create a trace there");
    return created;
  };
  create();
  std::vector<uint64_t> words((EventRing::kBytes - sizeof(format::RingHeader)) / 8, 0x1234);
  for (auto _ : state) {
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kEvents;
    header.thread = 1;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(words.size() * 8);
    if (!file.Append(header, words.data())) {
      state.SkipWithError("append failed");
      break;
    }
    if (file.written_bytes() > (uint64_t{256} << 20)) {  // keep the disk free
      state.PauseTiming();
      std::filesystem::remove(file.path());
      if (!create()) break;
      state.ResumeTiming();
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(words.size()));
  std::filesystem::remove_all(name);
}
BENCHMARK_CAPTURE(BM_Spool, tmpfs, "/dev/shm");
BENCHMARK_CAPTURE(BM_Spool, disk, "/var/tmp");

void BM_Clock(benchmark::State& state) {
  g_clock.Init();
  for (auto _ : state) benchmark::DoNotOptimize(g_clock.Now());
}
BENCHMARK(BM_Clock);

}  // namespace
}  // namespace memtrace
