// memtrace dump

#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>
#include <streambuf>
#include <tuple>

#include "report/base/memory_limit.h"
#include "report/cli/exit_status.h"
#include "report/cli/refusals.h"
#include "report/command/commands.h"
#include "report/command/dump.h"
#include "report/render/output.h"

namespace memtrace::report {
namespace {

// Passes what is written to a stream on to an output.
class OutputBuffer : public std::streambuf {
 public:
  explicit OutputBuffer(render::Output* output) : output_(*output) {}

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    output_.Write(absl::string_view(text, static_cast<size_t>(size)));
    return output_.done() ? 0 : size;
  }
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }

 private:
  render::Output& output_;
};

constexpr char kDumpFooter[] = R"(
Each line is TIME THREAD EVENT ADDRESS key=value...; frames of stacks are
defined before they are used, and lines that begin with # are about the trace.

Example:
  memtrace dump app.mtr | grep ' malloc ' | head)";

struct DumpFlags {
  DumpOptions options;
  std::string output;
  std::string from, to;
};

absl::Status Dump(DumpFlags& flags) {
  LimitMemory();
  const auto range = ParseInstants(flags.from, flags.to);
  if (!range.ok()) return range.status();
  std::tie(flags.options.from, flags.options.to) = *range;
  absl::Status status = RefuseToReplace(flags.options.file, flags.output);
  if (!status.ok()) return status;
  auto output = render::Output::Open(flags.output);
  if (!output.ok()) return output.status();
  OutputBuffer buffer(&*output);
  std::ostream out(&buffer);
  status = RunDump(flags.options, out);
  return status.ok() ? output->Commit() : status;
}

}  // namespace

void RegisterDumpCommand(CLI::App& app, int* exit_code) {
  CLI::App* dump = app.add_subcommand("dump", "Print every event in order, one per line");
  auto flags = std::make_shared<DumpFlags>();
  dump->footer(kDumpFooter);
  dump->add_option("FILE", flags->options.file, "The trace")->required()->type_name("");
  dump->add_option("-o,--output", flags->output, "Where the lines go; standard output if not given")
      ->type_name("FILE");
  dump->add_option("--from", flags->from, "Only events from this time on: 1.5, 250ms, 90%")
      ->type_name("T");
  dump->add_option("--to", flags->to, "Only events up to this time")->type_name("T");
  dump->callback([flags, exit_code] { *exit_code = ExitCodeOf(Dump(*flags)); });
}

}  // namespace memtrace::report
