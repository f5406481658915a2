// --format callgrind: the call graph with what each function and call allocated, for
// callgrind_annotate and KCachegrind.
//
// The file format is that of Valgrind's manual, "Callgrind Format Specification". Names are
// written once and then by number. What a stack allocated counts once for each function that it
// goes through, by the outermost call of it: callgrind_annotate sums up the calls that lead to a
// function, and recursion has several.

#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/render/selection_lines.h"
#include "report/viewers/viewers.h"
#include "report/words/escape.h"
#include "report/words/shell_words.h"

namespace memtrace::report::viewers {
namespace {

using Costs = std::array<uint64_t, render::kSiteMeasures>;  // in the order of the events

void Add(const Costs& more, Costs* sum) {
  for (size_t i = 0; i < more.size(); ++i) (*sum)[i] += more[i];
}

struct Function {
  std::string object, file, name;
  std::map<uint32_t, Costs> self;  // by line
  struct Calls {
    uint64_t allocations = 0;  // that came this way
    Costs costs{};
  };
  std::map<std::pair<uint32_t, size_t>, Calls> calls;  // by line and callee
};

class Graph {
 public:
  Graph(const Analysis& analysis, SiteMeasure first) {
    order_.push_back(first);
    for (const SiteMeasure measure : render::MeasuresOf(analysis)) {
      if (measure != first) order_.push_back(measure);
    }
  }

  void Add(const ReportView& view, const Site& site) {
    Costs costs{};
    for (size_t i = 0; i < order_.size(); ++i) costs[i] = ValueOf(view, site, order_[i]);
    viewers::Add(costs, &totals_);
    const std::vector<const Frame*> frames = view.Frames(site.stack);
    if (frames.empty()) {
      static const Frame kNone = [] {
        Frame frame;
        frame.function = "[no stack]";
        return frame;
      }();
      viewers::Add(costs, &functions_[IdOf(kNone)].self[0]);
      return;
    }
    std::vector<size_t> path;  // innermost first
    for (const Frame* frame : frames) path.push_back(IdOf(*frame));
    viewers::Add(costs, &functions_[path.front()].self[frames.front()->line]);
    std::set<std::tuple<size_t, uint32_t, size_t>> passed;
    std::set<size_t> counted;
    for (size_t i = frames.size() - 1; i > 0; --i) {
      const size_t caller = path[i], callee = path[i - 1];
      const bool is_new = counted.insert(callee).second;
      if (!passed.insert({caller, frames[i]->line, callee}).second) continue;
      Function::Calls& calls = functions_[caller].calls[{frames[i]->line, callee}];
      calls.allocations += site.allocations;
      if (is_new) viewers::Add(costs, &calls.costs);
    }
  }

  // `only`: what the costs are of; empty: of all.
  void Write(const ProcessInfo& process, absl::string_view only, Sink& out) {
    std::vector<absl::string_view> names;
    for (const SiteMeasure measure : order_) names.push_back(SiteMeasureName(measure));
    out.Write(absl::StrCat("# callgrind format\nversion: 1\ncreator: memtrace\npid: ", process.pid,
                           "\ncmd: ", words::ShellCommand(process.command),
                           only.empty() ? "" : "\ndesc: ", only, "\npositions: line\nevents: ",
                           absl::StrJoin(names, " "), "\nsummary: ", Text(totals_), "\n"));
    for (const Function& function : functions_) {
      if (out.done()) return;
      std::string text = absl::StrCat("\n", Named("ob=", &objects_, function.object),
                                      Named("fl=", &files_, function.file),
                                      Named("fn=", &names_, function.name));
      for (const auto& [line, costs] : function.self) {
        absl::StrAppend(&text, line, " ", Text(costs), "\n");
      }
      for (const auto& [where, calls] : function.calls) {
        const Function& callee = functions_[where.second];
        absl::StrAppend(&text, Named("cob=", &objects_, callee.object),
                        Named("cfi=", &files_, callee.file), Named("cfn=", &names_, callee.name),
                        "calls=", calls.allocations, " 0\n", where.first, " ", Text(calls.costs),
                        "\n");
      }
      out.Write(text);
    }
    out.Write(absl::StrCat("\ntotals: ", Text(totals_), "\n"));
  }

 private:
  std::string Text(const Costs& costs) const {
    return absl::StrJoin(std::span(costs).first(order_.size()), " ");
  }

  using Numbers = absl::flat_hash_map<std::string, size_t>;

  size_t IdOf(const Frame& frame) {
    const auto key = std::tuple(frame.module, frame.file, render::FrameName(frame));
    const auto [at, is_new] = ids_.try_emplace(key, functions_.size());
    if (is_new) functions_.push_back({frame.module, frame.file, std::get<2>(key), {}, {}});
    return at->second;
  }

  // "???" is what Callgrind writes for what is not known.
  static std::string Named(absl::string_view key, Numbers* numbers, const std::string& name) {
    const auto [at, is_new] = numbers->try_emplace(name, numbers->size() + 1);
    return absl::StrCat(
        key, "(", at->second, ")",
        is_new ? absl::StrCat(" ", name.empty() ? "???" : words::EscapeControls(name)) : "", "\n");
  }

  std::vector<SiteMeasure> order_;
  Costs totals_{};
  std::vector<Function> functions_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> ids_;
  Numbers objects_, files_, names_;
};

}  // namespace

void RenderCallgrind(const ReportView& view, SiteMeasure measure, Sink& out) {
  Graph graph(view.analysis(), measure);
  for (const Site* site : view.sites()) graph.Add(view, *site);
  graph.Write(view.analysis().process, render::SelectionText(view), out);
}

}  // namespace memtrace::report::viewers
