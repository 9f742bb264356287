#include "backend/hello_identity.h"

namespace hawser::backend {

wire::Hello hello_of(const Identity& identity) {
  wire::Hello hello;
  hello.version_min = identity.version_min;
  hello.version_max = identity.version_max;
  hello.driven = identity.driven;
  hello.incarnation = identity.incarnation;
  hello.public_key = identity.public_key;
  hello.name = identity.name;
  return hello;
}

Identity identity_of(const wire::Hello& hello) {
  Identity identity;
  identity.name = hello.name;
  identity.incarnation = hello.incarnation;
  identity.public_key = hello.public_key;
  identity.born = hello.born;
  identity.driven = hello.driven;
  identity.version_min = hello.version_min;
  identity.version_max = hello.version_max;
  return identity;
}

}  // namespace hawser::backend
