// MadeUpGate: what a gate is about, as a test writes it down: processes, what they leaked with
// stacks of the given names, and a GateResult from it.

#ifndef MEMTRACE_TESTS_REPORT_GATE_GATE_MADE_UP_H_
#define MEMTRACE_TESTS_REPORT_GATE_GATE_MADE_UP_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/gate/baseline_of.h"
#include "report/gate/formats.h"
#include "report/gate/judge.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::gate {

class MadeUpGate {
 public:
  MadeUpGate() { policy.today = "2026-11-22"; }

  uint32_t AddProcess(const std::string& program) {
    GateProcess& process = input.processes.emplace_back();
    process.file = program + "." + std::to_string(input.processes.size()) + ".mtr";
    process.program = program;
    process.pid = 40 + static_cast<uint32_t>(input.processes.size());
    process.working_directory = "/work";
    process.scanned = true;
    return static_cast<uint32_t>(input.processes.size()) - 1;
  }

  StackId Stack(const std::string& function, uint32_t line = 10) {
    const StackId stack = made_up.Stack(
        {{function, "/work/src/" + function + ".c", line}, {"main", "/work/src/main.c", 3},
         Libc("__libc_start_main")});
    // The names are only asked for stacks that some site has.
    made_up.AddSite(stack, 1, 1, 0);
    return stack;
  }

  void AddLeak(uint32_t process, LeakKind kind, StackId stack, uint64_t bytes, uint64_t blocks,
               LeakAmount indirect = {}) {
    input.losses.push_back(
        {process, kind, format::AllocFunction::kMalloc, stack, {bytes, blocks}, indirect});
  }

  const GateResult& Judge() {
    view = std::make_unique<render::ReportView>(made_up.View());
    result = gate::Judge(input, *view, policy, baseline, &suppressions);
    return result;
  }

  // Everything found becomes the baseline.
  void AcceptAll() {
    policy.has_baseline = true;
    Judge();
    const std::string text = Baseline().Update(BaselineOf(result, *view), {}, policy.fail_on);
    baseline = *Baseline::Parse(text, "known");
    suppressions.ForgetMatches();
  }

  GateReport Report() {
    GateReport report;
    report.result = &result;
    report.names = view.get();
    report.suppressions = &suppressions;
    report.baseline = policy.has_baseline ? "known" : "";
    report.style.width = 80;
    return report;
  }

  MadeUp made_up;
  GateInput input;
  GatePolicy policy;
  Baseline baseline;
  suppress::Suppressions suppressions;
  std::unique_ptr<render::ReportView> view;
  GateResult result;
};

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_TESTS_REPORT_GATE_GATE_MADE_UP_H_
