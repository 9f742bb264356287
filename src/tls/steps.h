#pragma once

// Steps: calls of GnuTLS one after the other, up to the first that fails.
//
//   Steps steps;
//   steps.then([&] { return library.x509_crt_set_version(certificate, 3); }).then([&] { ... });
//   if (steps.result() < 0) ...
//
// Thread rule: one thread.

namespace hawser::tls {

class Steps {
 public:
  template <typename Call>
  Steps& then(Call&& call) {
    if (result_ >= 0) result_ = call();
    return *this;
  }
  int result() const { return result_; }

 private:
  int result_ = 0;
};

}  // namespace hawser::tls
