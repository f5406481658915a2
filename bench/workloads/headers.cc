// A file that is nearly all headers, for cc1plus.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

int Count(const std::map<std::string, std::vector<int>>& values, const std::string& expression) {
  std::regex pattern(expression);
  std::unordered_map<std::string, std::variant<int, std::string>> seen;
  int count = 0;
  for (const auto& [key, numbers] : values) {
    if (std::regex_match(key, pattern)) count += std::count(numbers.begin(), numbers.end(), 1);
    seen[key] = count;
  }
  std::ostringstream text;
  for (const auto& [key, value] : seen) text << key << value.index();
  return count + static_cast<int>(text.str().size());
}
