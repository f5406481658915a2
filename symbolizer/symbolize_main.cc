// memtrace-symbolize: the symbolizer by hand, for tests and benches. Not installed.
//
//   memtrace-symbolize [--debug-dir DIR]... [--sysroot DIR] [--debuginfod] [--return]
//                      [--build-id HEX] FILE < addresses
//
// One hexadecimal address a line, relative to the module. For each: function
// and file:line of every frame, innermost first, then an empty line, which is
// what llvm-symbolizer prints. --return takes the addresses as return addresses.
// Exit status 1: the file could not be read; standard error says why.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/symbolizer.h"

int main(int argc, char** argv) {
  using namespace memtrace::symbolizer;
  Options options;
  Module module;
  bool default_dirs = true;
  bool is_return_address = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--debug-dir" && has_value) {
      if (default_dirs) options.debug_dirs.clear();
      default_dirs = false;
      options.debug_dirs.push_back(argv[++i]);
    } else if (argument == "--sysroot" && has_value) {
      options.sysroot = argv[++i];
    } else if (argument == "--build-id" && has_value) {
      module.build_id = absl::HexStringToBytes(argv[++i]);
    } else if (argument == "--debuginfod") {
      options.debuginfod = true;
    } else if (argument == "--return") {
      is_return_address = true;
    } else if (module.path.empty() && !argument.starts_with("-")) {
      module.path = argument;
    } else {
      std::fprintf(stderr, "memtrace-symbolize: unknown argument %s\n", argv[i]);
      return 2;
    }
  }
  if (module.path.empty()) {
    std::fprintf(stderr, "usage: memtrace-symbolize [options] FILE < addresses\n");
    return 2;
  }
  std::vector<Address> addresses;
  for (std::string line; std::getline(std::cin, line);) {
    addresses.push_back({std::strtoull(line.c_str(), nullptr, 16), is_return_address});
  }
  const ModuleResult result = Symbolizer(options).Symbolize(module, addresses);
  if (!result.message.empty()) {
    std::fprintf(stderr, "memtrace-symbolize: %s\n", result.message.c_str());
  }
  std::string out;
  for (const std::vector<Frame>& frames : result.frames) {
    if (frames.empty()) out += "??\n??:0\n";
    for (const Frame& frame : frames) {
      absl::StrAppend(&out, frame.function.empty() ? "??" : frame.function, "\n",
                      frame.file.empty() ? "??" : frame.file, ":", frame.line, "\n");
    }
    out += "\n";
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  const bool was_read =
      result.state == ModuleState::kDebugInfo || result.state == ModuleState::kSymbolsOnly;
  return was_read ? 0 : 1;
}
