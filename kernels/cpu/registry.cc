#include "kernels/cpu/registry.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

namespace gradwire::cpu {
namespace {

// Filled during static initialisation, read-only afterwards.
struct Table {
  std::unordered_map<std::string_view, KernelId> ids;
  std::vector<Kernel> kernels{nullptr};
};

Table& table() {
  static Table* table = new Table;
  return *table;
}

}  // namespace

Registration::Registration(std::string_view name, Kernel kernel) {
  KernelId id = static_cast<KernelId>(table().kernels.size());
  if (!table().ids.emplace(name, id).second) {
    std::fprintf(stderr, "cpu kernel registered twice: %s\n", std::string(name).c_str());
    std::abort();
  }
  table().kernels.push_back(kernel);
}

KernelId find_kernel(std::string_view name) {
  auto it = table().ids.find(name);
  return it == table().ids.end() ? 0 : it->second;
}

Kernel kernel_at(KernelId id) {
  return id < table().kernels.size() ? table().kernels[id] : nullptr;
}

}  // namespace gradwire::cpu
