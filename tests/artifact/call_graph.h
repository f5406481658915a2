// CallGraph: which functions of a shared object call which, as its machine code says.
//
// Read from objdump, so it sees what the compiler made of the source: inlined, cloned,
// split into .cold parts, tail calls as jumps. A direct call or a jump out of a function
// is an edge; an import is a node named "name@plt"; jumps by a switch's table stay in
// their function. Calls by pointer cannot be followed: they are counted by function.
//
// Threads: none. Errors: an object that objdump cannot read throws.

#ifndef MEMTRACE_TESTS_ARTIFACT_CALL_GRAPH_H_
#define MEMTRACE_TESTS_ARTIFACT_CALL_GRAPH_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace memtrace {

class CallGraph {
 public:
  explicit CallGraph(const std::string& object);

  struct Function {
    std::set<std::string> callees;           // demangled, or "import@plt"
    std::vector<std::string> pointer_calls;  // instructions
  };

  bool Has(const std::string& function) const { return functions_.count(function) != 0; }
  // The one function whose name begins so; empty: none, for it was inlined everywhere.
  std::string NameFrom(const std::string& begin) const;
  // All of them that end so.
  std::vector<std::string> NamesFrom(const std::string& begin, const std::string& end) const;
  size_t size() const { return functions_.size(); }

  // What `entry` reaches, each with the function it was reached from first; functions of
  // which `stops` is true are reached, but not entered. `more` adds what pointers lead to.
  using Reached = std::map<std::string, std::string>;
  Reached ReachedFrom(const std::string& entry,
                      const std::function<bool(const std::string&)>& stops,
                      const std::multimap<std::string, std::string>& more) const;

  // "entry > a > b".
  static std::string PathTo(const Reached& reached, std::string function);

  const Function& at(const std::string& function) const { return functions_.at(function); }

 private:
  std::map<std::string, Function> functions_;
};

}  // namespace memtrace

#endif  // MEMTRACE_TESTS_ARTIFACT_CALL_GRAPH_H_
