#include "report/cli/filter_options.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"

namespace memtrace::report {
namespace {

// For CLI11: empty when `text` may be a thread.
std::string ThreadName(const std::string& text) {
  return text.empty() ? "a thread has a name or a tid, and this is empty" : "";
}

}  // namespace

void AddTimeFilters(CLI::App* command, render::FilterFlags* flags) {
  command->add_option("--from", flags->from, "Only blocks allocated from then on:\n"
                      "1.5, 250ms, 90%")
      ->type_name("T");
  command->add_option("--to", flags->to, "Only blocks allocated until then")->type_name("T");
  command->add_option("--at", flags->at, "The heap as it was at that instant: as --to T")
      ->type_name("T");
}

void AddBlockFilters(CLI::App* command, render::FilterFlags* flags,
                     absl::string_view what_matches) {
  command->add_option("--thread", flags->thread, "Only blocks of threads with this name or tid")
      ->type_name("NAME|TID")->check(ThreadName, "");
  command->add_option("--match", flags->match,
                      absl::StrCat("Only sites with a frame whose function, file or\n"
                                   "module matches", what_matches))
      ->type_name("REGEX");
  command->add_option("--function", flags->function,
                      "Only sites with a frame of such a function; with\n"
                      "--file and --module, of one frame all of them")
      ->type_name("REGEX");
  command->add_option("--file", flags->source_file, "Only sites with a frame in such a source file")
      ->type_name("REGEX");
  command->add_option("--module", flags->module, "Only sites with a frame in such a module")
      ->type_name("REGEX");
  command->add_option("--size", flags->size, "Only blocks of this size: 64, 1K..64K, 1M..")
      ->type_name("RANGE");
  command->add_option("--lifetime", flags->lifetime,
                      "Only blocks that lived so long: ..10us, 1s..2min")
      ->type_name("RANGE");
  command->add_option("--age", flags->age,
                      "Only blocks live at the end and then so old: 1h..")
      ->type_name("RANGE");
}

std::vector<GivenFilter> GivenFilters(const render::FilterFlags& flags) {
  std::vector<GivenFilter> given = {
      {"--from", flags.from, false},         {"--to", flags.to, false},
      {"--at", flags.at, false},             {"--thread", flags.thread, false},
      {"--match", flags.match, true},        {"--function", flags.function, true},
      {"--file", flags.source_file, true},   {"--module", flags.module, true},
      {"--size", flags.size, false},         {"--lifetime", flags.lifetime, false},
      {"--age", flags.age, false}};
  std::erase_if(given, [](const GivenFilter& filter) { return filter.value.empty(); });
  return given;
}

}  // namespace memtrace::report
