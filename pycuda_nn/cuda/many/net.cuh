// Settings of one of many networks.

struct Net {
  unsigned long long seed;
  float momentum, beta2, eps, l2, scale;
  unsigned threshold;
};
