// make_trace: writes the packed trace of a made-up program (tests/report/long_trace.h), as long as
// wanted.
//
//   build/bench/make_trace --events 1000000000 --live 1000000 long.mtr

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "tests/report/long_trace.h"

int main(int argc, char** argv) {
  CLI::App app("Writes the packed trace of a made-up program", "make_trace");
  std::string file;
  memtrace::report::LongTraceOptions options;
  app.add_option("FILE", file, "Where it goes")->required();
  app.add_option("--events", options.events, "Allocations and frees")->capture_default_str();
  app.add_option("--threads", options.threads, "That take turns")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--live", options.live_blocks, "Blocks most of the time")->capture_default_str();
  app.add_option("--sites", options.sites, "Stacks that allocate")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--level", options.level, "Of zstd")
      ->check(CLI::Range(1, 19))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  memtrace::report::LongTraceFacts facts;
  const absl::Status status = memtrace::report::WriteLongTrace(file, options, &facts);
  if (!status.ok()) {
    std::fprintf(stderr, "make_trace: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  std::printf(
      "%llu allocations, %llu frees, %llu live blocks of %llu bytes at the end, peak %llu bytes; "
      "%.2f bytes an event\n",
      static_cast<unsigned long long>(facts.allocations),
      static_cast<unsigned long long>(facts.frees),
      static_cast<unsigned long long>(facts.live_blocks),
      static_cast<unsigned long long>(facts.live_bytes),
      static_cast<unsigned long long>(facts.peak_live_bytes),
      static_cast<double>(facts.file_bytes) / static_cast<double>(options.events));
  return 0;
}
