#include "tests/artifact/call_graph.h"

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <regex>
#include <stdexcept>

namespace memtrace {
namespace {

std::string Demangled(std::string name) {
  std::string suffix;  // .cold, .isra.0, @plt
  const size_t at = name.find_first_of(".@");
  if (at != std::string::npos && name.starts_with("_Z")) {
    suffix = name.substr(at);
    name.resize(at);
  }
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result + suffix;
}

}  // namespace

CallGraph::CallGraph(const std::string& object) {
  FILE* pipe = popen(("objdump -d --no-show-raw-insn '" + object + "'").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("objdump does not start");
  static const std::regex kBegin("^[0-9a-f]+ <(.*)>:\n$");
  static const std::regex kBranch(
      "^\\s*[0-9a-f]+:\\s+(?:bnd |notrack |data16 |rex\\.W )*(call|j[a-z]+)\\s+(.*)\n$");
  static const std::regex kTarget("<([^>+]*)(?:\\+0x[0-9a-f]+)?>$");
  std::string current;
  std::deque<std::string> last;  // a jump by a table has loaded its distance just before
  char buffer[8192];
  while (fgets(buffer, sizeof(buffer), pipe) != nullptr) {
    const std::string line = buffer;
    std::smatch match;
    if (std::regex_match(line, match, kBegin)) {
      current = Demangled(match[1]);
      functions_[current];
      last.clear();
      continue;
    }
    if (current.empty()) continue;
    if (std::regex_match(line, match, kBranch)) {
      const std::string kind = match[1], operand = match[2];
      std::smatch target;
      if (operand[0] == '*') {
        bool table = false;
        for (const std::string& before : last) {
          table |= before.find("movslq") != std::string::npos;
        }
        if (kind == "call" || !table) functions_[current].pointer_calls.push_back(line);
      } else if (std::regex_search(operand, target, kTarget)) {
        const std::string callee = Demangled(target[1]);
        if (callee != current) functions_[current].callees.insert(callee);
      } else {
        functions_[current].pointer_calls.push_back(line);  // to no function: not followed either
      }
    }
    last.push_back(line);
    if (last.size() > 6) last.pop_front();
  }
  if (pclose(pipe) != 0 || functions_.empty()) throw std::runtime_error("objdump " + object);
}

std::string CallGraph::NameFrom(const std::string& begin) const {
  std::string name;
  for (const auto& [function, calls] : functions_) {
    if (!function.starts_with(begin) || function.ends_with(".cold")) continue;
    if (!name.empty()) throw std::runtime_error(begin + "... is more than one function");
    name = function;
  }
  return name;
}

std::vector<std::string> CallGraph::NamesFrom(const std::string& begin,
                                              const std::string& end) const {
  std::vector<std::string> names;
  for (const auto& [function, calls] : functions_) {
    if (function.starts_with(begin) && function.ends_with(end)) names.push_back(function);
  }
  return names;
}

CallGraph::Reached CallGraph::ReachedFrom(const std::string& entry,
                                          const std::function<bool(const std::string&)>& stops,
                                          const std::multimap<std::string, std::string>& more) const {
  Reached reached = {{entry, ""}};
  std::deque<std::string> open = {entry};
  while (!open.empty()) {
    const std::string function = open.front();
    open.pop_front();
    const auto found = functions_.find(function);
    if (found == functions_.end() || (function != entry && stops(function))) continue;
    if (function.ends_with("@plt")) continue;
    std::set<std::string> callees = found->second.callees;
    const auto [first, last] = more.equal_range(function);
    for (auto by_pointer = first; by_pointer != last; ++by_pointer) {
      callees.insert(by_pointer->second);
    }
    for (const std::string& callee : callees) {
      if (reached.emplace(callee, function).second) open.push_back(callee);
    }
  }
  return reached;
}

std::string CallGraph::PathTo(const Reached& reached, std::string function) {
  std::string path = function;
  while (!(function = reached.at(function)).empty()) path = function + " > " + path;
  return path;
}

}  // namespace memtrace
