// The catalog as data, for `gradwired --dump-ops`, ListOps and the clients' generators.
#pragma once

#include <string>

namespace gradwire {

// Every row, in the JSON form of proto gradwire.v1.Op (snake_case keys), sorted by number.
std::string catalog_json();
// A hash of catalog_json(): clients compare it at Hello.
std::string catalog_hash();

}  // namespace gradwire
