// The smallest program that uses an installed Hawser.

#include <cstdio>

#include <hawser/hawser.h>

int main() {
  std::printf("hawser %s\n", hawser::version());
  return 0;
}
