#include "kernels/expr/intern.h"

#include <memory>
#include <mutex>
#include <shared_mutex>

#include "absl/container/flat_hash_map.h"

namespace gradwire::expr {
namespace {

using Table = absl::flat_hash_map<std::string, const Program*>;

struct Interned {
  std::shared_mutex mutex;
  Table made;
  Table contents;
};

Interned& interned() {
  static Interned* interned = new Interned;
  return *interned;
}

// Everything a Program means, as bytes without padding.
std::string contents_of(const Program& p) {
  std::string key;
  key.reserve(64 + p.code.size() * 11 + 16 * (p.loads.size() + p.constants.size()));
  for (uint64_t count :
       {p.loads.size(), p.scalars.size(), p.constants.size(), p.code.size(), p.stores.size()}) {
    append(key, static_cast<uint32_t>(count));
  }
  for (int count : {p.registers, p.inputs, p.scalar_inputs, p.outputs, int{p.can_fail}}) {
    append(key, count);
  }
  for (const LoadSlot& l : p.loads) {
    append(key, l.input);
    append(key, l.stored);
    append(key, l.reg);
  }
  for (const ScalarSlot& s : p.scalars) {
    append(key, s.scalar);
    append(key, s.type);
    append(key, s.reg);
  }
  for (const ConstantSlot& c : p.constants) {
    append(key, c.value);
    append(key, c.type);
    append(key, c.reg);
  }
  for (const Instruction& i : p.code) {
    append(key, i.prim);
    append(key, i.type);
    append(key, i.from);
    for (Register r : {i.dst, i.a, i.b, i.c}) append(key, r);
  }
  for (const StoreSlot& s : p.stores) {
    append(key, s.output);
    append(key, s.stored);
    append(key, s.reg);
  }
  return key;
}

// The same in every process, so that compiled kernels can be kept by it.
uint64_t stable_hash(const std::string& bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) h = (h ^ byte) * 0x100000001b3u;
  h ^= h >> 32;
  return h;
}

}  // namespace

const Program* intern(Program program) {
  std::string key = contents_of(program);
  program.hash = stable_hash(key);
  std::unique_lock lock(interned().mutex);
  const Program*& slot = interned().contents[std::move(key)];
  if (slot == nullptr) slot = new Program(std::move(program));
  return slot;
}

const Program* find_made(const std::string& key) {
  std::shared_lock lock(interned().mutex);
  auto it = interned().made.find(key);
  return it == interned().made.end() ? nullptr : it->second;
}

void remember_made(std::string key, const Program* program) {
  std::unique_lock lock(interned().mutex);
  interned().made.emplace(std::move(key), program);
}

}  // namespace gradwire::expr
