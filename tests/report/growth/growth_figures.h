// Precision and recall of growth verdicts, and whether they are what docs/growth.md publishes.
//
//   precision   of the sites with this verdict, the share that are so labelled
//   recall      of the sites so labelled, the share that got this verdict

#ifndef MEMTRACE_TESTS_REPORT_GROWTH_GROWTH_FIGURES_H_
#define MEMTRACE_TESTS_REPORT_GROWTH_GROWTH_FIGURES_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "report/findings/growth.h"

namespace memtrace::report {

class GrowthFigures {
 public:
  using Verdict = Growth::Verdict;

  void Add(const std::string& scenario, Verdict label, Verdict found) {
    ++matrix_[{label, found}];
    ++by_scenario_[scenario][found];
    labels_[scenario] = label;
  }

  double Precision(Verdict verdict) const { return Share(verdict, false); }
  double Recall(Verdict verdict) const { return Share(verdict, true); }

  // A line for each verdict as the document has it, and what went wrong.
  std::string Table() const {
    std::ostringstream out;
    for (const Verdict verdict : kAll) {
      if (Sum(verdict, true) == 0) continue;
      char line[100];
      std::snprintf(line, sizeof(line), "| %s | %d | %.3f | %.3f |\n",
                    std::string(VerdictName(verdict)).c_str(), Sum(verdict, true),
                    Precision(verdict), Recall(verdict));
      out << line;
    }
    for (const auto& [scenario, found] : by_scenario_) {
      for (const auto& [verdict, count] : found) {
        if (verdict != labels_.at(scenario)) {
          out << "  " << scenario << ": " << count << " times " << VerdictName(verdict) << "\n";
        }
      }
    }
    return out.str();
  }

  // Lines "| growing | 400 | 0.98 | 0.97 |" behind "<!-- NAME -->" in docs/growth.md.
  void ExpectAsPublished(const std::string& name) const {
    std::ifstream document(MEMTRACE_SOURCE_DIR "/docs/growth.md");
    ASSERT_TRUE(document.is_open());
    std::string line;
    while (std::getline(document, line) && line != "<!-- " + name + " -->") {
    }
    std::map<std::string, std::pair<double, double>> published;
    while (std::getline(document, line) && line.rfind("|", 0) == 0) {
      char verdict[20];
      int sites;
      double precision, recall;
      if (std::sscanf(line.c_str(), "| %19s | %d | %lf | %lf |", verdict, &sites, &precision,
                      &recall) == 4) {
        published[verdict] = {precision, recall};
      }
    }
    for (const Verdict verdict : kAll) {
      if (Sum(verdict, true) == 0) continue;
      const auto at = published.find(std::string(VerdictName(verdict)));
      ASSERT_NE(at, published.end()) << VerdictName(verdict) << " is not published";
      EXPECT_GE(Precision(verdict), at->second.first) << VerdictName(verdict);
      EXPECT_GE(Recall(verdict), at->second.second) << VerdictName(verdict);
      EXPECT_GE(at->second.first, 0.8) << "published for " << VerdictName(verdict);
      EXPECT_GE(at->second.second, 0.8) << "published for " << VerdictName(verdict);
    }
  }

 private:
  static constexpr Verdict kAll[] = {Verdict::kBounded, Verdict::kGrowing, Verdict::kBurst,
                                     Verdict::kSawtooth, Verdict::kHeld};

  int Sum(Verdict verdict, bool labelled) const {
    int sum = 0;
    for (const auto& [key, count] : matrix_) {
      if ((labelled ? key.first : key.second) == verdict) sum += count;
    }
    return sum;
  }
  double Share(Verdict verdict, bool labelled) const {
    const auto right = matrix_.find({verdict, verdict});
    const int all = Sum(verdict, labelled);
    return all == 0 || right == matrix_.end() ? 0 : static_cast<double>(right->second) / all;
  }

  std::map<std::pair<Verdict, Verdict>, int> matrix_;  // label, found
  std::map<std::string, std::map<Verdict, int>> by_scenario_;
  std::map<std::string, Verdict> labels_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_GROWTH_GROWTH_FIGURES_H_
